//! Measures speculative decoding: calls of the model and time, with draft tokens and without, and
//! the acceptance of draft tokens.

use crate::Failure;
use crate::acceptance::DraftCounts;
use crate::engine::{Drafts, Engine, Question};
use crate::progress::Progress;
use crate::sets::Set;
use crate::speed::{ask, question};
use crate::variants::Constraint;

/// The drafts, with and without a constraint. Nothing is forced in free text.
const CASES: [(Constraint, Drafts); 6] = [
    (Constraint::Free, Drafts::None),
    (Constraint::Free, Drafts::Lookup),
    (Constraint::Styled("spaced", false), Drafts::None),
    (Constraint::Styled("spaced", false), Drafts::Lookup),
    (Constraint::Styled("spaced", false), Drafts::Forced),
    (Constraint::Styled("spaced", false), Drafts::ForcedThenLookup),
];

/// The totals of one case over the prompts of a set.
pub struct Speculation {
    /// The title of the set.
    pub set: String,
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
    /// The numbers of draft tokens.
    pub counts: DraftCounts,
    /// Answers that equal the answer without draft tokens.
    pub same: usize,
    /// Answers.
    pub answers: usize,
}

/// Answers all prompts in all cases, which take turns.
///
/// # Errors
/// The engine fails.
pub fn measure(sets: &[Set], engine: &mut Engine) -> Result<Vec<Speculation>, Failure> {
    let progress = Progress::new(sets.iter().map(|set| set.tasks.len()).sum());
    let mut all = Vec::new();
    for set in sets {
        all.extend(of_set(set, engine, &progress)?);
    }
    Ok(all)
}

fn of_set(set: &Set, engine: &mut Engine, progress: &Progress) -> Result<[Speculation; 6], Failure> {
    let mut all = CASES.map(|(constraint, drafts)| Speculation {
        set: set.title.clone(),
        constraint,
        drafts,
        tokens: 0,
        calls: 0,
        seconds: 0.0,
        counts: DraftCounts::default(),
        same: 0,
        answers: 0,
    });
    for task in &set.tasks {
        progress.begin(&format!("Speculative decoding, {}", set.title));
        let mut plain = String::new();
        for case in &mut all {
            let question = Question { drafts: case.drafts, ..question(task, case.constraint) };
            let answer = ask(engine, &question)?;
            let text = &answer.rows[0].text;
            if case.drafts == Drafts::None {
                plain.clone_from(text);
            }
            case.tokens += answer.tokens();
            case.calls += answer.calls;
            case.seconds += answer.seconds;
            case.counts.add(answer.drafts);
            case.same += usize::from(*text == plain);
            case.answers += 1;
        }
        progress.advance(1);
    }
    Ok(all)
}
