//! The real model, whose file `BURN_DFA_GGUF` names; `scripts/smollm2` downloads it.

use burn_dfa_testing::{input, python, skip};

use super::*;

const TEXT: &str = "The capital of France is Paris. Water boils at 100 degrees Celsius at sea level, and freezes \
    at zero. In 1969, two people walked on the Moon for the first time; they stayed for less than a day.";

/// Reads tokens from standard input, and prints the most probable next token after each prefix.
const LLAMA_CPP: &str = r#"
import json, sys
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx = 512
params.n_parallel = 1
params.verbosity = 0
server = xllamacpp.Server(params)
tokens = json.load(sys.stdin)
for length in range(1, len(tokens) + 1):
    request = {"prompt": tokens[:length], "max_tokens": 1, "temperature": 0, "logprobs": 1}
    choice = server.handle_completions(request)["choices"][0]
    print(choice["logprobs"]["content"][0]["top_logprobs"][0]["id"])
"#;

/// The file; without one, the test is skipped.
fn file() -> Option<PathBuf> {
    let path = std::env::var_os("BURN_DFA_GGUF").map(PathBuf::from);
    if path.is_none() {
        skip::skipped("BURN_DFA_GGUF names no file");
    }
    path
}

fn encode(pretrained: &Pretrained, text: &str) -> Vec<i64> {
    pretrained.encode(text).unwrap().iter().map(|token| i64::from(token.0)).collect()
}

/// The most probable next token after each prefix of the tokens.
fn next_tokens(model: &Decoder, tokens: &[i64]) -> Vec<i64> {
    let tokens = Tensor::<1, Int>::from_ints(tokens, &model.device()).unsqueeze::<2>();
    model.forward(tokens).argmax(2).try_into_vec_as::<i64>().unwrap()
}

#[track_caller]
fn assert_nearly_all_agree(found: &[i64], expected: &[i64]) {
    assert_eq!(found.len(), expected.len());
    let agreeing = found.iter().zip(expected).filter(|(found, expected)| found == expected).count();
    println!("{agreeing} of {} next tokens agree", found.len());
    assert!(agreeing * 20 >= found.len() * 19, "{agreeing} of {}", found.len());
}

/// The next token in blocks is that of 32-bit floats after nearly all prefixes of a text.
#[test]
fn a_real_model_in_blocks() {
    let Some(path) = file() else { return };
    let device = Device::flex();
    let blocks = Pretrained::load(&path, None, &device).unwrap();
    let floats = Decoder::load(&path, FloatDType::F32, &device).unwrap();
    let tokens = encode(&blocks, TEXT);
    assert_nearly_all_agree(&next_tokens(blocks.model(), &tokens), &next_tokens(&floats, &tokens));
}

/// The next token in blocks is that of llama.cpp, from the same file, after nearly all prefixes of
/// a text.
#[test]
fn a_real_model_in_llama_cpp() {
    let Some(path) = file() else { return };
    let Some(mut python) = python::with_optional("xllamacpp") else { return };
    let blocks = Pretrained::load(&path, None, &Device::flex()).unwrap();
    let tokens = encode(&blocks, TEXT);
    let output = input::fed(python.args(["-c", LLAMA_CPP]).arg(&path), serde_json::to_vec(&tokens).unwrap());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let expected: Vec<i64> = printed.lines().map(|token| token.parse().unwrap()).collect();
    assert_nearly_all_agree(&next_tokens(blocks.model(), &tokens), &expected);
}

/// The same numbers in three forms give the same tokens: blocks that are dequantized when they are
/// loaded, and 32-bit floats in a GGUF file and in a folder, which `tools/dequantize.py` writes.
#[test]
fn a_real_model_in_floats() {
    let Some(path) = file() else { return };
    let Some(mut python) = python::with("gguf, numpy, safetensors") else { return };
    let folder = scratch("floats");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/dequantize.py");
    let output = python.arg(script).arg(&path).arg(&folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let device = Device::flex();
    let dequantized = Pretrained::load(&path, FloatDType::F32, &device).unwrap();
    let prompt = encode(&dequantized, "The capital of France is");
    let expected = greedy(dequantized.model(), &prompt);
    drop(dequantized);
    for stored in [folder.join("f32.gguf"), folder.clone()] {
        let floats = Decoder::load(&stored, None, &device).unwrap();
        assert_eq!(floats.dtype(), DType::F32);
        assert_eq!(greedy(&floats, &prompt), expected, "{}", stored.display());
    }
    // A gigabyte.
    std::fs::remove_dir_all(&folder).unwrap();
}
