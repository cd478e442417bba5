//! The constraints of calls, each compiled once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use burn_dfa::constraint::{Additional, JsonOptions};
use burn_dfa::{Capacity, Constraint, Limits, TokenTable, Vocabulary, cli};
use serde_json::Value;

use crate::shape::Shape;

/// Most constraints that are kept at a time.
const KEPT: usize = 256;
/// Digits of an integer part and of a fraction that a column of 64 bits always holds.
const DIGITS: usize = 18;

/// What a constraint is made from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A JSON schema, as text.
    Schema(String),
    /// One of some labels.
    Labels(Vec<String>),
    /// A regular expression.
    Pattern(String),
}

impl Source {
    fn constraint(&self) -> burn_dfa::Result<Constraint> {
        match self {
            Self::Schema(text) => {
                // What has no column is not written.
                let options = JsonOptions::new().with_additional(Additional::Closed).with_max_digits(DIGITS);
                Constraint::json_schema_from_str_with(text, &options)
            }
            Self::Labels(labels) => Constraint::choice(labels),
            Self::Pattern(pattern) => Constraint::regex(pattern),
        }
    }
}

/// A constraint, compiled.
#[derive(Debug)]
pub struct Compiled {
    /// The constraint over the model's tokens.
    pub table: TokenTable,
    /// The column that its answers make.
    pub shape: Shape,
}

impl Compiled {
    /// The least number of tokens of an answer, the end of the sequence included.
    pub fn shortest(&self) -> usize {
        self.table.tokens_to_end(self.table.start()) as usize
    }
}

/// Why there is no table of a constraint, in words.
pub type Refusal = String;

type Kept = Arc<OnceLock<Result<Arc<Compiled>, Refusal>>>;

/// Makes tables of constraints for one vocabulary, and keeps them.
///
/// ```
/// use burn_dfa::{Capacity, Limits, Vocabulary};
/// use burn_dfa_sql::{Constraints, Source};
///
/// # let files = burn_dfa_sql::embedded_files();
/// let room = Capacity::new().with_states(4096).with_classes(256);
/// let constraints = Constraints::new(Vocabulary::from_files(&files)?, Limits::default(), room);
/// let refusal = constraints.get(&Source::Schema(r#"{"type": "sting"}"#.into())).unwrap_err();
/// assert!(refusal.contains("/type"));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Debug)]
pub struct Constraints {
    vocabulary: Vocabulary,
    limits: Limits,
    room: Capacity,
    kept: Mutex<HashMap<Source, Kept>>,
}

impl Constraints {
    /// For a vocabulary, and an engine with so much room for constraints.
    pub fn new(vocabulary: Vocabulary, limits: Limits, room: Capacity) -> Self {
        Self { vocabulary, limits, room, kept: Mutex::default() }
    }

    /// The constraint of a source. It is compiled by the first that asks, and the others wait for it.
    ///
    /// # Errors
    /// Where it is refused: by the library, or because the engine has no room for it.
    pub fn get(&self, source: &Source) -> Result<Arc<Compiled>, Refusal> {
        let mut kept = self.kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if kept.len() >= KEPT && !kept.contains_key(source) {
            kept.clear();
        }
        let entry = kept.entry(source.clone()).or_default().clone();
        drop(kept);
        entry.get_or_init(|| self.compile(source).map(Arc::new)).clone()
    }

    fn compile(&self, source: &Source) -> Result<Compiled, Refusal> {
        let told = |error: burn_dfa::Error| cli::message(&error);
        let constraint = source.constraint().map_err(told)?;
        let mut table = TokenTable::compile(&constraint, &self.vocabulary, &self.limits).map_err(told)?;
        if !table.is_walked() && table.class_count() > self.room.classes {
            table = TokenTable::walk(&constraint, &self.vocabulary, &self.limits).map_err(told)?;
        }
        let (states, classes) = (table.state_count(), table.class_count());
        if states > self.room.states || classes > self.room.classes {
            return Err(format!(
                "the constraint takes {states} states of {classes} classes, and the engine has room for {} of {}: simplify \
                 it, or raise --arena-states and --arena-classes",
                self.room.states, self.room.classes
            ));
        }
        let shape = match source {
            Source::Schema(text) => Shape::of(&serde_json::from_str(text).unwrap_or(Value::Null)),
            Source::Labels(_) | Source::Pattern(_) => Shape::Text,
        };
        Ok(Compiled { table, shape })
    }
}
