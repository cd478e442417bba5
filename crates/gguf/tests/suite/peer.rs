//! Exchanges files with Python's package `gguf`: each side reads the file of the other.

use super::*;
use burn_dfa_testing::python;
use serde_json::{Value as Json, json};

/// Writes a file, and prints the keys and tensors of another.
const PROGRAM: &str = r#"
import json, sys
import gguf, numpy
writer = gguf.GGUFWriter(sys.argv[1], "llama")
writer.add_uint32("a.u32", 7)
writer.add_uint64("a.u64", 1 << 40)
writer.add_int8("a.i8", -3)
writer.add_float32("a.f32", 1e-5)
writer.add_float64("a.f64", 0.1)
writer.add_bool("a.bool", False)
writer.add_string("a.text", "héllo")
writer.add_array("a.texts", ["one", "two"])
writer.add_array("a.numbers", [1, 2, 3])
writer.add_tensor("t", numpy.arange(6, dtype=numpy.float32).reshape(2, 3))
writer.add_tensor("u", numpy.full((3, 40), 5, dtype=numpy.uint8), raw_dtype=gguf.GGMLQuantizationType.Q4_1)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
reader = gguf.GGUFReader(sys.argv[2])
values = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
tensors = [[t.name, t.tensor_type.name, [int(n) for n in t.shape], t.data.tobytes().hex()] for t in reader.tensors]
print(json.dumps([values, tensors]))
"#;

#[test]
fn written_and_read_by_python() {
    let Some(mut python) = python::with("gguf, numpy") else { return };
    let folder = std::env::temp_dir().join(format!("burn-dfa-gguf-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let [theirs, ours] = ["theirs.gguf", "ours.gguf"].map(|name| folder.join(name));
    std::fs::write(&ours, small().to_bytes()).unwrap();
    let output = python.args(["-c", PROGRAM]).args([&theirs, &ours]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let file = GgufFile::open(&theirs).unwrap();
    let metadata = file.metadata();
    assert_eq!(metadata.unsigned("a.u32").unwrap(), Some(7));
    assert_eq!(metadata.unsigned("a.u64").unwrap(), Some(1 << 40));
    assert!(metadata.unsigned("a.i8").is_err());
    assert_eq!(metadata.number("a.i8").unwrap(), Some(-3.0));
    assert_eq!(metadata.number("a.f32").unwrap(), Some(1e-5));
    assert_eq!(metadata.number("a.f64").unwrap(), Some(0.1));
    assert_eq!(metadata.truth("a.bool").unwrap(), Some(false));
    assert_eq!(metadata.text("a.text").unwrap(), Some("héllo"));
    assert_eq!(metadata.texts("a.texts").unwrap().unwrap(), ["one", "two"]);
    assert_eq!(metadata.numbers("a.numbers").unwrap().unwrap(), [1.0, 2.0, 3.0]);
    let bytes = std::fs::read(&theirs).unwrap();
    let [t, u] = ["t", "u"].map(|name| file.tensor(name).unwrap());
    assert_eq!((&t.shape[..], &u.shape[..]), (&[2, 3][..], &[3, 64][..]));
    let expected: Vec<u8> = (0..6u8).flat_map(|number| f32::from(number).to_le_bytes()).collect();
    assert_eq!(bytes[t.range.clone()], expected);
    assert_eq!(bytes[u.range.clone()], [5; 120]);

    let [values, tensors]: [Json; 2] = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(values["a.texts"], json!(["one", "", "three"]));
    assert_eq!(
        (&values["a.u32"], &values["a.bool"], &values["a.text"]),
        (&json!(7), &json!(true), &json!("é"))
    );
    let ours = std::fs::read(&ours).unwrap();
    let file = read(&ours).unwrap();
    let found = file.tensors().iter().map(|tensor| {
        let shape: Vec<usize> = tensor.shape.iter().rev().copied().collect();
        let hex: String = ours[tensor.range.clone()].iter().map(|byte| format!("{byte:02x}")).collect();
        json!([tensor.name, format!("{:?}", tensor.block), shape, hex])
    });
    assert_eq!(tensors, found.collect::<Json>());
    std::fs::remove_dir_all(folder).unwrap();
}
