//! Truncated and changed files are refused with an error that names the place.

use super::*;
use burn_dfa_testing::data;

#[test]
fn refusals_name_the_place() {
    let tensor = |shape: &[usize], kind, bytes: usize| {
        Writer::new("llama").with_blocks("t", shape, kind, vec![0; bytes])
    };
    let bytes = |at: usize, with: &[u8]| {
        let mut bytes = small().to_bytes();
        bytes[at..at + with.len()].copy_from_slice(with);
        bytes
    };
    let table: [(Vec<u8>, &str); 16] = [
        (b"GGUX\x03\0\0\0".to_vec(), "no GGUF file"),
        (b"PK".to_vec(), "ends early"),
        (bytes(4, &1u32.to_le_bytes()), "version is 1"),
        (bytes(4, &3u32.to_be_bytes()), "big-endian"),
        (bytes(8, &u64::MAX.to_le_bytes()), "byte"),
        (bytes(16, &u64::MAX.to_le_bytes()), "byte"),
        (bytes(24, &u64::MAX.to_le_bytes()), "at byte 32: the file ends early"),
        (tensor(&[32], 9, 36).to_bytes(), "tensor t has the type Q8_1"),
        (tensor(&[32], 77, 36).to_bytes(), "tensor t has the type 77"),
        (tensor(&[33], 2, 36).to_bytes(), "tensor t has rows of 33 elements, which blocks of 32 do not fill"),
        (tensor(&[64], 2, 18).to_bytes(), "tensor t ends after the file"),
        (tensor(&[1 << 40, 1 << 40], 0, 4).to_bytes(), "tensor t has the shape"),
        (tensor(&[0], 0, 0).to_bytes(), "tensor t has the shape"),
        (tensor(&[2], 0, 8).with_blocks("t", &[1], 0, vec![0; 4]).to_bytes(), "tensor t is there twice"),
        (small().with("general.alignment", Value::U32(24)).to_bytes(), "general.alignment is 24"),
        (small().with("split.count", Value::U32(3)).to_bytes(), "split.count says"),
    ];
    for (bytes, part) in table {
        let error = read(&bytes).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let overlapping = {
        // The second tensor begins where the first does.
        let mut bytes = tensor(&[2], 0, 8).with_blocks("u", &[2], 0, vec![0; 8]).to_bytes();
        let name = bytes.windows(9).position(|window| window == b"\x01\0\0\0\0\0\0\0u").unwrap();
        bytes[name + 9 + 16] = 0;
        bytes
    };
    assert!(read(&overlapping).unwrap_err().to_string().contains("tensor u overlaps t"));
}

/// Each prefix of a file is refused. Each changed bit gives a file or an error, never a panic; the
/// tensors of such a file lie within it.
#[test]
fn truncated_and_changed_files_cause_no_panic() {
    let tiny = data::tiny();
    let small = small().with_tokenizer(
        r#"{"decoder": {"type": "ByteLevel"}, "model": {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]},
            "added_tokens": [{"id": 3, "content": "<|im_end|>", "special": true}]}"#,
        "smollm",
    );
    let bytes = small.to_bytes();
    assert!(read(&bytes).unwrap().tokenizer_files().is_ok());
    for end in 0..bytes.len() {
        assert!(read(&bytes[..end]).is_err(), "{end}");
    }
    let (mut read_anyway, mut refused) = (0, 0);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << bit;
            match read(&bytes) {
                Err(_) => refused += 1,
                Ok(file) => {
                    read_anyway += 1;
                    assert!(file.tensors().iter().all(|tensor| bytes.get(tensor.range.clone()).is_some()));
                    let keys: Vec<String> = file.metadata().keys().map(String::from).collect();
                    for key in keys {
                        let metadata = file.metadata();
                        let _ = (metadata.text(&key), metadata.texts(&key), metadata.numbers(&key));
                        let _ = (metadata.number(&key), metadata.unsigned(&key), metadata.truth(&key));
                    }
                    let _ = file.config(|_| Ok::<_, GgufError>(vec![1.0; 4]));
                    let _ = (file.weights(4), file.tokenizer_files());
                }
            }
        }
    }
    println!("{read_anyway} changed files were read, {refused} refused");
    assert!(read_anyway > 0 && refused > 0);
    // A larger file, with random changes of several bytes.
    let bytes = Writer::new("llama").with_tokenizer(&tiny.json(), "smollm").to_bytes();
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..300 {
        let mut bytes = bytes.clone();
        for _ in 0..=random(3) {
            let at = random(bytes.len());
            bytes[at] = random(256) as u8;
        }
        if let Ok(file) = read(&bytes) {
            let _ = file.tokenizer_files();
        }
    }
}
