//! `burn-dfa generate`: runs the program with the models.

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;

use crate::output::{FOUND, Output, Result};

const PROGRAM: &str = "burn-dfa-generate";

/// Generate text with a model folder or a GGUF file, under a constraint; see `burn-dfa generate
/// --help`.
///
/// The command runs burn-dfa-generate, from the folder of this program or from PATH.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Generate {
    /// The arguments of burn-dfa-generate.
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

impl Generate {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        // This program parses a leading `--json` itself, so pass it on.
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
        // A program ended by a signal has no code.
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Ok(ExitCode::from(code.unwrap_or(FOUND)))
    }
}

/// The program in the folder of this one.
fn beside() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name(format!("{PROGRAM}{EXE_SUFFIX}"));
    path.exists().then_some(path)
}
