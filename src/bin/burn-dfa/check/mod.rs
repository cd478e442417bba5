//! `burn-dfa check`: whether texts match a constraint; if not, where they stop doing so, and what could come there.

mod place;

use std::process::ExitCode;

use burn_dfa::{Constraint, Limits, TokenTable, Vocabulary};
use clap::Args;
use serde_json::json;

use crate::args::{ConstraintArgs, TokenizerArgs};
use crate::cutter::Cutter;
use crate::{NO_MATCH, Output, Result};
use place::{Place, mismatch};

/// Check whether texts match a constraint, and where one does not, show what could come there.
#[derive(Args)]
#[command(after_help = "Examples:
  burn-dfa check --schema person.json '{\"name\":\"Ada\"}'
  burn-dfa check --regex '\\d{4}-\\d{2}-\\d{2}' --tokenizer tokenizer.json 2026-1-01")]
pub struct Check {
    #[command(flatten)]
    constraint: ConstraintArgs,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    /// The texts.
    #[arg(required = true)]
    texts: Vec<String>,
}

/// The constraint over tokens.
struct Tokens {
    vocabulary: Vocabulary,
    table: TokenTable,
    cutter: Cutter,
}

impl Check {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        let constraint = self.constraint.read()?;
        let dfa = constraint.to_byte_dfa(&Limits::default())?;
        let dfa = dfa.ok_or("the constraint is on tokens, not on text")?;
        let tokens = match self.tokenizer.is_some() {
            true => Some(Tokens::new(&constraint, self.tokenizer.read()?)?),
            false => None,
        };
        let mut all = true;
        for text in &self.texts {
            let place = mismatch(&dfa, text);
            all &= place.is_none();
            let next = match (&place, &tokens) {
                (Some(place), Some(tokens)) => tokens.after(&text[..place.byte]),
                _ => None,
            };
            if out.json {
                writeln!(out.to, "{}", line(text, place.as_ref(), next.as_deref()))?;
            } else {
                print(out, text, place.as_ref(), next.as_deref())?;
            }
        }
        Ok(if all { ExitCode::SUCCESS } else { ExitCode::from(NO_MATCH) })
    }
}

/// A token that could come: its id and its text, `None` for an end of sequence.
type Next = (u32, Option<String>);

impl Tokens {
    fn new(constraint: &Constraint, vocabulary: Vocabulary) -> Result<Self> {
        let table = TokenTable::compile(constraint, &vocabulary, &Limits::default())?;
        Ok(Self { cutter: Cutter::new(&vocabulary), vocabulary, table })
    }

    /// What could come after `text`; `None` where the vocabulary cannot spell it.
    fn after(&self, text: &str) -> Option<Vec<Next>> {
        let tokens = self.cutter.ways(text).next()?;
        let state = tokens.iter().fold(self.table.start(), |state, &token| self.table.next(state, token));
        let readable = |bytes: &[u8]| match std::str::from_utf8(bytes) {
            Ok(text) => format!("{text:?}"),
            Err(_) => format!("\"{}\"", bytes.escape_ascii()),
        };
        Some(self.table.allowed(state).map(|id| (id.0, self.vocabulary.bytes(id).map(readable))).collect())
    }
}

/// Most tokens that are shown.
const SHOWN: usize = 8;

fn print(out: &mut Output, text: &str, place: Option<&Place>, next: Option<&[Next]>) -> Result<()> {
    let Some(place) = place else { return Ok(writeln!(out.to, "match    {text}")?) };
    writeln!(out.to, "no match {text}")?;
    let found = match place.found {
        Some(found) => format!("{found:?} cannot come here"),
        None => "the text ends here, and more has to come".to_owned(),
    };
    writeln!(out.to, "  at byte {}, character {}: {found}", place.byte, place.character)?;
    let end = place.may_end.then_some("the end");
    let could: Vec<&str> = place.expected.as_deref().into_iter().chain(end).collect();
    writeln!(out.to, "  could come: {}", could.join(", or "))?;
    if let Some(next) = next {
        let shown = next.iter().take(SHOWN).map(|(id, text)| match text {
            Some(text) => format!("{text} ({id})"),
            None => format!("end of sequence ({id})"),
        });
        let shown: Vec<String> = shown.collect();
        let more = if next.len() > SHOWN { format!(", … {} in all", next.len()) } else { String::new() };
        writeln!(out.to, "  as tokens:  {}{more}", shown.join(", "))?;
    }
    Ok(())
}

fn line(text: &str, place: Option<&Place>, next: Option<&[Next]>) -> serde_json::Value {
    let Some(place) = place else { return json!({"text": text, "matches": true}) };
    let tokens = next.map(|next| {
        let tokens = next.iter().take(SHOWN).map(|(id, text)| json!({"id": id, "text": text}));
        tokens.collect::<Vec<_>>()
    });
    json!({
        "text": text,
        "matches": false,
        "byte": place.byte,
        "character": place.character,
        "expected": place.expected,
        "may_end": place.may_end,
        "tokens": tokens,
        "token_count": next.map(<[Next]>::len),
    })
}
