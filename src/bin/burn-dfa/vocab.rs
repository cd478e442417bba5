//! `burn-dfa vocab`: the tokens of a tokenizer, as the library reads them.

use std::fmt::Write;
use std::process::ExitCode;

use burn_dfa::TokenId;
use burn_dfa::vocabulary::TokenKind;
use clap::Args;
use serde_json::json;

use crate::args::TokenizerArgs;
use crate::output::{Output, Result};

/// Print every token of a tokenizer: id, kind and bytes in hexadecimal, between tabs.
///
/// Kinds are N, normal text; A, added text; S, special, with the bytes of its name; and U, unused.
#[derive(Args)]
#[command(mut_arg("tokenizer", |arg| arg.required(true)))]
#[command(after_help = "Example:
  burn-dfa vocab --tokenizer tokenizer.json | grep -P '\\tS\\t'")]
pub struct Vocab {
    #[command(flatten)]
    tokenizer: TokenizerArgs,
}

impl Vocab {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        let vocabulary = self.tokenizer.read_any()?;
        for id in (0..vocabulary.len() as u32).map(TokenId) {
            let kind = match vocabulary.kind(id) {
                TokenKind::Normal => 'N',
                TokenKind::Added => 'A',
                TokenKind::Special => 'S',
                TokenKind::Unused => 'U',
            };
            let hex = hex(vocabulary.content(id).unwrap_or_default());
            if out.json {
                writeln!(out.to, "{}", json!({"id": id.0, "kind": kind, "hex": hex}))?;
            } else {
                writeln!(out.to, "{id}\t{kind}\t{hex}")?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut hex, byte| {
        let _never = write!(hex, "{byte:02x}");
        hex
    })
}
