//! Outputs are equal with and without speculation, and always complete within their budget.

use burn::tensor::{DType, Device};
use burn_dfa::ErrorKind;
use burn_dfa::constraint::{Format, StructuralTag, Tag, TriggeredTags};
use burn_dfa::generation::speculative::{
    DraftModel, DraftToken, Drafter, DrafterContext, ForcedBytes, ForcedTokens, MergedDrafters, PromptLookup,
    Sequences, SpeculativeOutput, speculate,
};
use burn_dfa::generation::{FinishReason, GenerationConfig, Output, Request, SamplingOptions, generate};
use burn_dfa::processor::{DraftTree, Position};
use burn_dfa::{CompiledConstraint, Constraint, Error, Limits, TensorOptions, TokenId, Vocabulary};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::json;

use crate::common::{devices, ints, model::RandomLm};
use burn_dfa_testing::words::compact;

/// The bytes, some words, two ends of sequence.
pub fn vocabulary() -> Vocabulary {
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let words = ["true", "false", "\":", ",\"", "{\"", "\"}", "name", "age", "{\"name", "12", "ab", "é"];
    let words = words.iter().map(|word| word.as_bytes().to_vec());
    let vocabulary = Vocabulary::from_bytes(bytes.chain(words).map(Some).chain([None, None])).unwrap();
    vocabulary.with_eos([TokenId(268), TokenId(269)]).unwrap()
}

fn constraints(vocabulary: &Vocabulary) -> Vec<CompiledConstraint> {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 6},
        "age": {"type": "integer"}}, "required": ["name", "age"], "additionalProperties": false});
    let mut constraints: Vec<_> =
        ["(ab|a)*", r"-?[0-9]+(\.[0-9]+)?", "a{12}b?", r#"\{"name":"[a-z]{0,6}","age":[0-9]+\}"#, "x?"]
            .map(|pattern| Constraint::regex(pattern).unwrap())
            .into();
    constraints.push(compact(&schema));
    constraints.push(Constraint::choice(["yes", "no", "not at all"]).unwrap());
    // Free text and calls: any number, at least one, and only one.
    let tags = || ["name\":", "12"].map(|begin| Tag::new(begin, Format::regex("[0-9]{1,2}"), "\"}"));
    let called = TriggeredTags::new(["name", "12"], tags());
    for called in [called.clone(), called.clone().with_at_least_one(true), called.with_stop_after_first(true)]
    {
        constraints.push(Constraint::structural_tag(&StructuralTag::new(called)).unwrap());
    }
    let mut compiled = Vec::new();
    for (index, constraint) in constraints.iter().enumerate() {
        let compile = if index % 3 == 2 {
            CompiledConstraint::compile_byte_level
        } else {
            CompiledConstraint::compile_token_level
        };
        compiled.push(compile(constraint, vocabulary, &Limits::default()).unwrap());
    }
    compiled
}

/// Proposes random tokens, in a tree.
struct Wild {
    tree: DraftTree,
    rng: StdRng,
}

impl Drafter for Wild {
    fn tree(&self) -> DraftTree {
        self.tree.clone()
    }

    fn start(&mut self, _: &DrafterContext) -> Result<(), Error> {
        Ok(())
    }

    fn draft(&mut self, text: &Sequences, _: &Position) -> Vec<DraftToken> {
        let [batch] = text.lengths().dims();
        let device = text.lengths().device();
        (1..self.tree.len())
            .map(|_| {
                let tokens =
                    (0..batch).map(|_| *[97, 98, 48, 34, 256, 268].get(self.rng.random_range(0..6)).unwrap());
                DraftToken { tokens: ints(tokens.collect(), &device), probabilities: None }
            })
            .collect()
    }
}

/// Every kind of drafter, with chains of `drafts`.
fn drafters<'m>(
    models: &'m [RandomLm; 2],
    ids: &[TokenId],
    drafts: usize,
    seed: u64,
) -> Vec<(&'static str, Box<dyn Drafter + 'm>)> {
    let [draft, narrow] = models;
    let model = || DraftModel::new(draft, drafts);
    let forced = |bytes| ForcedTokens::new(drafts, bytes);
    let mut rng = StdRng::seed_from_u64(seed);
    let parents: Vec<_> = (0..2 * drafts).map(|at| rng.random_range(0..=at)).collect();
    let tree = DraftTree::new(&parents).unwrap();
    let two = MergedDrafters::new(model(), model().unmasked()).unwrap();
    vec![
        ("none", Box::new(())),
        ("model", Box::new(model())),
        ("model, unmasked", Box::new(model().unmasked())),
        ("narrow model", Box::new(DraftModel::new(narrow, drafts).with_ids(ids.iter().copied()))),
        ("lookup", Box::new(PromptLookup::new(drafts, 3))),
        ("forced, longest", Box::new(forced(ForcedBytes::LongestToken))),
        ("forced, only", Box::new(forced(ForcedBytes::ModelsChoice))),
        ("forced, model", Box::new(forced(ForcedBytes::LongestToken).before(model()).unwrap())),
        (
            "forced, lookup",
            Box::new(forced(ForcedBytes::ModelsChoice).before(PromptLookup::new(2, 2)).unwrap()),
        ),
        ("merged models", Box::new(two)),
        (
            "all merged",
            Box::new(
                MergedDrafters::new(
                    MergedDrafters::new(PromptLookup::new(drafts, 2), forced(ForcedBytes::LongestToken))
                        .unwrap(),
                    forced(ForcedBytes::LongestToken).before(model()).unwrap(),
                )
                .unwrap(),
            ),
        ),
        ("wild tree", Box::new(Wild { tree, rng })),
    ]
}

struct Batch {
    model: RandomLm,
    drafts: [RandomLm; 2],
    ids: Vec<TokenId>,
}

impl Batch {
    fn new(vocabulary: &Vocabulary, seed: u64, device: &Device) -> Self {
        let model = RandomLm::new(vocabulary.len() + 3, seed, DType::F32, device);
        let ids: Vec<_> =
            (0..vocabulary.len()).filter(|id| !(id + seed as usize).is_multiple_of(3)).collect();
        let draft = model.like(0..vocabulary.len() + 3, 0.6, seed + 1);
        // Two more logits than ids.
        let narrow = model.like(ids.iter().copied().chain([0, 0]), 0.6, seed + 2);
        let ids = ids.into_iter().map(|id| TokenId(id as u32)).collect();
        Self { model, drafts: [draft, narrow], ids }
    }
}

fn requests(constraints: &[CompiledConstraint], rows: usize, rng: &mut StdRng) -> Vec<Request> {
    (0..rows)
        .map(|_| {
            let prompt = (0..rng.random_range(1..6)).map(|_| TokenId(rng.random_range(95..105))).collect();
            let constraint = &constraints[rng.random_range(0..constraints.len())];
            let least = constraint.tokens_to_end(constraint.start()) as usize;
            let request = Request::new(prompt, least + rng.random_range(0..14)).with_seed(rng.random());
            if rng.random_range(0..8) == 0 { request } else { request.with_constraint(constraint) }
        })
        .collect()
}

fn run(
    model: &RandomLm,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
    drafter: impl Drafter,
) -> Vec<SpeculativeOutput> {
    speculate(model, vocabulary, requests, config, drafter).unwrap()
}

/// Checks output, budget and constraint of a row.
fn check(name: &str, request: &Request, output: &Output) {
    let what = format!("{name}: {:?}", output.text());
    assert!(output.tokens.len() <= request.max_new_tokens, "{what}");
    if let Some(constraint) = &request.constraint {
        assert_eq!(output.finish, FinishReason::EndOfSequence, "{what}");
        assert!(constraint.accepts(&output.tokens), "{what}");
    }
}

#[test]
fn greedy_outputs_do_not_depend_on_the_drafter() {
    const ROWS: usize = 6;
    let vocabulary = vocabulary();
    let constraints = constraints(&vocabulary);
    for (name, device) in devices::all() {
        let (mut prompts, mut tokens, mut calls) = (0, 0, 0);
        // A software Vulkan is much slower than Flex.
        let (rounds, lengths) = if name == "flex" { (20, &[0, 1, 2, 4, 8][..]) } else { (1, &[3][..]) };
        for (round, drafts) in
            (0..rounds).flat_map(|round| lengths.iter().map(move |&drafts| (round, drafts)))
        {
            let seed = 10 * round as u64 + drafts as u64;
            let mut rng = StdRng::seed_from_u64(seed);
            let batch = Batch::new(&vocabulary, seed, &device);
            let requests = requests(&constraints, ROWS, &mut rng);
            let mut config = GenerationConfig::new().with_sync_interval(1 + round % 5);
            if round % 2 == 1 {
                let penalties =
                    SamplingOptions::new().with_repetition_penalty(1.3).with_frequency_penalty(0.2);
                config = config.with_sampling(penalties.with_min_new_tokens(5));
            }
            let plain = generate(&batch.model, &vocabulary, &requests, &config);
            let plain = plain.unwrap();
            for (drafter, make) in drafters(&batch.drafts, &batch.ids, drafts, seed) {
                let name = format!("{name}, {drafter}, {drafts} drafts, seed {seed}");
                let rows = run(&batch.model, &vocabulary, &requests, &config, make);
                for ((row, plain), request) in rows.iter().zip(&plain).zip(&requests) {
                    assert_eq!(row.output, *plain, "{name}");
                    check(&name, request, &row.output);
                    assert!(row.calls <= plain.tokens.len(), "{name}: a call appends a token at least");
                    if drafter == "none" || drafts == 0 && !drafter.starts_with("forced, lookup") {
                        assert_eq!(row.calls, plain.tokens.len(), "{name}");
                    }
                    tokens += row.output.tokens.len();
                    calls += row.calls;
                }
            }
            prompts += ROWS;
        }
        assert!(calls < tokens, "draft tokens spare calls");
        eprintln!("{name}: {prompts} prompts, {calls} calls for {tokens} tokens");
    }
}

#[test]
fn sampled_outputs_are_complete_within_their_budgets() {
    const ROWS: usize = 12;
    let vocabulary = vocabulary();
    let constraints = constraints(&vocabulary);
    let device = Device::flex();
    let mut generations = 0;
    for round in 0..15 {
        let mut rng = StdRng::seed_from_u64(round);
        let batch = Batch::new(&vocabulary, round, &device);
        let requests = requests(&constraints, ROWS, &mut rng);
        let config = GenerationConfig::new()
            .with_temperature([0.3, 1.0, 2.0][round as usize % 3])
            .with_top_k((round % 5 == 1).then_some(20))
            .with_top_p((round % 5 == 2).then_some(0.9))
            .with_min_p((round % 5 == 3).then_some(0.02))
            .with_suppress_tokens(if round % 5 == 4 { vec![TokenId(97)] } else { Vec::new() });
        for (name, drafter) in drafters(&batch.drafts, &batch.ids, round as usize % 5, round) {
            let rows = run(&batch.model, &vocabulary, &requests, &config, drafter);
            for (row, request) in rows.iter().zip(&requests) {
                check(name, request, &row.output);
                generations += 1;
            }
        }
    }
    assert!(generations >= 2_000, "{generations}");
}

/// Options of their own for every row but the first; the second half is sampled.
fn with_options(requests: Vec<Request>) -> Vec<Request> {
    let greedy = SamplingOptions::new;
    let warm = || greedy().with_temperature(1.4);
    let options = [
        greedy().with_repetition_penalty(1.3).with_min_new_tokens(4),
        greedy().with_logit_bias([(TokenId(97), 3.0)]).with_top_k(3),
        greedy().with_suppress_tokens([TokenId(97), TokenId(49)]).with_presence_penalty(0.5),
        warm(),
        warm().with_top_k(20).with_frequency_penalty(0.2),
        warm().with_top_p(0.9).with_min_p(0.01),
    ];
    let all = std::iter::once(None).chain(options.map(Some));
    requests.into_iter().zip(all).map(|(request, sampling)| Request { sampling, ..request }).collect()
}

#[test]
fn rows_may_have_options_of_their_own() {
    let vocabulary = vocabulary();
    let constraints = constraints(&vocabulary);
    for (name, device) in devices::all() {
        let rounds = if name == "flex" { 12 } else { 1 };
        for round in 0..rounds {
            let mut rng = StdRng::seed_from_u64(50 + round);
            let batch = Batch::new(&vocabulary, round, &device);
            let requests = with_options(requests(&constraints, 7, &mut rng));
            let config = GenerationConfig::new().with_sync_interval(3);
            let plain = generate(&batch.model, &vocabulary, &requests, &config).unwrap();
            for (drafter, make) in drafters(&batch.drafts, &batch.ids, 1 + round as usize % 4, round) {
                let name = format!("{name}, {drafter}, round {round}");
                let rows = run(&batch.model, &vocabulary, &requests, &config, make);
                for (index, (row, request)) in rows.iter().zip(&requests).enumerate() {
                    check(&format!("{name}, row {index}"), request, &row.output);
                    if index < 4 {
                        assert_eq!(row.output, plain[index], "{name}, greedy row {index}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_row_does_not_depend_on_the_others() {
    let vocabulary = vocabulary();
    let constraints = constraints(&vocabulary);
    let device = Device::flex();
    let batch = Batch::new(&vocabulary, 3, &device);
    let mut rng = StdRng::seed_from_u64(8);
    let alike = requests(&constraints, 5, &mut rng);
    let unlike = with_options(requests(&constraints, 7, &mut rng));
    let requests: Vec<_> = alike.into_iter().chain(unlike).collect();
    let config = GenerationConfig::new().with_temperature(1.0);
    let drafter = || DraftModel::new(&batch.drafts[0], 3);
    let together = run(&batch.model, &vocabulary, &requests, &config, drafter());
    for (request, row) in requests.iter().zip(&together) {
        let alone = run(&batch.model, &vocabulary, std::slice::from_ref(request), &config, drafter());
        assert_eq!(alone[0], *row);
    }
}

#[test]
fn unsupported_requests_are_refused() {
    let vocabulary = vocabulary();
    let device = Device::flex();
    let batch = Batch::new(&vocabulary, 1, &device);
    let requests = [Request::new(vec![TokenId(97)], 4)];
    let refused = |config: &GenerationConfig, drafter: &mut dyn Drafter| {
        let result = speculate(&batch.model, &vocabulary, &requests, config, drafter);
        result.unwrap_err()
    };
    let plain = GenerationConfig::new();
    assert_eq!(refused(&plain.clone().with_sync_interval(0), &mut ()).kind(), ErrorKind::Input);
    let narrow = &batch.drafts[1];
    assert_eq!(refused(&plain, &mut DraftModel::new(narrow, 2)).kind(), ErrorKind::Input);
    assert_eq!(refused(&plain, &mut DraftModel::new(narrow, 2).with_ids([])).kind(), ErrorKind::Input);
    assert_eq!(
        refused(&plain, &mut DraftModel::new(narrow, 2).with_ids([TokenId(9999)])).kind(),
        ErrorKind::Input
    );
    let small = TensorOptions { max_bytes: 10, ..TensorOptions::default() };
    assert_eq!(refused(&plain.with_tensors(small), &mut ()).kind(), ErrorKind::Limit);
    let tree = MergedDrafters::new((), PromptLookup::new(1, 1))
        .and_then(|merged| MergedDrafters::new(merged, PromptLookup::new(1, 1)));
    assert_eq!(
        ForcedTokens::new(1, ForcedBytes::default()).before(tree.unwrap()).unwrap_err().kind(),
        ErrorKind::Input
    );
}
