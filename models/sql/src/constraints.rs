//! The constraints of calls, each compiled once.

use std::sync::Arc;

use burn_dfa::constraint::{Additional, JsonOptions, Whitespace};
use burn_dfa::{Capacity, CompiledConstraint, Constraint, Error, Limits, Vocabulary, cli};
use burn_dfa_engine::{Client, CompileError, Compiler, CompilerConfig, Frontend, Key, Task};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::shape::Shape;

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
    pub constraint: CompiledConstraint,
    /// The column of its answers.
    pub shape: Shape,
}

impl Compiled {
    /// The least number of tokens of an answer, including the end of the sequence.
    pub fn shortest(&self) -> usize {
        self.constraint.tokens_to_end(self.constraint.start()) as usize
    }
}

/// The message of a refused constraint.
pub type Refusal = String;

/// Reads the constraints of calls.
#[derive(Debug)]
struct SqlFrontend {
    /// How values are written.
    json: JsonOptions,
}

impl Frontend for SqlFrontend {
    type Source = Source;
    type Compiled = Arc<Compiled>;
    type Refusal = burn_dfa_engine::Refusal;

    fn key(&self, source: &Source) -> Key {
        // The text of the source with its kind and its options.
        Sha256::digest(format!("{source:?}")).into()
    }

    fn compile(&self, source: &Source, task: &Task) -> Result<Arc<Compiled>, Self::Refusal> {
        let constraint = source.constraint(&self.json).map_err(burn_dfa_engine::Refusal::Library)?;
        let compiled = task.compile(&constraint)?;
        let shape = match source {
            Source::Schema(text, _) => Shape::of(&serde_json::from_str(text).unwrap_or(Value::Null)),
            Source::Labels(_) | Source::Pattern(_) => Shape::Text,
        };
        Ok(Arc::new(Compiled { constraint: compiled, shape }))
    }

    fn constraint(compiled: &Arc<Compiled>) -> Option<&CompiledConstraint> {
        Some(&compiled.constraint)
    }

    fn error(refusal: &Self::Refusal) -> Option<&Error> {
        refusal.error()
    }
}

/// Compiles constraints for one vocabulary, and caches them.
///
/// ```
/// use burn_dfa::{Capacity, Limits, Vocabulary};
/// use burn_dfa_sql::{Constraints, Source};
///
/// # let files = burn_dfa_sql::embedded_files();
/// let capacity = Capacity::new().with_states(4096).with_classes(256);
/// let constraints =
///     Constraints::new(Vocabulary::from_files(&files)?, Limits::default(), capacity);
/// let refusal =
///     constraints.get(&Source::Schema(r#"{"type": "sting"}"#.into(), None)).unwrap_err();
/// assert!(refusal.contains("/type"));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Debug)]
pub struct Constraints {
    compiler: Arc<Compiler<SqlFrontend>>,
}

impl Constraints {
    /// Constraints for a vocabulary, and for an engine with this capacity.
    pub fn new(vocabulary: Vocabulary, limits: Limits, capacity: Capacity) -> Self {
        Self::with_json(vocabulary, limits, capacity, JsonOptions::default())
    }

    /// As [`new`](Self::new), with options for schemas, which control how values are written.
    pub fn with_json(vocabulary: Vocabulary, limits: Limits, capacity: Capacity, json: JsonOptions) -> Self {
        // Each caller waits for one constraint.
        let config = CompilerConfig { max_waiting: usize::MAX, ..CompilerConfig::new(limits, capacity) };
        let compiler = Compiler::new(SqlFrontend { json }, vocabulary, config, Arc::new(()));
        Self { compiler: Arc::new(compiler) }
    }

    /// The constraint of a source. The first caller compiles it, and other callers wait for it.
    ///
    /// # Errors
    /// The library refuses it, or it exceeds the capacity of the engine.
    pub fn get(&self, source: &Source) -> Result<Arc<Compiled>, Refusal> {
        let compiled = self.compiler.get_blocking(Client::default(), source.clone());
        compiled.map_err(|error| match error {
            CompileError::Refused(burn_dfa_engine::Refusal::Library(error)) => cli::message(&error),
            CompileError::Refused(refusal @ burn_dfa_engine::Refusal::TooLarge { .. }) => {
                format!("{refusal} with --arena-states and --arena-classes")
            }
            CompileError::Refused(refusal) => refusal.to_string(),
            _ => "the constraint was not compiled".into(),
        })
    }
}
