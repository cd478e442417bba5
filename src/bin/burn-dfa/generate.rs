//! `burn-dfa generate`: runs the program that has models.

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;

use crate::output::{Output, Result};

const PROGRAM: &str = "burn-dfa-generate";

/// Generate text with a model folder, under a constraint; `burn-dfa generate --help` tells more.
///
/// This runs the program burn-dfa-generate, beside this one or in PATH.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Generate {
    /// What burn-dfa-generate takes.
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

impl Generate {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        // In front of the others, `--json` is taken for this program's own.
        let json = out.json.then_some("--json");
        let mut command = Command::new(beside().unwrap_or_else(|| PROGRAM.into()));
        let status = command.args(json).args(&self.args).status().map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!(
                "there is no {PROGRAM}, which has the models, beside this program or in PATH: install it with \
                 `cargo install --path models/decoder --features cli`, or build it with \
                 `cargo build --release -p burn-dfa-decoder --features cli`"
            ),
            _ => format!("cannot run {PROGRAM}: {error}"),
        })?;
        // A program that a signal ended has no code.
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Ok(ExitCode::from(code.unwrap_or(2)))
    }
}

/// The program in the folder of this one.
fn beside() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name(format!("{PROGRAM}{EXE_SUFFIX}"));
    path.exists().then_some(path)
}
