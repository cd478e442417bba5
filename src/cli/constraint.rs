//! The constraint, in one of the forms in which a command line gives it.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::Args;

use super::error::{Failure, message};
use super::file::text;
use crate::constraint::Constraint;
use crate::error::Error;

/// The constraint: at most one of these. The group `constraint` can be made required.
#[derive(Args, Clone, Debug, Default)]
#[group(id = "constraint", multiple = false)]
pub struct ConstraintArgs {
    /// The output matches this regular expression as a whole.
    #[arg(long)]
    regex: Option<String>,
    /// The output is JSON valid under the JSON schema in this file.
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// The output is one of these strings; give it once for each.
    #[arg(long)]
    choice: Option<Vec<String>>,
    /// The constraint is a `response_format` or `structured_outputs` object in this file.
    #[arg(long, value_name = "FILE", visible_alias = "response-format")]
    spec: Option<PathBuf>,
}

impl ConstraintArgs {
    /// The constraint; `None` where none is given, or the file of `--spec` asks for plain text.
    ///
    /// # Errors
    /// A file that cannot be read or is not JSON, and what [`Constraint`] refuses, with the file's name.
    pub fn read(&self) -> Result<Option<Constraint>, Failure> {
        let in_file =
            |path: &Path, error: Error| Failure::from(format!("{}: {}", path.display(), message(&error)));
        if let Some(pattern) = &self.regex {
            Ok(Some(Constraint::regex(pattern)?))
        } else if let Some(path) = &self.schema {
            Constraint::json_schema_from_str(&text(path)?).map(Some).map_err(|error| in_file(path, error))
        } else if let Some(choices) = &self.choice {
            Ok(Some(Constraint::choice(choices.iter().cloned())?))
        } else if let Some(path) = &self.spec {
            Constraint::from_request_str(&text(path)?).map_err(|error| in_file(path, error))
        } else {
            Ok(None)
        }
    }

    /// Whether one is given.
    pub fn is_some(&self) -> bool {
        self.regex.is_some() || self.schema.is_some() || self.choice.is_some() || self.spec.is_some()
    }
}

/// As it was given: `regex [0-9]+`, `schema person.json`.
impl fmt::Display for ConstraintArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pattern) = &self.regex {
            write!(f, "regex {pattern}")
        } else if let Some(path) = &self.schema {
            write!(f, "schema {}", path.display())
        } else if let Some(choices) = &self.choice {
            write!(f, "choice {}", choices.join(" | "))
        } else if let Some(path) = &self.spec {
            write!(f, "spec {}", path.display())
        } else {
            f.write_str("none")
        }
    }
}
