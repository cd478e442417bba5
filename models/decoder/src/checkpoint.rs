//! Reads checkpoints: compares their headers with a configuration, and reads the bytes of single tensors.
//!
//! A checkpoint is one safetensors file, or an index (`weight_map`: tensor to file) and its shards. The headers are read
//! first and compared with the configuration. The data of a tensor is read when it is needed, so a model is never in
//! memory twice. A hostile header cannot cause a large allocation: before memory is allocated for a tensor, the file was
//! found to be long enough to hold it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use burn::tensor::TensorData;
use half::{bf16, f16};
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use serde::Deserialize;

use crate::config::DecoderConfig;
use crate::error::DecoderError;
use crate::parameters::parameters;

/// The file of a checkpoint that is not sharded.
pub(crate) const SINGLE: &str = "model.safetensors";
/// The index of a sharded checkpoint.
pub(crate) const INDEX: &str = "model.safetensors.index.json";
/// Bytes that hold the length of a header.
const PREFIX: u64 = 8;
/// The format's limit on a header.
const MAX_HEADER: u64 = 100_000_000;

/// Whether to ignore a tensor. Some exporters write tensors that the model does not need: the rotary frequencies, and a
/// second copy of tied embeddings.
fn is_ignored(name: &str, config: &DecoderConfig) -> bool {
    name.ends_with(".rotary_emb.inv_freq") || (config.tie_word_embeddings && name == "lm_head.weight")
}

/// An open checkpoint whose headers have been read.
pub(crate) struct Checkpoint<'a> {
    shards: Vec<Shard<'a>>,
    /// The shard of each tensor.
    homes: HashMap<String, usize>,
}

struct Shard<'a> {
    /// For messages.
    file: String,
    metadata: Metadata,
    /// Where the data begins.
    start: u64,
    source: Source<'a>,
}

enum Source<'a> {
    Bytes(&'a [u8]),
    File(File, PathBuf),
}

/// `model.safetensors.index.json`; its other fields are not needed.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl<'a> Checkpoint<'a> {
    /// A checkpoint in memory.
    pub(crate) fn from_bytes(bytes: &'a [u8]) -> Result<Self, DecoderError> {
        Self::gather(vec![Shard::from_bytes(bytes)?])
    }

    /// The checkpoint of a folder, sharded or not.
    pub(crate) fn open(folder: &Path) -> Result<Self, DecoderError> {
        if folder.join(SINGLE).exists() {
            return Self::gather(vec![Shard::open(folder, SINGLE)?]);
        }
        let path = folder.join(INDEX);
        if !path.exists() {
            return Err(DecoderError::Checkpoint {
                file: folder.display().to_string(),
                message: format!("holds neither {SINGLE} nor {INDEX}"),
            });
        }
        let text = std::fs::read_to_string(&path)
            .map_err(|source| DecoderError::Io { path: path.clone(), source })?;
        let index: Index = serde_json::from_str(&text)
            .map_err(|source| DecoderError::Json { file: INDEX.into(), source })?;
        let files: BTreeSet<&String> = index.weight_map.values().collect();
        let mut shards = Vec::with_capacity(files.len());
        for file in files {
            let mut parts = Path::new(file).components();
            if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
                || file.contains(['/', '\\'])
            {
                return Err(DecoderError::Checkpoint {
                    file: INDEX.into(),
                    message: format!("names {file:?}, which is not a file of this folder"),
                });
            }
            shards.push(Shard::open(folder, file)?);
        }
        let checkpoint = Self::gather(shards)?;
        for (name, file) in &index.weight_map {
            let home = checkpoint.homes.get(name).map(|i| &checkpoint.shards[*i]);
            if home.is_none_or(|shard| &shard.file != file) {
                return Err(DecoderError::Tensor {
                    name: name.clone(),
                    message: format!("{INDEX} places it in {file}, which does not hold it"),
                });
            }
        }
        Ok(checkpoint)
    }

    fn gather(shards: Vec<Shard<'a>>) -> Result<Self, DecoderError> {
        let mut homes = HashMap::new();
        for (index, shard) in shards.iter().enumerate() {
            for name in shard.metadata.tensors().into_keys() {
                if let Some(other) = homes.insert(name.clone(), index) {
                    return Err(DecoderError::Tensor {
                        name,
                        message: format!("stands in both {} and {}", shards[other].file, shard.file),
                    });
                }
            }
        }
        Ok(Self { shards, homes })
    }

    /// Compares the headers with what a model of this configuration has.
    pub(crate) fn check(&self, config: &DecoderConfig) -> Result<(), DecoderError> {
        let expected = parameters(config);
        for (name, shape) in &expected {
            let refuse = |message| Err(DecoderError::Tensor { name: name.clone(), message });
            let Some(info) = self.homes.get(name).and_then(|index| self.shards[*index].metadata.info(name))
            else {
                return refuse("is missing from the checkpoint".into());
            };
            if &info.shape != shape {
                return refuse(format!("has shape {:?}; config.json asks for {shape:?}", info.shape));
            }
            if !matches!(info.dtype, Dtype::F32 | Dtype::F16 | Dtype::BF16) {
                return refuse(format!("has dtype {:?}; F32, F16 and BF16 can be read", info.dtype));
            }
        }
        let expected: BTreeSet<&String> = expected.iter().map(|(name, _)| name).collect();
        // The least of them, so that the message does not depend on the order of a hash map.
        let unknown =
            self.homes.keys().filter(|name| !expected.contains(name) && !is_ignored(name, config)).min();
        match unknown {
            None => Ok(()),
            Some(name) => Err(DecoderError::Tensor {
                name: name.clone(),
                message: "has no place in the model that config.json describes".into(),
            }),
        }
    }

    /// Reads one tensor, in the dtype it is stored in.
    pub(crate) fn read(&mut self, name: &str) -> Result<TensorData, DecoderError> {
        let missing = || DecoderError::Tensor {
            name: name.to_string(),
            message: "is missing from the checkpoint".into(),
        };
        let index = *self.homes.get(name).ok_or_else(missing)?;
        let shard = &mut self.shards[index];
        let info = shard.metadata.info(name).ok_or_else(missing)?;
        let (dtype, shape, (from, to)) = (info.dtype, info.shape.clone(), info.data_offsets);
        let bytes = shard.bytes(from, to)?;
        Ok(match dtype {
            Dtype::F32 => TensorData::new(decode(&bytes, f32::from_le_bytes), shape),
            Dtype::F16 => TensorData::new(decode(&bytes, f16::from_le_bytes), shape),
            Dtype::BF16 => TensorData::new(decode(&bytes, bf16::from_le_bytes), shape),
            other => {
                return Err(DecoderError::Tensor {
                    name: name.to_string(),
                    message: format!("has dtype {other:?}; F32, F16 and BF16 can be read"),
                });
            }
        })
    }
}

fn decode<const N: usize, T>(bytes: &[u8], one: fn([u8; N]) -> T) -> Vec<T> {
    let (chunks, _) = bytes.as_chunks::<N>();
    chunks.iter().map(|chunk| one(*chunk)).collect()
}

impl<'a> Shard<'a> {
    fn from_bytes(bytes: &'a [u8]) -> Result<Self, DecoderError> {
        let (start, metadata) =
            header(SINGLE, bytes.len() as u64, |from, to| Ok(bytes[from as usize..to as usize].to_vec()))?;
        Ok(Self { file: SINGLE.into(), metadata, start, source: Source::Bytes(bytes) })
    }

    fn open(folder: &Path, name: &str) -> Result<Self, DecoderError> {
        let path = folder.join(name);
        let io = |source| DecoderError::Io { path: path.clone(), source };
        let mut file = File::open(&path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let (start, metadata) = header(name, length, |from, to| read_range(&mut file, from, to).map_err(io))?;
        Ok(Self { file: name.into(), metadata, start, source: Source::File(file, path) })
    }

    fn bytes(&mut self, from: usize, to: usize) -> Result<Vec<u8>, DecoderError> {
        let (from, to) = (self.start + from as u64, self.start + to as u64);
        match &mut self.source {
            Source::Bytes(bytes) => Ok(bytes[from as usize..to as usize].to_vec()),
            Source::File(file, path) => {
                read_range(file, from, to).map_err(|source| DecoderError::Io { path: path.clone(), source })
            }
        }
    }
}

/// Reads the header of a file of `length` bytes and returns where its data begins.
fn header(
    file: &str,
    length: u64,
    mut read: impl FnMut(u64, u64) -> Result<Vec<u8>, DecoderError>,
) -> Result<(u64, Metadata), DecoderError> {
    let refuse = |message: String| DecoderError::Checkpoint { file: file.to_string(), message };
    if length < PREFIX {
        return Err(refuse(format!("has {length} bytes and is no safetensors file")));
    }
    let prefix = read(0, PREFIX)?;
    let size = u64::from_le_bytes(prefix.try_into().unwrap_or_default());
    if size > MAX_HEADER || size > length - PREFIX {
        return Err(refuse(format!(
            "claims a header of {size} bytes; it is truncated, or no safetensors file"
        )));
    }
    let start = PREFIX + size;
    let metadata: Metadata = serde_json::from_slice(&read(PREFIX, start)?)
        .map_err(|error| refuse(format!("has a header that is not valid: {error}")))?;
    // The offsets have been checked to be contiguous, so that this covers every tensor.
    let data = metadata.data_len() as u64;
    if data != length - start {
        return Err(refuse(format!(
            "holds {} bytes of data where its header promises {data}; it is truncated or damaged, \
             download it again",
            length - start
        )));
    }
    Ok((start, metadata))
}

fn read_range(file: &mut File, from: u64, to: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; (to - from) as usize];
    file.seek(SeekFrom::Start(from))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}
