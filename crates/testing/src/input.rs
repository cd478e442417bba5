//! Runs a program with given standard input.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Runs a command with these bytes as its standard input.
pub fn fed(command: &mut Command, input: Vec<u8>) -> Output {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A separate thread writes, so that writing and reading cannot block each other.
    let writer = std::thread::spawn(move || stdin.write_all(&input).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}
