//! The measurements, and comparisons of each engine with burn-dfa on the cases that both completed.

use crate::acceptance;
use crate::cases::{Case, Kind};
use crate::engines::{self, Engine};
use crate::first_mask;
use crate::measure::{self, BATCHES, Effort, Outcome, Walks};
use crate::memory::{self, Growth};
use crate::progress::Progress;
use crate::python::Python;
use crate::statistics::median;
use crate::tokens::Tokens;
use crate::upstream;
use crate::work::Folder;

/// The results of all cases on all engines with one vocabulary.
pub struct Results {
    pub vocabulary: String,
    /// The prefix of the names of its figures.
    pub prefix: String,
    pub vocab_size: usize,
    pub engines: Vec<&'static str>,
    pub cases: Vec<Measured>,
    /// For each engine, the growth of resident memory for each case of its list.
    pub growth: Vec<Growth>,
}

/// A case on all engines.
pub struct Measured {
    pub name: String,
    pub kind: Kind,
    pub outcomes: Vec<Outcome>,
}

/// Measures the cases with one vocabulary: first masks of all cases, then steps of some.
pub fn measure(tokens: &Tokens, cases: &[Case], effort: &Effort, python: &Python) -> Results {
    let mut schemas = 0..effort.schemas;
    let cases: Vec<&Case> =
        cases.iter().filter(|case| case.kind != Kind::Row || schemas.next().is_some()).collect();
    let engines: Vec<Box<dyn Engine>> = engines::ALL.iter().map(|make| make(tokens)).collect();
    let folder = Folder::new(tokens, &cases);
    let progress = Progress::new(&tokens.name, 2 * cases.len());

    let mut measured = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        progress.begin(&format!("first mask of {}", case.name));
        let outcomes = engines.iter().enumerate().map(|(index, engine)| {
            let patience = match case.kind {
                Kind::Grammar => effort.grammar_patience,
                _ => effort.patience,
            };
            let first = || first_mask::measure(&folder, index, at, effort.first_runs, patience);
            Outcome { first_mask: (!engine.is_variant()).then(first), ..Outcome::default() }
        });
        measured.push(Measured { name: case.name.clone(), kind: case.kind, outcomes: outcomes.collect() });
        progress.done();
    }

    let mut walks: Vec<Walks> = Vec::new();
    let mut steps = 0;
    for (at, (case, measured)) in cases.iter().zip(&mut measured).enumerate() {
        progress.done();
        let compiled = measured.outcomes.iter().any(|outcome| outcome.time().is_some());
        let enough = case.kind == Kind::Row && steps == effort.step_schemas;
        if case.valid.is_empty() || !compiled || enough {
            walks.push(Walks::default());
            continue;
        }
        let sizes = BATCHES.iter().zip(effort.batch_schemas);
        let sizes = sizes.filter(|(_, schemas)| case.kind != Kind::Grammar && steps < *schemas);
        let batches: Vec<usize> = sizes.map(|(&rows, _)| rows).collect();
        progress.begin(&format!("steps of {}", case.name));
        let verdicts = |engine: usize, texts: &[&[u32]]| {
            acceptance::verdicts(&folder, engine, at, texts, effort.text_patience)
        };
        let outcomes = &mut measured.outcomes;
        walks.push(measure::steps(case, tokens, &engines, outcomes, effort, &batches, verdicts));
        steps += usize::from(case.kind == Kind::Row);
    }

    let mut growth: Vec<_> = Vec::new();
    for (index, engine) in engines.iter().enumerate() {
        if !engine.is_variant() {
            progress.begin(&format!("memory of {}", engine.name()));
        }
        let walked = measured.iter().zip(&walks).enumerate().filter(|(_, (case, walks))| {
            let compiled = case.outcomes[index].time().is_some();
            case.kind != Kind::Grammar && !walks.texts.is_empty() && compiled
        });
        let walked: Vec<_> = walked.map(|(at, (_, walks))| (at, walks.texts.as_slice())).collect();
        folder.set_walks(&walked);
        let own =
            (!engine.is_variant()).then(|| memory::growth(&folder, index)).flatten().unwrap_or_default();
        let mut of_cases = vec![None; cases.len()];
        for ((at, _), growth) in walked.iter().zip(own.cases) {
            of_cases[*at] = growth;
        }
        growth.push(Growth { cases: of_cases, ..own });
    }
    let mut names: Vec<_> = engines.iter().map(|engine| engine.name()).collect();
    for library in &upstream::ALL {
        progress.begin(library.names[0]);
        let outcomes = progress.suspend(|| library.measure(python, tokens, &cases, &walks, effort));
        let Some(outcomes) = outcomes else { continue };
        names.extend(library.names);
        growth.extend(
            library.names.iter().map(|_| Growth { vocabulary: None, cases: vec![None; cases.len()] }),
        );
        for (case, outcomes) in measured.iter_mut().zip(outcomes) {
            case.outcomes.extend(outcomes);
        }
    }
    Results {
        vocabulary: tokens.name.clone(),
        prefix: tokens.prefix.clone(),
        vocab_size: tokens.vocab_size(),
        engines: names,
        cases: measured,
        growth,
    }
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

    /// Whether the engines have no completed work in common.
    pub fn is_empty(&self) -> bool {
        self.theirs.is_empty()
    }
}

/// Counts of grammars and instances, by result.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub schemas: usize,
    /// Schemas without a mask for any reason, and schemas without a mask because of the time limit.
    pub refused: usize,
    pub too_long: usize,
    pub step_schemas: usize,
    /// Refused schemas among the schemas with steps.
    pub step_refused: usize,
    pub valid: usize,
    /// Valid instances of the schemas with steps that are rejected or whose schema is refused.
    pub valid_rejected: usize,
    /// Valid instances that the engine did not finish in time.
    pub valid_late: usize,
    pub invalid: usize,
    /// Accepted instances among the invalid instances of compiled schemas.
    pub invalid_accepted: usize,
}

impl Results {
    /// An engine's refusals, rejections and acceptances in some cases.
    pub fn counts<'a>(engine: usize, cases: impl Iterator<Item = &'a Measured>) -> Counts {
        let mut counts = Counts::default();
        for case in cases {
            let outcome = &case.outcomes[engine];
            let refusal = outcome.first_mask.as_ref().and_then(|first| first.refusal.as_deref());
            counts.schemas += 1;
            counts.refused += usize::from(outcome.refused());
            counts.too_long += usize::from(refusal.is_some_and(|why| why.starts_with(first_mask::TOO_LONG)));
            let valid = case.outcomes.iter().map(|outcome| outcome.texts.len()).max().unwrap_or(0);
            if valid > 0 {
                counts.step_schemas += 1;
                counts.step_refused += usize::from(outcome.refused());
                counts.valid += valid;
                let late = outcome.late.iter().filter(|late| **late).count();
                let to_the_end = outcome.texts.iter().zip(&outcome.late);
                let to_the_end = to_the_end.filter(|(text, late)| text.is_some() && !**late).count();
                counts.valid_late += late;
                counts.valid_rejected += valid - late - to_the_end;
                counts.invalid += outcome.invalid.len();
                counts.invalid_accepted += outcome.invalid.iter().filter(|accepted| **accepted).count();
            }
        }
        counts
    }

    /// The steps along the texts of regexes and schemas that engine `peer` accepted, with or
    /// without the long string.
    pub fn steps(&self, peer: usize, with_long: bool) -> Pair {
        self.steps_beside(0, peer, with_long)
    }

    /// As [`Self::steps`], with engine `own` instead of burn-dfa.
    pub fn steps_beside(&self, own: usize, peer: usize, with_long: bool) -> Pair {
        let cases = self.cases.iter().filter(|case| case.kind != Kind::Grammar);
        Self::pairs(own, peer, cases.filter(|case| with_long || case.kind != Kind::Long))
    }

    /// The steps along the texts of some cases that engine `peer` accepted, up to the time limits
    /// of both engines.
    pub fn steps_of<'a>(peer: usize, cases: impl Iterator<Item = &'a Measured>) -> Pair {
        Self::pairs(0, peer, cases)
    }

    fn pairs<'a>(own: usize, peer: usize, cases: impl Iterator<Item = &'a Measured>) -> Pair {
        let texts = cases.flat_map(|case| {
            let ours = &case.outcomes[own].texts;
            ours.iter().zip(&case.outcomes[peer].texts)
        });
        let common = |(ours, theirs): (&Option<Vec<f64>>, &Option<Vec<f64>>)| {
            let (mut ours, mut theirs) = (ours.clone()?, theirs.clone()?);
            let steps = ours.len().min(theirs.len());
            ours.truncate(steps);
            theirs.truncate(steps);
            Some((ours, theirs))
        };
        Pair::collect(texts.filter_map(common))
    }

    /// The steps of batches of size `BATCHES[size]`, per row. Of the peer's two modes, the one with
    /// the lower median counts; the flag tells whether it uses all cores.
    pub fn batches(&self, peer: usize, size: usize) -> (Pair, bool) {
        let mode = |mode: usize| {
            Pair::collect(self.cases.iter().filter_map(|case| {
                let ours = case.outcomes[0].batches.get(size)?[0].clone()?;
                let theirs = case.outcomes[peer].batches.get(size)?[mode].clone()?;
                Some((per_row(ours, size), per_row(theirs, size)))
            }))
        };
        let [one_by_one, on_all_cores] = [mode(0), mode(1)];
        if one_by_one.is_empty() {
            (on_all_cores, true)
        } else if on_all_cores.is_empty() || median(&one_by_one.theirs) <= median(&on_all_cores.theirs) {
            (one_by_one, false)
        } else {
            (on_all_cores, true)
        }
    }

    /// The first masks of the cases that both burn-dfa and engine `peer` compiled.
    pub fn first_masks<'a>(peer: usize, cases: impl Iterator<Item = &'a Measured>) -> Pair {
        Pair::collect(
            cases
                .filter_map(|case| Some((vec![case.outcomes[0].time()?], vec![case.outcomes[peer].time()?]))),
        )
    }

    /// The first masks of all schemas that an engine compiled, independent of other engines.
    pub fn own_first_masks(&self, engine: usize) -> Vec<f64> {
        self.schemas().filter_map(|case| case.outcomes[engine].time()).collect()
    }

    /// The bytes of each compiled grammar, as the engine reports them.
    pub fn bytes(&self, engine: usize) -> Vec<f64> {
        self.schemas()
            .filter_map(|case| Some(case.outcomes[engine].first_mask.as_ref()?.bytes? as f64))
            .collect()
    }

    /// The times of all steps along the texts of regexes and schemas that an engine accepts,
    /// independent of other engines.
    pub fn own_steps(&self, engine: usize) -> Vec<f64> {
        let cases = self.cases.iter().filter(|case| case.kind != Kind::Grammar);
        cases.flat_map(|case| case.outcomes[engine].texts.iter().flatten()).flatten().copied().collect()
    }

    /// The growth of resident memory by the cases that both burn-dfa and engine `peer` ran.
    pub fn growths(&self, peer: usize) -> Pair {
        let pairs = self.growth[0].cases.iter().zip(&self.growth[peer].cases);
        Pair::collect(pairs.filter_map(|(ours, theirs)| Some((vec![(*ours)?], vec![(*theirs)?]))))
    }

    /// The index of an engine.
    pub fn engine(&self, name: &str) -> Option<usize> {
        self.engines.iter().position(|engine| *engine == name)
    }

    /// The schemas of MaskBench, or the schemas and regexes from files of rows.
    pub fn schemas(&self) -> impl Iterator<Item = &Measured> {
        self.cases.iter().filter(|case| case.kind == Kind::Row)
    }

    /// The context-free grammars.
    pub fn grammars(&self) -> impl Iterator<Item = &Measured> {
        self.cases.iter().filter(|case| case.kind == Kind::Grammar)
    }
}

fn per_row(steps: Vec<f64>, size: usize) -> Vec<f64> {
    steps.into_iter().map(|time| time / BATCHES[size] as f64).collect()
}
