//! The main figures in comparison with the peers. Runs the member `peers`, whose last lines are
//! `name=value` pairs.
//!
//! A separate program, so that this crate does not depend on the peers.

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "--test") {
        println!("skipped: the comparison with the peers, which is a program to be built of its own");
        return ExitCode::SUCCESS;
    }
    let mut peers = Command::new(env!("CARGO"));
    peers.args(["run", "--release", "--package", "peers"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    match peers.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(status) => {
            eprintln!("the comparison with the peers failed: {status}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("cannot run {peers:?}: {error}");
            ExitCode::FAILURE
        }
    }
}
