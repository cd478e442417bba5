//! One step (advance, mask, choose) in every form, with every kind of operation and on every
//! device, against the host.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_dfa::ErrorKind;
use burn_dfa::processor::{ConstraintProcessor, LogitsProcessor, StepContext};
use burn_dfa::sampling::{Greedy, GumbelMax, Sampler};
use burn_dfa::{
    Capacity, CompiledConstraint, Constraint, DeviceConstraint, ForcedText, Kernels, Limits, StateId,
    TensorOptions, TokenId, Vocabulary, vocabulary::TokenKind,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::common::{devices, ints};
#[cfg(feature = "wgpu")]
use burn_dfa_testing::skip::skipped;

/// Wider than the vocabulary, and more than one cube of a kernel.
const VOCAB_SIZE: usize = 300;
const STEPS: usize = 14;

/// Every letter, pairs of letters, half characters, specials, holes, two ends of sequence.
fn vocabulary(singles: bool) -> Vocabulary {
    let mut tokens: Vec<(TokenKind, Vec<u8>)> = vec![(TokenKind::Special, b"<s>".to_vec())];
    if singles {
        tokens.extend((0x20..0x7f).map(|byte| (TokenKind::Normal, vec![byte])));
    }
    let texts =
        ["ab", "abc", "bc", "aa", "ca", "12", "123", "1", "2", "{\"", "\":", "\"}", "é", "aé", "b", "c", "a"];
    tokens.extend(texts.map(|text| (TokenKind::Normal, text.as_bytes().to_vec())));
    tokens.extend([
        (TokenKind::Normal, vec![0xc3]),
        (TokenKind::Normal, vec![0xa9]),
        (TokenKind::Unused, Vec::new()),
        (TokenKind::Normal, vec![b'a'; 40]),
        (TokenKind::Special, b"</s>".to_vec()),
        (TokenKind::Special, b"<end>".to_vec()),
    ]);
    let len = tokens.len() as u32;
    let vocabulary = Vocabulary::from_tokens(tokens).unwrap();
    vocabulary.with_eos([TokenId(len - 1), TokenId(len - 2)]).unwrap()
}

const PATTERNS: [&str; 6] =
    ["(ab|c)*", "abcab1(2abc|1)é", "é+-?[12]{2,3}", "a{3,90}b?", "[^\"]{0,20}é?", "(a|b|c|1|2){1,9}"];

fn constraints(
    vocabulary: &Vocabulary,
    form: impl Fn(&Constraint, &Vocabulary) -> CompiledConstraint,
) -> Vec<CompiledConstraint> {
    let usable = PATTERNS.iter().map(|pattern| Constraint::regex(pattern).unwrap());
    let usable = usable.filter(|c| CompiledConstraint::compile(c, vocabulary, &Limits::default()).is_ok());
    let mut constraints: Vec<_> = usable.map(|constraint| form(&constraint, vocabulary)).collect();
    constraints.push(CompiledConstraint::unconstrained(vocabulary));
    constraints
}

fn byte_level(constraint: &Constraint, vocabulary: &Vocabulary) -> CompiledConstraint {
    CompiledConstraint::compile_byte_level(constraint, vocabulary, &Limits::default()).unwrap()
}

/// Only the longest token of forced text is legal.
fn longest(constraint: &Constraint, vocabulary: &Vocabulary) -> CompiledConstraint {
    let limits = Limits::default().with_forced_text(ForcedText::Longest);
    CompiledConstraint::compile_byte_level(constraint, vocabulary, &limits).unwrap()
}

fn token_level(constraint: &Constraint, vocabulary: &Vocabulary) -> CompiledConstraint {
    CompiledConstraint::compile_token_level(constraint, vocabulary, &Limits::default()).unwrap()
}

/// Random logits with NaN, infinities and ties.
fn logits(rng: &mut StdRng, rows: usize, wild: bool) -> Vec<f32> {
    (0..rows * VOCAB_SIZE)
        .map(|_| match rng.random_range(0..14) {
            0 if wild => f32::NAN,
            1 if wild => f32::INFINITY,
            2 => f32::NEG_INFINITY,
            3 => 0.5,
            4 => -0.0,
            5 => 0.0,
            _ => rng.random_range(-6.0..6.0),
        })
        .collect()
}

fn bits(logits: Tensor<2>) -> Vec<u32> {
    let values = logits.into_data().convert_dtype(DType::F32).try_to_vec::<f32>().unwrap();
    values.into_iter().map(f32::to_bits).collect()
}

fn read(values: Tensor<1, burn::tensor::Int>) -> Vec<i32> {
    values.into_data().try_to_vec::<i32>().unwrap()
}

/// A row on the host.
struct Row<'a> {
    constraint: &'a CompiledConstraint,
    state: StateId,
    left: u32,
}

impl Row<'_> {
    fn allows(&self, token: u32) -> bool {
        let next = self.constraint.next(self.state, TokenId(token));
        next != StateId::DEAD && self.constraint.tokens_to_end(next) < self.left.max(1)
    }

    /// The greatest legal logit, with the rules of an argmax over the masked row.
    fn greatest(&self, logits: &[f32]) -> i32 {
        let mut best = (f32::NEG_INFINITY, 0);
        for (token, &logit) in logits.iter().enumerate() {
            if self.allows(token as u32) {
                if logit.is_nan() {
                    return token as i32;
                }
                if logit > best.0 {
                    best = (logit, token as i32);
                }
            }
        }
        best.1
    }
}

fn half_types(device: &Device) -> Vec<DType> {
    [DType::F32, DType::F16, DType::BF16].into_iter().filter(|&dtype| device.supports_dtype(dtype)).collect()
}

fn run(
    constraints: &[CompiledConstraint],
    options: &TensorOptions,
    device: &Device,
    dtype: DType,
    seed: u64,
) {
    let name = format!("{options:?}, {device:?}, {dtype:?}");
    let mut rng = StdRng::seed_from_u64(seed);
    let references: Vec<_> = constraints.iter().collect();
    let rows: Vec<usize> = (0..constraints.len()).chain(0..constraints.len()).collect();
    let batch = rows.len();
    let tensors = DeviceConstraint::new(&references, VOCAB_SIZE, options, device).unwrap();
    assert_eq!(tensors.is_fused(), options.kernels == Kernels::Fused, "{name}");
    let budgets: Vec<usize> =
        rows.iter().map(|&row| tensors.tokens_needed(row).max(1) + rng.random_range(0..12)).collect();
    let seeds: Vec<u64> = (0..batch as u64).collect();
    let sampler = GumbelMax::new(&seeds, VOCAB_SIZE, device).unwrap().with_temperature(0.7).unwrap();
    let joined = tensors.clone();
    let processor = ConstraintProcessor::new(tensors, &rows).unwrap().with_budgets(&budgets).unwrap();
    let mut host: Vec<Row> = rows
        .iter()
        .zip(&budgets)
        .map(|(&row, &left)| Row {
            constraint: &constraints[row],
            state: constraints[row].start(),
            left: left as u32,
        })
        .collect();
    let mut state = processor.start();
    let mut tokens = vec![VOCAB_SIZE as i32; batch];
    for step in 0..STEPS {
        let values = logits(&mut rng, batch, step % 2 == 0);
        let data = TensorData::new(values, [batch, VOCAB_SIZE]).convert_dtype(dtype);
        let values = data.clone().convert_dtype(DType::F32).try_to_vec::<f32>().unwrap();
        let upload = || Tensor::<2>::from_data(data.clone(), (device, dtype));
        let context =
            StepContext { tokens: ints(tokens.clone(), device), step: ints(vec![step as i32], device) };

        let (masked, next) = processor.process(state.clone(), upload(), &context);
        assert_eq!(masked.dtype(), dtype);
        let expected: Vec<u32> = (0..batch * VOCAB_SIZE)
            .map(|at| {
                let legal = host[at / VOCAB_SIZE].allows((at % VOCAB_SIZE) as u32);
                if legal { values[at].to_bits() } else { f32::NEG_INFINITY.to_bits() }
            })
            .collect();
        let reference = masked.clone();
        let masked = bits(masked);
        if let Some(at) = (0..expected.len()).find(|&at| {
            masked[at] != expected[at]
                && !(f32::from_bits(masked[at]).is_nan() && f32::from_bits(expected[at]).is_nan())
        }) {
            panic!(
                "{name}: step {step}, row {}, token {}: {} is not {}",
                at / VOCAB_SIZE,
                at % VOCAB_SIZE,
                f32::from_bits(masked[at]),
                f32::from_bits(expected[at])
            );
        }
        for (row, (joined_state, host)) in read(next.states()).into_iter().zip(&host).enumerate() {
            let offset = joined.start(rows[row]).0 as i32 - constraints[rows[row]].start().0 as i32;
            let own = if host.state.0 < StateId::RESERVED { 0 } else { offset };
            assert_eq!(joined_state, host.state.0 as i32 + own, "{name}: step {step}, row {row}");
        }

        for (sampler, greedy) in [(&Greedy as &dyn Sampler, true), (&sampler, false)] {
            let (mut state, mut context) = (state.clone(), context.clone());
            processor.sample_step(&mut state, &mut context, upload(), sampler);
            let chosen = read(context.tokens);
            let expected = if greedy {
                (0..batch).map(|row| host[row].greatest(&values[row * VOCAB_SIZE..][..VOCAB_SIZE])).collect()
            } else {
                read(sampler.sample(reference.clone(), &context.step))
            };
            assert_eq!(chosen, expected, "{name}: step {step}, greedy {greedy}");
            assert_eq!(read(state.states()), read(next.states()), "{name}: step {step}");
        }

        state = next;
        for (row, host) in host.iter_mut().enumerate() {
            let legal: Vec<u32> = (0..VOCAB_SIZE as u32).filter(|&token| host.allows(token)).collect();
            // Sometimes no token, or an illegal or invalid one.
            let token = match rng.random_range(0..30) {
                0 => VOCAB_SIZE as i32,
                1 if step > 8 => VOCAB_SIZE as i32 + 7,
                2 if step > 8 => -1,
                _ if legal.is_empty() => 0,
                _ => legal[rng.random_range(0..legal.len())] as i32,
            };
            tokens[row] = token;
            if token != VOCAB_SIZE as i32 {
                let id = u32::try_from(token).ok().filter(|&id| (id as usize) < VOCAB_SIZE);
                host.state = id.map_or(StateId::DEAD, |id| host.constraint.next(host.state, TokenId(id)));
                host.left = host.left.saturating_sub(1);
            }
        }
    }
}

#[test]
fn every_form_and_kernel_matches_the_host() {
    for singles in [true, false] {
        let vocabulary = vocabulary(singles);
        let token_level = constraints(&vocabulary, token_level);
        let byte_level = constraints(&vocabulary, byte_level);
        let longest = constraints(&vocabulary, longest);
        let both_forms = [&token_level[..1], &byte_level[1..]].concat();
        assert!(byte_level[0].is_byte_level() && !token_level[0].is_byte_level());
        for (name, device) in devices::all() {
            for dtype in half_types(&device) {
                for kernels in [Kernels::BuiltIn, Kernels::Fused] {
                    // The built-in operations are slow on a GPU, especially the loop over the
                    // longest token, and equal on all devices.
                    let is_slow = kernels == Kernels::BuiltIn && device != Device::flex();
                    if is_slow && (dtype != DType::F32 || singles) {
                        continue;
                    }
                    let options = TensorOptions { kernels, ..TensorOptions::default() };
                    run(&token_level, &options, &device, dtype, 1);
                    run(&token_level[..1], &options, &device, dtype, 2);
                    run(&byte_level, &options, &device, dtype, 3);
                    run(&byte_level[..1], &options, &device, dtype, 4);
                    run(&longest, &options, &device, dtype, 5);
                    run(&both_forms, &options, &device, dtype, 6);
                }
            }
            eprintln!("steps agree on {name}");
        }
    }
}

#[test]
fn both_forms_allow_the_same_tokens() {
    let mut rng = StdRng::seed_from_u64(5);
    for singles in [true, false] {
        let vocabulary = vocabulary(singles);
        for (token_level, byte_level) in
            constraints(&vocabulary, token_level).iter().zip(&constraints(&vocabulary, byte_level))
        {
            for _ in 0..200 {
                let (mut left, mut right) = (token_level.start(), byte_level.start());
                for _ in 0..30 {
                    let allowed: Vec<_> = token_level.allowed(left).collect();
                    assert_eq!(allowed, byte_level.allowed(right).collect::<Vec<_>>());
                    assert!(byte_level.tokens_to_end(right) >= token_level.tokens_to_end(left));
                    let token = allowed[rng.random_range(0..allowed.len())];
                    (left, right) = (token_level.next(left, token), byte_level.next(right, token));
                }
            }
        }
    }
}

#[test]
fn a_constraint_too_large_for_the_token_level_form_is_byte_level() {
    let vocabulary = vocabulary(true);
    let constraint = Constraint::regex("[a-z]{0,400}").unwrap();
    let limits = Limits { token_level_bytes: 5_000, ..Limits::default() };
    let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &limits).unwrap();
    assert!(compiled.is_byte_level());
    assert!(
        !CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default()).unwrap().is_byte_level()
    );
    let states = constraint.to_byte_dfa(&Limits::default()).unwrap().unwrap().state_count();
    let entries = states * vocabulary.len();
    for (max_entries, is_byte_level) in [(entries, false), (entries - 1, true)] {
        let limits = Limits::default().with_token_level_entries(max_entries);
        let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &limits).unwrap();
        assert_eq!(compiled.is_byte_level(), is_byte_level, "{max_entries} of {entries}");
    }
}

#[test]
fn fitting_constraints_are_replaced_in_place() {
    let vocabulary = vocabulary(true);
    for (name, device) in devices::all() {
        for kernels in [Kernels::BuiltIn, Kernels::Fused] {
            let forms: [fn(&Constraint, &Vocabulary) -> CompiledConstraint; 2] = [token_level, byte_level];
            for form in forms {
                let [small, other, large] = ["a{2}b", "(c|1)+", "a{150}"]
                    .map(|pattern| form(&Constraint::regex(pattern).unwrap(), &vocabulary));
                let capacity = Capacity { states: 20, classes: 30, constraints: 2, ..Capacity::new() };
                let options = TensorOptions { kernels, capacity, ..TensorOptions::default() };
                let mut tensors = DeviceConstraint::new(&[&small], VOCAB_SIZE, &options, &device).unwrap();
                let error = tensors.replace(&[&large]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Input, "{error}");
                let pairs = [vec![&other, &small], vec![&small, &other], vec![&small, &small]];
                let single = [vec![&small], vec![&other], vec![&other]];
                for constraints in pairs.into_iter().chain(single) {
                    tensors.replace(&constraints).unwrap();
                    let starts: Vec<_> = (0..constraints.len()).map(|index| tensors.start(index)).collect();
                    let illegal =
                        crate::common::bools(tensors.illegal(tensors.states(&starts).unwrap(), None));
                    for (row, constraint) in constraints.iter().enumerate() {
                        for token in 0..VOCAB_SIZE {
                            let legal =
                                constraint.next(constraint.start(), TokenId(token as u32)) != StateId::DEAD;
                            assert_eq!(
                                illegal[row * VOCAB_SIZE + token],
                                !legal,
                                "{name}, {constraint:?}, token {token}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn logits_of_another_kind_are_typed_errors() {
    let vocabulary = vocabulary(true);
    let constraint = token_level(&Constraint::regex("a+").unwrap(), &vocabulary);
    let device = Device::flex();
    let tensors =
        DeviceConstraint::new(&[&constraint], VOCAB_SIZE, &TensorOptions::default(), &device).unwrap();
    let processor = ConstraintProcessor::new(tensors, &[0, 0]).unwrap();
    let logits = |shape, dtype| Tensor::<2>::zeros(shape, (&device, dtype));
    assert!(processor.check(&logits([2, VOCAB_SIZE], DType::F32)).is_ok());
    for (wrong, kind) in [
        (logits([2, VOCAB_SIZE - 1], DType::F32), ErrorKind::IncompatibleVocabulary),
        (logits([1, VOCAB_SIZE], DType::F32), ErrorKind::Input),
        (logits([2, VOCAB_SIZE], DType::F64), ErrorKind::Input),
    ] {
        let error = processor.check(&wrong).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    for (name, device) in devices::all() {
        let elsewhere = Tensor::<2>::zeros([2, VOCAB_SIZE], (&device, DType::F32));
        assert_eq!(processor.check(&elsewhere).is_err(), name != "flex", "{name}");
    }
}

#[cfg(feature = "wgpu")]
#[test]
fn a_constraint_above_the_binding_limit_is_refused_before_upload() {
    let vocabulary = vocabulary(true);
    let constraint = token_level(&Constraint::regex("a{400}").unwrap(), &vocabulary);
    // The classes of all tokens for each constraint: 256 MB.
    let capacity = Capacity::new().with_constraints(64);
    let options = TensorOptions { capacity, max_bytes: usize::MAX, ..TensorOptions::default() };
    for (name, device) in devices::all() {
        if device.identity().is_none_or(|identity| identity.physical.is_some()) {
            skipped(format_args!("{name}: only a software Vulkan is known to bind 128 MiB at most"));
            continue;
        }
        let error = DeviceConstraint::new(&[&constraint], 1_000_000, &options, &device).unwrap_err();
        assert!(matches!(error.breached(), Some(burn_dfa::Limit::Binding(_))), "{error}");
    }
}
