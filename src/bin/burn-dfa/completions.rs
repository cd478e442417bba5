//! `burn-dfa completions`: what a shell needs to complete the command line.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{Cli, Output, Result};

/// Print the completions for a shell.
#[derive(Args)]
#[command(after_help = "Example:
  burn-dfa completions bash > ~/.local/share/bash-completion/completions/burn-dfa")]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "burn-dfa", &mut text);
        out.to.write_all(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}
