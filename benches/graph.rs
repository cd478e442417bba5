//! One generation of the embedded model, prefill included, step by step and replayed. Items are
//! tokens of a row.
//!
//! The device is the one in `BURN_DEVICE`, by default Flex. Flex records nothing, so a replay there
//! runs the step again.

#[path = "../tests/common/embedded.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod embedded;
mod triggers;

use burn::tensor::Device;
use burn_dfa::generation::{DecodeGraph, GenerationConfig, generate};
use burn_dfa::{CompiledConstraint, Limits};
use divan::{Bencher, counter::ItemsCount};

use embedded::Embedded;

fn main() {
    divan::main();
}

const STEPS: usize = 64;

#[derive(Clone, Copy, Debug)]
enum Case {
    Free,
    Constrained,
    ConstrainedSampled,
    /// Free text with the triggers of 100 tools.
    FreeText,
}

const CASES: [Case; 4] = [Case::Free, Case::Constrained, Case::ConstrainedSampled, Case::FreeText];

impl Case {
    fn constraint(self, embedded: &Embedded) -> Option<CompiledConstraint> {
        match self {
            Self::Free => None,
            Self::Constrained | Self::ConstrainedSampled => Some(embedded.schema("person")),
            Self::FreeText => {
                let (text, limits) = (triggers::endless(100), Limits::default());
                Some(CompiledConstraint::compile(&text, &embedded.vocabulary, &limits).unwrap())
            }
        }
    }

    /// The host reads the tokens once, at the end, so that all steps run.
    fn config(self) -> GenerationConfig {
        let temperature = matches!(self, Self::ConstrainedSampled).then_some(0.8);
        GenerationConfig::new().with_temperature(temperature).with_sync_interval(STEPS)
    }
}

fn device() -> Device {
    if std::env::var_os("BURN_DEVICE").is_some() { Device::default() } else { Device::flex() }
}

#[divan::bench(args = CASES, consts = [1, 8], sample_count = 20, sample_size = 1)]
fn eager<const BATCH: usize>(bencher: Bencher, case: Case) {
    let embedded = Embedded::load(&device());
    let constraint = case.constraint(&embedded);
    let (requests, config) = (embedded.requests(&[constraint.as_ref(); BATCH], STEPS, 0), case.config());
    let run = || generate(embedded.model(), &embedded.vocabulary, &requests, &config).unwrap();
    run();
    bencher.counter(ItemsCount::new(STEPS)).bench_local(run);
}

#[divan::bench(args = CASES, consts = [1, 8], sample_count = 20, sample_size = 1)]
fn replayed<const BATCH: usize>(bencher: Bencher, case: Case) {
    let embedded = Embedded::load(&device());
    let constraint = case.constraint(&embedded);
    let (requests, config) = (embedded.requests(&[constraint.as_ref(); BATCH], STEPS, 0), case.config());
    let longest = requests.iter().map(|request| request.prompt.len()).max().unwrap();
    let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
    let mut graph = DecodeGraph::record(model, vocabulary, &requests, &config, longest + STEPS).unwrap();
    let mut run = || graph.generate(&requests).unwrap();
    run();
    bencher.counter(ItemsCount::new(STEPS)).bench_local(run);
}
