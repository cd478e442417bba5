//! Compares constrained tokens with free ones, for each block type of the matrices of a model.

use std::path::Path;

use crate::Failure;
use crate::engine::{Answer, Engine, Question};
use crate::progress::Progress;
use crate::sets::Task;
use crate::speed::{ask, median, question};
use crate::variants::Constraint;

/// The figures of one file, with one thread.
pub struct BlockType {
    /// The name of the file without its extension.
    pub name: String,
    /// The size of the file.
    pub bytes: u64,
    /// Tokens per second of free rows.
    pub free: f64,
    /// Tokens per second of rows under a JSON schema.
    pub constrained: f64,
    /// The time of constrained tokens, divided by the time of free ones.
    pub ratio: f64,
}

/// Measures every model on the same prompts, with one thread.
///
/// # Errors
/// An engine fails.
pub fn measure(tasks: &[Task], models: &[&Path]) -> Result<Vec<BlockType>, Failure> {
    let progress = Progress::new(models.len() * tasks.len());
    models.iter().map(|model| of_model(tasks, model, &progress)).collect()
}

fn of_model(tasks: &[Task], model: &Path, progress: &Progress) -> Result<BlockType, Failure> {
    let name = model.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut engine = Engine::burn_dfa(model, 1)?;
    let (mut free, mut constrained, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for task in tasks {
        progress.begin(&format!("Block types, {name}"));
        let under_schema = question(task, Constraint::Styled("spaced", false));
        let first = ask(&mut engine, &under_schema)?;
        // As many free tokens as constrained ones. The order cancels a steady drift of the machine.
        let unconstrained = Question { max_tokens: first.tokens(), ..question(task, Constraint::Free) };
        let [second, third] = [ask(&mut engine, &unconstrained)?, ask(&mut engine, &unconstrained)?];
        let fourth = ask(&mut engine, &under_schema)?;
        let [of_free, of_constrained] = [rate(&[second, third]), rate(&[first, fourth])];
        // An answer of one token has no time between its first and its last.
        if let (Some(of_free), Some(of_constrained)) = (of_free, of_constrained) {
            free.push(of_free);
            constrained.push(of_constrained);
            ratios.push(of_free / of_constrained);
        }
        progress.advance(1);
    }
    Ok(BlockType {
        name,
        bytes: std::fs::metadata(model)?.len(),
        free: median(free),
        constrained: median(constrained),
        ratio: median(ratios),
    })
}

/// The tokens per second of some answers; `None` if all have one token.
fn rate(answers: &[Answer]) -> Option<f64> {
    let steps: usize = answers.iter().map(Answer::steps).sum();
    let seconds: f64 = answers.iter().map(|answer| answer.seconds).sum();
    (steps > 0).then_some(steps as f64 / seconds)
}
