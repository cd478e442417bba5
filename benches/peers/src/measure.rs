//! One case on all engines: which instances they take, steps of a text, steps of a batch.
//!
//! The engines take turns within every run, so that a slow spell of the machine meets all of them. A step is
//! timed in every run and counts with its median over the runs; quantiles are taken over the steps. Peculiarities
//! of a step stay (a mask that is dear to compute is so in every run), interruptions by other programs go.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::acceptance::Verdict;
use crate::cases::Case;
use crate::engines::{Compiled, Engine};
use crate::first_mask::{FirstMask, TOO_LONG, catch, compile};
use crate::statistics::{median, medians};
use crate::tokens::{Tokens, logits};

/// The sizes of batches.
pub const BATCHES: [usize; 3] = [8, 32, 128];

/// A text along which an engine takes longer than this, in microseconds, is walked once.
const LONG_WALK: f64 = 2e6;

/// How much is measured.
pub struct Effort {
    /// Runs of each step.
    pub runs: usize,
    /// Runs of each first mask.
    pub first_runs: usize,
    /// Schemas of which there are first masks.
    pub schemas: usize,
    /// Schemas of which there are steps: the first that one engine at least compiles.
    pub step_schemas: usize,
    /// Of each size of a batch: the schemas of which there are steps.
    pub batch_schemas: [usize; BATCHES.len()],
    /// Steps of a batch, at most.
    pub window: usize,
    /// How many seconds an engine may take for a first mask.
    pub patience: f64,
    /// How many it may take for that of a context-free grammar.
    pub grammar_patience: f64,
    /// How many it may take to read the texts of a grammar.
    pub text_patience: f64,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            runs: 5,
            first_runs: 2,
            schemas: 200,
            step_schemas: 50,
            batch_schemas: [20, 20, 5],
            window: 16,
            patience: 3.0,
            grammar_patience: 30.0,
            text_patience: 10.0,
        }
    }
}

/// What one engine did with a case. Times are in microseconds.
#[derive(Default)]
pub struct Outcome {
    /// The first mask, or why there is none; `None` for a variant of an engine.
    pub first_mask: Option<FirstMask>,
    /// What went wrong with a text.
    pub failure: Option<String>,
    /// Of each valid instance: the time of each step, as far as the engine came in time; `None` where it rejected the text,
    /// or did not come to it.
    pub texts: Vec<Option<Vec<f64>>>,
    /// Of each valid instance: whether the time was over before its end.
    pub late: Vec<bool>,
    /// Of each invalid instance: whether the engine accepted it.
    pub invalid: Vec<bool>,
    /// Of each batch size, the first ones: the time of each step, rows one after the other and on all cores.
    pub batches: Vec<[Option<Vec<f64>>; 2]>,
    /// Masks that are equal to those of the first engine, that allow more tokens, and others.
    pub equal: usize,
    pub wider: usize,
    pub other: usize,
}

impl Outcome {
    /// The time of the first mask.
    pub fn time(&self) -> Option<f64> {
        self.first_mask.as_ref()?.time
    }

    /// Whether the engine refused the grammar.
    pub fn refused(&self) -> bool {
        self.first_mask.as_ref().is_some_and(|first| first.time.is_none())
    }
}

/// The texts of a case as tokens.
#[derive(Default)]
pub struct Walks {
    /// One for each valid instance: of the texts that it may have, the one that most engines take.
    pub texts: Vec<Vec<u32>>,
    /// Those of which there are batches: the ones that all engines take which take any.
    pub batched: Vec<Vec<u32>>,
    /// The sizes of those batches.
    pub batches: Vec<usize>,
}

/// Steps of a case on the engines that compiled it, in batches of these sizes too; `outcomes` are those of its first mask, one for
/// each engine, and `verdicts` tells what becomes of texts that an engine reads.
pub fn steps(
    case: &Case,
    tokens: &Tokens,
    engines: &[Box<dyn Engine>],
    outcomes: &mut [Outcome],
    effort: &Effort,
    batches: &[usize],
    verdicts: impl Fn(usize, &[&[u32]]) -> Vec<Verdict>,
) -> Walks {
    let logits = logits(tokens.width());
    // A variant compiles what its engine compiles, and reads what that reads.
    let own = |index: usize| (0..=index).rev().find(|&own| !engines[own].is_variant()).unwrap_or(index);
    let mut grammars: Vec<Option<Box<dyn Compiled>>> = Vec::new();
    for (index, engine) in engines.iter().enumerate() {
        let compiles = outcomes[own(index)].time().is_some();
        grammars.push(compiles.then(|| compile(engine.as_ref(), &case.grammar).ok()).flatten());
    }

    let encoded = |candidates: &Vec<String>| -> Vec<Vec<u32>> {
        candidates.iter().filter_map(|text| tokens.encode(text)).collect()
    };
    // An instance that no tokens of the vocabulary spell is none here.
    let all_encoded = |instances: &[Vec<String>]| -> Vec<Vec<Vec<u32>>> {
        instances.iter().map(encoded).filter(|candidates| !candidates.is_empty()).collect()
    };
    let [valid, invalid] = [&case.valid, &case.invalid].map(|instances| all_encoded(instances));
    let all: Vec<&[u32]> = valid.iter().chain(&invalid).flatten().map(Vec::as_slice).collect();
    // Of each engine, none of a variant: what became of each of these texts.
    let verdicts: Vec<Option<Vec<Verdict>>> = (0..engines.len())
        .map(|index| (own(index) == index && grammars[index].is_some()).then(|| verdicts(index, &all)))
        .collect();

    let mut texts: Vec<Vec<u32>> = Vec::new();
    // Of each of those texts: its place among all.
    let mut places: Vec<usize> = Vec::new();
    let mut first = 0;
    for candidates in valid {
        let takers = |place: usize| {
            verdicts.iter().flatten().filter(|verdicts| verdicts[place] == Verdict::Accepted).count()
        };
        let counts: Vec<usize> = (first..first + candidates.len()).map(takers).collect();
        let most = counts.iter().copied().max().unwrap_or(0);
        let chosen = counts.iter().position(|&count| count == most).unwrap_or(0);
        places.push(first + chosen);
        first += candidates.len();
        texts.extend(candidates.into_iter().nth(chosen));
    }
    for candidates in &invalid {
        for (outcome, verdicts) in outcomes.iter_mut().zip(&verdicts) {
            let Some(verdicts) = verdicts else { continue };
            let verdicts = &verdicts[first..first + candidates.len()];
            if !verdicts.iter().any(|verdict| verdict.is_late()) {
                outcome.invalid.push(verdicts.contains(&Verdict::Accepted));
            }
        }
        first += candidates.len();
    }
    let verdict = |index: usize, number: usize| {
        verdicts[own(index)].as_ref().map_or(Verdict::Rejected, |verdicts| verdicts[places[number]])
    };
    // How much of a text an engine walks.
    let length = |index: usize, number: usize| verdict(index, number).steps(texts[number].len());

    let mut reference: Vec<Option<Vec<Mask>>> = Vec::new();
    for (index, outcome) in outcomes.iter_mut().enumerate() {
        let Some(grammar) = &grammars[index] else { continue };
        let masks: Vec<_> = (0..texts.len())
            .map(|number| match (verdict(index, number), length(index, number)) {
                (Verdict::Late { .. }, 0) => Err(String::new()),
                (Verdict::Late { .. }, steps) => {
                    catch(|| check(grammar.as_ref(), &texts[number], tokens.eos, &logits, steps))
                }
                // One that is rejected says why.
                _ => catch(|| check(grammar.as_ref(), &texts[number], tokens.eos, &logits, usize::MAX)),
            })
            .collect();
        outcome.texts = masks.iter().map(|masks| masks.as_ref().ok().map(|_| Vec::new())).collect();
        outcome.late = (0..texts.len()).map(|number| verdict(index, number).is_late()).collect();
        let error = masks.iter().find_map(|masks| masks.as_ref().err().filter(|error| !error.is_empty()));
        outcome.failure = error.map(|error| format!("rejects a text: {error}"));
        let late: Vec<String> = (0..texts.len())
            .filter(|&number| outcome.late[number])
            .map(|number| format!("{} of {}", length(index, number), texts[number].len() + 1))
            .collect();
        if !late.is_empty() && own(index) == index {
            let patience = effort.text_patience;
            let late = format!("{TOO_LONG} {patience} s: steps {}", late.join(", "));
            outcome.failure = Some(
                [Some(late), outcome.failure.take()].into_iter().flatten().collect::<Vec<_>>().join("; "),
            );
        }
        let masks: Vec<_> = masks.into_iter().map(Result::ok).collect();
        if index == 0 {
            reference.clone_from(&masks);
        }
        let pairs = masks.iter().zip(&reference).filter_map(|(own, first)| own.as_ref().zip(first.as_ref()));
        for (own, first) in pairs.flat_map(|(own, first)| own.iter().zip(first)) {
            match own {
                own if own.digest == first.digest => outcome.equal += 1,
                own if own.allowed > first.allowed => outcome.wider += 1,
                _ => outcome.other += 1,
            }
        }
    }

    for (number, text) in texts.iter().enumerate() {
        let mut runs: Vec<Vec<Vec<f64>>> = vec![Vec::new(); engines.len()];
        for run in 0..effort.runs {
            for index in order(engines.len(), run) {
                let outcome = &mut outcomes[index];
                if runs[index].first().is_some_and(|times| times.iter().sum::<f64>() > LONG_WALK) {
                    continue;
                }
                if let (Some(grammar), Some(Some(_))) = (&grammars[index], outcome.texts.get(number)) {
                    match catch(|| walk(grammar.as_ref(), text, &logits, length(index, number))) {
                        Ok(times) => runs[index].push(times),
                        Err(error) => outcome.give_up(number, &error),
                    }
                }
            }
        }
        for (outcome, runs) in outcomes.iter_mut().zip(&runs) {
            if let Some(Some(times)) = outcome.texts.get_mut(number).filter(|_| !runs.is_empty()) {
                *times = medians(runs);
            }
        }
    }

    let takers: Vec<usize> =
        (0..engines.len()).filter(|&index| outcomes[index].texts.iter().any(Option::is_some)).collect();
    let to_the_end =
        |index: usize, at: usize| outcomes[index].texts[at].is_some() && !outcomes[index].late[at];
    let common = |at: &usize| takers.iter().all(|&index| to_the_end(index, *at));
    let batched: Vec<Vec<u32>> = (0..texts.len()).filter(common).map(|at| texts[at].clone()).collect();
    for &rows in batches.iter().filter(|_| !batched.is_empty()) {
        let wide = logits.repeat(rows);
        let mut runs: Vec<[Vec<Vec<f64>>; 2]> = engines.iter().map(|_| Default::default()).collect();
        let mut failed = vec![[false; 2]; engines.len()];
        for run in 0..effort.runs {
            for index in order(engines.len(), run) {
                let engine = &engines[index];
                let takes = takers.contains(&index) && engine.has_batches();
                let Some(grammar) = grammars[index].as_ref().filter(|_| takes) else { continue };
                for on_all_cores in [false, true] {
                    if engine.on_all_cores() || !on_all_cores {
                        match batch(grammar.as_ref(), &batched, rows, on_all_cores, &wide, effort.window) {
                            Ok(times) => runs[index][usize::from(on_all_cores)].push(times),
                            // A way that fails once does not count at all.
                            Err(_) => failed[index][usize::from(on_all_cores)] = true,
                        }
                    }
                }
            }
        }
        for ((outcome, ways), failed) in outcomes.iter_mut().zip(&runs).zip(&failed) {
            outcome.batches.push([0, 1].map(|way| {
                let counts = !failed[way] && !ways[way].is_empty();
                counts.then(|| medians(&ways[way]))
            }));
        }
    }
    Walks { texts, batched, batches: batches.to_vec() }
}

/// The order of engines in a run: each run begins with another one, every other run goes backwards.
fn order(engines: usize, run: usize) -> impl Iterator<Item = usize> {
    (0..engines).map(move |step| {
        let ahead = if run.is_multiple_of(2) { step } else { engines - step };
        (run + ahead) % engines
    })
}

/// What a mask allows.
#[derive(Clone)]
pub struct Mask {
    digest: u64,
    allowed: usize,
}

/// Walks a text, so many steps at most, and checks that every mask allows what follows.
pub fn check(
    grammar: &dyn Compiled,
    text: &[u32],
    eos: u32,
    logits: &[f32],
    steps: usize,
) -> Result<Vec<Mask>, String> {
    let mut row = grammar.start(1, false);
    let mut masks = Vec::with_capacity(text.len() + 1);
    for step in (0..=text.len()).take(steps) {
        let chosen = step.checked_sub(1).map(|before| [text[before]]);
        row.prepare(logits, chosen.as_ref().map(<[u32; 1]>::as_slice));
        row.step().map_err(|error| format!("step {step}: {error}"))?;
        let masked = row.logits();
        let next = text.get(step).copied().unwrap_or(eos);
        if masked[next as usize] != logits[next as usize] {
            return Err(format!("step {step}: the mask forbids token {next}"));
        }
        let allowed = || masked.iter().map(|logit| logit.is_finite());
        let digest = allowed().fold(0xcbf2_9ce4_8422_2325, |digest: u64, allowed| {
            (digest ^ u64::from(allowed)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(5)
        });
        masks.push(Mask { digest, allowed: allowed().filter(|allowed| *allowed).count() });
    }
    Ok(masks)
}

impl Outcome {
    /// Leaves out a text that the engine accepted before and now fails on: one may run out of its limits.
    fn give_up(&mut self, text: usize, error: &str) {
        self.texts[text] = None;
        self.failure = Some(format!("gives up on a text: {}", error.lines().next().unwrap_or(error)));
    }
}

/// The time of each of the first `steps` steps of a text, the mask after its last token included.
fn walk(grammar: &dyn Compiled, text: &[u32], logits: &[f32], steps: usize) -> Result<Vec<f64>, String> {
    let mut row = grammar.start(1, false);
    (0..=text.len())
        .take(steps)
        .map(|step| {
            let chosen = step.checked_sub(1).map(|before| [text[before]]);
            row.prepare(logits, chosen.as_ref().map(<[u32; 1]>::as_slice));
            timed(|| row.step())
        })
        .collect()
}

/// The time of each step of a batch whose rows stand at different places of the texts.
fn batch(
    grammar: &dyn Compiled,
    texts: &[Vec<u32>],
    rows: usize,
    on_all_cores: bool,
    logits: &[f32],
    window: usize,
) -> Result<Vec<f64>, String> {
    let shortest = texts.iter().map(Vec::len).min().unwrap_or(0);
    let window = window.min(shortest.div_ceil(2));
    let texts: Vec<&[u32]> = (0..rows).map(|row| texts[row % texts.len()].as_slice()).collect();
    let starts: Vec<usize> =
        texts.iter().enumerate().map(|(row, text)| row * (text.len() - window) / rows).collect();
    let mut batch = grammar.start(rows, on_all_cores);
    for before in 0..starts.iter().copied().max().unwrap_or(0) {
        let tokens: Vec<Option<u32>> =
            texts.iter().zip(&starts).map(|(text, &start)| (before < start).then(|| text[before])).collect();
        batch.advance(&tokens)?;
    }
    (0..window)
        .map(|step| {
            let chosen: Vec<u32> =
                texts.iter().zip(&starts).map(|(text, &start)| text[start + step]).collect();
            batch.prepare(logits, Some(&chosen));
            timed(|| batch.step())
        })
        .collect()
}

/// The time of `step`, in microseconds.
fn timed(step: impl FnOnce() -> Result<(), String>) -> Result<f64, String> {
    let began = Instant::now();
    let result = black_box(step());
    let time = began.elapsed();
    result.map(|()| microseconds(time))
}

/// The time that timing nothing takes, in microseconds.
pub fn empty_timer() -> f64 {
    median(&(0..10_000).filter_map(|_| timed(|| Ok(())).ok()).collect::<Vec<_>>())
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
