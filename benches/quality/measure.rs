//! Measures quality: asks every prompt in every variant, and counts the verdicts.

use std::path::Path;

use crate::Failure;
use crate::engine::{Answer, Engine};
use crate::judge::judge;
use crate::progress::Progress;
use crate::sets::{Set, Task};
use crate::variants::{BATCH, Variant};

/// The engines with one number of threads.
pub struct Engines {
    /// This project.
    pub burn_dfa: Engine,
    /// llama.cpp, if a Python has it.
    pub llama_cpp: Option<Engine>,
}

impl Engines {
    /// Starts the engines.
    ///
    /// # Errors
    /// As [`Engine::burn_dfa`] and [`Engine::llama_cpp`].
    pub fn start(model: &Path, python: Option<&Path>, threads: usize) -> Result<Self, Failure> {
        Ok(Self {
            burn_dfa: Engine::burn_dfa(model, threads)?,
            llama_cpp: python.map(|python| Engine::llama_cpp(python, model, threads)).transpose()?,
        })
    }
}

/// The verdicts and the costs of a variant on a set.
#[derive(Clone, Debug, Default)]
pub struct Score {
    /// The number of prompts.
    pub prompts: usize,
    /// Answers that are JSON.
    pub json: usize,
    /// Answers that fit their schema.
    pub fitting: usize,
    /// Answers with exactly the right values.
    pub right: usize,
    /// Right values.
    pub right_values: usize,
    /// Values of all prompts; 0 if any values are right.
    pub values: usize,
    /// Tokens of all answers.
    pub tokens: usize,
    /// Tokens after the first of each answer.
    pub steps: usize,
    /// Seconds of these steps; a batch counts once.
    pub seconds: f64,
    /// The engine's first error, for example a refused schema.
    pub error: Option<String>,
}

impl Score {
    fn add(&mut self, tasks: &[Task], answer: &Answer) {
        for (task, row) in tasks.iter().zip(&answer.rows) {
            let verdict = judge(&row.text, &task.expected);
            self.json += usize::from(verdict.is_json);
            self.fitting += usize::from(verdict.fits);
            self.right += usize::from(verdict.is_right);
            self.right_values += verdict.right_values;
        }
        self.tokens += answer.tokens();
        self.steps += answer.steps();
        self.seconds += answer.seconds;
    }
}

/// The scores of all variants on a set. The variants take turns after every batch of prompts, so
/// that other load of the machine slows all of them. `progress` counts every answer.
///
/// # Errors
/// An engine has ended.
pub fn measure(
    set: &Set,
    variants: &[Variant],
    engines: &mut Engines,
    progress: &Progress,
) -> Result<Vec<Score>, Failure> {
    let mut scores = vec![Score::default(); variants.len()];
    for tasks in set.tasks.chunks(BATCH) {
        for (variant, score) in variants.iter().zip(&mut scores) {
            progress.begin(&format!("{}, {}", set.title, variant.name()));
            score.prompts += tasks.len();
            score.values += tasks.iter().filter_map(|task| task.expected.values.as_ref()).flatten().count();
            for rows in tasks.chunks(if variant.is_timed() { 1 } else { BATCH }) {
                ask(rows, *variant, engines, score)?;
                progress.advance(rows.len());
            }
        }
    }
    Ok(scores)
}

/// Asks prompts as a batch, and one by one if the engine refuses the batch.
fn ask(tasks: &[Task], variant: Variant, engines: &mut Engines, score: &mut Score) -> Result<(), Failure> {
    let engine = match &mut engines.llama_cpp {
        Some(llama_cpp) if variant.is_llama_cpp => llama_cpp,
        _ => &mut engines.burn_dfa,
    };
    match engine.ask(&variant.question(tasks))? {
        Ok(answer) => score.add(tasks, &answer),
        Err(_) if tasks.len() > 1 => {
            for task in tasks.chunks(1) {
                ask(task, variant, engines, score)?;
            }
        }
        Err(error) => _ = score.error.get_or_insert(error),
    }
    Ok(())
}
