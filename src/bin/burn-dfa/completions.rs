//! `burn-dfa completions`: prints completion scripts for shells.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::output::{Output, Result};

/// Print the completion script of a shell.
#[derive(Args)]
#[command(after_help = "Example:
  burn-dfa completions bash > ~/.local/share/bash-completion/completions/burn-dfa")]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub fn run(&self, mut command: clap::Command, out: &mut Output) -> Result<ExitCode> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut command, "burn-dfa", &mut text);
        out.to.write_all(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}
