//! A speculative step as operations of Burn, recorded instead of run.

use burn::tensor::{Device, FloatDType};
use burn_dfa::ErrorKind;
use burn_dfa::constraint::{Format, StructuralTag, Tag, TriggeredTags};
use burn_dfa::generation::speculative::{
    DraftModel, Drafter, ForcedBytes, ForcedTokens, MergedDrafters, PromptLookup, speculate,
    speculate_recorded, stream,
};
use burn_dfa::generation::{GenerationConfig, Recordable, Request, SamplingOptions, generate};
use burn_dfa::{CompiledConstraint, Constraint};
use burn_dfa_decoder::Decoder;
use burn_dfa_tiny::draft;
use serde_json::json;

use crate::alone;
use crate::common::devices;
use crate::common::embedded::Embedded;
use crate::operations::{Recorded, renumbered};

/// Every kind of drafter.
const DRAFTERS: [&str; 5] = ["model", "unmasked", "lookup", "forced, then model", "merged"];

/// Whether rows are greedy, sampled, or differ in their options.
const CHOICES: [&str; 3] = ["greedy", "sampled", "mixed"];

/// The requests and the configuration of a choice.
fn choosing(choice: &str, requests: &[Request]) -> (Vec<Request>, GenerationConfig) {
    let warm = SamplingOptions::new().with_temperature(0.9);
    let mixed = [
        SamplingOptions::new(),
        warm.clone().with_top_k(40),
        warm.clone().with_presence_penalty(0.5),
        SamplingOptions::new().with_repetition_penalty(1.2),
    ];
    match choice {
        "mixed" => {
            let rows = requests.iter().cloned().zip(mixed);
            let rows = rows.map(|(request, sampling)| request.with_sampling(sampling)).collect();
            (rows, GenerationConfig::new())
        }
        "sampled" => (requests.to_vec(), GenerationConfig::new().with_sampling(warm)),
        "with log-probabilities" => (requests.to_vec(), GenerationConfig::new().with_logprobs(Some(2))),
        _ => (requests.to_vec(), GenerationConfig::new()),
    }
}

trait RecordableDrafter: Drafter + Recordable {}

impl<D: Drafter + Recordable> RecordableDrafter for D {}

fn drafter<'m>(name: &str, small: &'m Decoder) -> Box<dyn RecordableDrafter + 'm> {
    let model = || DraftModel::new(small, 3);
    let forced = ForcedTokens::new(2, ForcedBytes::LongestToken);
    match name {
        "model" => Box::new(model()),
        "unmasked" => Box::new(model().unmasked()),
        "lookup" => Box::new(PromptLookup::new(3, 2)),
        "merged" => Box::new(MergedDrafters::new(model(), PromptLookup::new(2, 2)).unwrap()),
        _ => Box::new(forced.before(model()).unwrap()),
    }
}

/// Free text in which calls begin, with a stack.
fn tagged(embedded: &Embedded) -> CompiledConstraint {
    let nested = json!({"type": "array", "items": {"$ref": "#"}, "maxItems": 3});
    let tag = TriggeredTags::new(["{"], [Tag::new("{", Format::json_schema(nested), "}")]);
    embedded.called(&Constraint::structural_tag(&StructuralTag::new(tag)).unwrap(), 8)
}

fn small(device: &Device) -> Decoder {
    let config = str::from_utf8(draft::CONFIG).unwrap();
    Decoder::from_bytes(config, draft::WEIGHTS, FloatDType::F32, device).unwrap()
}

/// The operations of [`speculate`] until its first read, after `steps` steps, which fails because
/// nothing was computed.
fn record(name: &str, choice: &str, steps: usize) -> Recorded {
    let device = Device::capture();
    let captured = device
        .capture_scope(|scope| {
            let embedded = Embedded::load(&device);
            let small = small(&device);
            let (person, order) = (embedded.schema("person"), embedded.schema("order"));
            let tagged = tagged(&embedded);
            let requests = embedded.requests(&[Some(&person), None, Some(&order), Some(&tagged)], 60, 0);
            let (requests, config) = choosing(choice, &requests);
            let config = config.with_sync_interval(steps);
            let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
            let chunks = stream(model, vocabulary, &requests, &config, drafter(name, &small));
            let error = chunks.unwrap().next().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Model, "{error}");
            scope.complete([], [])
        })
        .unwrap();
    let operations = captured.graph.operations.iter().map(|operation| format!("{operation:?}")).collect();
    Recorded { operations, values: captured.values.len() }
}

#[test]
fn every_step_has_the_same_operations_and_reads_nothing_back() {
    let _turn = alone();
    let choices = || CHOICES.into_iter().chain(["with log-probabilities"]);
    for (name, choice) in DRAFTERS.into_iter().flat_map(|name| choices().map(move |choice| (name, choice))) {
        // Reading the prompts counts as a step, and the next step uploads tensors that later steps
        // reuse.
        let [one, short, long] = [1, 2, 8].map(|steps| record(name, choice, steps));
        let what = format!("{name}, {choice}");
        assert_eq!(short.values, long.values, "{what}: a step uploads nothing");
        let first = short.operations.len() - one.operations.len();
        let more = long.operations.len() - short.operations.len();
        assert_eq!(more % 6, 0, "{what}: {more} operations of 6 steps");
        let length = more / 6;
        let start = short.operations.len();
        let step =
            |index: usize| renumbered(&long.operations[start + index * length..start + (index + 1) * length]);
        let expected = step(0);
        for index in 1..6 {
            assert_eq!(step(index), expected, "{what}, step {index}");
        }
        eprintln!("{what}: {length} operations a step, {first} the first");
    }
}

#[test]
fn a_replayed_step_writes_the_tokens_of_an_eager_step() {
    let _turn = alone();
    for (device_name, device) in devices::all() {
        let (embedded, small) = (Embedded::load(&device), small(&device));
        let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
        let (person, order) = (embedded.schema("person"), embedded.schema("order"));
        let tagged = tagged(&embedded);
        let long = embedded.requests(&[Some(&person), None, Some(&order), Some(&tagged)], 60, 0);
        // These rows end before the recording.
        let short = embedded.requests(&[None, None], 2, 3);
        let few = if device_name == "flex" { &DRAFTERS[..] } else { &["forced, then model", "merged"] };
        for (name, requests) in few.iter().flat_map(|name| [(name, &long), (name, &short)]) {
            for choice in CHOICES {
                let (requests, config) = choosing(choice, requests);
                let config = config.with_sync_interval(3);
                let run = drafter(name, &small);
                let run = speculate(model, vocabulary, &requests, &config, run).unwrap();
                let replayed = drafter(name, &small);
                let replayed = speculate_recorded(model, vocabulary, &requests, &config, replayed);
                assert_eq!(replayed.unwrap(), run, "{device_name}, {name}, {choice}");
                if device_name == "flex" && choice == "greedy" {
                    let plain = generate(model, vocabulary, &requests, &config);
                    let outputs: Vec<_> = run.into_iter().map(|row| row.output).collect();
                    assert_eq!(outputs, plain.unwrap(), "{name}");
                }
            }
        }
        eprintln!("{device_name}: {} drafters", few.len());
    }
}
