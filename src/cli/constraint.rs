//! The constraint, in one of the forms in which a command line gives it.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::error::{Failure, message};
use super::file::text;
use crate::constraint::{Constraint, StructuralTag, Syntax};
use crate::error::Error;

/// The constraint, at most one, and how a grammar is read. The group `constraint` can be made required.
#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub struct ConstraintArgs {
    #[command(flatten)]
    one: OneOf,
    #[command(flatten)]
    reading: ReadingArgs,
}

/// The constraint: at most one of these.
#[derive(Args, Clone, Debug, Default)]
#[group(id = "constraint", multiple = false)]
struct OneOf {
    /// The output matches this regular expression as a whole.
    #[arg(long)]
    regex: Option<String>,
    /// The output is JSON valid under the JSON schema in this file.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// The output is one of these strings; give it once for each.
    #[arg(long)]
    choice: Option<Vec<String>>,
    /// The constraint is a `response_format` or `structured_outputs` object in this file.
    #[arg(long, value_name = "FILE", visible_alias = "response-format")]
    spec: Option<PathBuf>,
    /// The output is a text of the context-free grammar in this file.
    #[arg(long, value_name = "FILE")]
    grammar: Option<PathBuf>,
    /// The output is a text of the structural tag in this file: free text, tags and schemas, as XGrammar takes them in JSON.
    #[arg(long, value_name = "FILE")]
    structural_tag: Option<PathBuf>,
}

/// How a grammar is read.
#[derive(Args, Clone, Debug, Default)]
struct ReadingArgs {
    /// How the grammar is written: `gbnf` as llama.cpp reads it, `ebnf` as XGrammar does, `lark` as llguidance does; where it is
    /// left out, the extension of the file says so.
    #[arg(long, value_parser = syntaxes(), requires = "grammar", conflicts_with_all = OTHERS)]
    syntax: Option<Syntax>,
    /// The rule of the grammar where texts begin, instead of `root`, or `start` of a Lark grammar.
    #[arg(long, value_name = "RULE", requires = "grammar", conflicts_with_all = OTHERS)]
    start: Option<String>,
}

/// The constraints that are no grammar: where one of them is given, clap takes a grammar for not required.
const OTHERS: [&str; 5] = ["regex", "schema", "choice", "spec", "structural_tag"];

/// The syntaxes by their names, which help and completions list.
fn syntaxes() -> impl TypedValueParser<Value = Syntax> {
    PossibleValuesParser::new(Syntax::ALL.map(Syntax::name)).try_map(|name| name.parse::<Syntax>())
}

impl ConstraintArgs {
    /// The constraint; `None` where none is given, or the file of `--spec` asks for plain text.
    ///
    /// # Errors
    /// A file that cannot be read or is not JSON, and what [`Constraint`] refuses, with the file's name.
    pub fn read(&self) -> Result<Option<Constraint>, Failure> {
        let in_file =
            |path: &Path, error: Error| Failure::from(format!("{}: {}", path.display(), message(&error)));
        if let Some(pattern) = &self.one.regex {
            Ok(Some(Constraint::regex(pattern)?))
        } else if let Some(path) = &self.one.schema {
            Constraint::json_schema_from_str(&text(path)?).map(Some).map_err(|error| in_file(path, error))
        } else if let Some(choices) = &self.one.choice {
            Ok(Some(Constraint::choice(choices.iter().cloned())?))
        } else if let Some(path) = &self.one.spec {
            Constraint::from_request_str(&text(path)?).map_err(|error| in_file(path, error))
        } else if let Some(path) = &self.one.grammar {
            self.read_grammar()?.transpose().map_err(|error| in_file(path, error))
        } else if let Some(path) = &self.one.structural_tag {
            self.read_structural_tag()?.transpose().map_err(|error| in_file(path, error))
        } else {
            Ok(None)
        }
    }

    /// The file of `--schema`.
    pub fn schema(&self) -> Option<&Path> {
        self.one.schema.as_deref()
    }

    /// The file of `--grammar`.
    pub fn grammar(&self) -> Option<&Path> {
        self.one.grammar.as_deref()
    }

    /// The constraint of the grammar in the file of `--grammar`; `None` where none is given.
    ///
    /// # Errors
    /// A file that cannot be read; within, what [`Constraint::grammar`] refuses, without the file's name.
    pub fn read_grammar(&self) -> Result<Option<crate::Result<Constraint>>, Failure> {
        let Some(path) = &self.one.grammar else { return Ok(None) };
        let ReadingArgs { syntax, start } = &self.reading;
        let named = || path.extension()?.to_str()?.parse().ok();
        let syntax = syntax.or_else(named).ok_or_else(|| {
            format!(
                "{}: name the syntax of the grammar with --syntax, or by the extension .gbnf, .ebnf or .lark",
                path.display()
            )
        })?;
        let text = text(path)?;
        Ok(Some(match start {
            Some(start) => Constraint::grammar_from(syntax, &text, start),
            None => Constraint::grammar(syntax, &text),
        }))
    }

    /// The file of `--structural-tag`.
    pub fn structural_tag(&self) -> Option<&Path> {
        self.one.structural_tag.as_deref()
    }

    /// The constraint of the structural tag in the file of `--structural-tag`; `None` where none is given.
    ///
    /// # Errors
    /// A file that cannot be read; within, what [`Constraint::structural_tag`] refuses, without the file's name.
    pub fn read_structural_tag(&self) -> Result<Option<crate::Result<Constraint>>, Failure> {
        let Some(path) = &self.one.structural_tag else { return Ok(None) };
        let tag = StructuralTag::read(&text(path)?);
        Ok(Some(tag.and_then(|tag| Constraint::structural_tag(&tag))))
    }

    /// Whether one is given.
    pub fn is_some(&self) -> bool {
        let OneOf { regex, schema, choice, spec, grammar, structural_tag } = &self.one;
        let files = [schema, spec, grammar, structural_tag];
        regex.is_some() || choice.is_some() || files.into_iter().any(Option::is_some)
    }
}

/// As it was given: `regex [0-9]+`, `schema person.json`.
impl fmt::Display for ConstraintArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pattern) = &self.one.regex {
            write!(f, "regex {pattern}")
        } else if let Some(path) = &self.one.schema {
            write!(f, "schema {}", path.display())
        } else if let Some(choices) = &self.one.choice {
            write!(f, "choice {}", choices.join(" | "))
        } else if let Some(path) = &self.one.spec {
            write!(f, "spec {}", path.display())
        } else if let Some(path) = &self.one.grammar {
            write!(f, "grammar {}", path.display())
        } else if let Some(path) = &self.one.structural_tag {
            write!(f, "structural tag {}", path.display())
        } else {
            f.write_str("none")
        }
    }
}
