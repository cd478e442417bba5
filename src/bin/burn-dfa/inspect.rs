//! `burn-dfa inspect`: shows the content of an artifact, a file written by `compile`, and whether
//! it is sound.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use burn_dfa::cli::{LimitArgs, message};
use burn_dfa::tokens::Artifact;
use burn_dfa::{CompiledConstraint, Limits};
use clap::Args;
use serde_json::{Value, json};

use crate::args::TokenizerArgs;
use crate::output::{FOUND, Output, Result};

/// Show an artifact, a file written by `burn-dfa compile`: its origin, its tensors, and whether it
/// is sound.
///
/// A sound artifact can safely constrain a model: every index is in bounds, every state can be
/// completed. With a tokenizer, the command also checks whether the artifact fits it. Exit codes:
/// 0, sound; 1, not sound; 2, wrong usage, such as a file that is no safetensors file.
#[derive(Args)]
#[command(after_help = "Examples:
  burn-dfa inspect person.safetensors
  burn-dfa inspect person.safetensors --tokenizer model/ --json")]
pub struct Inspect {
    /// The artifact.
    file: PathBuf,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl Inspect {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        let bytes =
            std::fs::read(&self.file).map_err(|e| format!("cannot read {}: {e}", self.file.display()))?;
        let artifact = Artifact::from_bytes(&bytes).map_err(|e| format!("{}: {e}", self.file.display()))?;
        let limits = self.limits.limits();
        // The file has been read already.
        let limits = Limits { bytes: limits.bytes.max(bytes.len()), ..limits };
        let vocabulary = if self.tokenizer.is_some() { Some(self.tokenizer.read()?) } else { None };
        if let Some(vocabulary) = &vocabulary {
            // Computed once, outside of the measured time.
            vocabulary.fingerprint();
        }
        let started = Instant::now();
        let sound = match &vocabulary {
            Some(vocabulary) => artifact.to_constraint(vocabulary, &limits).map(Some),
            None => artifact.validate(&limits).map(|()| None),
        };
        let milliseconds = started.elapsed().as_secs_f64() * 1e3;
        let code = if sound.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(FOUND) };
        let checked = if vocabulary.is_some() { "with its vocabulary" } else { "without its vocabulary" };
        if out.json {
            let tensors = artifact.tensors().map(|(name, dtype, shape, bytes)| {
                (name.to_owned(), json!({"dtype": dtype, "shape": shape, "bytes": bytes}))
            });
            let metadata: serde_json::Map<String, Value> = artifact
                .all_metadata()
                .iter()
                // Nested JSON texts are shown as JSON.
                .map(|(name, text)| match &name[..] {
                    "constraint" | "limits" => {
                        (name.clone(), serde_json::from_str(text).unwrap_or_else(|_| json!(text)))
                    }
                    _ => (name.clone(), json!(text)),
                })
                .collect();
            let line = json!({
                "file": self.file, "bytes": bytes.len(), "sound": sound.is_ok(), "checked": checked,
                "error": sound.as_ref().err().map(message),
                "metadata": metadata, "tensors": tensors.collect::<serde_json::Map<_, _>>(),
                "least_tokens": sound.ok().flatten().as_ref().map(least), "milliseconds": milliseconds,
            });
            writeln!(out.to, "{line}")?;
            return Ok(code);
        }
        let styles = out.styles;
        writeln!(out.to, "{:<16} {}, {} bytes", "file", self.file.display(), bytes.len())?;
        for (name, text) in artifact.all_metadata() {
            let text: String = shortened(text);
            writeln!(out.to, "{name:<16} {text}")?;
        }
        for (name, dtype, shape, bytes) in artifact.tensors() {
            writeln!(out.to, "tensor           {name}, {dtype} {shape:?}, {bytes} bytes")?;
        }
        match sound {
            Ok(constraint) => {
                if let Some(constraint) = constraint {
                    writeln!(
                        out.to,
                        "{:<16} {} (end of sequence included)",
                        "least tokens",
                        least(&constraint)
                    )?;
                }
                let good = styles.good;
                writeln!(out.to, "{good}{:<16}{good:#} checked {checked} in {milliseconds:.1} ms", "sound")?;
            }
            Err(error) => {
                let bad = styles.bad;
                writeln!(out.to, "{bad}{:<16}{bad:#} checked {checked}: {}", "not sound", message(&error))?;
            }
        }
        Ok(code)
    }
}

fn least(constraint: &CompiledConstraint) -> u32 {
    constraint.tokens_to_end(constraint.start())
}

/// A text cut to a maximum length, with escaped control characters.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 100;
    let plain = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    let shown: String = text.chars().take(LONGEST).map(plain).collect();
    if text.chars().nth(LONGEST).is_some() { format!("{shown}… ({} bytes)", text.len()) } else { shown }
}
