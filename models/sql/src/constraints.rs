//! The constraints of calls, each compiled once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use burn_dfa::constraint::{Additional, JsonOptions, Whitespace};
use burn_dfa::{Capacity, CompiledConstraint, Constraint, Limits, Vocabulary, cli};
use serde_json::Value;

use crate::shape::Shape;

/// Greatest number of cached constraints.
const KEPT: usize = 256;
/// Greatest number of digits for which integer parts and fractions fit a column of 64 bits.
const DIGITS: usize = 18;

/// The text that a constraint is made from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A JSON schema, as text, and the white space of its values, if it is not the default.
    Schema(String, Option<Whitespace>),
    /// One of some labels.
    Labels(Vec<String>),
    /// A regular expression.
    Pattern(String),
}

impl Source {
    fn constraint(&self, usual: &JsonOptions) -> burn_dfa::Result<Constraint> {
        match self {
            Self::Schema(text, whitespace) => {
                // Properties without a column are not written.
                let options = usual.clone().with_additional(Additional::Closed).with_max_digits(DIGITS);
                let whitespace = whitespace.unwrap_or(usual.whitespace);
                Constraint::json_schema_from_str_with(text, &options.with_whitespace(whitespace))
            }
            Self::Labels(labels) => Constraint::choice(labels),
            Self::Pattern(pattern) => Constraint::regex(pattern),
        }
    }
}

/// A compiled constraint with its column.
#[derive(Debug)]
pub struct Compiled {
    /// The constraint over the model's tokens.
    pub table: CompiledConstraint,
    /// The column of its answers.
    pub shape: Shape,
}

impl Compiled {
    /// The least number of tokens of an answer, including the end of the sequence.
    pub fn shortest(&self) -> usize {
        self.table.tokens_to_end(self.table.start()) as usize
    }
}

/// The message of a refused constraint.
pub type Refusal = String;

type Kept = Arc<OnceLock<Result<Arc<Compiled>, Refusal>>>;

/// Compiles constraints for one vocabulary, and caches them.
///
/// ```
/// use burn_dfa::{Capacity, Limits, Vocabulary};
/// use burn_dfa_sql::{Constraints, Source};
///
/// # let files = burn_dfa_sql::embedded_files();
/// let room = Capacity::new().with_states(4096).with_classes(256);
/// let constraints = Constraints::new(Vocabulary::from_files(&files)?, Limits::default(), room);
/// let refusal = constraints.get(&Source::Schema(r#"{"type": "sting"}"#.into(), None)).unwrap_err();
/// assert!(refusal.contains("/type"));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Debug)]
pub struct Constraints {
    vocabulary: Vocabulary,
    limits: Limits,
    room: Capacity,
    json: JsonOptions,
    kept: Mutex<HashMap<Source, Kept>>,
}

impl Constraints {
    /// Constraints for a vocabulary, and for an engine with this capacity.
    pub fn new(vocabulary: Vocabulary, limits: Limits, room: Capacity) -> Self {
        Self { vocabulary, limits, room, json: JsonOptions::default(), kept: Mutex::default() }
    }

    /// Sets other options for schemas, which control how values are written.
    pub fn with_json(self, json: JsonOptions) -> Self {
        Self { json, ..self }
    }

    /// The constraint of a source. The first caller compiles it, and other callers wait for it.
    ///
    /// # Errors
    /// The library refuses it, or it exceeds the capacity of the engine.
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
        let constraint = source.constraint(&self.json).map_err(told)?;
        let mut table =
            CompiledConstraint::compile(&constraint, &self.vocabulary, &self.limits).map_err(told)?;
        if !table.is_byte_level() && table.class_count() > self.room.classes {
            table = CompiledConstraint::compile_byte_level(&constraint, &self.vocabulary, &self.limits)
                .map_err(told)?;
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
            Source::Schema(text, _) => Shape::of(&serde_json::from_str(text).unwrap_or(Value::Null)),
            Source::Labels(_) | Source::Pattern(_) => Shape::Text,
        };
        Ok(Compiled { table, shape })
    }
}
