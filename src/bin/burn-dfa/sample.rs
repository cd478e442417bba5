//! `burn-dfa sample`: random texts that match a constraint.

use std::process::ExitCode;

use burn_dfa::cli::CompileArgs;
use burn_dfa::{TokenId, Vocabulary};
use clap::Args;
use serde_json::json;

use crate::args::{ConstraintArgs, TokenizerArgs};
use crate::output::{Output, Result};

/// Print random texts that match a constraint, drawn token by token, or byte by byte without a
/// tokenizer.
#[derive(Args)]
#[command(after_help = "Examples:
  burn-dfa sample --regex '[a-z]{3}-[0-9]{2}' --count 5
  burn-dfa sample --grammar chess.gbnf --syntax gbnf --tokenizer model/
  burn-dfa sample --schema person.json --tokenizer model/ --max-tokens 64 --seed 7")]
pub struct Sample {
    #[command(flatten)]
    constraint: ConstraintArgs,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    #[command(flatten)]
    compile: CompileArgs,
    /// Number of texts.
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: usize,
    /// The seed; the same seed writes the same texts.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Maximum number of tokens of a text, end of sequence included; without a tokenizer, of bytes
    /// and the end.
    #[arg(long, value_name = "N", default_value_t = 128)]
    max_tokens: u32,
}

impl Sample {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        let vocabulary = if self.tokenizer.is_some() { self.tokenizer.read()? } else { bytes()? };
        let constraint = self.constraint.read()?;
        self.constraint.warn(&constraint, &self.compile.limits(), false, out.json);
        let compiled = self.compile.compile(&constraint, &vocabulary)?;
        let least = compiled.tokens_to_end(compiled.start());
        if least > self.max_tokens {
            return Err(format!(
                "the shortest text takes {least} tokens (end of sequence included): raise --max-tokens to {least} at least"
            )
            .into());
        }
        for tokens in compiled.samples(&vocabulary, self.seed, self.max_tokens).take(self.count) {
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

/// A token for each byte, and an end of sequence.
fn bytes() -> Result<Vocabulary> {
    let tokens = (0..=u8::MAX).map(|byte| Some([byte])).chain([None]);
    Ok(Vocabulary::from_bytes(tokens)?.with_eos([TokenId(256)])?)
}
