//! Logits processors and samplers of an application, in all loops.

use std::ops::ControlFlow;

use burn::tensor::{DType, Device, Int, Tensor};
use burn_dfa::generation::speculative::{PromptLookup, speculate};
use burn_dfa::generation::{Chunk, ContinuousBatch, DecodeGraph, GenerationConfig, Recordable, Request};
use burn_dfa::processor::{InPlaceState, InitContext, LogitsProcessor, RowState, StepContext, check_laws};
use burn_dfa::sampling::Sampler;
use burn_dfa::{
    Capacity, CompiledConstraint, Constraint, ErrorKind, Limits, TensorOptions, TokenId, Vocabulary,
};
use burn_dfa_testing::words::vocabulary_of;

use crate::common::model::{RandomLm, run};

const SLOTS: usize = 60;

/// Lowers the logits of the tokens of the output so far, by their number.
struct Repeats(f32);

/// The counts of all tokens, `[batch, vocab_size]`.
#[derive(Clone)]
struct Counts(Tensor<2>);

impl InPlaceState for Counts {
    fn assign(&mut self, new: Self) {
        self.0.assign(new.0);
    }
}

impl RowState for Counts {
    fn assign_row(&mut self, row: usize, new: Self) {
        self.0.assign_row(row, new.0);
    }
}

impl LogitsProcessor for Repeats {
    type State = Counts;

    fn init(&self, context: &InitContext) -> Counts {
        Counts(Tensor::zeros([context.batch(), context.vocab_size], (&context.device(), DType::F32)))
    }

    fn process(
        &self,
        Counts(counts): Counts,
        logits: Tensor<2>,
        context: &StepContext,
    ) -> (Tensor<2>, Counts) {
        let [batch, width] = logits.dims();
        let ids = Tensor::<1, Int>::arange(0..width as i64, &logits.device()).cast(DType::I32);
        let ids = ids.unsqueeze::<2>().expand([batch, width]);
        let last = context.tokens.clone().reshape([batch, 1]).expand([batch, width]);
        let counts = counts + ids.equal(last).float().cast(DType::F32);
        (logits - (counts.clone() * self.0), Counts(counts))
    }
}

// SAFETY: it has no tensors, and its state is written in place.
#[allow(unsafe_code)]
unsafe impl Recordable for Repeats {}

/// Makes every token likely, masked ones too.
struct Unmask;

impl LogitsProcessor for Unmask {
    type State = ();

    fn init(&self, _: &InitContext) {}

    fn process(&self, _: (), logits: Tensor<2>, _: &StepContext) -> (Tensor<2>, ()) {
        (logits.zeros_like(), ())
    }
}

/// Masks every token.
struct MaskAll;

impl LogitsProcessor for MaskAll {
    type State = ();

    fn init(&self, _: &InitContext) {}

    fn process(&self, _: (), logits: Tensor<2>, _: &StepContext) -> (Tensor<2>, ()) {
        (logits.full_like(f32::NEG_INFINITY), ())
    }
}

/// Takes the legal token with the greatest id.
struct LastId;

impl Sampler for LastId {
    fn sample(&self, logits: Tensor<2>, _: &Tensor<1, Int>) -> Tensor<1, Int> {
        let [batch, width] = logits.dims();
        let ids = Tensor::<1, Int>::arange(0..width as i64, &logits.device()).float().cast(DType::F32);
        let ids = ids.unsqueeze::<2>().expand([batch, width]);
        let ids = ids.mask_fill(logits.equal_elem(f32::NEG_INFINITY), -1.0);
        ids.argmax(1).reshape([batch]).cast(DType::I32)
    }
}

/// With capacity for the constraints of a continuous batch.
fn config() -> GenerationConfig {
    let capacity = Capacity::new().with_tables(3).with_states(500).with_classes(300);
    GenerationConfig::new().with_tensors(TensorOptions { capacity, ..TensorOptions::default() })
}

fn table(pattern: &str, vocabulary: &Vocabulary) -> CompiledConstraint {
    CompiledConstraint::compile(&Constraint::regex(pattern).unwrap(), vocabulary, &Limits::default()).unwrap()
}

fn requests(table: &CompiledConstraint) -> [Request<'_>; 3] {
    let request = |prompt: &[u32], tokens| {
        Request::new(prompt.iter().map(|&id| TokenId(id)).collect::<Vec<_>>(), tokens)
    };
    [
        request(&[97, 98], 12).with_constraint(table),
        request(&[99], 9),
        request(&[97], 10).with_constraint(table),
    ]
}

/// The tokens of the requests in a continuous batch of two rows.
fn continuous(
    model: &RandomLm,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
    record: bool,
) -> Vec<Vec<TokenId>> {
    let make = if record { ContinuousBatch::record } else { ContinuousBatch::new };
    let mut batch = make(model, vocabulary, 2, SLOTS, config).unwrap();
    let mut outputs = vec![Vec::new(); requests.len()];
    let (mut next, mut rows) = (0, [None; 2]);
    while next < requests.len() || rows.iter().any(Option::is_some) {
        for (row, index) in rows.iter_mut().enumerate() {
            if index.is_none() && next < requests.len() {
                batch.admit(row, &requests[next]).unwrap();
                *index = Some(next);
                next += 1;
            }
        }
        batch.step(3, drop).unwrap();
        let finished: Vec<usize> = batch.finished().collect();
        for row in finished {
            let output = batch.release(row).unwrap();
            outputs[rows[row].take().unwrap()] = output.tokens;
        }
    }
    outputs
}

#[test]
fn a_processor_has_the_same_effect_in_every_loop() {
    let (vocabulary, device) = (vocabulary_of(&["ab", "ba", "abc"]), Device::flex());
    let table = table("[abc]{4,20}", &vocabulary);
    let requests = requests(&table);
    let model = RandomLm::new(vocabulary.len(), 1, DType::F32, &device);
    let tokens = |config: &GenerationConfig| -> Vec<Vec<TokenId>> {
        run(&model, &vocabulary, &requests, config).unwrap().into_iter().map(|output| output.tokens).collect()
    };
    for temperature in [None, Some(0.8)] {
        let config = config().with_temperature(temperature).with_sync_interval(3);
        let plain = tokens(&config);
        let config = config.with_recordable_processor(Repeats(1.5)).with_recordable_processor(Repeats(0.5));
        let expected = tokens(&config);
        assert_ne!(plain, expected);
        for record in [false, true] {
            assert_eq!(continuous(&model, &vocabulary, &requests, &config, record), expected, "{record}");
        }
        let mut graph = DecodeGraph::record(&model, &vocabulary, &requests, &config, SLOTS).unwrap();
        for _ in 0..2 {
            let outputs = graph.generate(&requests, |_: Chunk| ControlFlow::Continue(())).unwrap();
            assert_eq!(outputs.into_iter().map(|output| output.tokens).collect::<Vec<_>>(), expected);
        }
    }
}

#[test]
fn a_processor_cannot_break_the_constraint() {
    let (vocabulary, device) = (vocabulary_of(&["ab", "ba"]), Device::flex());
    let table = table("[ab]{3,9}", &vocabulary);
    let requests = [Request::new(vec![TokenId(97)], 12).with_constraint(&table)];
    let model = RandomLm::new(vocabulary.len(), 2, DType::F32, &device);
    let plain = run(&model, &vocabulary, &requests, &GenerationConfig::new()).unwrap();
    let unmask = GenerationConfig::new().with_processor(Unmask);
    let outputs = run(&model, &vocabulary, &requests, &unmask).unwrap();
    assert!(outputs[0].text().bytes().all(|byte| b"ab".contains(&byte)), "{:?}", outputs[0].text());
    assert!((3..=9).contains(&outputs[0].text().len()));
    // Without a legal token left, a row takes the logits of the constraint.
    let mask_all = GenerationConfig::new().with_processor(MaskAll);
    assert_eq!(run(&model, &vocabulary, &requests, &mask_all).unwrap(), plain);
    let law = check_laws(&Unmask, 40, &device).unwrap_err();
    assert!(law.to_string().contains("a masked token became legal"), "{law}");
    check_laws(&Repeats(0.5), 40, &device).unwrap();
}

#[test]
fn a_sampler_chooses_in_every_row() {
    let (vocabulary, device) = (vocabulary_of(&["ab", "ba"]), Device::flex());
    let table = table("[ab]{3,9}", &vocabulary);
    let request = Request::new(vec![TokenId(97)], 12).with_constraint(&table);
    let requests = [request.clone(), request];
    let model = RandomLm::new(vocabulary.len(), 3, DType::F32, &device);
    let config = config().with_sampler(LastId);
    let outputs = run(&model, &vocabulary, &requests, &config).unwrap();
    // `ba` has the greatest id, and the end of sequence a greater one than letters.
    assert_eq!(outputs[0].text(), "babababa");
    let tokens: Vec<_> = outputs.iter().map(|output| output.tokens.clone()).collect();
    assert_eq!(continuous(&model, &vocabulary, &requests, &config, false), tokens);
}

#[test]
fn loops_that_cannot_run_a_processor_name_it() {
    let (vocabulary, device) = (vocabulary_of(&[]), Device::flex());
    let table = table("[ab]{3,9}", &vocabulary);
    let requests = [Request::new(vec![TokenId(97)], 12).with_constraint(&table)];
    let model = RandomLm::new(vocabulary.len(), 4, DType::F32, &device);
    let configs = [
        (GenerationConfig::new().with_processor(Unmask), "Unmask"),
        (GenerationConfig::new().with_sampler(LastId), "LastId"),
    ];
    for (config, name) in configs {
        let graph = DecodeGraph::record(&model, &vocabulary, &requests, &config, SLOTS).map(drop);
        let batch = ContinuousBatch::record(&model, &vocabulary, 1, SLOTS, &config).map(drop);
        for refused in [graph, batch] {
            let error = refused.unwrap_err();
            assert!(error.kind() == ErrorKind::Input && error.to_string().contains(name), "{error}");
        }
        let go_on = |_: Chunk| ControlFlow::Continue(());
        let refused = speculate(&model, &vocabulary, &requests, &config, PromptLookup::new(2, 2), go_on);
        assert_eq!(refused.map(drop).unwrap_err().kind(), ErrorKind::Input);
    }
}
