//! `burn-dfa check`: checks whether texts match a constraint, and shows the first mismatch and the
//! possible continuations.

mod mismatch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use burn_dfa::cli::{LimitArgs, message, text};
use burn_dfa::tokens::RowPosition;
use burn_dfa::{CompiledConstraint, Constraint, Limits, TokenId, Vocabulary};
use clap::Args;
use serde_json::json;

use crate::args::{ConstraintArgs, TokenizerArgs};
use crate::output::{FOUND, Output, Result, Styles};
use burn_dfa::vocabulary::cutter::Cutter;
use mismatch::{Mismatch, mismatch};

/// Check whether texts match a constraint. At the first mismatch, show the possible continuations:
/// as characters, as bytes and, with a tokenizer, as tokens. JSON matches with any white space,
/// unless `--whitespace` names a style.
///
/// Exit codes: 0, all texts match; 1, a text does not match, or the constraint is refused; 2, wrong
/// usage, such as an unreadable file.
#[derive(Args)]
#[command(after_help = "Examples:
  burn-dfa check --schema person.json '{\"name\": \"Ada\", \"age\": 36}'
  burn-dfa check --schema person.json --value --file answer.json
  burn-dfa check --schema person.json --whitespace compact '{\"name\":\"Ada\",\"age\":36}'
  burn-dfa check --grammar c.gbnf --syntax gbnf 'int main() { return 0; }'
  burn-dfa check --regex '\\d{4}-\\d{2}-\\d{2}' --tokenizer tokenizer.json 2026-1-01")]
pub struct Check {
    #[command(flatten)]
    constraint: ConstraintArgs,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    /// The texts to check.
    #[arg(required_unless_present = "file")]
    texts: Vec<String>,
    /// A file with one more text, `-` for the standard input. A leading byte order mark and a final
    /// line feed are ignored.
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// The texts are JSON values, with any white space and any order of properties: each value is
    /// written in the schema's order before the check.
    #[arg(long)]
    value: bool,
    #[command(flatten)]
    limits: LimitArgs,
}

/// The constraint over tokens.
struct Tokens {
    vocabulary: Vocabulary,
    compiled: CompiledConstraint,
    cutter: Cutter,
}

impl Check {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        // A value is written in the style of the schema.
        let constraint =
            if self.value { self.constraint.read()? } else { self.constraint.read_with_any_whitespace()? };
        let limits = self.limits.limits();
        self.constraint.warn(&constraint, &limits, true, out.json);
        let automaton = constraint.to_automaton(&limits)?;
        let automaton = automaton.ok_or("the constraint is on tokens, not on text")?;
        let tokens = match self.tokenizer.is_some() {
            true => Some(Tokens::new(&constraint, self.tokenizer.read()?, &limits)?),
            false => None,
        };
        let mut all = true;
        for text in self.texts.iter().cloned().map(Ok).chain(self.file.iter().map(|path| read(path))) {
            let text = &if self.value { written(&constraint, &text?, &limits)? } else { text? };
            let mismatch = mismatch(&automaton, text);
            all &= mismatch.is_none();
            let next = match (&mismatch, &tokens) {
                (Some(mismatch), Some(tokens)) => tokens.after(&text[..mismatch.byte]),
                _ => None,
            };
            if out.json {
                writeln!(out.to, "{}", line(text, mismatch.as_ref(), next.as_deref()))?;
            } else {
                print(out, text, mismatch.as_ref(), next.as_deref())?;
            }
        }
        Ok(if all { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
    }
}

/// The text of a file.
fn read(path: &Path) -> Result<String> {
    let mut text = text(path)?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

/// The text of the value of `text`, as written by the schema.
fn written(constraint: &Constraint, text: &str, limits: &Limits) -> Result<String> {
    let written = constraint.json_text_from_str(text, limits);
    // The advice on a limit names command line options.
    let written = written.map_err(|error| format!("{text:?}: {}", message(&error)))?;
    Ok(written
        .map(|(text, _)| text)
        .ok_or("--value is for JSON schemas: give --schema, or leave --value out")?)
}

/// A possible token: its id and its text, `None` for an end of sequence.
type Next = (u32, Option<String>);

impl Tokens {
    fn new(constraint: &Constraint, vocabulary: Vocabulary, limits: &Limits) -> Result<Self> {
        let compiled = CompiledConstraint::compile(constraint, &vocabulary, limits)?;
        Ok(Self { cutter: Cutter::new(&vocabulary), vocabulary, compiled })
    }

    /// The possible tokens after `text`; `None` if the vocabulary cannot spell it.
    fn after(&self, text: &str) -> Option<Vec<Next>> {
        let tokens = self.cutter.cuts(text).into_iter().flatten().next()?;
        let start = RowPosition::unlimited(self.compiled.start());
        let position = tokens.iter().fold(start, |position, &token| self.compiled.after(&position, token));
        let readable = |bytes: &[u8]| match std::str::from_utf8(bytes) {
            Ok(text) => format!("{text:?}"),
            Err(_) => format!("\"{}\"", bytes.escape_ascii()),
        };
        let ids = (0..self.vocabulary.len() as u32).map(TokenId);
        let legal = ids.filter(|&id| self.compiled.can_end(&self.compiled.after(&position, id)));
        Some(legal.map(|id| (id.0, self.vocabulary.bytes(id).map(readable))).collect())
    }
}

/// Maximum number of shown tokens.
const SHOWN: usize = 8;

fn print(out: &mut Output, text: &str, mismatch: Option<&Mismatch>, next: Option<&[Next]>) -> Result<()> {
    let Styles { good, bad, strong, faint } = out.styles;
    let Some(mismatch) = mismatch else { return Ok(writeln!(out.to, "{good}match{good:#}    {text}")?) };
    let (right, rest) = text.split_at(mismatch.byte);
    writeln!(out.to, "{bad}no match{bad:#} {right}{bad}{rest}{bad:#}")?;
    let found = match mismatch.found {
        Some(found) => format!("{found:?} cannot come here"),
        None => "the text ends here, and more has to come".to_owned(),
    };
    writeln!(out.to, "  at byte {}, character {}: {found}", mismatch.byte, mismatch.character)?;
    let end = mismatch.may_end.then_some("the end");
    let could: Vec<&str> = mismatch.expected.as_deref().into_iter().chain(end).collect();
    if !could.is_empty() {
        writeln!(out.to, "  could come: {strong}{}{strong:#}", could.join(", or "))?;
    }
    if let Some(bytes) = &mismatch.bytes {
        writeln!(out.to, "  as bytes:   {bytes}")?;
    }
    if let Some(next) = next {
        let shown = next.iter().take(SHOWN).map(|(id, text)| match text {
            Some(text) => format!("{text} ({id})"),
            None => format!("end of sequence ({id})"),
        });
        let shown: Vec<String> = shown.collect();
        let more = match next.len() {
            len if len > SHOWN => format!(", {faint}… {len} in all{faint:#}"),
            _ => String::new(),
        };
        writeln!(out.to, "  as tokens:  {}{more}", shown.join(", "))?;
    }
    Ok(())
}

fn line(text: &str, mismatch: Option<&Mismatch>, next: Option<&[Next]>) -> serde_json::Value {
    let Some(mismatch) = mismatch else { return json!({"text": text, "matches": true}) };
    let tokens = next.map(|next| {
        let tokens = next.iter().take(SHOWN).map(|(id, text)| json!({"id": id, "text": text}));
        tokens.collect::<Vec<_>>()
    });
    json!({
        "text": text,
        "matches": false,
        "byte": mismatch.byte,
        "character": mismatch.character,
        "found": mismatch.found,
        "expected": mismatch.expected,
        "bytes": mismatch.bytes,
        "may_end": mismatch.may_end,
        "tokens": tokens,
        "token_count": next.map(<[Next]>::len),
    })
}
