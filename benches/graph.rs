//! A generation step by step and replayed: the embedded model, prefill included, items are tokens of a row.
//!
//! The device is the one that `BURN_DEVICE` names, else Flex, which records nothing: there a replay is the
//! step.

#[path = "../tests/common/embedded.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod embedded;
mod triggers;

use std::ops::ControlFlow;

use burn::tensor::Device;
use burn_dfa::generation::{DecodeGraph, GenerationConfig, generate};
use burn_dfa::{Limits, TokenTable};
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
    fn table(self, embedded: &Embedded) -> Option<TokenTable> {
        match self {
            Self::Free => None,
            Self::Constrained | Self::ConstrainedSampled => Some(embedded.schema("person")),
            Self::FreeText => {
                let (text, limits) = (triggers::endless(100), Limits::default());
                Some(TokenTable::compile(&text, &embedded.vocabulary, &limits).unwrap())
            }
        }
    }

    /// All steps are taken: the host reads once, at the end.
    fn config(self) -> GenerationConfig {
        let temperature = matches!(self, Self::ConstrainedSampled).then_some(0.8);
        GenerationConfig::new().with_temperature(temperature).with_read_every(STEPS)
    }
}

fn device() -> Device {
    if std::env::var_os("BURN_DEVICE").is_some() { Device::default() } else { Device::flex() }
}

#[divan::bench(args = CASES, consts = [1, 8], sample_count = 20, sample_size = 1)]
fn eager<const BATCH: usize>(bencher: Bencher, case: Case) {
    let embedded = Embedded::load(&device());
    let table = case.table(&embedded);
    let (requests, config) = (embedded.requests(&[table.as_ref(); BATCH], STEPS, 0), case.config());
    let run = || {
        let go_on = |_: burn_dfa::generation::Piece| ControlFlow::Continue(());
        generate(embedded.model(), &embedded.vocabulary, &requests, &config, go_on).unwrap()
    };
    run();
    bencher.counter(ItemsCount::new(STEPS)).bench_local(run);
}

#[divan::bench(args = CASES, consts = [1, 8], sample_count = 20, sample_size = 1)]
fn replayed<const BATCH: usize>(bencher: Bencher, case: Case) {
    let embedded = Embedded::load(&device());
    let table = case.table(&embedded);
    let (requests, config) = (embedded.requests(&[table.as_ref(); BATCH], STEPS, 0), case.config());
    let longest = requests.iter().map(|request| request.prompt.len()).max().unwrap();
    let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
    let mut graph = DecodeGraph::record(model, vocabulary, &requests, &config, longest + STEPS).unwrap();
    let mut run = || graph.generate(&requests, |_| ControlFlow::Continue(())).unwrap();
    run();
    bencher.counter(ItemsCount::new(STEPS)).bench_local(run);
}
