//! GPU figures as Markdown: whole models with and without a constraint, and the cost of a mask and
//! of filters relative to a copy of the logits.
//!
//! The command is `cargo bench --features wgpu,fusion --bench gpu -- [models] [rows] [filters]`; the
//! features `cuda,cuda-cpp` and `vulkan` work as well. `BURN_DEVICE` names the device, by default
//! WGPU, CUDA or Vulkan, the first in this build. `scripts/gpu` carries the program to a machine
//! without cargo.
//!
//! - `--seconds N`: begins no measurement after N seconds
//! - `--quick`: the smallest case of each kind
//! - `--list`: prints the names of the parts
//!
//! Each line is printed as soon as it is measured, so an aborted run loses only the current
//! measurement. The device is synchronized in each timed region.

mod clock;
mod constraint;
mod filters;
mod launches;
mod model;
mod models;
#[path = "../published.rs"]
mod published;
mod rows;
mod table;
mod vocabulary;
mod workloads;

use std::process::ExitCode;

use burn::tensor::Device;

use clock::Clock;

/// Measures one part on a device.
type Measure = fn(&Device, &Clock);

/// The parts, by their names on the command line.
const PARTS: [(&str, Measure); 3] =
    [("models", models::measure), ("rows", rows::measure), ("filters", filters::measure)];

fn main() -> ExitCode {
    let mut clock = Clock::default();
    let mut parts = Vec::new();
    let mut is_test = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // Passed by cargo.
            "--bench" => {}
            "--test" => is_test = true,
            "--quick" => clock.is_quick = true,
            "--list" => {
                PARTS.iter().for_each(|(name, _)| println!("{name}: benchmark"));
                return ExitCode::SUCCESS;
            }
            "--seconds" => match arguments.next().and_then(|seconds| seconds.parse().ok()) {
                Some(seconds) => clock.max_seconds = Some(seconds),
                None => return refuse("--seconds takes a number"),
            },
            name => match PARTS.iter().find(|(part, _)| *part == name) {
                Some(part) => parts.push(*part),
                None => return refuse(&format!("{name} is none of `models`, `rows` and `filters`")),
            },
        }
    }
    clock.is_quick |= is_test;
    let Some(device) = device(is_test) else {
        println!(
            "skipped: no backend for a GPU in this build: add `--features wgpu`, or set BURN_DEVICE=flex"
        );
        return ExitCode::SUCCESS;
    };
    println!("`{device:?}`{}\n", table::name_of(&device));
    for (_, measure) in if parts.is_empty() { PARTS.to_vec() } else { parts } {
        measure(&device, &clock);
    }
    ExitCode::SUCCESS
}

/// The device named by `BURN_DEVICE`; without it Flex for a test, else the GPU.
fn device(is_test: bool) -> Option<Device> {
    if std::env::var_os("BURN_DEVICE").is_some() {
        Some(Device::default())
    } else if is_test {
        Some(Device::flex())
    } else {
        gpu()
    }
}

/// A GPU by the first backend of this build.
#[cfg(feature = "wgpu")]
fn gpu() -> Option<Device> {
    Some(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice))
}

#[cfg(all(feature = "cuda", not(feature = "wgpu")))]
fn gpu() -> Option<Device> {
    Some(Device::cuda(0))
}

#[cfg(all(feature = "vulkan", not(any(feature = "wgpu", feature = "cuda"))))]
fn gpu() -> Option<Device> {
    Some(Device::vulkan(burn::tensor::DeviceKind::DefaultDevice))
}

#[cfg(not(any(feature = "wgpu", feature = "cuda", feature = "vulkan")))]
fn gpu() -> Option<Device> {
    None
}

fn refuse(what: &str) -> ExitCode {
    eprintln!("{what}; usage: gpu [models] [rows] [filters] [--seconds N] [--quick] [--list]");
    ExitCode::from(2)
}
