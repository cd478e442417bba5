//! The constraint, as given on a command line.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args};
use serde_json::json;

use super::error::{Failure, Refused, message};
use super::file::{is_file, json_text, text_or_file};
use super::json::JsonArgs;
use crate::constraint::{
    Constraint, JsonOptions, RequestOptions, StructuralTag, Syntax, Treatment, Whitespace,
};
use burn_dfa_tokens::{Error, Limits};

/// The constraint, at most one, and how to read grammars and write the JSON of schemas. The group
/// `constraint` can be made required.
#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
#[allow(clippy::duplicated_attributes, reason = "each attribute is of another argument")]
#[command(mut_arg("whitespace", of_schemas))]
#[command(mut_arg("ignore_unenforceable", of_schemas))]
pub struct ConstraintArgs {
    #[command(flatten)]
    one: OneOf,
    #[command(flatten)]
    reading: ReadingArgs,
    #[command(flatten)]
    json: JsonArgs,
}

/// Restricts an option to constraints that may hold schemas.
fn of_schemas(arg: Arg) -> Arg {
    arg.requires("constraint").conflicts_with_all(["regex", "choice", "grammar"])
}

/// The constraint: at most one of these.
#[derive(Args, Clone, Debug, Default)]
#[group(id = "constraint", multiple = false)]
struct OneOf {
    /// The output matches this regular expression as a whole.
    #[arg(long)]
    regex: Option<String>,
    /// The output is JSON valid under this JSON schema, or under the schema in this file.
    #[arg(long, value_name = "JSON|FILE")]
    schema: Option<PathBuf>,
    /// The output is one of these strings; repeat the option for each string.
    #[arg(long)]
    choice: Option<Vec<String>>,
    /// The constraint is a `response_format` or `structured_outputs` object in this file.
    #[arg(long, value_name = "FILE", visible_alias = "response-format")]
    spec: Option<PathBuf>,
    /// The output is a text of this context-free grammar, or of the grammar in this file.
    #[arg(long, value_name = "TEXT|FILE")]
    grammar: Option<PathBuf>,
    /// The output is a text of this structural tag, or of the tag in this file: free text, tags and
    /// schemas, in XGrammar's JSON format.
    #[arg(long, value_name = "JSON|FILE")]
    structural_tag: Option<PathBuf>,
}

/// How a grammar is read.
#[derive(Args, Clone, Debug, Default)]
struct ReadingArgs {
    /// The syntax of the grammar: `gbnf` as in llama.cpp, `ebnf` as in XGrammar, `lark` as in
    /// llguidance. Default: the extension of the file.
    #[arg(long, value_parser = syntaxes(), requires = "grammar", conflicts_with_all = OTHERS)]
    syntax: Option<Syntax>,
    /// The start rule of the grammar, instead of `root`, or `start` of a Lark grammar.
    #[arg(long, value_name = "RULE", requires = "grammar", conflicts_with_all = OTHERS)]
    start: Option<String>,
}

/// The constraints that are no grammar: if one of them is given, clap does not require a grammar.
const OTHERS: [&str; 5] = ["regex", "schema", "choice", "spec", "structural_tag"];

/// The syntaxes by their names, which help and completions list.
fn syntaxes() -> impl TypedValueParser<Value = Syntax> {
    PossibleValuesParser::new(Syntax::ALL.map(Syntax::name)).try_map(|name| name.parse::<Syntax>())
}

impl ConstraintArgs {
    /// The constraint; `None` if none is given, or if the file of `--spec` requests plain text.
    ///
    /// # Errors
    /// An unreadable file or invalid JSON, and a refusal of [`Constraint`] with the file's name;
    /// the latter [is a refusal](super::is_refusal).
    pub fn read(&self) -> Result<Option<Constraint>, Failure> {
        let in_file = |path: &Path, error: Error| match is_file(path) {
            true => Refused(format!("{}: {}", path.display(), message(&error))),
            false => Refused(message(&error)),
        };
        if let Some(pattern) = &self.one.regex {
            Ok(Some(Constraint::regex(pattern)?))
        } else if let Some(path) = &self.one.schema {
            let schema = Constraint::json_schema_from_str_with(&json_text(path)?, &self.json_options());
            Ok(Some(schema.map_err(|error| in_file(path, error))?))
        } else if let Some(choices) = &self.one.choice {
            Ok(Some(Constraint::choice(choices.iter().cloned())?))
        } else if let Some(path) = &self.one.spec {
            let options = RequestOptions::new().with_json(self.json_options()).with_tags(self.tag_options());
            let constraint = Constraint::from_request_str_with(&json_text(path)?, &options);
            Ok(constraint.map_err(|error| in_file(path, error))?)
        } else if let Some(path) = &self.one.grammar {
            Ok(self.read_grammar()?.transpose().map_err(|error| in_file(path, error))?)
        } else if let Some(path) = &self.one.structural_tag {
            Ok(self.read_structural_tag()?.transpose().map_err(|error| in_file(path, error))?)
        } else {
            Ok(None)
        }
    }

    /// How the JSON of `--schema` is written.
    pub fn json_options(&self) -> JsonOptions {
        self.json.over(JsonOptions::default())
    }

    /// How the JSON in structural tags is written.
    fn tag_options(&self) -> JsonOptions {
        self.json.over(StructuralTag::json_options())
    }

    /// Prints a line to standard error for each keyword that the schemas of `constraint` have
    /// without effect and, with `drafts`, for each keyword that is read as in another draft. With
    /// `json`, a line is a JSON object.
    pub fn warn(&self, constraint: &Constraint, limits: &Limits, drafts: bool, json: bool) {
        // Only unenforceable keywords need states.
        let states = if self.json.ignores_unenforceable() { limits.states } else { 0 };
        let mut printed = HashSet::new();
        for note in constraint.explain(&Limits { states, ..limits.clone() }) {
            let kind = match note.treatment {
                Treatment::Read(_) if drafts => "note",
                Treatment::Ignored(_) | Treatment::Unenforceable(_) => "warning",
                _ => continue,
            };
            let line = match json {
                true => json!({kind: note.to_string()}).to_string(),
                false => format!("{kind}: {note}"),
            };
            // A schema may be read several times.
            if printed.insert(line.clone()) {
                eprintln!("{line}");
            }
        }
    }

    /// Sets the default `whitespace`, for a model trained on one style.
    pub fn or_whitespace(&mut self, whitespace: Whitespace) {
        self.json.or_whitespace(whitespace);
    }

    /// The text of the schema of `--schema`, if given.
    ///
    /// # Errors
    /// An unreadable file.
    pub fn read_schema(&self) -> Result<Option<String>, Failure> {
        self.one.schema.as_deref().map(json_text).transpose()
    }

    /// The file of `--grammar`.
    pub fn grammar(&self) -> Option<&Path> {
        self.one.grammar.as_deref()
    }

    /// The constraint of the grammar in the file of `--grammar`, if given.
    ///
    /// # Errors
    /// An unreadable file; the inner error is a refusal of [`Constraint::grammar`], without the
    /// file's name.
    pub fn read_grammar(&self) -> Result<Option<crate::Result<Constraint>>, Failure> {
        let Some(path) = &self.one.grammar else { return Ok(None) };
        let ReadingArgs { syntax, start } = &self.reading;
        let text = text_or_file(path, is_grammar)?;
        let named = || path.extension()?.to_str()?.parse().ok();
        let syntax = syntax.or_else(named).ok_or_else(|| {
            let name = if is_file(path) { format!("{}: ", path.display()) } else { String::new() };
            format!(
                "{name}name the syntax of the grammar with --syntax, or by the extension .gbnf, .ebnf or .lark of a file"
            )
        })?;
        Ok(Some(match start {
            Some(start) => Constraint::grammar_from(syntax, &text, start),
            None => Constraint::grammar(syntax, &text),
        }))
    }

    /// The file of `--structural-tag`.
    pub fn structural_tag(&self) -> Option<&Path> {
        self.one.structural_tag.as_deref()
    }

    /// The constraint of the structural tag in the file of `--structural-tag`, if given.
    ///
    /// # Errors
    /// An unreadable file or invalid JSON; the inner error is a refusal of
    /// [`Constraint::structural_tag`], without the file's name.
    pub fn read_structural_tag(&self) -> Result<Option<crate::Result<Constraint>>, Failure> {
        let Some(path) = &self.one.structural_tag else { return Ok(None) };
        let tag = StructuralTag::read(&json_text(path)?);
        Ok(Some(tag.and_then(|tag| Constraint::structural_tag_with(&tag, &self.tag_options()))))
    }

    /// Whether a constraint is given.
    pub fn is_some(&self) -> bool {
        let OneOf { regex, schema, choice, spec, grammar, structural_tag } = &self.one;
        let files = [schema, spec, grammar, structural_tag];
        regex.is_some() || choice.is_some() || files.into_iter().any(Option::is_some)
    }
}

/// Whether an argument is the text of a grammar: it has several lines, or defines a rule.
fn is_grammar(text: &str) -> bool {
    text.contains('\n') || text.contains("::=") || text.contains(": ")
}

/// The constraint as given: `regex [0-9]+`, `schema person.json`.
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
