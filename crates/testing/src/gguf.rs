//! Writes small GGUF files, as described in
//! [gguf.md](https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).

use serde_json::Value as Json;

/// Offsets of tensors are multiples of it.
const ALIGNMENT: usize = 32;

/// A value of the metadata.
#[derive(Clone, Debug)]
pub enum Value {
    Bool(bool),
    U32(u32),
    F32(f32),
    Text(String),
    Texts(Vec<String>),
    I32s(Vec<i32>),
    F32s(Vec<f32>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl Value {
    /// The number of the type, and the bytes.
    fn encode(&self) -> (u32, Vec<u8>) {
        fn array<T>(kind: u32, all: &[T], one: impl Fn(&T) -> Vec<u8>) -> Vec<u8> {
            let mut bytes = [&kind.to_le_bytes()[..], &(all.len() as u64).to_le_bytes()].concat();
            bytes.extend(all.iter().flat_map(one));
            bytes
        }
        match self {
            Self::Bool(value) => (7, vec![u8::from(*value)]),
            Self::U32(value) => (4, value.to_le_bytes().into()),
            Self::F32(value) => (6, value.to_le_bytes().into()),
            Self::Text(value) => (8, text(value)),
            Self::Texts(values) => (9, array(8, values, |value| text(value))),
            Self::I32s(values) => (9, array(5, values, |value| value.to_le_bytes().into())),
            Self::F32s(values) => (9, array(6, values, |value| value.to_le_bytes().into())),
        }
    }
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

/// A file to be written.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    values: Vec<(String, Value)>,
    tensors: Vec<Tensor>,
}

#[derive(Clone, Debug)]
struct Tensor {
    name: String,
    /// The shape, the number of elements of a row last.
    shape: Vec<usize>,
    /// The number of the type.
    kind: u32,
    bytes: Vec<u8>,
}

impl Writer {
    pub fn new(architecture: &str) -> Self {
        Self::default().with("general.architecture", architecture.into())
    }

    /// Sets a key.
    pub fn with(mut self, key: &str, value: Value) -> Self {
        self.values.retain(|(other, _)| other != key);
        self.values.push((key.into(), value));
        self
    }

    /// Removes a key.
    pub fn without(mut self, key: &str) -> Self {
        self.values.retain(|(other, _)| other != key);
        self
    }

    /// Adds a tensor of 32-bit floats.
    pub fn with_floats(self, name: &str, shape: &[usize], numbers: &[f32]) -> Self {
        assert_eq!(shape.iter().product::<usize>(), numbers.len());
        self.with_blocks(name, shape, 0, numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
    }

    /// Adds a tensor of blocks.
    pub fn with_blocks(mut self, name: &str, shape: &[usize], kind: u32, bytes: Vec<u8>) -> Self {
        self.tensors.push(Tensor { name: name.into(), shape: shape.into(), kind, bytes });
        self
    }

    /// Adds the tokens of a `tokenizer.json`, in the form in which llama.cpp's converter writes
    /// them: byte-level BPE with its merges, SentencePiece with scores in the order of its merges.
    pub fn with_tokenizer(self, json: &str, pre: &str) -> Self {
        let file: Json = serde_json::from_str(json).unwrap();
        let vocab = file["model"]["vocab"].as_object().unwrap();
        let added = file["added_tokens"].as_array().unwrap();
        let id = |id: &Json| id.as_u64().unwrap() as usize;
        let added_ids = added.iter().map(|token| id(&token["id"]));
        let count = vocab.values().map(id).chain(added_ids).max().unwrap() + 1;
        let mut texts: Vec<String> = (0..count).map(|id| format!("[PAD{id}]")).collect();
        let mut types = vec![5; count];
        for (text, at) in vocab {
            texts[id(at)] = text.clone();
            types[id(at)] = if text.len() == 6 && text.starts_with("<0x") { 6 } else { 1 };
        }
        for token in added {
            texts[id(&token["id"])] = token["content"].as_str().unwrap().into();
            types[id(&token["id"])] = if token["special"] == true { 3 } else { 4 };
        }
        let is_byte_level = file["decoder"]["type"] == "ByteLevel";
        if let Some(unknown) = file["model"]["unk_token"].as_str() {
            types[texts.iter().position(|text| text == unknown).unwrap()] = 2;
        }
        let merges = file["model"]["merges"].as_array().unwrap().iter().map(|merge| match merge {
            Json::String(merge) => merge.clone(),
            pair => format!("{} {}", pair[0].as_str().unwrap(), pair[1].as_str().unwrap()),
        });
        let merges: Vec<String> = merges.collect();
        let writer = if is_byte_level {
            self.with("tokenizer.ggml.model", "gpt2".into())
                .with("tokenizer.ggml.pre", pre.into())
                .with("tokenizer.ggml.merges", Value::Texts(merges))
        } else {
            let mut scores = vec![0.0; count];
            for (rank, merge) in merges.iter().enumerate().rev() {
                if let Some(at) = vocab.get(&merge.replacen(' ', "", 1)) {
                    scores[id(at)] = -(rank as f32);
                }
            }
            self.with("tokenizer.ggml.model", "llama".into())
                .with("tokenizer.ggml.scores", Value::F32s(scores))
        };
        writer
            .with("tokenizer.ggml.tokens", Value::Texts(texts))
            .with("tokenizer.ggml.token_type", Value::I32s(types))
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3u32.to_le_bytes());
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.values.len() as u64).to_le_bytes());
        for (key, value) in &self.values {
            let (kind, bytes) = value.encode();
            file.extend(text(key));
            file.extend(kind.to_le_bytes());
            file.extend(bytes);
        }
        let mut offset = 0usize;
        for Tensor { name, shape, kind, bytes } in &self.tensors {
            file.extend(text(name));
            file.extend((shape.len() as u32).to_le_bytes());
            file.extend(shape.iter().rev().flat_map(|&size| (size as u64).to_le_bytes()));
            file.extend(kind.to_le_bytes());
            file.extend((offset as u64).to_le_bytes());
            offset = (offset + bytes.len()).next_multiple_of(ALIGNMENT);
        }
        for Tensor { bytes, .. } in &self.tensors {
            file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
            file.extend(bytes);
        }
        file
    }
}
