//! Reads small GGUF files written here, files of Python's package `gguf`, damaged files, and a real
//! model if there is one.

mod damaged;
mod model;
mod peer;
mod tokenizer;

use burn_dfa_gguf::{GgufError, GgufFile};
use burn_dfa_testing::gguf::{Value, Writer};

/// Reads the bytes of a file.
fn read(bytes: &[u8]) -> Result<GgufFile, GgufError> {
    GgufFile::read(bytes, bytes.len() as u64)
}

/// A small file with a value of each type.
fn small() -> Writer {
    Writer::new("llama")
        .with("a.bool", Value::Bool(true))
        .with("a.u32", Value::U32(7))
        .with("a.f32", Value::F32(1e-5))
        .with("a.text", "é".into())
        .with("a.texts", Value::Texts(vec!["one".into(), String::new(), "three".into()]))
        .with("a.i32s", Value::I32s(vec![1, -2, 3]))
        .with("a.f32s", Value::F32s(vec![0.5, -1.0]))
        .with_floats("b", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        .with_floats("c", &[1], &[7.0])
        .with_blocks("d", &[1, 64], 3, vec![9; 40])
}

#[test]
fn values_and_tensors_are_read_with_their_types() {
    let bytes = small().to_bytes();
    let file = read(&bytes).unwrap();
    let metadata = file.metadata();
    assert_eq!(metadata.text("general.architecture").unwrap(), Some("llama"));
    assert_eq!(metadata.truth("a.bool").unwrap(), Some(true));
    assert_eq!(metadata.unsigned("a.u32").unwrap(), Some(7));
    assert_eq!(metadata.number("a.f32").unwrap(), Some(1e-5));
    assert_eq!(metadata.text("a.text").unwrap(), Some("é"));
    assert_eq!(metadata.texts("a.texts").unwrap().unwrap(), ["one", "", "three"]);
    assert_eq!(metadata.numbers("a.i32s").unwrap().unwrap(), [1.0, -2.0, 3.0]);
    assert_eq!(metadata.numbers("a.f32s").unwrap().unwrap(), [0.5, -1.0]);
    assert_eq!(metadata.keys().count(), 8);
    assert!(metadata.text("missing").unwrap().is_none());
    for key in ["a.bool", "a.u32", "a.texts"] {
        assert!(matches!(metadata.text(key), Err(GgufError::Metadata { key: found, .. }) if found == key));
    }
    assert!(metadata.unsigned("a.f32").is_err() && metadata.numbers("a.texts").is_err());
    assert!(metadata.texts("a.i32s").is_err() && metadata.truth("a.u32").is_err());

    let shapes: Vec<_> = file.tensors().iter().map(|tensor| (&tensor.name[..], &tensor.shape[..])).collect();
    assert_eq!(shapes, [("b", &[2, 3][..]), ("c", &[1]), ("d", &[1, 64])]);
    let tensor = file.tensor("d").unwrap();
    assert_eq!(bytes[tensor.range.clone()], [9; 40]);
    let floats =
        bytes[file.tensor("b").unwrap().range.clone()].as_chunks().0.iter().map(|&b| f32::from_le_bytes(b));
    assert_eq!(floats.collect::<Vec<_>>(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}
