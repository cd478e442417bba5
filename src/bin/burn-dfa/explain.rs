//! `burn-dfa explain`: what a JSON schema has ignored or bounded.

use std::process::ExitCode;

use burn_dfa::constraint::Treatment;
use clap::Args;
use serde_json::json;

use crate::args::ConstraintArgs;
use crate::{Output, Result};

/// Say which keywords of a JSON schema are not honoured to the letter: ignored, or bounded. All others are exact.
///
/// A schema that cannot be honoured is an error, which names the place and the way out.
#[derive(Args)]
#[command(after_help = "Examples:
  burn-dfa explain --schema person.json
  burn-dfa explain --schema person.json --json")]
pub struct Explain {
    #[command(flatten)]
    constraint: ConstraintArgs,
}

impl Explain {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        let constraint = self.constraint.read()?;
        let notes = constraint.explain();
        if notes.is_empty() && !out.json {
            writeln!(out.to, "exact: every keyword is honoured to the letter")?;
        }
        for note in notes {
            if out.json {
                let (treatment, reason) = match &note.treatment {
                    Treatment::Bounded(reason) => ("bounded", reason),
                    Treatment::Ignored(reason) => ("ignored", reason),
                    _ => return Err("a treatment that this tool does not know".into()),
                };
                let line = json!({"pointer": note.pointer, "treatment": treatment, "reason": reason});
                writeln!(out.to, "{line}")?;
            } else {
                writeln!(out.to, "{note}")?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
