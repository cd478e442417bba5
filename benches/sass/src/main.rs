//! Writes the CUDA sources of the kernels of a step and of filters, without a GPU and without Burn.
//!
//! `burn-dfa-sass FOLDER` writes a file for each case, as CubeCL gives it to NVRTC on a device of
//! compute capability 9.0; `scripts/gpu sass` compiles them.

mod step;
mod tensor;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: burn-dfa-sass FOLDER");
        return ExitCode::from(2);
    };
    match step::cases::write(&folder) {
        Ok(count) => println!("{count} sources in {}", folder.display()),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
