//! Measures one case on all engines: accepted instances, steps of a text, steps of a batch.
//!
//! The engines take turns in every run, so that a slow phase of the machine affects all of them.
//! Each step is timed in every run and counts with its median over the runs; the quantiles are over
//! steps. So an expensive mask stays in the figures, since it is expensive in every run, and
//! interruptions by other programs drop out.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::acceptance::Verdict;
use crate::cases::Case;
use crate::engines::{Compiled, Engine};
use crate::first_mask::{FirstMask, TOO_LONG, catch, compile};
use crate::statistics::{median, medians};
use crate::tokens::{Tokens, logits};

/// The batch sizes.
pub const BATCHES: [usize; 3] = [8, 32, 128];

/// If an engine takes longer than this for a text, in microseconds, it runs that text only once.
const LONG_WALK: f64 = 2e6;

/// The amount of measurement.
pub struct Effort {
    /// Runs of each step.
    pub runs: usize,
    /// Runs of each first mask.
    pub first_runs: usize,
    /// Schemas with measured first masks.
    pub schemas: usize,
    /// Schemas with measured steps: the first ones that at least one engine compiles.
    pub step_schemas: usize,
    /// Schemas with measured steps for each batch size.
    pub batch_schemas: [usize; BATCHES.len()],
    /// The maximum number of steps of a batch.
    pub window: usize,
    /// The time limit of a first mask, in seconds.
    pub patience: f64,
    /// The time limit of a first mask of a context-free grammar, in seconds.
    pub grammar_patience: f64,
    /// The time limit for reading all texts of a grammar, in seconds.
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

/// The results of one engine on one case. Times are in microseconds.
#[derive(Default)]
pub struct Outcome {
    /// The first mask, or the reason for a missing mask; `None` for a variant of an engine.
    pub first_mask: Option<FirstMask>,
    /// The reason why a text failed.
    pub failure: Option<String>,
    /// For each valid instance, the time of each step within the time limit; `None` if the engine
    /// rejected the text or never reached it.
    pub texts: Vec<Option<Vec<f64>>>,
    /// For each valid instance, whether the time limit was reached before its end.
    pub late: Vec<bool>,
    /// For each invalid instance, whether the engine accepted it.
    pub invalid: Vec<bool>,
    /// For the first batch sizes, the time of each step: rows in sequence, and on all cores.
    pub batches: Vec<[Option<Vec<f64>>; 2]>,
    /// The numbers of masks that equal the first engine's mask, that allow more tokens, and that
    /// differ otherwise.
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
    /// For each valid instance, the text that most engines accept.
    pub texts: Vec<Vec<u32>>,
    /// The texts for batches: accepted by all engines that accept any text.
    pub batched: Vec<Vec<u32>>,
    /// The batch sizes.
    pub batches: Vec<usize>,
}

/// Measures the steps of a case on the engines that compiled it, also in batches of the sizes in
/// `batches`. `outcomes` holds one outcome with a first mask per engine, and `verdicts` returns an
/// engine's verdicts on texts.
pub fn steps(
    case: &Case,
    tokens: &Tokens,
    engines: &[Box<dyn Engine>],
    outcomes: &mut [Outcome],
    effort: &Effort,
    batches: &[usize],
    verdicts: impl Fn(usize, &[&[u32]]) -> Vec<Verdict>,
) -> Walks {
    let logits = logits(tokens.vocab_size());
    // A variant compiles the same grammars and accepts the same texts as its engine.
    let own = |index: usize| (0..=index).rev().find(|&own| !engines[own].is_variant()).unwrap_or(index);
    let mut grammars: Vec<Option<Box<dyn Compiled>>> = Vec::new();
    for (index, engine) in engines.iter().enumerate() {
        let compiles = outcomes[own(index)].time().is_some();
        grammars.push(compiles.then(|| compile(engine.as_ref(), &case.grammar).ok()).flatten());
    }

    let encoded = |candidates: &Vec<String>| -> Vec<Vec<u32>> {
        candidates.iter().filter_map(|text| tokens.encode(text)).collect()
    };
    // Skip instances that no tokens of the vocabulary spell.
    let all_encoded = |instances: &[Vec<String>]| -> Vec<Vec<Vec<u32>>> {
        instances.iter().map(encoded).filter(|candidates| !candidates.is_empty()).collect()
    };
    let [valid, invalid] = [&case.valid, &case.invalid].map(|instances| all_encoded(instances));
    let all: Vec<&[u32]> = valid.iter().chain(&invalid).flatten().map(Vec::as_slice).collect();
    // The verdicts on all texts, per engine; none for a variant.
    let verdicts: Vec<Option<Vec<Verdict>>> = (0..engines.len())
        .map(|index| (own(index) == index && grammars[index].is_some()).then(|| verdicts(index, &all)))
        .collect();

    let mut texts: Vec<Vec<u32>> = Vec::new();
    // The index of each chosen text among all texts.
    let mut indices: Vec<usize> = Vec::new();
    let mut first = 0;
    for candidates in valid {
        let takers = |index: usize| {
            verdicts.iter().flatten().filter(|verdicts| verdicts[index] == Verdict::Accepted).count()
        };
        let counts: Vec<usize> = (first..first + candidates.len()).map(takers).collect();
        let max = counts.iter().copied().max().unwrap_or(0);
        let chosen = counts.iter().position(|&count| count == max).unwrap_or(0);
        indices.push(first + chosen);
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
        verdicts[own(index)].as_ref().map_or(Verdict::Rejected, |verdicts| verdicts[indices[number]])
    };
    // The number of steps of a text that an engine runs.
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
                // For a rejected text, this returns the reason.
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
                            // After one failure, this mode of the engine does not count.
                            Err(_) => failed[index][usize::from(on_all_cores)] = true,
                        }
                    }
                }
            }
        }
        for ((outcome, modes), failed) in outcomes.iter_mut().zip(&runs).zip(&failed) {
            outcome.batches.push([0, 1].map(|mode| {
                let counts = !failed[mode] && !modes[mode].is_empty();
                counts.then(|| medians(&modes[mode]))
            }));
        }
    }
    Walks { texts, batched, batches: batches.to_vec() }
}

/// The order of engines in a run: each run begins with another engine, and every second run goes
/// backwards.
pub fn order(engines: usize, run: usize) -> impl Iterator<Item = usize> {
    (0..engines).map(move |step| {
        let ahead = if run.is_multiple_of(2) { step } else { engines - step };
        (run + ahead) % engines
    })
}

/// A digest of a mask, and the number of tokens that it allows.
#[derive(Clone)]
pub struct Mask {
    digest: u64,
    allowed: usize,
}

/// Runs at most `steps` steps of a text and checks that every mask allows the next token.
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
    /// Drops a text that the engine accepted before and now fails on, for example because of its
    /// limits.
    fn give_up(&mut self, text: usize, error: &str) {
        self.texts[text] = None;
        self.failure = Some(format!("gives up on a text: {}", error.lines().next().unwrap_or(error)));
    }
}

/// The times of the first `steps` steps of a text, the mask after the last token included.
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

/// The time of each step of a batch whose rows are at different positions of the texts.
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

/// The time of an empty measurement, in microseconds.
pub fn empty_timer() -> f64 {
    median(&(0..10_000).filter_map(|_| timed(|| Ok(())).ok()).collect::<Vec<_>>())
}

pub fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
