//! The laws of every processor and chain, on every device of this build.

use crate::common::{bools, devices, ints};
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_dfa::processor::{
    ConstraintProcessor, FrequencyPresencePenalty, InitContext, LogitBias, LogitsProcessor, MinNewTokens,
    MinP, RepetitionPenalty, StepContext, SuppressTokens, Temperature, TopK, TopP,
};
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, Limits, Result, StateId, TensorOptions, TokenId,
    Vocabulary,
};
use burn_dfa_testing::skip::skipped;
use rand::{Rng, SeedableRng, rngs::StdRng};

/// Wider than the vocabulary, as a padded output layer is.
const VOCAB_SIZE: usize = 24;
const ROWS: usize = 5;
const STEPS: usize = 6;
const EOS: TokenId = TokenId(19);

fn vocabulary() -> Vocabulary {
    let text = ["a", "b", "c", "ab", "bc", "abc", "aa", "ca", "1", "2", "12", "é", "\u{e9}a", "-", "b"];
    let tokens = text.iter().map(|t| Some(t.as_bytes().to_vec()));
    // Two halves of a character, two tokens without text, the end.
    let rest = [Some(vec![0xc3]), Some(vec![0xa9]), None, None, None];
    Vocabulary::from_bytes(tokens.chain(rest)).unwrap().with_eos([EOS]).unwrap()
}

/// The compile function of a form.
type Form = fn(&Constraint, &Vocabulary, &Limits) -> Result<CompiledConstraint>;

fn constraints(vocabulary: &Vocabulary, form: Form) -> Vec<CompiledConstraint> {
    let patterns = ["(ab|c)*", "é+-?[12]{2,3}", "a{3,9}b?"];
    let compile = |pattern| form(&Constraint::regex(pattern).unwrap(), vocabulary, &Limits::default());
    let mut constraints: Vec<_> = patterns.map(|pattern| compile(pattern).unwrap()).into();
    constraints.push(CompiledConstraint::unconstrained(vocabulary));
    constraints
}

/// Constraints of each form, and constraints of both forms.
fn forms(vocabulary: &Vocabulary) -> [(&'static str, Vec<CompiledConstraint>); 3] {
    let token_level = constraints(vocabulary, CompiledConstraint::compile_token_level);
    let byte_level = constraints(vocabulary, CompiledConstraint::compile_byte_level);
    let both = [&token_level[..1], &byte_level[1..]].concat();
    [("token-level", token_level), ("byte-level", byte_level), ("both forms", both)]
}

/// Prompts, logits and chosen tokens of a batch: `[ROWS]`, `[STEPS][ROWS][VOCAB_SIZE]`,
/// `[STEPS][ROWS]`.
struct Tape {
    prompts: Vec<Vec<i32>>,
    logits: Vec<Vec<Vec<f32>>>,
    tokens: Vec<Vec<i32>>,
}

/// Random logits with NaN, infinities and ties; tokens that follow the constraints, as sampled
/// tokens would.
fn tape(seed: u64, constraints: &[CompiledConstraint], rows: &[usize], wild: bool) -> Tape {
    let mut rng = StdRng::seed_from_u64(seed);
    let logit = |rng: &mut StdRng| match rng.random_range(0..12) {
        0 if wild => f32::NAN,
        1 if wild => f32::INFINITY,
        2 if wild => f32::NEG_INFINITY,
        3 => 0.5,
        _ => rng.random_range(-6.0..6.0),
    };
    let prompts = rows.iter().map(|_| (0..4).map(|_| rng.random_range(0..19)).collect()).collect();
    let logits = (0..STEPS)
        .map(|_| rows.iter().map(|_| (0..VOCAB_SIZE).map(|_| logit(&mut rng)).collect()).collect())
        .collect();
    let mut states: Vec<_> = rows.iter().map(|&row| constraints[row].start()).collect();
    let tokens = (0..STEPS)
        .map(|_| {
            let choose = |(state, &row): (&mut StateId, &usize)| {
                let allowed: Vec<_> = constraints[row].allowed(*state).collect();
                let token = allowed[rng.random_range(0..allowed.len())];
                *state = constraints[row].next(*state, token);
                token.0 as i32
            };
            states.iter_mut().zip(rows).map(choose).collect()
        })
        .collect();
    Tape { prompts, logits, tokens }
}

fn tensor2(rows: &[&[f32]], dtype: DType, device: &Device) -> Tensor<2> {
    let shape = [rows.len(), rows[0].len()];
    Tensor::from_data(TensorData::new(rows.concat(), shape).convert_dtype(dtype), (device, dtype))
}

/// Bit patterns, after a lossless cast to f32.
fn bits(logits: Tensor<2>) -> Vec<u32> {
    let values = logits.into_data().convert_dtype(DType::F32).try_to_vec::<f32>().unwrap();
    values.into_iter().map(f32::to_bits).collect()
}

/// The bits of the processed `rows` of the tape, `[STEPS][rows · VOCAB_SIZE]`; checks shape and
/// dtype.
fn run<P: LogitsProcessor>(
    processor: &P,
    tape: &Tape,
    rows: &[usize],
    dtype: DType,
    device: &Device,
) -> Vec<Vec<u32>> {
    let prompt: Vec<i32> = rows.iter().flat_map(|&row| tape.prompts[row].clone()).collect();
    let context = InitContext {
        prompt: ints(prompt, device).reshape([rows.len() as i32, -1]),
        padding: ints(vec![0; rows.len()], device),
        vocab_size: VOCAB_SIZE,
    };
    let mut state = Some(processor.init(&context));
    let mut tokens = vec![VOCAB_SIZE as i32; rows.len()];
    (0..STEPS)
        .map(|step| {
            let logits: Vec<&[f32]> = rows.iter().map(|&row| &tape.logits[step][row][..]).collect();
            let logits = tensor2(&logits, dtype, device);
            let context =
                StepContext { tokens: ints(tokens.clone(), device), step: ints(vec![step as i32], device) };
            let (processed, next) = processor.process(state.take().unwrap(), logits, &context);
            state = Some(next);
            assert_eq!(processed.dims(), [rows.len(), VOCAB_SIZE], "the shape is kept");
            assert_eq!(processed.dtype(), dtype, "the dtype is kept");
            tokens = rows.iter().map(|&row| tape.tokens[step][row]).collect();
            bits(processed)
        })
        .collect()
}

/// A batch is its rows, stacked.
fn batch_is_stacked_rows<P: LogitsProcessor>(
    name: &str,
    make: impl Fn(&[usize]) -> P,
    tape: &Tape,
    dtype: DType,
    device: &Device,
) {
    let all: Vec<usize> = (0..ROWS).collect();
    let batch = run(&make(&all), tape, &all, dtype, device);
    for row in all {
        let single = run(&make(&[row]), tape, &[row], dtype, device);
        for step in 0..STEPS {
            let stacked = &batch[step][row * VOCAB_SIZE..][..VOCAB_SIZE];
            assert_eq!(single[step], stacked, "{name}: row {row}, step {step}, {dtype:?}, {device:?}");
        }
    }
}

fn dtypes(device: &Device) -> Vec<DType> {
    let half = device.supports_dtype(DType::F16).then_some(DType::F16);
    if half.is_none() {
        skipped(format_args!("f16 on {device:?}: the device does not support it"));
    }
    [Some(DType::F32), half].into_iter().flatten().collect()
}

#[test]
fn every_processor_keeps_the_laws() {
    let vocabulary = vocabulary();
    let forms = forms(&vocabulary);
    let assignment = [0, 1, 2, 3, 0];
    for (name, device) in devices::all() {
        for dtype in dtypes(&device) {
            let law = |constraints| Law {
                tape: tape(1, constraints, &assignment, false),
                dtype,
                device: device.clone(),
            };
            for (form, constraints) in &forms {
                let (law, references) = (law(constraints), constraints.iter().collect::<Vec<_>>());
                let dfa = |rows: &[usize]| {
                    let options = TensorOptions::default();
                    let device_constraint =
                        DeviceConstraint::new(&references, VOCAB_SIZE, &options, &device).unwrap();
                    let rows: Vec<_> = rows.iter().map(|&row| assignment[row]).collect();
                    ConstraintProcessor::new(device_constraint, &rows).unwrap()
                };
                law.check(&format!("dfa, {form}"), dfa);
                let budget = |rows: &[usize]| {
                    let budgets: Vec<_> = rows.iter().map(|row| 9 + row).collect();
                    dfa(rows).with_budgets(&budgets).unwrap()
                };
                law.check(&format!("dfa with budgets, {form}"), budget);
                law.check("everything", |rows| {
                    budget(rows)
                        .then(RepetitionPenalty::new(1.3).unwrap())
                        .then(FrequencyPresencePenalty::new(0.5, 0.1).unwrap())
                        .then(LogitBias::new([(TokenId(2), -3.0)]).unwrap())
                        .then(SuppressTokens::new([TokenId(0), TokenId(4)]))
                        .then(MinNewTokens::new(3, &vocabulary))
                        .then(Some(Temperature::new(0.7).unwrap()))
                        .then(None::<Temperature>)
                        .then(TopK::new(5).unwrap())
                        .then(TopP::new(0.9).unwrap())
                        .then(MinP::new(0.05).unwrap())
                });
            }
            let law = law(&forms[0].1);
            law.check("temperature", |_| Temperature::new(0.7).unwrap());
            law.check("top-k", |_| TopK::new(3).unwrap());
            law.check("top-p", |_| TopP::new(0.6).unwrap());
            law.check("min-p", |_| MinP::new(0.1).unwrap());
            law.check("repetition penalty", |_| RepetitionPenalty::new(1.3).unwrap());
            law.check("output penalties", |_| FrequencyPresencePenalty::new(0.7, -0.2).unwrap());
            let bias = [(TokenId(1), 2.5), (TokenId(7), -100.0), (TokenId(1), 0.25), (TokenId(900), 1.0)];
            law.check("logit bias", |_| LogitBias::new(bias).unwrap());
            law.check("suppress", |_| SuppressTokens::new([TokenId(1), TokenId(2), TokenId(900)]));
            law.check("min new tokens", |_| MinNewTokens::new(2, &vocabulary));
            law.check("nothing", |_| None::<TopK>);
        }
        eprintln!("laws hold on {name}");
    }
}

struct Law {
    tape: Tape,
    dtype: DType,
    device: Device,
}

impl Law {
    fn check<P: LogitsProcessor>(&self, name: &str, make: impl Fn(&[usize]) -> P) {
        batch_is_stacked_rows(name, make, &self.tape, self.dtype, &self.device);
    }
}

#[test]
fn allowed_logits_keep_their_bits_and_the_rest_are_negative_infinity() {
    let vocabulary = vocabulary();
    let forms = forms(&vocabulary);
    let rows = [0, 1, 2, 3, 0];
    let all: Vec<usize> = (0..ROWS).collect();
    for (_, device) in devices::all() {
        let pairs = dtypes(&device).into_iter().flat_map(|dtype| forms.iter().map(move |form| (dtype, form)));
        for (dtype, (form, constraints)) in pairs {
            let references: Vec<_> = constraints.iter().collect();
            for seed in 0..20 {
                let tape = tape(seed, constraints, &rows, true);
                let options = TensorOptions::default();
                let device_constraint =
                    DeviceConstraint::new(&references, VOCAB_SIZE, &options, &device).unwrap();
                let processor = ConstraintProcessor::new(device_constraint, &rows).unwrap();
                let masked = run(&processor, &tape, &all, dtype, &device);
                let mut states: Vec<_> = rows.iter().map(|&row| constraints[row].start()).collect();
                for (step, masked) in masked.iter().enumerate() {
                    for row in 0..ROWS {
                        let constraint = &constraints[rows[row]];
                        let logits = bits(tensor2(&[&tape.logits[step][row]], dtype, &device));
                        for token in 0..VOCAB_SIZE {
                            let legal = constraint.next(states[row], TokenId(token as u32)) != StateId::DEAD;
                            let expected = if legal { logits[token] } else { f32::NEG_INFINITY.to_bits() };
                            assert_eq!(
                                masked[row * VOCAB_SIZE + token],
                                expected,
                                "seed {seed}, step {step}, row {row}, token {token}, {dtype:?}, {form}, {device:?}"
                            );
                        }
                        states[row] = constraint.next(states[row], TokenId(tape.tokens[step][row] as u32));
                    }
                }
            }
        }
    }
}

#[test]
fn a_budget_leaves_just_the_tokens_from_which_the_end_is_near_enough() {
    let vocabulary = vocabulary();
    let forms = forms(&vocabulary);
    let rows = [0, 1, 2, 3, 0];
    for (_, device) in devices::all() {
        for (form, constraints) in &forms {
            let references: Vec<_> = constraints.iter().collect();
            let options = TensorOptions::default();
            let device_constraint =
                DeviceConstraint::new(&references, VOCAB_SIZE, &options, &device).unwrap();
            let least: Vec<_> = rows.iter().map(|&row| device_constraint.tokens_needed(row).max(1)).collect();
            for extra in 0..4 {
                let budgets: Vec<_> = least.iter().map(|&tokens| tokens + extra).collect();
                let processor = ConstraintProcessor::new(device_constraint.clone(), &rows).unwrap();
                let processor = processor.with_budgets(&budgets).unwrap();
                let mut state = processor.start();
                let mut states: Vec<_> = rows.iter().map(|&row| constraints[row].start()).collect();
                let mut remaining = budgets.clone();
                let logits = Tensor::<2>::zeros([ROWS, VOCAB_SIZE], &device);
                for step in 0..least.iter().max().unwrap() + extra + 2 {
                    let masked =
                        processor.mask(&state, logits.clone()).into_data().try_to_vec::<f32>().unwrap();
                    let mut tokens = Vec::new();
                    for row in 0..ROWS {
                        let constraint = &constraints[rows[row]];
                        let legal: Vec<u32> = (0..VOCAB_SIZE as u32)
                            .filter(|&token| {
                                let next = constraint.next(states[row], TokenId(token));
                                let spare = remaining[row].saturating_sub(1) as u32;
                                next != StateId::DEAD && constraint.tokens_to_end(next) <= spare
                            })
                            .collect();
                        let unmasked: Vec<u32> = (0..VOCAB_SIZE as u32)
                            .filter(|&token| masked[row * VOCAB_SIZE + token as usize] == 0.0)
                            .collect();
                        assert_eq!(unmasked, legal, "extra {extra}, step {step}, row {row}, {form}");
                        assert!(!legal.is_empty(), "no row is ever all −∞");
                        // The token with the longest path to the end.
                        let longest = |&&token: &&u32| {
                            constraint.tokens_to_end(constraint.next(states[row], TokenId(token)))
                        };
                        let token = *legal.iter().max_by_key(longest).unwrap();
                        states[row] = constraint.next(states[row], TokenId(token));
                        remaining[row] = remaining[row].saturating_sub(1);
                        tokens.push(token as i32);
                    }
                    state = processor.advance(state, ints(tokens, &device));
                }
                for row in (0..ROWS).filter(|&row| rows[row] != 3) {
                    assert_eq!(states[row], StateId::DONE, "row {row} is complete within its budget");
                }
                let done = bools(state.is_done());
                let expected: Vec<_> = states.iter().map(|&state| state == StateId::DONE).collect();
                assert_eq!(done, expected);
            }
        }
    }
}

#[test]
fn ids_out_of_range_lead_to_the_dead_state_and_no_token_leaves_it() {
    let vocabulary = vocabulary();
    let forms = forms(&vocabulary);
    for (_, device) in devices::all() {
        for (form, constraints) in &forms {
            let references: Vec<_> = constraints.iter().collect();
            let options = TensorOptions::default();
            let device_constraint =
                DeviceConstraint::new(&references, VOCAB_SIZE, &options, &device).unwrap();
            let start = device_constraint.start(2);
            let states = device_constraint.states(&[start; 5]).unwrap();
            let tokens =
                ints(vec![-1, i32::MIN, VOCAB_SIZE as i32, VOCAB_SIZE as i32 + 1, i32::MAX], &device);
            let next = device_constraint.next(states, tokens).into_data().try_to_vec::<i32>().unwrap();
            assert_eq!(next, [0, 0, start.0 as i32, 0, 0], "{form}");
        }
    }
}

#[test]
fn masking_processors_never_empty_a_row() {
    let vocabulary = vocabulary();
    let device = Device::flex();
    let only = TokenId(3);
    let mut row = vec![f32::NEG_INFINITY; VOCAB_SIZE];
    row[only.index()] = 1.0;
    let context = |tokens: usize| StepContext {
        tokens: ints(vec![tokens as i32], &device),
        step: ints(vec![0], &device),
    };
    let init = InitContext {
        prompt: ints(vec![0], &device).reshape([1, 1]),
        padding: ints(vec![0], &device),
        vocab_size: VOCAB_SIZE,
    };
    let suppress = SuppressTokens::new([only, TokenId(4)]);
    let logits = tensor2(&[&row], DType::F32, &device);
    let (kept, _) = suppress.process(suppress.init(&init), logits, &context(VOCAB_SIZE));
    assert_eq!(kept.into_data().try_to_vec::<f32>().unwrap(), row, "the last token stays");

    row[EOS.index()] = 3.0;
    let least = MinNewTokens::new(2, &vocabulary);
    let logits = tensor2(&[&row], DType::F32, &device);
    let (masked, _) = least.process(least.init(&init), logits, &context(VOCAB_SIZE));
    let masked = masked.into_data().try_to_vec::<f32>().unwrap();
    assert_eq!((masked[EOS.index()], masked[only.index()]), (f32::NEG_INFINITY, 1.0));
}

#[test]
fn samplers_and_penalties_match_a_host_reference() {
    let device = Device::flex();
    let vocabulary = vocabulary();
    let constraints = constraints(&vocabulary, CompiledConstraint::compile);
    let rows = [3; ROWS];
    let tape = tape(9, &constraints, &rows, false);
    let all: Vec<usize> = (0..ROWS).collect();
    let k = run(&TopK::new(3).unwrap(), &tape, &all, DType::F32, &device);
    let p = run(&MinP::new(0.1).unwrap(), &tape, &all, DType::F32, &device);
    let penalised = run(&RepetitionPenalty::new(2.0).unwrap(), &tape, &all, DType::F32, &device);
    for step in 0..STEPS {
        for row in 0..ROWS {
            let logits = &tape.logits[step][row];
            let mut sorted = logits.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let seen = |token: usize| {
                let token = token as i32;
                tape.prompts[row].contains(&token) || tape.tokens[..step].iter().any(|t| t[row] == token)
            };
            for (token, &logit) in logits.iter().enumerate() {
                let at = row * VOCAB_SIZE + token;
                let expected = if logit >= sorted[2] { logit } else { f32::NEG_INFINITY };
                assert_eq!(f32::from_bits(k[step][at]), expected, "top-k");
                let expected = if logit >= sorted[0] + 0.1f32.ln() { logit } else { f32::NEG_INFINITY };
                assert_eq!(f32::from_bits(p[step][at]), expected, "min-p");
                let expected = match (seen(token), logit > 0.0) {
                    (false, _) => logit,
                    (true, true) => logit / 2.0,
                    (true, false) => logit * 2.0,
                };
                assert_eq!(f32::from_bits(penalised[step][at]), expected, "repetition penalty");
            }
        }
    }
}
