//! `burn-dfa sample`: random texts that match a constraint.

use std::process::ExitCode;

use burn_dfa::{Limits, TokenId, TokenTable, Vocabulary};
use clap::Args;
use serde_json::json;

use crate::args::{ConstraintArgs, TokenizerArgs};
use crate::{Output, Result};

/// Write random texts that match a constraint: along legal tokens, or bytes where no tokenizer is named.
#[derive(Args)]
#[command(after_help = "Examples:
  burn-dfa sample --regex '[a-z]{3}-[0-9]{2}' --count 5
  burn-dfa sample --schema person.json --tokenizer model/ --max-tokens 64 --seed 7")]
pub struct Sample {
    #[command(flatten)]
    constraint: ConstraintArgs,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    /// How many.
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: usize,
    /// The same seed writes the same texts.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Most tokens of a text, the end included; bytes where no tokenizer is named.
    #[arg(long, value_name = "N", default_value_t = 128)]
    max_tokens: u32,
}

impl Sample {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        let vocabulary = if self.tokenizer.is_some() { self.tokenizer.read()? } else { bytes()? };
        let table = TokenTable::compile(&self.constraint.read()?, &vocabulary, &Limits::default())?;
        let least = table.tokens_to_end(table.start());
        if least > self.max_tokens {
            let most = self.max_tokens;
            return Err(
                format!("the shortest text takes {least} tokens, --max-tokens is {most}: raise it").into()
            );
        }
        for tokens in table.samples(&vocabulary, self.seed, self.max_tokens).take(self.count) {
            let text = vocabulary.decode(&tokens);
            let text = String::from_utf8_lossy(&text);
            if out.json {
                let ids =
                    self.tokenizer.is_some().then(|| tokens.iter().map(|token| token.0).collect::<Vec<_>>());
                writeln!(out.to, "{}", json!({"text": text, "token_ids": ids}))?;
            } else {
                writeln!(out.to, "{text}")?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The vocabulary of single bytes, and an end.
fn bytes() -> Result<Vocabulary> {
    let tokens = (0..=u8::MAX).map(|byte| Some([byte])).chain([None]);
    Ok(Vocabulary::from_bytes(tokens)?.with_eos([TokenId(256)])?)
}
