//! What was measured, and comparisons of an engine with burn-dfa on what both could do.

use crate::cases::Kind;
use crate::measure::{BATCHES, Outcome};
use crate::statistics::median;

/// All cases on all engines, with one vocabulary.
pub struct Results {
    pub vocabulary: &'static str,
    pub width: usize,
    pub engines: Vec<&'static str>,
    pub cases: Vec<Measured>,
    /// Of each engine: the growth of resident memory over each case, in KiB.
    pub growth: Vec<Option<Vec<f64>>>,
}

/// A case on all engines.
pub struct Measured {
    pub name: String,
    pub kind: Kind,
    pub outcomes: Vec<Outcome>,
}

/// The same work, done by burn-dfa and by a peer.
pub struct Pair {
    pub ours: Vec<f64>,
    pub theirs: Vec<f64>,
}

impl Pair {
    fn collect(pairs: impl Iterator<Item = (Vec<f64>, Vec<f64>)>) -> Self {
        let (ours, theirs): (Vec<_>, Vec<_>) = pairs.unzip();
        Self { ours: ours.concat(), theirs: theirs.concat() }
    }

    /// Whether there is nothing that both did.
    pub fn is_empty(&self) -> bool {
        self.theirs.is_empty()
    }
}

impl Results {
    /// The steps of the texts that engine `peer` accepted; the long string is left out where asked.
    pub fn steps(&self, peer: usize, with_long: bool) -> Pair {
        let cases = self.cases.iter().filter(|case| with_long || case.kind != Kind::Long);
        let texts = cases.flat_map(|case| {
            let ours = &case.outcomes[0].texts;
            ours.iter().zip(&case.outcomes[peer].texts)
        });
        Pair::collect(texts.filter_map(|(ours, theirs)| Some((ours.clone()?, theirs.clone()?))))
    }

    /// The steps of batches of size `BATCHES[size]`, per row; the peer's way is the one with the lower median.
    /// Says whether that way is on all cores.
    pub fn batches(&self, peer: usize, size: usize) -> (Pair, bool) {
        let way = |way: usize| {
            Pair::collect(self.cases.iter().filter_map(|case| {
                let ours = case.outcomes[0].batches.get(size)?[0].clone()?;
                let theirs = case.outcomes[peer].batches.get(size)?[way].clone()?;
                Some((per_row(ours, size), per_row(theirs, size)))
            }))
        };
        let [one_by_one, on_all_cores] = [way(0), way(1)];
        if on_all_cores.is_empty() || median(&one_by_one.theirs) <= median(&on_all_cores.theirs) {
            (one_by_one, false)
        } else {
            (on_all_cores, true)
        }
    }

    /// The first masks of the schemas that engine `peer` compiled.
    pub fn first_masks(&self, peer: usize) -> Pair {
        let compiled = self.listed().filter(|case| case.outcomes[peer].is_compiled());
        Pair::collect(
            compiled.map(|case| (vec![case.outcomes[0].first_mask], vec![case.outcomes[peer].first_mask])),
        )
    }

    /// The bytes that an engine says its grammars take.
    pub fn bytes(&self, engine: usize) -> Vec<f64> {
        self.listed().filter_map(|case| Some(case.outcomes[engine].bytes? as f64)).collect()
    }

    /// The place of an engine.
    pub fn engine(&self, name: &str) -> Option<usize> {
        self.engines.iter().position(|engine| *engine == name)
    }

    /// The schemas of MaskBench.
    pub fn listed(&self) -> impl Iterator<Item = &Measured> {
        self.cases.iter().filter(|case| case.kind == Kind::Listed)
    }
}

fn per_row(steps: Vec<f64>, size: usize) -> Vec<f64> {
    steps.into_iter().map(|time| time / BATCHES[size] as f64).collect()
}
