//! `burn-dfa check`: whether texts match a constraint.

use std::process::ExitCode;

use burn_dfa::Limits;
use clap::Args;

use crate::args::ConstraintArgs;
use crate::{NO_MATCH, Result};

/// Check whether texts match a constraint.
///
/// burn-dfa check --schema person.json '{"name":"Ada"}'
#[derive(Args)]
pub struct Check {
    #[command(flatten)]
    constraint: ConstraintArgs,
    /// The texts.
    #[arg(required = true)]
    texts: Vec<String>,
}

impl Check {
    pub fn run(&self) -> Result<ExitCode> {
        let dfa = self.constraint.read()?.to_byte_dfa(&Limits::default())?;
        let dfa = dfa.ok_or("the constraint is on tokens, not on text")?;
        let mut all = true;
        for text in &self.texts {
            let matches = dfa.matches(text.as_bytes());
            println!("{} {text}", if matches { "match   " } else { "no match" });
            all &= matches;
        }
        Ok(if all { ExitCode::SUCCESS } else { ExitCode::from(NO_MATCH) })
    }
}
