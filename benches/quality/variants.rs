//! The variants: an engine, a constraint, and how tokens are chosen.

use crate::engine::{Drafts, Prompt, Question};
use crate::sets::Task;

/// The styles of white space, by their names on the command line.
const STYLES: [&str; 4] = ["compact", "spaced", "flexible", "pretty"];

/// The temperature of the sampled variants.
pub const TEMPERATURE: f32 = 0.7;

/// The greatest number of rows in a batch of different prompts.
pub const BATCH: usize = 8;

/// The greatest number of tokens of an answer.
pub const MAX_TOKENS: usize = 160;

/// A way to answer prompts.
#[derive(Clone, Copy, PartialEq)]
pub struct Variant {
    /// Whether llama.cpp answers, instead of burn-dfa.
    pub is_llama_cpp: bool,
    /// The constraint.
    pub constraint: Constraint,
    /// Whether tokens are sampled, with a fixed seed.
    pub is_sampled: bool,
}

/// A constraint by the schema of the answer.
#[derive(Clone, Copy, PartialEq)]
pub enum Constraint {
    /// None.
    Free,
    /// With the engine's own white space.
    Schema,
    /// In a style of white space, with any tokens or the longest tokens in forced text.
    Styled(&'static str, bool),
}

impl Variant {
    /// All variants: the greedy ones of burn-dfa and of llama.cpp, then the sampled ones.
    pub fn all(with_llama_cpp: bool) -> Vec<Self> {
        let styled = STYLES
            .into_iter()
            .flat_map(|style| [false, true].map(|longest| Constraint::Styled(style, longest)));
        let constraints: Vec<_> = std::iter::once(Constraint::Free).chain(styled).collect();
        let ours = |is_sampled| {
            constraints.iter().map(move |&constraint| Self { is_llama_cpp: false, constraint, is_sampled })
        };
        let theirs = |is_sampled| {
            let constraints =
                [Constraint::Free, Constraint::Schema].into_iter().filter(move |_| with_llama_cpp);
            constraints.map(move |constraint| Self { is_llama_cpp: true, constraint, is_sampled })
        };
        [false, true].into_iter().flat_map(|sampled| ours(sampled).chain(theirs(sampled))).collect()
    }

    /// The engine and the constraint, in words.
    pub fn name(&self) -> String {
        let constraint = match self.constraint {
            Constraint::Free => "free".to_owned(),
            Constraint::Schema => "its JSON schema".to_owned(),
            Constraint::Styled(style, false) => style.to_owned(),
            Constraint::Styled(style, true) => format!("{style}, longest tokens"),
        };
        let engine = if self.is_llama_cpp { "llama.cpp: " } else { "" };
        format!("{engine}{constraint}{}", if self.is_sampled { ", sampled" } else { "" })
    }

    /// Whether the tokens per second count, so that every prompt is answered as a single row.
    /// llama.cpp answers no batches.
    pub fn is_timed(&self) -> bool {
        self.is_llama_cpp || !self.is_sampled && !matches!(self.constraint, Constraint::Styled(_, true))
    }

    /// The question of some prompts, which are the rows of a batch.
    pub fn question(&self, tasks: &[Task]) -> Question {
        let (whitespace, longest) = match self.constraint {
            Constraint::Free | Constraint::Schema => ("spaced", false),
            Constraint::Styled(style, longest) => (style, longest),
        };
        let is_free = self.constraint == Constraint::Free;
        let prompt = |task: &Task| Prompt {
            system: task.system.to_owned(),
            user: task.user.clone(),
            schema: (!is_free).then(|| task.expected.schema.clone()),
        };
        Question {
            prompts: tasks.iter().map(prompt).collect(),
            whitespace: whitespace.to_owned(),
            longest,
            temperature: if self.is_sampled { TEMPERATURE } else { 0.0 },
            seed: 1,
            max_tokens: MAX_TOKENS,
            drafts: Drafts::None,
        }
    }
}
