//! Measures speculative decoding: calls of the model and time, with draft tokens and without.

use crate::Failure;
use crate::engine::{Drafts, Engine, Question};
use crate::measure::{advance, progress};
use crate::sets::Task;
use crate::variants::{Constraint, Variant};

/// The drafts, with and without a constraint. Nothing is forced in free text.
const CASES: [(Constraint, Drafts); 6] = [
    (Constraint::Free, Drafts::None),
    (Constraint::Free, Drafts::Lookup),
    (Constraint::Styled("spaced", false), Drafts::None),
    (Constraint::Styled("spaced", false), Drafts::Lookup),
    (Constraint::Styled("spaced", false), Drafts::Forced),
    (Constraint::Styled("spaced", false), Drafts::ForcedThenLookup),
];

/// The totals of one case over all prompts.
#[derive(Clone)]
pub struct Speculation {
    /// The constraint.
    pub constraint: Constraint,
    /// The draft tokens.
    pub drafts: Drafts,
    /// Tokens of the answers.
    pub tokens: usize,
    /// Calls of the model.
    pub calls: usize,
    /// Seconds after the first call.
    pub seconds: f64,
    /// Answers that equal the answer without draft tokens.
    pub same: usize,
    /// Answers.
    pub answers: usize,
}

/// Answers all prompts in all cases, which take turns.
///
/// # Errors
/// The engine fails.
pub fn measure(tasks: &[Task], engine: &mut Engine) -> Result<Vec<Speculation>, Failure> {
    let mut all = CASES.map(|(constraint, drafts)| Speculation {
        constraint,
        drafts,
        tokens: 0,
        calls: 0,
        seconds: 0.0,
        same: 0,
        answers: 0,
    });
    let bar = progress("Speculation", tasks.len());
    for task in tasks {
        let mut plain = String::new();
        for case in &mut all {
            let variant = Variant { is_llama_cpp: false, constraint: case.constraint, is_sampled: false };
            let answer = engine.ask(&Question { drafts: case.drafts, ..variant.question(task) })??;
            if case.drafts == Drafts::None {
                plain.clone_from(&answer.text);
            }
            case.tokens += answer.tokens;
            case.calls += answer.calls;
            case.seconds += answer.seconds;
            case.same += usize::from(answer.text == plain);
            case.answers += 1;
        }
        advance(&bar, "Speculation");
    }
    bar.finish_and_clear();
    Ok(all.to_vec())
}
