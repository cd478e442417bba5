//! Measures quality: asks every prompt in every variant, and counts the verdicts.

use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};

use crate::Failure;
use crate::engine::Engine;
use crate::judge::judge;
use crate::sets::Set;
use crate::variants::Variant;

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
    /// Seconds of these steps.
    pub seconds: f64,
    /// The engine's first error, for example a refused schema.
    pub error: Option<String>,
}

/// The scores of all variants on a set. The variants take turns, so that other load of the machine
/// slows all of them.
///
/// # Errors
/// An engine has ended.
pub fn measure(set: &Set, variants: &[Variant], engines: &mut Engines) -> Result<Vec<Score>, Failure> {
    let mut scores = vec![Score::default(); variants.len()];
    let bar = progress(&set.title, set.tasks.len());
    for task in &set.tasks {
        for (variant, score) in variants.iter().zip(&mut scores) {
            let engine = match &mut engines.llama_cpp {
                Some(llama_cpp) if variant.is_llama_cpp => llama_cpp,
                _ => &mut engines.burn_dfa,
            };
            score.prompts += 1;
            score.values += task.expected.values.as_ref().map_or(0, |values| values.len());
            match engine.ask(&variant.question(task))? {
                Ok(answer) => {
                    let verdict = judge(&answer.text, &task.expected);
                    score.json += usize::from(verdict.is_json);
                    score.fitting += usize::from(verdict.fits);
                    score.right += usize::from(verdict.is_right);
                    score.right_values += verdict.right_values;
                    score.tokens += answer.tokens;
                    score.steps += answer.tokens.saturating_sub(1);
                    score.seconds += answer.seconds;
                }
                Err(error) => _ = score.error.get_or_insert(error),
            }
        }
        advance(&bar, &set.title);
    }
    bar.finish_and_clear();
    Ok(scores)
}

/// A progress bar.
pub fn progress(title: &str, steps: usize) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{msg:16} {bar:30} {pos} of {len}, {eta} left").expect("a template");
    ProgressBar::new(steps as u64).with_style(style).with_message(title.to_owned())
}

/// Counts a step; without a terminal, prints a line after some steps.
pub fn advance(bar: &ProgressBar, title: &str) {
    bar.inc(1);
    let (done, all) = (bar.position(), bar.length().unwrap_or(0));
    if bar.is_hidden() && (done % 10 == 0 || done == all) {
        eprintln!("{title}: {done} of {all}");
    }
}
