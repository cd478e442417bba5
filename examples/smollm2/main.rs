//! A Llama-family model writes text that matches a constraint.
//!
//! Without arguments, the embedded model answers a few prompts unconstrained and constrained, side by side:
//!
//!     cargo run --release --example smollm2
//!
//! With arguments it runs a model of yours on a prompt of yours; `--help` lists them.

mod args;
mod demo;
mod session;

use std::process::ExitCode;

use anstream::eprintln;
use anstyle::{AnsiColor, Style};
use clap::Parser;

const RED: Style = AnsiColor::Red.on_default().bold();

fn main() -> ExitCode {
    let args = args::Args::parse();
    let result = if args.is_demo() { demo::run(&args) } else { session::run(&args) };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{RED}error:{RED:#} {error}");
            ExitCode::from(2)
        }
    }
}
