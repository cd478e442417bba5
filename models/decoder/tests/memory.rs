//! The memory of loading a model and of reading a prompt, measured in separate processes.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use burn::tensor::{Device, FloatDType, Int, Tensor};
use burn_dfa::generation::CausalLm;
use burn_dfa_decoder::{Decoder, DecoderConfig};

/// Marks a measured child process, with its task.
const CHILD: &str = "BURN_DFA_MEASURED";

/// Peak memory of this process, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    1024 * line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap()
}

/// Runs one of these tests in a child process with a task; returns the two numbers that it prints.
fn measure(test: &str, task: &str) -> [f64; 2] {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]).env(CHILD, task);
    let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let measured = output.split_once("measured ").expect(&output).1;
    let mut numbers = measured.split_whitespace().map_while(|number| number.parse::<f64>().ok());
    [numbers.next().unwrap(), numbers.next().unwrap()]
}

/// Loads the model, decodes a token, and prints the size of its weights and the growth of the peak.
/// The task is the dtype and the folder.
fn load(task: &str) {
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
        return load(&task);
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("memory");
    let config = DecoderConfig::new(24_000, 1024, 4096, 2, 8);
    config.init(&Device::flex()).save(&folder, FloatDType::BF16).unwrap();
    for dtype in ["stored", "f16", "f32"] {
        let task = format!("{dtype} {}", folder.display());
        let [weights, taken] = measure("loading_takes_little_more_than_the_weights", &task);
        println!("{dtype}: {:.0} MB of weights, {:.3} of which is the peak", weights / 1e6, taken / weights);
        assert!(taken <= 1.15 * weights, "{dtype}: {taken} bytes for weights of {weights}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Reads a prompt and a prompt four times as long, and prints the growth of the peak after each.
fn read_prompts() {
    let device = Device::flex();
    let config = DecoderConfig { max_position_embeddings: 4096, ..DecoderConfig::new(64, 64, 64, 1, 8) };
    let (model, before) = (config.init(&device), peak());
    let [short, long] = [1024, 4096].map(|length| {
        let prompt = Tensor::<2, Int>::ones([1, length], &device);
        model.prefill(prompt, Tensor::zeros([1], &device), length);
        peak() - before
    });
    println!("measured {short} {long} .");
}

/// The scores of attention of a whole prompt would take memory in proportion to the square of its
/// length.
#[test]
fn a_prompt_takes_memory_in_proportion_to_its_length() {
    if std::env::var_os(CHILD).is_some() {
        return read_prompts();
    }
    let [short, long] = measure("a_prompt_takes_memory_in_proportion_to_its_length", "");
    println!("{:.0} MB, and {:.0} MB with four times the tokens", short / 1e6, long / 1e6);
    assert!(long <= 8.0 * short, "{short} bytes, and {long} bytes with four times the tokens");
}
