//! Artifacts with every field changed in turn: none panics, and every loaded artifact is sound.

use burn_dfa::ErrorKind;
use std::collections::BTreeMap;

use burn::tensor::Device;
use burn_dfa::processor::ConstraintProcessor;
use burn_dfa::tokens::RowPosition;
use burn_dfa::{
    CompiledConstraint, DeviceConstraint, Kernels, Limits, StateId, TensorOptions, TokenId, Vocabulary,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use safetensors::tensor::Dtype;

use super::artifacts;
use super::file::{File, Tensor};

/// The results of mutants.
#[derive(Debug, Default)]
struct Fate {
    refused: usize,
    loaded: usize,
    /// Counts by the location named in the error.
    fields: BTreeMap<String, usize>,
}

impl Fate {
    fn all(&self) -> usize {
        self.refused + self.loaded
    }

    /// Loads a mutant; the result must be a typed error or a sound constraint.
    fn meet(
        &mut self,
        mutant: &[u8],
        vocabulary: &Vocabulary,
        what: &dyn Fn() -> String,
    ) -> Option<CompiledConstraint> {
        match CompiledConstraint::from_bytes(mutant, vocabulary, &Limits::default()) {
            Ok(constraint) => {
                self.loaded += 1;
                sound(&constraint, vocabulary, what);
                Some(constraint)
            }
            Err(error) => {
                self.refused += 1;
                let message = error.to_string();
                let kinds = [
                    error.kind() == ErrorKind::Artifact,
                    error.kind() == ErrorKind::IncompatibleVocabulary,
                    error.kind() == ErrorKind::Limit,
                ];
                assert!(kinds.contains(&true), "{}: {message}", what());
                let field = if error.kind() == ErrorKind::Limit {
                    "limit"
                } else {
                    message.split('`').nth(1).unwrap_or("vocabulary")
                };
                *self.fields.entry(field.to_owned()).or_default() += 1;
                None
            }
        }
    }
}

/// Checks that no lookup is out of bounds, and that some token approaches the end from every state
/// that can reach it.
fn sound(constraint: &CompiledConstraint, vocabulary: &Vocabulary, what: &dyn Fn() -> String) {
    constraint.validate().unwrap();
    if constraint.exits() > 0 {
        return sound_on_stack(constraint, vocabulary, what);
    }
    let states = constraint.state_count() as u32;
    let tokens = vocabulary.len() as u32 + 2;
    for state in (0..states).map(StateId) {
        let to_end = constraint.tokens_to_end(state);
        let mut nearest = u32::MAX;
        for token in (0..tokens).map(TokenId) {
            let next = constraint.next(state, token);
            assert!(next.0 < states, "{}: {state} on {token} leads to {next}", what());
            nearest = nearest.min(constraint.tokens_to_end(next));
            let ends = vocabulary.eos().contains(&token);
            assert!(next != StateId::DONE || ends, "{}: {state} ends on {token}", what());
        }
        match state {
            StateId::DEAD => assert_eq!(nearest, u32::MAX),
            StateId::DONE | StateId::UNCONSTRAINED => assert_eq!(nearest, 0),
            _ if to_end == u32::MAX => {}
            _ => assert!(nearest < to_end, "{}: {state} is no nearer to the end after any token", what()),
        }
    }
    assert_ne!(constraint.tokens_to_end(constraint.start()), u32::MAX, "{}", what());
}

/// Checks that random walks find a legal token until they end within their budget.
fn sound_on_stack(constraint: &CompiledConstraint, vocabulary: &Vocabulary, what: &dyn Fn() -> String) {
    let mut random = StdRng::seed_from_u64(5);
    for more in [0, 1, 7, 20] {
        let budget = constraint.tokens_to_end(constraint.start()).saturating_add(more);
        if budget > 1_000 {
            return;
        }
        let mut position = RowPosition::new(constraint.start(), budget);
        while position.state != StateId::DONE {
            let all =
                (0..vocabulary.len() as u32 + 2).map(|token| constraint.after(&position, TokenId(token)));
            let legal: Vec<_> = all.filter(|next| constraint.can_end(next)).collect();
            assert!(!legal.is_empty(), "{}: no token is legal at {position:?}", what());
            position = legal[random.random_range(0..legal.len())].clone();
        }
    }
}

/// Checks that the masks of a device along a walk equal the host's.
fn agrees_on_stack(constraint: &CompiledConstraint, vocab_size: usize, kernels: Kernels) {
    let options = TensorOptions { kernels, ..TensorOptions::default() };
    let device = Device::flex();
    let tensors = DeviceConstraint::new(&[constraint], vocab_size, &options, &device).unwrap();
    let processor = ConstraintProcessor::new(tensors, &[0]).unwrap();
    let (mut own, mut position) = (RowPosition::unlimited(constraint.start()), processor.start());
    for _ in 0..8 {
        let logits = burn::tensor::Tensor::<2>::zeros([1, vocab_size], &device);
        let masked = processor.mask(&position, logits).into_data().try_to_vec::<f32>().unwrap();
        let next: Vec<_> =
            (0..vocab_size as u32).map(|token| constraint.after(&own, TokenId(token))).collect();
        let legal: Vec<bool> = next.iter().map(|next| constraint.can_end(next)).collect();
        assert_eq!(masked.iter().map(|&logit| logit == 0.0).collect::<Vec<_>>(), legal);
        let Some(token) = legal.iter().position(|&legal| legal) else { return };
        own = next[token].clone();
        position = processor.advance(position, crate::common::ints(vec![token as i32], &device));
    }
}

/// Checks that the lookups of the device equal the host's.
fn agrees(constraint: &CompiledConstraint, vocab_size: usize, kernels: Kernels) {
    if constraint.exits() > 0 {
        return agrees_on_stack(constraint, vocab_size, kernels);
    }
    let options = TensorOptions { kernels, ..TensorOptions::default() };
    let tensors = DeviceConstraint::new(&[constraint], vocab_size, &options, &Device::flex()).unwrap();
    let states: Vec<_> = (0..constraint.state_count() as u32).map(StateId).collect();
    let illegal = tensors.illegal(tensors.states(&states).unwrap(), None);
    let illegal = crate::common::bools(illegal);
    for (&state, row) in states.iter().zip(illegal.chunks_exact(vocab_size)) {
        for (token, &illegal) in row.iter().enumerate() {
            assert_eq!(illegal, constraint.next(state, TokenId(token as u32)) == StateId::DEAD);
        }
    }
}

#[test]
fn damage_is_always_noticed() {
    let mut fate = Fate::default();
    for (name, vocabulary, constraint, bytes) in artifacts() {
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut mutant = bytes.clone();
                mutant[at] ^= 1 << bit;
                let what = || format!("{name}, byte {at}, bit {bit}");
                let loaded = fate.meet(&mutant, &vocabulary, &what);
                assert!(loaded.is_none_or(|loaded| loaded == constraint), "{}: another constraint", what());
            }
            let cut = fate.meet(&bytes[..at], &vocabulary, &|| format!("{name}, cut at {at}"));
            assert!(cut.is_none(), "{name}, cut at {at}");
        }
        assert!(fate.meet(&[&bytes[..], b"\0"].concat(), &vocabulary, &|| name.into()).is_none());
    }
    println!("{} damaged files: {fate:?}", fate.all());
    assert!(fate.refused > 50_000);
}

/// The mutated values of a number.
fn numbers(old: i32, states: i32, columns: i32) -> Vec<i32> {
    let odd = [-1, 0, 1, 2, 3, 4, states - 1, states, columns - 1, columns, 255, 256, i32::MAX, i32::MIN];
    let bits = (0..32).map(|bit| old ^ 1 << bit);
    odd.into_iter().chain([old.wrapping_add(1), old.wrapping_sub(1)]).chain(bits).collect()
}

#[test]
fn forged_fields_under_a_correct_checksum_are_refused_or_sound() {
    let mut fate = Fate::default();
    let mut uploads = 0;
    for (name, vocabulary, constraint, bytes) in artifacts() {
        let file = File::read(&bytes);
        let mut meet = |file: &File, what: &dyn Fn() -> String| {
            if let Some(mutant) = fate.meet(&file.write(), &vocabulary, what)
                && mutant != constraint
                && uploads < 100
            {
                uploads += 1;
                agrees(&mutant, vocabulary.len(), Kernels::BuiltIn);
                agrees(&mutant, vocabulary.len(), Kernels::Fused);
            }
        };
        let sizes = (constraint.state_count() as i32, constraint.class_count() as i32);
        for (tensor, Tensor { dtype, data, .. }) in &file.tensors {
            let width = if *dtype == Dtype::I32 { 4 } else { 2 };
            for (at, old) in data.chunks_exact(width).enumerate() {
                let mut wide = [0; 4];
                wide[..width].copy_from_slice(old);
                for new in numbers(i32::from_le_bytes(wide), sizes.0, sizes.1) {
                    let mut lie = file.clone();
                    let stored = &mut lie.tensors.get_mut(tensor).unwrap().data[at * width..][..width];
                    stored.copy_from_slice(&new.to_le_bytes()[..width]);
                    meet(&lie, &|| format!("{name}, {tensor}[{at}] = {new}"));
                }
            }
        }
        for (tensor, shape, lie) in reshaped(&file) {
            meet(&lie, &|| format!("{name}, {tensor} {shape}"));
        }
        for (key, value, lie) in reworded(&file) {
            meet(&lie, &|| format!("{name}, {key} is {value:?}"));
        }
        // Two fields at once, which may agree with each other.
        let mut random = StdRng::seed_from_u64(7);
        for round in 0..4_000 {
            let mut lie = file.clone();
            for _ in 0..random.random_range(2..6) {
                let tensor =
                    lie.tensors.values_mut().nth(random.random_range(0..file.tensors.len())).unwrap();
                let width = if tensor.dtype == Dtype::I32 { 4 } else { 2 };
                let at = random.random_range(0..tensor.data.len() / width) * width;
                let new = random.random_range(0..sizes.0.max(sizes.1)) as u32;
                tensor.data[at..at + width].copy_from_slice(&new.to_le_bytes()[..width]);
            }
            meet(&lie, &|| format!("{name}, round {round}"));
        }
    }
    println!("{} mutants, {uploads} on a device: {fate:?}", fate.all());
    assert!(fate.all() >= 100_000, "{}", fate.all());
    assert!(fate.loaded > 1_000 && uploads == 100, "some lies are another automaton: {fate:?}");
    let fields = [
        "class",
        "next",
        "tokens_to_end",
        "bytes_to_end",
        "tokens_to_exit",
        "frames_to_exit",
        "column",
        "offsets",
        "symbols",
        "jumps",
        "frames",
        "start",
        "form",
        "fingerprint",
    ];
    assert!(fields.iter().all(|field| fate.fields.contains_key(*field)), "{fate:?}");
}

/// Missing tensors, and tensors with another name, type, shape or length.
fn reshaped(file: &File) -> Vec<(String, String, File)> {
    let mut all = Vec::new();
    for name in file.tensors.keys() {
        let mut push = |what: String, change: &dyn Fn(&mut File)| {
            let mut lie = file.clone();
            change(&mut lie);
            all.push((name.clone(), what, lie));
        };
        let tensor =
            |lie: &mut File, change: &dyn Fn(&mut Tensor)| change(lie.tensors.get_mut(name).unwrap());
        push("is missing".into(), &|lie| drop(lie.tensors.remove(name)));
        for other in ["", "next", "class", "column", "__metadata", "Next", "\0"] {
            push(format!("is named {other:?}"), &|lie| {
                let moved = lie.tensors.remove(name).unwrap();
                lie.tensors.insert(other.into(), moved);
            });
            push(format!("is there twice, as {other:?}"), &|lie| {
                let copy = lie.tensors[name].clone();
                lie.tensors.insert(other.into(), copy);
            });
        }
        for dtype in
            [Dtype::I32, Dtype::U32, Dtype::F32, Dtype::U16, Dtype::I16, Dtype::U8, Dtype::I64, Dtype::BOOL]
        {
            push(format!("is of {dtype}"), &|lie| {
                tensor(lie, &|tensor| {
                    let old = tensor.dtype.bitsize();
                    tensor.dtype = dtype;
                    if let Some(last) = tensor.shape.last_mut() {
                        *last = *last * old / dtype.bitsize();
                    }
                    let len = tensor.shape.iter().product::<usize>() * dtype.bitsize() / 8;
                    tensor.data.resize(len, 0);
                });
            });
        }
        let shape = file.tensors[name].shape.clone();
        let (bytes, all) = (file.tensors[name].dtype.bitsize() / 8, shape.iter().product::<usize>());
        let mut shapes = vec![
            vec![],
            vec![0],
            vec![0, 0],
            vec![1, all],
            vec![all, 1],
            vec![all],
            vec![all, 1, 1],
            vec![usize::MAX, 0],
        ];
        for at in 0..shape.len() {
            for other in [0, 1, 2, 3, shape[at] - 1, shape[at] + 1, 2 * shape[at]] {
                let mut changed = shape.clone();
                changed[at] = other;
                shapes.push(changed);
            }
        }
        let swapped: Vec<usize> = shape.iter().rev().copied().collect();
        shapes.push(swapped);
        for shape in shapes {
            let elements = shape.iter().product::<usize>();
            push(format!("is of the shape {shape:?}"), &|lie| {
                tensor(lie, &|tensor| {
                    tensor.shape = shape.clone();
                    tensor.data.resize(elements * bytes, 0);
                });
            });
        }
    }
    all
}

/// Missing or changed metadata.
fn reworded(file: &File) -> Vec<(String, String, File)> {
    let mut all = Vec::new();
    for (key, value) in &file.metadata {
        let mut lies = vec![
            String::new(),
            "0".into(),
            "1".into(),
            "2".into(),
            "3".into(),
            "-1".into(),
            "+1".into(),
            " 3".into(),
            "3.0".into(),
            "99999999999999999999".into(),
            "4294967295".into(),
            "2147483648".into(),
            "null".into(),
            "token_level".into(),
            "byte_level".into(),
            "pushdown".into(),
            "x".repeat(10_000),
            "0".repeat(64),
            value.to_uppercase(),
            format!("{value}0"),
            value.repeat(2),
        ];
        for at in (0..value.len()).filter(|&at| value.is_char_boundary(at)) {
            let (before, after) = value.split_at(at);
            let mut rest = after.chars();
            rest.next();
            lies.push(format!("{before}{}", rest.as_str()));
            lies.push(format!("{before}\u{1F600}{after}"));
            lies.push(format!("{before}9{}", rest.as_str()));
        }
        for lie in lies {
            let mut other = file.clone();
            other.metadata.insert(key.clone(), lie.clone());
            all.push((key.clone(), lie, other));
        }
        let mut without = file.clone();
        without.metadata.remove(key);
        all.push((key.clone(), "missing".into(), without));
    }
    all
}

#[test]
fn forged_headers_are_refused_or_sound() {
    let (_, vocabulary, constraint, bytes) = artifacts().remove(2);
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let (header, data) = bytes[8..].split_at(length);
    let header: serde_json::Value = serde_json::from_slice(header).unwrap();
    let mut fate = Fate::default();
    let names: Vec<String> =
        header.as_object().unwrap().keys().filter(|key| *key != "__metadata__").cloned().collect();
    let huge = [0, 1, 7, 8, 1 << 31, (1 << 61) - 1, 1 << 61, u64::MAX / 4, u64::MAX - 8, u64::MAX];
    for name in names {
        let mut lies = Vec::new();
        for &one in &huge {
            for &other in &huge {
                lies.push(("data_offsets", serde_json::json!([one, other])));
                lies.push(("shape", serde_json::json!([one, other])));
            }
            lies.push(("shape", serde_json::json!([one])));
            lies.push(("dtype", one.into()));
        }
        lies.push(("dtype", "F4".into()));
        lies.push(("shape", serde_json::json!([-1])));
        for (field, lie) in lies {
            let mut header = header.clone();
            header[&name][field] = lie.clone();
            let header = header.to_string();
            let mutant = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat();
            let loaded = fate.meet(&mutant, &vocabulary, &|| format!("{name}, {field} is {lie}"));
            assert!(loaded.is_none_or(|loaded| loaded == constraint));
        }
    }
    // Tensors whose end offsets overflow.
    let max = (1u64 << 61) - 1;
    let mut far = serde_json::Map::new();
    for (at, length) in [max; 8].into_iter().chain([7]).enumerate() {
        let start = at as u64 * max;
        let info = serde_json::json!({"dtype": "U8", "shape": [length], "data_offsets": [start, start.wrapping_add(length)]});
        far.insert(format!("tensor {at}"), info);
    }
    let header = serde_json::Value::from(far).to_string();
    let mutant = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat();
    fate.meet(&mutant, &vocabulary, &|| "tensors past the end of numbers".into());
    // Lengths of the header itself.
    for length in huge.iter().copied().chain([length as u64 - 1, length as u64 + 1, bytes.len() as u64 - 8]) {
        let mutant = [&length.to_le_bytes()[..], &bytes[8..]].concat();
        assert!(fate.meet(&mutant, &vocabulary, &|| format!("a header of {length}")).is_none());
    }
    println!("{} headers: {fate:?}", fate.all());
    assert!(fate.refused > 1_000);
}
