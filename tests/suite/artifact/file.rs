//! A reader and writer of artifacts that follows only `docs/artifact.md`, for files that the
//! library would not write.

use std::collections::BTreeMap;

use safetensors::SafeTensors;
use safetensors::tensor::Dtype;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The editable content of an artifact.
#[derive(Clone)]
pub struct File {
    pub metadata: BTreeMap<String, String>,
    pub tensors: BTreeMap<String, Tensor>,
}

#[derive(Clone)]
pub struct Tensor {
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub data: Vec<u8>,
}

impl File {
    pub fn read(bytes: &[u8]) -> Self {
        let (_, header) = SafeTensors::read_metadata(bytes).unwrap();
        let tensors = SafeTensors::deserialize(bytes).unwrap();
        let tensor = |(name, view): (&str, safetensors::tensor::TensorView)| {
            let (dtype, shape, data) = (view.dtype(), view.shape().to_vec(), view.data().to_vec());
            (name.to_owned(), Tensor { dtype, shape, data })
        };
        Self {
            metadata: header.metadata().clone().unwrap().into_iter().collect(),
            tensors: tensors.iter().map(tensor).collect(),
        }
    }

    /// The file with the checksum of its contents.
    pub fn write(&self) -> Vec<u8> {
        let mut header = Map::new();
        let mut metadata = self.metadata.clone();
        metadata.insert("checksum".into(), self.checksum());
        header.insert("__metadata__".into(), json!(metadata));
        let mut data = Vec::new();
        for (name, tensor) in &self.tensors {
            let start = data.len();
            data.extend(&tensor.data);
            let info =
                json!({"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [start, data.len()]});
            header.insert(name.clone(), info);
        }
        let header = Value::from(header).to_string();
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
    }

    pub fn checksum(&self) -> String {
        let number = |number: usize| (number as u64).to_le_bytes().to_vec();
        let text = |text: &str| [&number(text.len()), text.as_bytes()].concat();
        let entries = self.metadata.iter().filter(|(key, _)| *key != "checksum");
        let mut hashed = number(entries.clone().count());
        for (key, value) in entries {
            hashed.extend([text(key), text(value)].concat());
        }
        hashed.extend(number(self.tensors.len()));
        for (name, tensor) in &self.tensors {
            hashed.extend([text(name), text(&tensor.dtype.to_string()), number(tensor.shape.len())].concat());
            hashed.extend(tensor.shape.iter().flat_map(|&dimension| number(dimension)));
            hashed.extend(&tensor.data);
        }
        Sha256::digest(&hashed).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[test]
fn the_checksum_is_that_of_the_documentation() {
    for (name, _, _, bytes) in super::artifacts() {
        let file = File::read(&bytes);
        assert_eq!(file.metadata["checksum"], file.checksum(), "{name}");
    }
}
