//! Logits processors and samplers of an application, in all loops, with equal tokens.

use burn::tensor::{DType, Device, IndexingUpdateOp, Int, Tensor, TensorData};
use burn_dfa::generation::speculative::{
    DraftModel, Drafter, ForcedBytes, ForcedTokens, MergedDrafters, PromptLookup, speculate,
    speculate_recorded,
};
use burn_dfa::generation::{
    ContinuousBatch, DecodeGraph, GenerationConfig, Recordable, Request, SamplingOptions,
};
use burn_dfa::processor::{
    Constant, ConstraintProcessor, FrequencyPresencePenalty, InitContext, LogitBias, LogitsProcessor,
    MinNewTokens, MinP, RepetitionPenalty, StepContext, SuppressTokens, Temperature, TopK, TopP, check_laws,
};
use burn_dfa::sampling::{self, Greedy, GumbelMax, Sampler};
use burn_dfa::{
    Capacity, Compile, CompiledConstraint, Constraint, DeviceConstraint, ErrorKind, StateId, TensorOptions,
    TokenId, Vocabulary,
};
use burn_dfa_testing::words::vocabulary_of;

use crate::common::devices;
use crate::common::model::{RandomLm, run};

const SLOTS: usize = 60;

/// The ids of all tokens, `[1, vocab_size]`, which no step changes.
type Ids = Constant<Tensor<2, Int>>;

fn ids(context: &InitContext) -> Ids {
    Constant(Tensor::arange(0..context.vocab_size as i64, (&context.device(), DType::I32)).unsqueeze())
}

/// The last tokens as a column, `[batch, vocab_size]`.
fn last_tokens(context: &StepContext, logits: &Tensor<2>) -> Tensor<2, Int> {
    let [batch, vocab_size] = logits.dims();
    context.tokens.clone().cast(DType::I32).reshape([batch, 1]).expand([batch, vocab_size])
}

/// Lowers the logits of the tokens of the output so far, by their number.
struct Repeats(f32);

impl LogitsProcessor for Repeats {
    /// The counts of all tokens, `[batch, vocab_size]`.
    type State = (Tensor<2>, Ids);

    fn init(&self, context: &InitContext) -> Self::State {
        let shape = [context.batch(), context.vocab_size];
        (Tensor::zeros(shape, (&context.device(), DType::F32)), ids(context))
    }

    fn process(
        &self,
        (counts, ids): Self::State,
        logits: Tensor<2>,
        context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        let is_last = ids.0.clone().expand(logits.dims()).equal(last_tokens(context, &logits));
        let counts = counts + is_last.float().cast(DType::F32);
        let penalty = (counts.clone() * self.0).cast(logits.dtype());
        (logits - penalty, (counts, ids))
    }
}

/// The number of tokens in which [`NoRepeatNGram`] looks for repetitions.
const WINDOW: usize = 64;

/// Masks tokens that would repeat a sequence of `n` tokens of the prompt or the output, as
/// transformers' `NoRepeatNGramLogitsProcessor` does.
struct NoRepeatNGram {
    n: usize,
}

impl LogitsProcessor for NoRepeatNGram {
    /// The last tokens of the prompt and the output, `[batch, WINDOW]`; −1 before the prompt.
    type State = Tensor<2, Int>;

    fn init(&self, context: &InitContext) -> Self::State {
        let ([batch, length], options) = (context.prompt.dims(), (&context.device(), DType::I32));
        let slots = Tensor::<1, Int>::arange(0..length as i64, options).unsqueeze::<2>();
        let padding = context.padding.clone().reshape([batch, 1]);
        let is_padded = slots.expand([batch, length]).lower(padding.expand([batch, length]));
        let prompt = context.prompt.clone().mask_fill(is_padded, -1);
        let none = Tensor::full([batch, WINDOW], -1, options);
        Tensor::cat(vec![none, prompt], 1).narrow(1, length, WINDOW)
    }

    fn process(
        &self,
        text: Self::State,
        logits: Tensor<2>,
        context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        let [batch, vocab_size] = logits.dims();
        let last = context.tokens.clone().reshape([batch, 1]);
        // Before the first step there is no last token.
        let is_token = last.clone().lower_elem(vocab_size as i32).expand([batch, WINDOW]);
        let longer = Tensor::cat(vec![text.clone().narrow(1, 1, WINDOW - 1), last], 1);
        let text = text.mask_where(is_token, longer);

        // A next token repeats a sequence if the last `n - 1` tokens of the text came before it.
        let (before, count) = (self.n - 1, WINDOW + 1 - self.n);
        let next = text.clone().narrow(1, before, count);
        let mut repeats = next.clone().greater_equal_elem(0);
        for at in 0..before {
            let last = text.clone().narrow(1, count + at, 1).expand([batch, count]);
            repeats = repeats.bool_and(text.clone().narrow(1, at, count).equal(last));
        }
        let counts = Tensor::<2, Int>::zeros([batch, vocab_size], (&logits.device(), DType::I32));
        let repeats = repeats.int().cast(DType::I32);
        let counts = counts.scatter(1, next.clamp_min(0), repeats, IndexingUpdateOp::Add);
        (logits.mask_fill(counts.greater_elem(0), f32::NEG_INFINITY), text)
    }
}

/// Begins every output with a token, as transformers' `ForcedBOSTokenLogitsProcessor` does.
struct ForcedFirst(TokenId);

impl LogitsProcessor for ForcedFirst {
    type State = Ids;

    fn init(&self, context: &InitContext) -> Ids {
        ids(context)
    }

    fn process(&self, ids: Ids, logits: Tensor<2>, context: &StepContext) -> (Tensor<2>, Ids) {
        let [batch, vocab_size] = logits.dims();
        let is_first = context.step.clone().equal_elem(0).reshape([-1, 1]).expand([batch, vocab_size]);
        let is_other = ids.0.clone().not_equal_elem(self.0.0 as i32).expand([batch, vocab_size]);
        (logits.mask_fill(is_first.bool_and(is_other), f32::NEG_INFINITY), ids)
    }
}

/// Raises the logits of tokens that the token before selects, as transformers'
/// `WatermarkLogitsProcessor` does.
struct Watermark(f32);

impl LogitsProcessor for Watermark {
    type State = Ids;

    fn init(&self, context: &InitContext) -> Ids {
        ids(context)
    }

    fn process(&self, ids: Ids, logits: Tensor<2>, context: &StepContext) -> (Tensor<2>, Ids) {
        let hash = last_tokens(context, &logits) * 0x2c1b_3c6d + ids.0.clone().expand(logits.dims());
        let is_green = (hash * 0x297a_2d39).lower_elem(0);
        (logits.clone().mask_where(is_green, logits + self.0), ids)
    }
}

/// Adds a bias that depends on the state of an automaton over tokens.
struct Automaton {
    /// The next state of each state and token, `[states, vocab_size]`.
    next: Tensor<2, Int>,
    /// `[states, vocab_size]`
    bias: Tensor<2>,
    start: StateId,
}

impl Automaton {
    fn new(next: Vec<i32>, bias: Vec<f32>, start: StateId, vocab_size: usize, device: &Device) -> Self {
        let shape = [next.len() / vocab_size, vocab_size];
        Self {
            next: Tensor::from_data(TensorData::new(next, shape), (device, DType::I32)),
            bias: Tensor::from_data(TensorData::new(bias, shape), (device, DType::F32)),
            start,
        }
    }

    /// Raises the logits of tokens that continue a word of a regex, which may begin at any token.
    fn favoring(regex: &str, bias: f32, vocabulary: &Vocabulary, device: &Device) -> Self {
        let constraint = Constraint::regex(regex).unwrap().compile(vocabulary).unwrap();
        let (start, vocab_size) = (constraint.start(), vocabulary.len());
        let states = 0..constraint.state_count() as u32;
        let next = |state, token| match constraint.next(StateId(state), TokenId(token)) {
            StateId::DEAD => constraint.next(start, TokenId(token)),
            next => next,
        };
        let next = states.flat_map(|state| {
            (0..vocab_size as u32).map(move |token| match next(state, token) {
                StateId::DEAD | StateId::DONE => start.0 as i32,
                next => next.0 as i32,
            })
        });
        let next: Vec<i32> = next.collect();
        let bias = next.iter().map(|&next| if next == start.0 as i32 { 0.0 } else { bias }).collect();
        Self::new(next, bias, start, vocab_size, device)
    }

    /// Masks all tokens but one, which changes in turn. So Bumblebee's example writes 1, 2 and 3.
    fn in_turn(tokens: &[u32], vocab_size: usize, device: &Device) -> Self {
        let states = tokens.len();
        let next = (0..states * vocab_size).map(|at| ((at / vocab_size + 1) % states) as i32);
        let is_its_turn = |at: usize| at % vocab_size == tokens[at / vocab_size] as usize;
        let bias = (0..states * vocab_size).map(|at| if is_its_turn(at) { 0.0 } else { f32::NEG_INFINITY });
        Self::new(next.collect(), bias.collect(), StateId(0), vocab_size, device)
    }
}

impl LogitsProcessor for Automaton {
    /// The state of each row, `[batch]`.
    type State = Tensor<1, Int>;

    fn init(&self, context: &InitContext) -> Self::State {
        Tensor::full([context.batch()], self.start.0 as i32, (&context.device(), DType::I32))
    }

    fn process(
        &self,
        state: Self::State,
        logits: Tensor<2>,
        context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        let [batch, vocab_size] = logits.dims();
        let token = context.tokens.clone();
        let is_none = token.clone().greater_equal_elem(vocab_size as i32);
        let token = token.clamp_max(vocab_size as i32 - 1).reshape([batch, 1]);
        let next = self.next.clone().select(0, state.clone()).gather(1, token).reshape([batch]);
        let state = next.mask_where(is_none, state);
        let bias = self.bias.clone().select(0, state.clone()).cast(logits.dtype());
        (logits + bias, state)
    }
}

/// Masks the tokens with a letter, as Bumblebee's example avoids the letter e.
struct NoLetter {
    /// `[1, vocab_size]`
    bias: Tensor<2>,
}

impl NoLetter {
    fn new(letter: u8, vocabulary: &Vocabulary, device: &Device) -> Self {
        let bias = |id: usize| match vocabulary.bytes(TokenId(id as u32)) {
            Some(bytes) if bytes.contains(&letter) => f32::NEG_INFINITY,
            _ => 0.0,
        };
        let bias: Vec<f32> = (0..vocabulary.len()).map(bias).collect();
        let bias = TensorData::new(bias, [1, vocabulary.len()]);
        Self { bias: Tensor::from_data(bias, (device, DType::F32)) }
    }
}

impl LogitsProcessor for NoLetter {
    type State = ();

    fn init(&self, _: &InitContext) {}

    fn process(&self, _: (), logits: Tensor<2>, _: &StepContext) -> (Tensor<2>, ()) {
        let bias = self.bias.clone().cast(logits.dtype());
        (logits + bias, ())
    }
}

/// Makes every token likely, masked ones too.
struct Unmask;

impl LogitsProcessor for Unmask {
    type State = ();

    fn init(&self, _: &InitContext) {}

    fn process(&self, _: (), logits: Tensor<2>, _: &StepContext) -> (Tensor<2>, ()) {
        (logits.zeros_like(), ())
    }
}

/// Adds the logits of all rows.
struct Mixed;

impl LogitsProcessor for Mixed {
    type State = ();

    fn init(&self, _: &InitContext) {}

    fn process(&self, _: (), logits: Tensor<2>, _: &StepContext) -> (Tensor<2>, ()) {
        let masked = logits.clone().equal_elem(f32::NEG_INFINITY);
        let sum = logits.clone().mask_fill(masked, 0.0).sum_dim(0).expand(logits.dims());
        (logits + sum, ())
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

/// Masks the legal tokens, and makes the masked ones as likely as possible.
struct Invert;

impl LogitsProcessor for Invert {
    type State = ();

    fn init(&self, _: &InitContext) {}

    fn process(&self, _: (), logits: Tensor<2>, _: &StepContext) -> (Tensor<2>, ()) {
        let masked = logits.clone().equal_elem(f32::NEG_INFINITY);
        (logits.full_like(f32::NEG_INFINITY).mask_fill(masked, f32::INFINITY), ())
    }
}

/// Draws among the tokens whose logits are at most a distance below the greatest.
struct Near {
    distance: f32,
    /// With a seed for each row.
    draw: GumbelMax,
}

impl Sampler for Near {
    fn sample(&self, logits: Tensor<2>, step: &Tensor<1, Int>) -> Tensor<1, Int> {
        let least = logits.clone().max_dim(1) - self.distance;
        let below = logits.clone().lower(least.expand(logits.dims()));
        self.draw.sample(logits.mask_fill(below, f32::NEG_INFINITY), step)
    }
}

/// The promise of processors and samplers that keep no tensor of a call, and whose own tensors do
/// not change.
macro_rules! recordable {
    ($($type:ty),*) => {$(
        // SAFETY: as above; each step computes a new state, which is written in place.
        #[allow(unsafe_code)]
        unsafe impl Recordable for $type {}
    )*};
}

recordable!(
    Repeats,
    NoRepeatNGram,
    ForcedFirst,
    Watermark,
    Automaton,
    NoLetter,
    Unmask,
    MaskAll,
    Invert,
    Near
);

/// Takes the legal token with the greatest id.
struct LastId;

impl Sampler for LastId {
    fn sample(&self, logits: Tensor<2>, _: &Tensor<1, Int>) -> Tensor<1, Int> {
        let [batch, vocab_size] = logits.dims();
        let ids = Tensor::<1, Int>::arange(0..vocab_size as i64, &logits.device()).float().cast(DType::F32);
        let ids = ids.unsqueeze::<2>().expand([batch, vocab_size]);
        let ids = ids.mask_fill(logits.equal_elem(f32::NEG_INFINITY), -1.0);
        ids.argmax(1).reshape([batch]).cast(DType::I32)
    }
}

/// With capacity for the constraints of a continuous batch.
fn config() -> GenerationConfig {
    let capacity = Capacity::new().with_constraints(3).with_states(500).with_classes(300);
    GenerationConfig::new().with_tensors(TensorOptions { capacity, ..TensorOptions::default() })
}

fn regex(pattern: &str, vocabulary: &Vocabulary) -> CompiledConstraint {
    Constraint::regex(pattern).unwrap().compile(vocabulary).unwrap()
}

fn requests(constraint: &CompiledConstraint) -> [Request; 3] {
    let request = |prompt: &[u32], tokens| {
        Request::new(prompt.iter().map(|&id| TokenId(id)).collect::<Vec<_>>(), tokens)
    };
    [
        request(&[97, 98], 12).with_constraint(constraint),
        request(&[99], 9),
        request(&[97], 10).with_constraint(constraint),
    ]
}

/// The tokens of the requests in a continuous batch of `rows` rows.
fn continuous(
    model: &RandomLm,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
    rows: usize,
    record: bool,
) -> Vec<Vec<TokenId>> {
    let make = if record { ContinuousBatch::record } else { ContinuousBatch::new };
    let mut batch = make(model, vocabulary, rows, SLOTS, config).unwrap();
    let mut outputs = vec![Vec::new(); requests.len()];
    let (mut next, mut rows) = (0, vec![None; rows]);
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

/// Drafters of a chain, of a tree, of forced tokens, and of the model without processors.
fn drafters(model: &RandomLm) -> Vec<Box<dyn Drafter + '_>> {
    let chain = || PromptLookup::new(3, 2);
    let forced = ForcedTokens::new(2, ForcedBytes::LongestToken);
    vec![
        Box::new(()),
        Box::new(chain()),
        Box::new(MergedDrafters::new(chain(), PromptLookup::new(2, 1)).unwrap()),
        Box::new(forced.before(chain()).unwrap()),
        Box::new(DraftModel::new(model, 3)),
    ]
}

/// The result of every loop.
struct Generated {
    tokens: Vec<Vec<TokenId>>,
    /// Calls of the model with draft tokens of the model without processors; `None` if sampled.
    calls: Option<usize>,
}

impl Generated {
    fn assert_drafts_were_accepted(&self, name: &str) {
        let tokens = self.tokens.iter().map(Vec::len).sum::<usize>();
        assert!(self.calls.is_none_or(|calls| calls < tokens), "{name}: no draft was accepted");
    }
}

/// Runs the requests in every loop, and checks that the tokens are equal to the tokens of the eager
/// loop. The continuous batch has `rows` rows.
fn in_every_loop(
    name: &str,
    model: &RandomLm,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
    rows: usize,
) -> Generated {
    let outputs = run(model, vocabulary, requests, config).unwrap();
    let expected: Vec<_> = outputs.into_iter().map(|output| output.tokens).collect();
    let mut calls = None;
    for record in [false, true] {
        let tokens = continuous(model, vocabulary, requests, config, rows, record);
        assert_eq!(tokens, expected, "{name}, a continuous batch, recorded: {record}");
    }
    let mut graph = DecodeGraph::record(model, vocabulary, requests, config, SLOTS).unwrap();
    for _ in 0..2 {
        let outputs = graph.generate(requests).unwrap();
        let tokens: Vec<_> = outputs.into_iter().map(|output| output.tokens).collect();
        assert_eq!(tokens, expected, "{name}, recorded");
    }
    if config.sampling.is_greedy() {
        for (number, drafter) in drafters(model).into_iter().enumerate() {
            let rows = speculate(model, vocabulary, requests, config, drafter).unwrap();
            if number == 4 {
                calls = Some(rows.iter().map(|row| row.calls).sum());
            }
            let tokens: Vec<_> = rows.into_iter().map(|row| row.output.tokens).collect();
            assert_eq!(tokens, expected, "{name}, drafter {number}");
        }
        let drafter = MergedDrafters::new(PromptLookup::new(3, 2), PromptLookup::new(2, 1)).unwrap();
        let rows = speculate_recorded(model, vocabulary, requests, config, drafter).unwrap();
        let tokens: Vec<_> = rows.into_iter().map(|row| row.output.tokens).collect();
        assert_eq!(tokens, expected, "{name}, recorded drafts");
    }
    Generated { tokens: expected, calls }
}

#[test]
fn processors_have_the_same_effect_in_every_loop() {
    let vocabulary = vocabulary_of(&["ab", "ba", "abc"]);
    let constraint = regex("[abc]{4,20}", &vocabulary);
    let requests = requests(&constraint);
    for (device_name, device) in devices::all() {
        let model = RandomLm::new(vocabulary.len(), 1, DType::F32, &device);
        let favored = || Automaton::favoring("(cab)+", 6.0, &vocabulary, &device);
        let first = || ForcedFirst(TokenId(98));
        let with = |config: GenerationConfig, number| match number {
            0 => config.with_recordable_processor(Repeats(1.5)).with_recordable_processor(Repeats(0.5)),
            1 => config.with_recordable_processor(NoRepeatNGram { n: 2 }),
            2 => config.with_recordable_processor(first()),
            3 => config.with_recordable_processor(Watermark(3.0)),
            4 => config.with_recordable_processor(favored()),
            _ => config
                .with_recordable_processor(first())
                .with_recordable_processor(favored())
                .with_recordable_processor(NoRepeatNGram { n: 2 })
                .with_recordable_processor(Watermark(2.0))
                .with_repetition_penalty(1.2),
        };
        for temperature in [None, Some(0.8)] {
            let config = config().with_temperature(temperature).with_sync_interval(3);
            let plain = in_every_loop(device_name, &model, &vocabulary, &requests, &config, 2);
            plain.assert_drafts_were_accepted(device_name);
            for number in 0..6 {
                let name = format!("{device_name}, processors {number}, {temperature:?}");
                let config = with(config.clone(), number);
                let generated = in_every_loop(&name, &model, &vocabulary, &requests, &config, 2);
                generated.assert_drafts_were_accepted(&name);
                let tokens = generated.tokens;
                assert_ne!(tokens, plain.tokens, "{name} have no effect");
                if number == 1 {
                    for (tokens, request) in tokens.iter().zip(&requests) {
                        let text = [&request.prompt[..], &tokens[..tokens.len() - 1]].concat();
                        let mut pairs: Vec<_> = text.windows(2).collect();
                        let all = pairs.len();
                        pairs.sort();
                        pairs.dedup();
                        assert_eq!(pairs.len(), all, "{name}: {text:?}");
                    }
                }
                if number == 2 || number == 5 {
                    assert!(tokens.iter().all(|tokens| tokens[0] == TokenId(98)), "{name}: {tokens:?}");
                }
            }
        }
    }
}

#[test]
fn processors_of_bumblebees_examples_write_the_same_text_in_every_loop() {
    let vocabulary = vocabulary_of(&["ab", "ba", "abc"]);
    let constraint = regex("[abc]{4,20}", &vocabulary);
    let requests = requests(&constraint);
    for (name, device) in devices::all() {
        let model = RandomLm::new(vocabulary.len(), 7, DType::F32, &device);
        let texts = |kind: &str, config: GenerationConfig| {
            let name = format!("{name}, {kind}");
            let config = config.with_sync_interval(3);
            let outputs = in_every_loop(&name, &model, &vocabulary, &requests, &config, 2).tokens;
            outputs.into_iter().map(|tokens| vocabulary.decode(&tokens)).collect::<Vec<_>>()
        };
        // The budgets of 12 and 10 tokens include the end, which only the first and the last row
        // need.
        let in_turn = Automaton::in_turn(&[97, 98, 99], vocabulary.len(), &device);
        let expected = ["abcabcabcab", "abcabcabc", "abcabcabc"].map(|text| text.as_bytes().to_vec());
        assert_eq!(texts("in turn", config().with_recordable_processor(in_turn)), expected, "{name}");

        let no_c = NoLetter::new(b'c', &vocabulary, &device);
        for text in texts("no letter", config().with_recordable_processor(no_c)) {
            assert!(!text.contains(&b'c'), "{name}: {text:?}");
        }
    }
}

#[test]
fn built_in_processors_in_the_list_equal_the_options_in_every_loop() {
    let vocabulary = vocabulary_of(&["ab", "ba", "abc"]);
    let (constraint, vocab_size) = (regex("[abc]{4,20}", &vocabulary), vocabulary.len());
    let requests = requests(&constraint);
    let (suppressed, bias) = ([TokenId(97)], [(TokenId(99), 1.5)]);
    let greedy = SamplingOptions::new()
        .with_repetition_penalty(1.2)
        .with_presence_penalty(0.4)
        .with_frequency_penalty(0.3)
        .with_logit_bias(bias)
        .with_suppress_tokens(suppressed)
        .with_min_new_tokens(7);
    let sampled = greedy.clone().with_temperature(0.8).with_top_k(6).with_top_p(0.9).with_min_p(0.05);
    for (name, device) in devices::all() {
        let model = RandomLm::new(vocab_size, 5, DType::F32, &device);
        let tokens_of = |config: &GenerationConfig| -> Vec<_> {
            let outputs = run(&model, &vocabulary, &requests, config).unwrap();
            outputs.into_iter().map(|output| output.tokens).collect()
        };
        let penalties = config()
            .with_sync_interval(3)
            .with_recordable_processor(RepetitionPenalty::new(1.2).unwrap())
            .with_recordable_processor(FrequencyPresencePenalty::new(0.4, 0.3).unwrap())
            .with_recordable_processor(LogitBias::new(bias).unwrap())
            .with_recordable_processor(SuppressTokens::new(suppressed))
            .with_recordable_processor(MinNewTokens::new(7, &vocabulary));
        let filters = penalties
            .clone()
            .with_recordable_processor(Temperature::new(0.8).unwrap())
            .with_recordable_processor(TopK::new(6).unwrap())
            .with_recordable_processor(TopP::new(0.9).unwrap())
            .with_recordable_processor(MinP::new(0.05).unwrap());
        let chain = RepetitionPenalty::new(1.2)
            .unwrap()
            .then(Some(FrequencyPresencePenalty::new(0.4, 0.3).unwrap()))
            .then(LogitBias::new(bias).unwrap())
            .then(None::<TopK>)
            .then(SuppressTokens::new(suppressed))
            .then(MinNewTokens::new(7, &vocabulary));
        let chained = config().with_sync_interval(3).with_recordable_processor(chain);
        let draw = GumbelMax::new(&[0; 3], vocab_size, &device).unwrap();
        let cases = [
            ("greedy", penalties, &greedy),
            ("greedy, in a chain", chained, &greedy),
            ("sampled", filters.clone().with_temperature(1.0), &sampled),
            ("with a built-in sampler", filters.with_recordable_sampler(draw), &sampled),
        ];
        for (kind, list, options) in cases {
            let name = format!("{name}, {kind}");
            let expected = tokens_of(&config().with_sampling(options.clone()));
            assert_ne!(expected, tokens_of(&config().with_temperature(options.temperature)), "{name}");
            let generated = in_every_loop(&name, &model, &vocabulary, &requests, &list, 3);
            assert_eq!(generated.tokens, expected, "{name}");
        }
    }
}

#[test]
fn processors_keep_the_laws() {
    let vocabulary = vocabulary_of(&["ab", "ba"]);
    for (_, device) in devices::all() {
        let vocab_size = vocabulary.len();
        check_laws(&Repeats(0.5), vocab_size, &device).unwrap();
        check_laws(&NoRepeatNGram { n: 2 }, vocab_size, &device).unwrap();
        check_laws(&NoRepeatNGram { n: 3 }, vocab_size, &device).unwrap();
        check_laws(&ForcedFirst(TokenId(98)), vocab_size, &device).unwrap();
        check_laws(&Watermark(2.0), vocab_size, &device).unwrap();
        check_laws(&Automaton::favoring("(cab)+", 6.0, &vocabulary, &device), vocab_size, &device).unwrap();
        check_laws(&Automaton::in_turn(&[97, 98, 99], vocab_size, &device), vocab_size, &device).unwrap();
        check_laws(&NoLetter::new(b'c', &vocabulary, &device), vocab_size, &device).unwrap();
        check_laws(&TopK::new(3).unwrap(), vocab_size, &device).unwrap();
        let law = check_laws(&Unmask, vocab_size, &device).unwrap_err();
        assert!(law.to_string().contains("a masked token became legal"), "{law}");
        let law = check_laws(&Mixed, vocab_size, &device).unwrap_err();
        assert!(law.to_string().contains("depend on other rows"), "{law}");
    }
}

#[test]
fn samplers_keep_the_laws() {
    for (name, device) in devices::all() {
        for vocab_size in [20, 5_000] {
            let draw = GumbelMax::new(&[1, 2, 3], vocab_size, &device).unwrap();
            let mixed = draw.clone().with_temperatures(&[Some(0.7), None, Some(100.0)]).unwrap();
            let near = Near { distance: 3.0, draw: draw.clone() };
            let samplers: [&dyn Sampler; 5] = [&Greedy, &draw, &mixed, &near, &LastId];
            for (number, sampler) in samplers.into_iter().enumerate() {
                let result = sampling::check_laws(sampler, 3, vocab_size, &device);
                result.unwrap_or_else(|error| panic!("{name}, sampler {number}: {error}"));
            }
        }
    }
}

#[test]
fn a_processor_cannot_break_the_constraint_in_any_loop() {
    let vocabulary = vocabulary_of(&["ab", "ba"]);
    let constraint = regex("[ab]{3,9}", &vocabulary);
    let prompts = [vec![TokenId(97)], vec![TokenId(98), TokenId(97)], vec![TokenId(99)]];
    let requests = prompts.map(|prompt| Request::new(prompt, 12).with_constraint(&constraint));
    for (name, device) in devices::all() {
        let model = RandomLm::new(vocabulary.len(), 2, DType::F32, &device);
        for temperature in [None, Some(0.8)] {
            let config = config().with_temperature(temperature).with_sync_interval(3);
            let plain = in_every_loop(name, &model, &vocabulary, &requests, &config, 2).tokens;
            let unmask = config.clone().with_recordable_processor(Unmask);
            let unmask_name = format!("{name}, unmask, {temperature:?}");
            let outputs = in_every_loop(&unmask_name, &model, &vocabulary, &requests, &unmask, 2).tokens;
            for tokens in outputs {
                let bytes = tokens.iter().flat_map(|&token| vocabulary.bytes(token).unwrap_or_default());
                let text: Vec<u8> = bytes.copied().collect();
                assert!((3..=9).contains(&text.len()), "{unmask_name}: {text:?}");
                assert!(text.iter().all(|byte| b"ab".contains(byte)), "{unmask_name}: {text:?}");
            }
            // Without a legal token left, a row takes the logits of the constraint.
            let mask_all = config.clone().with_recordable_processor(MaskAll);
            let invert = config.with_recordable_processor(Invert);
            for (kind, config) in [("mask all", mask_all), ("invert", invert)] {
                let name = format!("{name}, {kind}, {temperature:?}");
                let outputs = in_every_loop(&name, &model, &vocabulary, &requests, &config, 2);
                assert_eq!(outputs.tokens, plain, "{name}");
            }
        }
    }
}

#[test]
fn a_sampler_with_a_value_for_each_row_has_the_same_effect_in_every_loop() {
    let vocabulary = vocabulary_of(&["ab", "ba", "abc"]);
    let constraint = regex("[abc]{4,20}", &vocabulary);
    let requests = requests(&constraint);
    for (name, device) in devices::all() {
        let model = RandomLm::new(vocabulary.len(), 6, DType::F32, &device);
        let drawn = |seeds: [u64; 3]| {
            let draw = GumbelMax::new(&seeds, vocabulary.len(), &device).unwrap();
            let config = config().with_sync_interval(3).with_recordable_sampler(Near { distance: 3.0, draw });
            // Request `n` begins in row `n` of the continuous batch.
            in_every_loop(name, &model, &vocabulary, &requests, &config, seeds.len()).tokens
        };
        assert_ne!(drawn([1, 2, 3]), drawn([4, 5, 6]), "{name}: the seeds have no effect");
    }
}

#[test]
fn a_sampler_chooses_in_every_row() {
    let (vocabulary, device) = (vocabulary_of(&["ab", "ba"]), Device::flex());
    let constraint = regex("[ab]{3,9}", &vocabulary);
    let request = Request::new(vec![TokenId(97)], 12).with_constraint(&constraint);
    let requests = [request.clone(), request];
    let model = RandomLm::new(vocabulary.len(), 3, DType::F32, &device);
    let config = config().with_sampler(LastId);
    let outputs = run(&model, &vocabulary, &requests, &config).unwrap();
    // `ba` has the greatest id, and the end of sequence a greater one than letters.
    assert_eq!(outputs[0].text(), "babababa");
    let tokens: Vec<_> = outputs.iter().map(|output| output.tokens.clone()).collect();
    assert_eq!(continuous(&model, &vocabulary, &requests, &config, 2, false), tokens);
    for drafter in drafters(&model) {
        let rows = speculate(&model, &vocabulary, &requests, &config, drafter).unwrap();
        assert_eq!(rows.into_iter().map(|row| row.output.tokens).collect::<Vec<_>>(), tokens);
    }
}

#[test]
fn loops_that_cannot_run_a_processor_name_it() {
    let (vocabulary, device) = (vocabulary_of(&[]), Device::flex());
    let constraint = regex("[ab]{3,9}", &vocabulary);
    let requests = [Request::new(vec![TokenId(97)], 12).with_constraint(&constraint)];
    let model = RandomLm::new(vocabulary.len(), 4, DType::F32, &device);
    let configs = [
        (GenerationConfig::new().with_processor(Unmask), "Unmask"),
        (GenerationConfig::new().with_sampler(LastId), "LastId"),
    ];
    for (config, name) in configs {
        let graph = DecodeGraph::record(&model, &vocabulary, &requests, &config, SLOTS).map(drop);
        let batch = ContinuousBatch::record(&model, &vocabulary, 1, SLOTS, &config).map(drop);
        let drafts = speculate_recorded(&model, &vocabulary, &requests, &config, ()).map(drop);
        for refused in [graph, batch, drafts] {
            let error = refused.unwrap_err();
            assert!(error.kind() == ErrorKind::Input && error.to_string().contains(name), "{error}");
        }
    }
}

/// The logits after `steps` equal steps of one row of four tokens, which takes `token` in each.
fn after_steps<P: LogitsProcessor>(processor: &P, logits: [f32; 4], token: i32, steps: i32) -> Vec<f32> {
    let device = Device::flex();
    let number = |value: i32| Tensor::<1, Int>::from_data([value], (&device, DType::I32));
    let logits = Tensor::<1>::from_data(logits, (&device, DType::F16)).unsqueeze::<2>();
    let prompt = Tensor::from_data([[0, 1, 2]], (&device, DType::I32));
    let mut state = processor.init(&InitContext { prompt, padding: number(0), vocab_size: 4 });
    let mut last = logits.clone();
    for step in 0..steps {
        let tokens = number(if step == 0 { 4 } else { token });
        let context = StepContext { tokens, step: number(step) };
        (last, state) = processor.process(state, logits.clone(), &context);
    }
    last.into_data().convert_dtype(DType::F32).try_to_vec().unwrap()
}

/// No value that a processor accepts makes a masked logit legal, or a legal one infinite.
#[test]
fn half_precision_stays_within_its_range() {
    let logits = [f32::NEG_INFINITY, 6e4, -6e4, 0.5];
    let biases = [(0, 100.0), (1, 100.0), (2, -100.0)];
    let biases = biases.into_iter().flat_map(|(token, bias)| vec![(TokenId(token), bias); 656]);
    let bias = LogitBias::new(biases.collect::<Vec<_>>()).unwrap();
    let temperature = Temperature::new(0.01).unwrap();
    let repetition = RepetitionPenalty::new(100.0).unwrap();
    let mut all = vec![
        after_steps(&bias, logits, 0, 1),
        after_steps(&temperature, logits, 0, 1),
        after_steps(&repetition, logits, 0, 1),
    ];
    for frequency in [-100.0, 100.0] {
        let penalty = FrequencyPresencePenalty::new(0.0, frequency).unwrap();
        all.extend([0, 1, 2].map(|token| after_steps(&penalty, logits, token, 700)));
    }
    for after in all {
        assert_eq!(after[0], f32::NEG_INFINITY, "{after:?}");
        assert!(after[1..].iter().all(|logit| logit.is_finite()), "{after:?}");
    }
}

/// A batch of two rows under `[a-z]{2}`, before the first token.
fn two_rows(vocabulary: &Vocabulary, device: &Device) -> ConstraintProcessor {
    let constraint = regex("[a-z]{2}", vocabulary);
    let options = TensorOptions::default();
    let on_device = DeviceConstraint::new(&[&constraint], vocabulary.len(), &options, device).unwrap();
    ConstraintProcessor::new(on_device, &[0, 0]).unwrap()
}

#[test]
fn one_seed_draws_in_every_row() {
    let vocabulary = vocabulary_of(&[]);
    for (name, device) in devices::all() {
        let (processor, vocab_size) = (two_rows(&vocabulary, &device), vocabulary.len());
        let drawn = |seeds: &[u64]| {
            let sampler = GumbelMax::new(seeds, vocab_size, &device).unwrap();
            let none = vec![vocab_size as i32; 2];
            let mut context = StepContext {
                tokens: Tensor::from_data(TensorData::new(none, [2]), (&device, DType::I32)),
                step: Tensor::from_data([0], (&device, DType::I32)),
            };
            let logits = Tensor::zeros([2, vocab_size], (&device, DType::F32));
            processor.sample_step(&mut processor.start(), &mut context, logits, &sampler);
            context.tokens.into_data().convert_dtype(DType::I32).try_to_vec::<i32>().unwrap()
        };
        for seed in 0..8 {
            assert_eq!(drawn(&[seed]), drawn(&[seed, seed]), "{name}");
        }
    }
}

#[test]
fn an_id_beyond_32_bits_is_invalid() {
    let vocabulary = vocabulary_of(&[]);
    let device = Device::flex();
    let processor = two_rows(&vocabulary, &device);
    let ids = Tensor::<1, Int>::from_data([97, (1_i64 << 32) + 97], (&device, DType::I64));
    let position = processor.advance(processor.start(), ids);
    let states = position.states().into_data().convert_dtype(DType::I32).try_to_vec::<i32>().unwrap();
    assert!(states[0] != StateId::DEAD.0 as i32 && states[1] == StateId::DEAD.0 as i32, "{states:?}");
}

#[test]
#[should_panic(expected = "one token for every row")]
fn every_row_needs_a_token() {
    let (vocabulary, device) = (vocabulary_of(&[]), Device::flex());
    let processor = two_rows(&vocabulary, &device);
    let one = Tensor::<1, Int>::from_data([97], (&device, DType::I32));
    let context = StepContext { tokens: one, step: Tensor::from_data([0], (&device, DType::I32)) };
    let logits = Tensor::zeros([2, vocabulary.len()], (&device, DType::F32));
    processor.process(processor.start(), logits, &context);
}

#[test]
fn states_of_reserved_space_are_dead_on_every_device() {
    let vocabulary = vocabulary_of(&[]);
    let constraint = regex("a{2}", &vocabulary);
    let options = TensorOptions::default().with_capacity(Capacity::new().with_states(100));
    for (name, device) in devices::all() {
        let on_device = DeviceConstraint::new(&[&constraint], vocabulary.len(), &options, &device).unwrap();
        let states = on_device.states(&[StateId(99)]).unwrap();
        let illegal = on_device.illegal(states, None).into_data();
        assert!(illegal.iter::<bool>().all(|illegal| illegal), "{name}");
    }
}
