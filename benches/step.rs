//! One constrained step: the masked row and the chosen token, with built-in and with fused
//! operations.
//!
//! Rows have 49,152 logits, in a JSON string (most tokens are legal) and in a key (few are).
//! Unconstrained greedy is the baseline. On devices with a queue, the time covers the work rather
//! than its enqueuing.

mod data;
mod triggers;

use std::sync::LazyLock;

use burn::tensor::{DType, Device, Distribution, Int, Tensor, TensorData};
use burn_dfa::processor::{ConstraintProcessor, DraftTree, LogitsProcessor, Position, StepContext};
use burn_dfa::sampling::{Greedy, GumbelMax, Sampler};
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, Kernels, Limits, TensorOptions, TokenId, Vocabulary,
};
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

const VOCAB_SIZE: usize = 49_152;

/// SmolLM2's vocabulary if the test data has it, else all bytes and numbered words.
static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| {
    if let Some(json) =
        data::read("tokenizers/smollm2/tokenizer.json", "SmolLM2's vocabulary, numbered words instead")
    {
        return Vocabulary::from_tokenizer_json(json).unwrap().with_eos([TokenId(0)]).unwrap();
    }
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    let words = (256..VOCAB_SIZE as u32 - 1).map(|id| format!("word{id}").into_bytes());
    let vocabulary = Vocabulary::from_bytes(bytes.chain(words).map(Some).chain([None])).unwrap();
    vocabulary.with_eos([TokenId(VOCAB_SIZE as u32 - 1)]).unwrap()
});

const SCHEMA: &str = r#"{"type": "object", "properties": {"name": {"type": "string"}, "address": {"type": "string",
    "maxLength": 60}, "age": {"type": "integer"}}, "required": ["name", "address", "age"], "additionalProperties": false}"#;

const NESTED: &str = r##"{"type": "object", "properties": {"list": {"type": "array", "items": {"$ref": "#"}}, "name": {"type": "string"}},
    "required": ["list", "name"], "additionalProperties": false}"##;

#[derive(Clone, Copy, Debug)]
enum Workload {
    String,
    Key,
    /// In a string of a recursive schema.
    Nested,
    /// In free text with the triggers of 100 tools.
    Text,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    TokenLevel,
    ByteLevel,
}

#[derive(Clone, Copy, Debug)]
struct Case(Kernels, Form, Workload);

const CASES: [Case; 8] = [
    Case(Kernels::BuiltIn, Form::TokenLevel, Workload::String),
    Case(Kernels::Fused, Form::TokenLevel, Workload::String),
    Case(Kernels::BuiltIn, Form::TokenLevel, Workload::Key),
    Case(Kernels::Fused, Form::TokenLevel, Workload::Key),
    Case(Kernels::Fused, Form::ByteLevel, Workload::String),
    Case(Kernels::Fused, Form::ByteLevel, Workload::Key),
    Case(Kernels::Fused, Form::ByteLevel, Workload::Nested),
    Case(Kernels::Fused, Form::ByteLevel, Workload::Text),
];

/// The processor of `batch` rows, and their position after the beginning of an object.
fn at(case: Case, batch: usize, device: &Device) -> (ConstraintProcessor, Position) {
    let Case(kernels, form, workload) = case;
    let limits = Limits::default();
    let constraint = match workload {
        Workload::Text => triggers::endless(100),
        Workload::Nested => Constraint::json_schema(NESTED.parse().unwrap()).unwrap(),
        Workload::String | Workload::Key => Constraint::json_schema(SCHEMA.parse().unwrap()).unwrap(),
    };
    let compile = match form {
        Form::TokenLevel => CompiledConstraint::compile_token_level,
        Form::ByteLevel => CompiledConstraint::compile_byte_level,
    };
    let compiled = compile(&constraint, &VOCABULARY, &limits).unwrap();
    let options = TensorOptions { kernels, max_bytes: 1 << 30, ..TensorOptions::default() };
    let device_constraint = DeviceConstraint::new(&[&compiled], VOCAB_SIZE, &options, device).unwrap();
    let processor = ConstraintProcessor::new(device_constraint, &vec![0; batch]).unwrap();
    let mut state = processor.start();
    let text: &[u8] = match workload {
        Workload::String => b"{\"name\": \"Ad",
        Workload::Key => b"{\"na",
        Workload::Nested => b"{\"list\": [{\"list\": [], \"name\": \"Ad",
        Workload::Text => b"Let me see: 1 < 2",
    };
    for byte in text {
        let token = VOCABULARY.iter().find(|(_, bytes)| bytes == &[*byte]).expect("every byte is a token").0;
        state = processor.advance(state, Tensor::full([batch], token.0 as i32, (device, DType::I32)));
    }
    (processor, state)
}

/// The device in `BURN_DEVICE`, by default Flex.
fn device() -> Device {
    if std::env::var_os("BURN_DEVICE").is_some() { Device::default() } else { Device::flex() }
}

fn logits(batch: usize, device: &Device) -> TensorData {
    Tensor::<2>::random([batch, VOCAB_SIZE], Distribution::Normal(0.0, 3.0), device).into_data()
}

fn context(batch: usize, device: &Device) -> StepContext {
    StepContext {
        tokens: Tensor::full([batch], VOCAB_SIZE as i32, (device, DType::I32)),
        step: Tensor::zeros([1], (device, DType::I32)),
    }
}

#[divan::bench(args = CASES, consts = [1, 8, 32])]
fn mask<const BATCH: usize>(bencher: Bencher, case: Case) {
    let device = device();
    let (processor, state) = at(case, BATCH, &device);
    let (data, context) = (logits(BATCH, &device), context(BATCH, &device));
    bencher
        .with_inputs(|| {
            let logits = Tensor::<2>::from_data(data.clone(), &device);
            device.sync().unwrap();
            logits
        })
        .bench_values(|logits| {
            let result = processor.process(state.clone(), logits, &context);
            device.sync().unwrap();
            black_box(result)
        });
}

/// The rows of the last token and of four draft tokens after it, to compare with [`mask`].
#[divan::bench(args = CASES, consts = [1, 8])]
fn mask_chain_of_4<const BATCH: usize>(bencher: Bencher, case: Case) {
    const NODES: usize = 5;
    let device = device();
    let (processor, state) = at(case, BATCH, &device);
    let data = logits(BATCH * NODES, &device);
    // No last token, and draft tokens that are legal in a string and illegal in a key.
    let letter = VOCABULARY.iter().find(|(_, bytes)| bytes == b"a").expect("every byte is a token").0;
    let tokens = [VOCAB_SIZE as i32, letter.0 as i32, letter.0 as i32, letter.0 as i32, letter.0 as i32];
    let tokens = TensorData::new(tokens.repeat(BATCH), [BATCH, NODES]);
    let tokens = Tensor::<2, Int>::from_data(tokens, (&device, DType::I32));
    let tree = DraftTree::chain(NODES - 1);
    bencher
        .with_inputs(|| {
            let logits = Tensor::<2>::from_data(data.clone(), &device).reshape([BATCH, NODES, VOCAB_SIZE]);
            device.sync().unwrap();
            logits
        })
        .bench_values(|logits| {
            let result = processor.mask_tree(&state, &tree, tokens.clone(), logits);
            device.sync().unwrap();
            black_box(result)
        });
}

#[divan::bench(args = CASES, consts = [1, 8])]
fn choose_greedy<const BATCH: usize>(bencher: Bencher, case: Case) {
    choose::<BATCH, _>(bencher, case, |_| Greedy);
}

#[divan::bench(args = CASES, consts = [1, 8])]
fn choose_sampled<const BATCH: usize>(bencher: Bencher, case: Case) {
    choose::<BATCH, _>(bencher, case, |device| GumbelMax::new(&[7; BATCH], VOCAB_SIZE, device).unwrap());
}

fn choose<const BATCH: usize, S: Sampler + Sync>(
    bencher: Bencher,
    case: Case,
    sampler: impl Fn(&Device) -> S,
) {
    let device = device();
    let (processor, start) = at(case, BATCH, &device);
    let (data, sampler) = (logits(BATCH, &device), sampler(&device));
    bencher
        .with_inputs(|| {
            let inputs =
                (Tensor::<2>::from_data(data.clone(), &device), start.clone(), context(BATCH, &device));
            device.sync().unwrap();
            inputs
        })
        .bench_values(|(logits, mut state, mut context)| {
            processor.sample_step(&mut state, &mut context, logits, &sampler);
            device.sync().unwrap();
            (state, context)
        });
}

#[divan::bench(consts = [1, 8])]
fn unconstrained_greedy<const BATCH: usize>(bencher: Bencher) {
    let device = device();
    let (data, step) = (logits(BATCH, &device), context(BATCH, &device).step);
    bencher
        .with_inputs(|| {
            let logits = Tensor::<2>::from_data(data.clone(), &device);
            device.sync().unwrap();
            logits
        })
        .bench_values(|logits| {
            let tokens = Greedy.sample(logits, &step);
            device.sync().unwrap();
            tokens
        });
}
