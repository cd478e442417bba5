//! Reads checkpoints: compares their headers with a configuration, and reads the bytes of single
//! tensors.
//!
//! A checkpoint is one safetensors file, or an index (`weight_map`: tensor to file) and its shards.
//! The headers are read first and compared with the configuration. A hostile header cannot cause a
//! large allocation: memory for a tensor is allocated only after a check that the file is long
//! enough.
//!
//! Each tensor is mapped into memory separately. A tensor that keeps its dtype is the mapping
//! itself: on the CPU nothing copies it, and it lives as long as the tensor. A tensor that is cast
//! is mapped in chunks of [`PIECE`] bytes. So a model is never in memory twice.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use burn::tensor::{AllocationProperty, Bytes, DType, FloatDType, TensorData};
use half::{bf16, f16};
use memmap2::{Mmap, MmapOptions};
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use serde::Deserialize;

use crate::config::DecoderConfig;
use crate::error::DecoderError;
use crate::folder;
use crate::parameters::parameters;

/// The file of an unsharded checkpoint.
pub(crate) const SINGLE: &str = "model.safetensors";
/// The index of a sharded checkpoint.
pub(crate) const INDEX: &str = "model.safetensors.index.json";
/// Bytes of the field with the length of a header.
const PREFIX: u64 = 8;
/// The format's limit on the size of a header.
const MAX_HEADER: u64 = 100_000_000;
/// Bytes of rotary tables allowed for every model, even with small weights.
const MIN_ROTARY_LIMIT: u64 = 1 << 24;
/// Bytes that are mapped at a time when a tensor is cast.
const PIECE: usize = 1 << 22;

/// Whether to ignore a tensor. Some exporters write superfluous tensors: the rotary frequencies,
/// and a second copy of tied embeddings.
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
    /// The file name for messages.
    file: String,
    metadata: Metadata,
    /// The offset of the data.
    start: usize,
    source: Source<'a>,
}

enum Source<'a> {
    Bytes(&'a [u8]),
    File(File, PathBuf),
}

/// `model.safetensors.index.json`, without its other fields.
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
            return Err(folder::without_weights(folder));
        }
        folder::check_file(&path)?;
        let text = std::fs::read_to_string(&path)
            .map_err(|source| DecoderError::Io { path: path.clone(), source })?;
        let index: Index = serde_json::from_str(&text)
            .map_err(|source| DecoderError::Json { file: INDEX.into(), source })?;
        let files: BTreeSet<&String> = index.weight_map.values().collect();
        for file in &files {
            let mut parts = Path::new(file).components();
            if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
                || file.contains(['/', '\\'])
            {
                return Err(DecoderError::Checkpoint {
                    file: INDEX.into(),
                    message: format!("names {file:?}, which is not a file of this folder"),
                });
            }
        }
        folder::check_shards(folder, files.iter().copied())?;
        let shards: Result<Vec<_>, _> = files.into_iter().map(|file| Shard::open(folder, file)).collect();
        let checkpoint = Self::gather(shards?)?;
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

    /// Compares the headers with the parameters of a model of this configuration.
    pub(crate) fn check(&self, config: &DecoderConfig) -> Result<(), DecoderError> {
        let expected = parameters(config);
        for (name, shape) in &expected {
            let refuse = |message| Err(DecoderError::Tensor { name: name.clone(), message });
            let Some(info) = self.homes.get(name).and_then(|index| self.shards[*index].metadata.info(name))
            else {
                let bare = name.strip_prefix("model.").filter(|bare| self.homes.contains_key(*bare));
                return refuse(match bare {
                    Some(bare) => format!(
                        "is missing from the checkpoint, which has {bare}: it holds the layers without the language model's \
                         head; write it again with `AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(FOLDER)` of \
                         the Python package transformers"
                    ),
                    None => "is missing from the checkpoint".into(),
                });
            };
            if &info.shape != shape {
                return refuse(format!("has shape {:?}; config.json asks for {shape:?}", info.shape));
            }
            if !matches!(info.dtype, Dtype::F32 | Dtype::F16 | Dtype::BF16) {
                return refuse(format!("has dtype {:?}; F32, F16 and BF16 can be read", info.dtype));
            }
        }
        let tables = 1 + u64::from(config.sliding_rope.is_some());
        let rotary = tables * (config.max_position_embeddings * config.head_dim * size_of::<f32>()) as u64;
        let weights: u64 = self.shards.iter().map(|shard| shard.metadata.data_len() as u64).sum();
        if rotary > weights.max(MIN_ROTARY_LIMIT) {
            let message = format!(
                "is {}, and the tables of so many positions take more memory than the weights; lower it to the \
                 positions you need",
                config.max_position_embeddings
            );
            return Err(DecoderError::config("max_position_embeddings", message));
        }
        let expected: BTreeSet<&String> = expected.iter().map(|(name, _)| name).collect();
        // The smallest name, so that the message does not depend on the order of a hash map.
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

    /// The dtype of most of a model's numbers in the checkpoint.
    pub(crate) fn dtype(&self, config: &DecoderConfig) -> FloatDType {
        let mut counts = [FloatDType::F32, FloatDType::BF16, FloatDType::F16].map(|dtype| (dtype, 0));
        for (name, shape) in parameters(config) {
            let stored = self.homes.get(&name).and_then(|index| self.shards[*index].metadata.info(&name));
            let stored = stored.and_then(|info| float(info.dtype));
            if let Some((_, count)) = counts.iter_mut().find(|(dtype, _)| Some(*dtype) == stored) {
                *count += shape.iter().product::<usize>();
            }
        }
        let [first, rest @ ..] = counts;
        rest.into_iter().fold(first, |most, other| if other.1 > most.1 { other } else { most }).0
    }

    /// Reads one tensor.
    pub(crate) fn read(&self, name: &str, dtype: FloatDType) -> Result<TensorData, DecoderError> {
        let missing = || DecoderError::Tensor {
            name: name.to_string(),
            message: "is missing from the checkpoint".into(),
        };
        let shard = self.homes.get(name).map(|index| &self.shards[*index]).ok_or_else(missing)?;
        let info = shard.metadata.info(name).ok_or_else(missing)?;
        let stored = float(info.dtype).ok_or_else(|| DecoderError::Tensor {
            name: name.to_string(),
            message: format!("has dtype {:?}; F32, F16 and BF16 can be read", info.dtype),
        })?;
        let (from, to) = info.data_offsets;
        let (range, dtype) = (shard.start + from..shard.start + to, DType::from(dtype));
        if dtype == stored.into()
            && range.start.is_multiple_of(dtype.size())
            && cfg!(target_endian = "little")
        {
            return Ok(TensorData::from_bytes(shard.bytes(range)?, info.shape.clone(), dtype));
        }
        let elements = info.shape.iter().product();
        Ok(match dtype {
            DType::F16 => {
                TensorData::new(shard.cast(range, elements, stored, f16::from_f32)?, info.shape.clone())
            }
            DType::BF16 => {
                TensorData::new(shard.cast(range, elements, stored, bf16::from_f32)?, info.shape.clone())
            }
            other => TensorData::new(shard.cast(range, elements, stored, |value| value)?, info.shape.clone())
                .convert_dtype(other),
        })
    }
}

/// The float type of a stored dtype, if it can be read.
fn float(dtype: Dtype) -> Option<FloatDType> {
    match dtype {
        Dtype::F32 => Some(FloatDType::F32),
        Dtype::F16 => Some(FloatDType::F16),
        Dtype::BF16 => Some(FloatDType::BF16),
        _ => None,
    }
}

impl<'a> Shard<'a> {
    fn from_bytes(bytes: &'a [u8]) -> Result<Self, DecoderError> {
        let (start, metadata) = header(SINGLE, bytes.len() as u64, bytes)?;
        Ok(Self { file: SINGLE.into(), metadata, start, source: Source::Bytes(bytes) })
    }

    fn open(folder: &Path, name: &str) -> Result<Self, DecoderError> {
        let path = folder.join(name);
        folder::check_file(&path)?;
        let io = |source| DecoderError::Io { path: path.clone(), source };
        let file = File::open(&path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let (start, metadata) = header(name, length, &file)?;
        Ok(Self { file: name.into(), metadata, start, source: Source::File(file, path) })
    }

    /// Maps the bytes of a range.
    fn bytes(&self, range: Range<usize>) -> Result<Bytes, DecoderError> {
        Ok(match &self.source {
            Source::Bytes(bytes) => Bytes::from_bytes_vec(bytes[range].to_vec()),
            Source::File(file, path) => {
                let mapped =
                    map(file, range).map_err(|source| DecoderError::Io { path: path.clone(), source })?;
                Bytes::from_shared(bytes::Bytes::from_owner(mapped), AllocationProperty::File)
            }
        })
    }

    /// Casts the numbers of a range.
    fn cast<T>(
        &self,
        range: Range<usize>,
        elements: usize,
        stored: FloatDType,
        narrow: impl Fn(f32) -> T,
    ) -> Result<Vec<T>, DecoderError> {
        let mut values = Vec::with_capacity(elements);
        let end = range.end;
        for from in range.step_by(PIECE) {
            let bytes = self.bytes(from..end.min(from + PIECE))?;
            match stored {
                FloatDType::F16 => {
                    decode(&bytes, |bytes| narrow(f16::from_le_bytes(bytes).to_f32()), &mut values)
                }
                FloatDType::BF16 => {
                    decode(&bytes, |bytes| narrow(bf16::from_le_bytes(bytes).to_f32()), &mut values)
                }
                _ => decode(&bytes, |bytes| narrow(f32::from_le_bytes(bytes)), &mut values),
            }
        }
        Ok(values)
    }
}

fn decode<const N: usize, T>(bytes: &[u8], one: impl Fn([u8; N]) -> T, values: &mut Vec<T>) {
    let (chunks, _) = bytes.as_chunks::<N>();
    values.extend(chunks.iter().map(|chunk| one(*chunk)));
}

/// Maps a range of a file, and reads it in.
#[allow(unsafe_code)]
fn map(file: &File, range: Range<usize>) -> std::io::Result<Mmap> {
    let mut options = MmapOptions::new();
    options.offset(range.start as u64).len(range.len()).populate();
    // SAFETY: nothing in this process writes to the file. [`Decoder::load`](crate::Decoder::load)
    // asks its caller to see that no other process does while the model lives, which no program can
    // check. Readers of safetensors commonly ask for this.
    unsafe { options.map(file) }
}

/// Reads the header of a file of `length` bytes and returns the offset of its data.
fn header(file: &str, length: u64, mut source: impl Read) -> Result<(usize, Metadata), DecoderError> {
    let refuse = |message: String| DecoderError::Checkpoint { file: file.to_string(), message };
    let damaged = |error: std::io::Error| refuse(format!("could not be read: {error}"));
    if length < PREFIX {
        return Err(refuse(format!("has {length} bytes and is no safetensors file")));
    }
    let mut prefix = [0; PREFIX as usize];
    source.read_exact(&mut prefix).map_err(damaged)?;
    let size = u64::from_le_bytes(prefix);
    if size > MAX_HEADER || size > length - PREFIX {
        return Err(refuse(format!(
            "claims a header of {size} bytes; it is truncated, or no safetensors file"
        )));
    }
    let mut text = vec![0; size as usize];
    source.read_exact(&mut text).map_err(damaged)?;
    let metadata: Metadata = serde_json::from_slice(&text)
        .map_err(|error| refuse(format!("has a header that is not valid: {error}")))?;
    // The offsets were checked to be contiguous, so this covers every tensor.
    let (start, data) = (PREFIX + size, metadata.data_len() as u64);
    if data != length - start {
        return Err(refuse(format!(
            "holds {} bytes of data where its header promises {data}; it is truncated or damaged, \
             download it again",
            length - start
        )));
    }
    Ok((start as usize, metadata))
}
