//! Folders of random weights, written by `tools/random_model.py`, load and generate under a
//! constraint.

use std::path::Path;

use burn::tensor::FloatDType;
use burn_dfa::prelude::*;
use burn_dfa_decoder::{Generator, Pretrained};
use burn_dfa_testing::python;

#[test]
fn random_folders_load_and_generate() {
    if python::with("numpy").is_none() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/random_model.py");
    for (number, family) in
        ["llama", "mistral", "qwen2", "qwen3", "smollm3", "gemma3"].into_iter().enumerate()
    {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("random-{family}"));
        let dtype = ["bf16", "f16", "f32"][number % 3];
        let mut python = python::with("numpy").unwrap();
        python.arg(&script).arg(format!("{family}-tiny")).arg(&folder).args(["--dtype", dtype]);
        let output = python.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

        let pretrained = Pretrained::load(&folder, FloatDType::F32, &Device::flex()).unwrap();
        let color = Constraint::choice(["red", "blue"]).unwrap();
        let generator = Generator::new(pretrained).with_max_new_tokens(16);
        let text = generator.generate("Name a color.", &color).unwrap();
        assert!(["red", "blue"].contains(&text.as_str()), "{family}: {text}");
    }
}
