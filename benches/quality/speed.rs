//! Measures speed: single rows free and under a schema, a long prompt, a batch, and memory.

use std::path::Path;

use crate::Failure;
use crate::engine::{Answer, Engine, Question};
use crate::measure::Engines;
use crate::progress::Progress;
use crate::sets::{Task, long};
use crate::variants::{Constraint, Variant};

/// Rows of the batch.
pub const ROWS: usize = 16;

/// Texts in the long prompt.
const TEXTS: usize = 10;

/// Readings of the long prompt.
const READINGS: usize = 5;

/// The figures of one engine.
#[derive(Default)]
pub struct Figures {
    /// Tokens per second of a free row.
    pub free: f64,
    /// Tokens per second of a row under a JSON schema.
    pub constrained: f64,
    /// Tokens per second of the long prompt.
    pub prompt: f64,
    /// Tokens per second of a batch of [`ROWS`], in total.
    pub batch: Option<f64>,
    /// The memory, with one row at a time.
    pub memory: Memory,
}

/// The peak of resident memory of a process after each part of the measurement, in bytes.
#[derive(Default)]
pub struct Memory {
    /// After loading the model.
    pub loaded: u64,
    /// After the first answer, under a JSON schema.
    pub answered: u64,
    /// After all answers and the long prompt.
    pub all: u64,
}

/// The figures of all engines with one number of threads.
pub struct Speed {
    /// The number of threads.
    pub threads: usize,
    /// The tokens of the long prompt.
    pub prompt_tokens: usize,
    /// This project.
    pub burn_dfa: Figures,
    /// llama.cpp.
    pub llama_cpp: Option<Figures>,
}

/// Measures the engines with some number of threads on prompts. The engines take turns.
///
/// # Errors
/// An engine fails.
pub fn measure(
    tasks: &[Task],
    model: &Path,
    python: Option<&Path>,
    threads: usize,
) -> Result<Speed, Failure> {
    let mut engines = Engines::start(model, python, threads)?;
    let part = |part: &str| format!("Speed with {threads} threads, {part}");
    let progress = Progress::new(tasks.len() + 2 * READINGS);
    let [mut ours, mut theirs] = [Rates::default(), Rates::default()];
    for task in tasks {
        progress.begin(&part("single rows"));
        let schema = Constraint::Styled("spaced", false);
        ours.add(&mut engines.burn_dfa, task, schema)?;
        if let Some(engine) = &mut engines.llama_cpp {
            theirs.add(engine, task, Constraint::Schema)?;
        }
        progress.advance(1);
    }
    let reading = Question { max_tokens: 1, ..question(&long(TEXTS)?, Constraint::Free) };
    let mut prompt_tokens = 0;
    for _ in 0..READINGS {
        progress.begin(&part("a long prompt"));
        prompt_tokens = ours.read(&mut engines.burn_dfa, &reading)?;
        if let Some(engine) = &mut engines.llama_cpp {
            theirs.read(engine, &reading)?;
        }
        progress.advance(1);
    }
    let mut batch = Vec::new();
    for task in tasks.iter().take(READINGS) {
        progress.begin(&part("a batch"));
        let mut question = question(task, Constraint::Styled("spaced", false));
        question.prompts.resize(ROWS, question.prompts[0].clone());
        let answer = ask(&mut engines.burn_dfa, &question)?;
        batch.push(answer.steps() as f64 / answer.seconds);
        progress.advance(1);
    }
    let burn_dfa = Figures { batch: Some(median(batch)), ..ours.figures(&engines.burn_dfa) };
    let llama_cpp = engines.llama_cpp.as_ref().map(|engine| theirs.figures(engine));
    Ok(Speed { threads, prompt_tokens, burn_dfa, llama_cpp })
}

/// The tokens per second of single answers, and the peak of memory after each.
#[derive(Default)]
struct Rates {
    free: Vec<f64>,
    constrained: Vec<f64>,
    prompt: Vec<f64>,
    peaks: Vec<u64>,
}

impl Rates {
    /// Answers a prompt under its schema and free.
    fn add(&mut self, engine: &mut Engine, task: &Task, schema: Constraint) -> Result<(), Failure> {
        for (constraint, rates) in [(schema, &mut self.constrained), (Constraint::Free, &mut self.free)] {
            let answer = ask(engine, &question(task, constraint))?;
            // An answer of one token has no time between its first and its last.
            if answer.steps() > 0 {
                rates.push(answer.steps() as f64 / answer.seconds);
            }
            self.peaks.push(answer.peak);
        }
        Ok(())
    }

    /// Reads a prompt; returns its number of tokens.
    fn read(&mut self, engine: &mut Engine, question: &Question) -> Result<usize, Failure> {
        let answer = ask(engine, question)?;
        self.prompt.push(answer.prompt_tokens as f64 / answer.prompt_seconds);
        self.peaks.push(answer.peak);
        Ok(answer.prompt_tokens)
    }

    /// The medians, and the memory of the engine.
    fn figures(self, engine: &Engine) -> Figures {
        let [answered, all] = [self.peaks.first(), self.peaks.last()].map(|peak| peak.copied().unwrap_or(0));
        Figures {
            free: median(self.free),
            constrained: median(self.constrained),
            prompt: median(self.prompt),
            batch: None,
            memory: Memory { loaded: engine.loaded, answered, all },
        }
    }
}

/// The question of a single row.
pub fn question(task: &Task, constraint: Constraint) -> Question {
    let variant = Variant { is_llama_cpp: false, constraint, is_sampled: false };
    variant.question(std::slice::from_ref(task))
}

/// Asks an engine that must answer.
///
/// # Errors
/// The engine refuses the question, or has ended.
pub fn ask(engine: &mut Engine, question: &Question) -> Result<Answer, Failure> {
    Ok(engine.ask(question)??)
}

/// The median; NaN of no values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
