//! One case on all engines: first mask, steps of a text, steps of a batch.
//!
//! The engines take turns within every run, so that a slow spell of the machine meets all of them. A step is
//! timed in every run and counts with its median over the runs; quantiles are taken over the steps. Peculiarities
//! of a step stay (a mask that is dear to compute is so in every run), interruptions by other programs go.

use std::any::Any;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::cases::Case;
use crate::engines::{Compiled, Engine};
use crate::statistics::{median, medians};
use crate::tokens::Tokens;

/// The sizes of batches.
pub const BATCHES: [usize; 2] = [8, 32];

/// How much is measured.
pub struct Effort {
    /// Runs of everything.
    pub runs: usize,
    /// Steps of a batch, at most.
    pub window: usize,
    /// An engine that compiled a grammar for longer than this compiles no larger one.
    pub patience: Duration,
}

/// What one engine did with a case. Times are in microseconds.
#[derive(Default)]
pub struct Outcome {
    /// Why there is nothing else.
    pub refusal: Option<String>,
    /// From the text of the grammar to masked logits.
    pub first_mask: f64,
    /// Of each text: the time of each step; `None` where the engine rejected the text.
    pub texts: Vec<Option<Vec<f64>>>,
    /// Of each batch size: the time of each step, rows one after the other and on all cores.
    pub batches: Vec<[Option<Vec<f64>>; 2]>,
    /// Bytes that the engine says the grammar takes.
    pub bytes: Option<usize>,
    /// The states of the automaton, where there is one.
    pub states: Option<usize>,
    /// Masks that are equal to those of the first engine, that allow more tokens, and others.
    pub equal: usize,
    pub wider: usize,
    pub other: usize,
}

impl Outcome {
    /// Whether the engine compiled the grammar.
    pub fn is_compiled(&self) -> bool {
        self.first_mask > 0.0
    }
}

/// A case on every engine; `patient[e]` is false where engine `e` is to be left out, and becomes so.
pub fn measure(
    case: &Case,
    tokens: &Tokens,
    engines: &[Box<dyn Engine>],
    patient: &mut [bool],
    effort: &Effort,
) -> Vec<Outcome> {
    let logits = logits(tokens.width());
    let texts: Vec<Vec<u32>> = case.texts.iter().map(|text| tokens.encode(text)).collect();
    let mut outcomes: Vec<Outcome> = engines.iter().map(|_| Outcome::default()).collect();
    let mut grammars: Vec<Option<Box<dyn Compiled>>> = engines.iter().map(|_| None).collect();

    let mut first: Vec<Vec<f64>> = vec![Vec::new(); engines.len()];
    for run in 0..effort.runs {
        for index in order(engines.len(), run) {
            let engine = &engines[index];
            let transitions = outcomes[0].states.map_or(0, |states| states * tokens.width());
            let (outcome, spent) = (&mut outcomes[index], first[index].iter().sum::<f64>());
            if !patient[index] {
                outcome.refusal = Some("left out, since a smaller grammar took too long".to_owned());
            }
            if transitions > engine.most_transitions() {
                outcome.refusal = Some("left out: its index would hold too many transitions".to_owned());
            }
            // A slow compilation is not repeated for long.
            if outcome.refusal.is_some() || spent > 1e6 * effort.patience.as_secs_f64() / 2.0 {
                continue;
            }
            grammars[index] = None;
            match first_mask(engine.as_ref(), case, &logits) {
                Ok((grammar, time)) => {
                    outcome.states = grammar.states();
                    grammars[index] = Some(grammar);
                    first[index].push(time);
                    patient[index] = time < 1e6 * effort.patience.as_secs_f64();
                }
                Err(error) => outcome.refusal = Some(error),
            }
        }
    }

    let mut reference: Vec<Option<Vec<Mask>>> = Vec::new();
    for (index, outcome) in outcomes.iter_mut().enumerate() {
        let Some(grammar) = &grammars[index] else { continue };
        outcome.first_mask = median(&first[index]);
        outcome.bytes = grammar.bytes();
        let masks: Vec<_> =
            texts.iter().map(|text| check(grammar.as_ref(), text, tokens.eos, &logits)).collect();
        outcome.texts = masks.iter().map(|masks| masks.as_ref().ok().map(|_| Vec::new())).collect();
        if let Some(error) = masks.iter().find_map(|masks| masks.as_ref().err()) {
            outcome.refusal = Some(format!("rejects a text: {error}"));
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
                if let (Some(grammar), Some(Some(_))) = (&grammars[index], outcome.texts.get(number)) {
                    match walk(grammar.as_ref(), text, &logits) {
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

    for rows in BATCHES {
        let wide = logits.repeat(rows);
        let mut runs: Vec<[Vec<Vec<f64>>; 2]> = engines.iter().map(|_| Default::default()).collect();
        let mut failed = vec![[false; 2]; engines.len()];
        for run in 0..effort.runs {
            for index in order(engines.len(), run) {
                let engine = &engines[index];
                let accepted = !texts.is_empty() && outcomes[index].texts.iter().all(Option::is_some);
                let Some(grammar) = grammars[index].as_ref().filter(|_| accepted && !engine.is_variant())
                else {
                    continue;
                };
                for on_all_cores in [false, true] {
                    if engine.on_all_cores() || !on_all_cores {
                        match batch(grammar.as_ref(), &texts, rows, on_all_cores, &wide, effort.window) {
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
    outcomes
}

/// The order of engines in a run: each run begins with another one, every other run goes backwards. The first run
/// begins with the first engine, whose count of states the others may need.
fn order(engines: usize, run: usize) -> impl Iterator<Item = usize> {
    (0..engines).map(move |step| {
        let ahead = if run.is_multiple_of(2) { step } else { engines - step };
        (run + ahead) % engines
    })
}

/// Compiles the grammar and masks a row of logits; gives the time of both.
fn first_mask(engine: &dyn Engine, case: &Case, logits: &[f32]) -> Result<(Box<dyn Compiled>, f64), String> {
    engine.forget();
    evict();
    let began = Instant::now();
    // A schema on which an engine panics is one that it refuses.
    let grammar = catch_unwind(AssertUnwindSafe(|| engine.compile(&case.grammar)))
        .unwrap_or_else(|panic| Err(format!("it panics: {}", message(panic.as_ref()))))?;
    let compiled = began.elapsed();
    let mut row = grammar.start(1, false);
    row.prepare(logits, None);
    let began = Instant::now();
    row.step()?;
    let masked = began.elapsed();
    black_box(row);
    Ok((grammar, microseconds(compiled + masked)))
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("nothing")
}

/// Empties the caches, as a model between two requests does, so that no engine finds its data warm.
fn evict() {
    black_box(vec![1_u8; 64 << 20]);
}

/// What a mask allows.
#[derive(Clone)]
pub struct Mask {
    digest: u64,
    allowed: usize,
}

/// Walks a text and checks that every mask allows what follows.
pub fn check(grammar: &dyn Compiled, text: &[u32], eos: u32, logits: &[f32]) -> Result<Vec<Mask>, String> {
    let mut row = grammar.start(1, false);
    let mut masks = Vec::with_capacity(text.len() + 1);
    for step in 0..=text.len() {
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
        self.refusal = Some(format!("gives up on a text: {}", error.lines().next().unwrap_or(error)));
    }
}

/// The time of each step of a text, the mask after its last token included.
fn walk(grammar: &dyn Compiled, text: &[u32], logits: &[f32]) -> Result<Vec<f64>, String> {
    let mut row = grammar.start(1, false);
    (0..=text.len())
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

/// Finite logits that no two neighbours share.
pub fn logits(width: usize) -> Vec<f32> {
    (0..width as u32).map(|id| (id.wrapping_mul(0x9e37_79b9) >> 8) as f32 / (1 << 20) as f32 - 8.0).collect()
}
