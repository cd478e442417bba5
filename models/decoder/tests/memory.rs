//! The memory of loading a model, measured in separate processes: at most 1.15 times its weights.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use burn::tensor::{Device, FloatDType, Int, Tensor};
use burn_dfa::generation::CausalLm;
use burn_dfa_decoder::{Decoder, DecoderConfig};

/// Marks the measured child process: the folder and the dtype.
const CHILD: &str = "BURN_DFA_LOADED";
const TEST: &str = "loading_takes_little_more_than_the_weights";

/// Peak memory of this process, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    1024 * line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap()
}

/// Loads the model, decodes a token, and prints the size of its weights and the growth of the peak.
fn child(task: &str) {
    let (dtype, folder) = task.split_once(' ').unwrap();
    let dtype = match dtype {
        "stored" => None,
        "f16" => Some(FloatDType::F16),
        _ => Some(FloatDType::F32),
    };
    let (before, device) = (peak(), Device::flex());
    let mut last = None;
    let model = Decoder::load_with_progress(folder, dtype, &device, |progress| {
        assert!(last.is_none_or(|before| progress.bytes > before) && progress.bytes <= progress.total);
        last = Some(progress.bytes);
    });
    let model = model.unwrap();
    let bytes: usize = model.dtype().size() * burn::module::Module::num_params(&model);
    assert_eq!(last, Some(bytes as u64));
    let (_, mut cache) =
        model.prefill(Tensor::<2, Int>::from_ints([[1, 2]], &device), Tensor::zeros([1], &device), 8);
    model.step(Tensor::from_ints([3], &device), &mut cache);
    println!("measured {bytes} {} .", peak() - before);
}

#[test]
fn loading_takes_little_more_than_the_weights() {
    if let Ok(task) = std::env::var(CHILD) {
        return child(&task);
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("memory");
    let config = DecoderConfig::new(24_000, 1024, 4096, 2, 8);
    config.init(&Device::flex()).save(&folder, FloatDType::BF16).unwrap();
    for dtype in ["stored", "f16", "f32"] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([TEST, "--exact", "--nocapture"]).env(CHILD, format!("{dtype} {}", folder.display()));
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let measured = output.split_once("measured ").expect(&output).1;
        let mut numbers = measured.split_whitespace().map_while(|number| number.parse::<f64>().ok());
        let (weights, taken) = (numbers.next().unwrap(), numbers.next().unwrap());
        println!("{dtype}: {:.0} MB of weights, {:.3} of which is the peak", weights / 1e6, taken / weights);
        assert!(taken <= 1.15 * weights, "{dtype}: {taken} bytes for weights of {weights}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
