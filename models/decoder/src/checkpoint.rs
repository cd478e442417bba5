//! Reads checkpoints: compares their headers with a configuration, and reads the numbers of single
//! tensors.
//!
//! A checkpoint is one safetensors file, an index (`weight_map`: tensor to file) and its shards, or
//! a GGUF file. The headers are read first and compared with the configuration. A hostile header
//! cannot cause a large allocation: memory for a tensor is allocated only after a check that the
//! file is long enough.
//!
//! Each tensor is mapped into memory separately. A tensor that keeps its type is the mapping
//! itself: on the CPU nothing copies it, and it lives as long as the tensor. A tensor that is cast
//! or dequantized is read in chunks of [`CHUNK_BYTES`] bytes. So a model is never in memory twice.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use burn::tensor::{AllocationProperty, Bytes, DType, FloatDType, TensorData};
use burn_dfa_gguf::block::BlockType;
use burn_dfa_gguf::product;
use burn_dfa_gguf::{GgufFile, RowOrder};
use half::{bf16, f16};
use memmap2::{Mmap, MmapOptions};
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use serde::Deserialize;

use crate::blocks::Blocks;
use crate::config::DecoderConfig;
use crate::error::DecoderError;
use crate::folder;
use crate::folder_problem::{INDEX, SINGLE};
use crate::parameters::parameters;

/// Bytes of the field with the length of a header.
const PREFIX: u64 = 8;
/// The format's limit on the size of a header.
const MAX_HEADER: u64 = 100_000_000;
/// Bytes of rotary tables allowed for every model, even with small weights.
const MIN_ROTARY_LIMIT: u64 = 1 << 24;
/// Bytes of 32-bit floats that are decoded at a time when a tensor is cast.
const CHUNK_BYTES: usize = 1 << 22;

/// Whether to ignore a tensor. Some exporters write superfluous tensors: the rotary frequencies,
/// and a second copy of tied embeddings.
fn is_ignored(name: &str, config: &DecoderConfig) -> bool {
    name.ends_with(".rotary_emb.inv_freq") || (config.tie_word_embeddings && name == "lm_head.weight")
}

/// An open checkpoint whose headers have been read.
pub(crate) struct Checkpoint<'a> {
    shards: Vec<Shard<'a>>,
    tensors: HashMap<String, Stored>,
}

/// A file of a checkpoint.
struct Shard<'a> {
    /// The file name for messages.
    file: String,
    source: Source<'a>,
}

enum Source<'a> {
    Bytes(&'a [u8]),
    File(File, PathBuf),
}

/// Where and how a tensor is stored.
struct Stored {
    /// The index of its file.
    shard: usize,
    /// Its bytes in the file.
    range: Range<usize>,
    shape: Vec<usize>,
    /// The type of its blocks, or the name of a type that cannot be read.
    block: Result<BlockType, String>,
    order: RowOrder,
    /// The number to add to each of its numbers.
    shift: f32,
}

/// `model.safetensors.index.json`, without its other fields.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl<'a> Checkpoint<'a> {
    /// A checkpoint in memory.
    pub(crate) fn from_bytes(bytes: &'a [u8]) -> Result<Self, DecoderError> {
        let (start, metadata) = header(SINGLE, bytes.len() as u64, bytes)?;
        let mut checkpoint = Self::empty();
        let shard = Shard { file: SINGLE.into(), source: Source::Bytes(bytes) };
        checkpoint.add(shard, start, &metadata)?;
        Ok(checkpoint)
    }

    /// The tensors of a GGUF file, by their names in a folder.
    pub(crate) fn gguf(path: &Path, file: &GgufFile, head_dim: usize) -> Result<Self, DecoderError> {
        let refuse = |source| DecoderError::Gguf { path: path.to_owned(), source };
        let source = GgufSource::open(path)?;
        let mut checkpoint = Self::empty();
        for weight in file.weights(head_dim).map_err(refuse)? {
            let stored = Stored {
                shard: 0,
                range: weight.tensor.range,
                shape: weight.tensor.shape,
                block: Ok(weight.tensor.block),
                order: weight.order,
                shift: weight.shift,
            };
            if checkpoint.tensors.insert(weight.name.clone(), stored).is_some() {
                let message = "stands in the file under two names".into();
                return Err(DecoderError::Tensor { name: weight.name, message });
            }
        }
        checkpoint.shards.push(source.0);
        Ok(checkpoint)
    }

    fn empty() -> Self {
        Self { shards: Vec::new(), tensors: HashMap::new() }
    }

    /// The checkpoint of a folder, sharded or not.
    pub(crate) fn open(folder: &Path) -> Result<Self, DecoderError> {
        if folder.join(SINGLE).exists() {
            let mut checkpoint = Self::empty();
            checkpoint.add_file(folder, SINGLE)?;
            return Ok(checkpoint);
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
        let mut checkpoint = Self::empty();
        for file in files {
            checkpoint.add_file(folder, file)?;
        }
        for (name, file) in &index.weight_map {
            let shard = checkpoint.tensors.get(name).map(|stored| &checkpoint.shards[stored.shard]);
            if shard.is_none_or(|shard| &shard.file != file) {
                return Err(DecoderError::Tensor {
                    name: name.clone(),
                    message: format!("{INDEX} places it in {file}, which does not hold it"),
                });
            }
        }
        Ok(checkpoint)
    }

    /// Adds a safetensors file of a folder.
    fn add_file(&mut self, folder: &Path, name: &str) -> Result<(), DecoderError> {
        let path = folder.join(name);
        folder::check_file(&path)?;
        let io = |source| DecoderError::Io { path: path.clone(), source };
        let file = File::open(&path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let (start, metadata) = header(name, length, &file)?;
        self.add(Shard { file: name.into(), source: Source::File(file, path) }, start, &metadata)
    }

    /// Adds a safetensors file whose data begins at `start`.
    fn add(&mut self, shard: Shard<'a>, start: usize, metadata: &Metadata) -> Result<(), DecoderError> {
        for (name, info) in metadata.tensors() {
            let (from, to) = info.data_offsets;
            let stored = Stored {
                shard: self.shards.len(),
                range: start + from..start + to,
                shape: info.shape.clone(),
                block: match info.dtype {
                    Dtype::F32 => Ok(BlockType::F32),
                    Dtype::F16 => Ok(BlockType::F16),
                    Dtype::BF16 => Ok(BlockType::BF16),
                    other => Err(format!("{other:?}")),
                },
                order: RowOrder::Same,
                shift: 0.0,
            };
            if let Some(other) = self.tensors.insert(name.clone(), stored) {
                let message = format!("stands in both {} and {}", self.shards[other.shard].file, shard.file);
                return Err(DecoderError::Tensor { name, message });
            }
        }
        self.shards.push(shard);
        Ok(())
    }

    /// Compares the headers with the parameters of a model of this configuration.
    pub(crate) fn check(&self, config: &DecoderConfig) -> Result<(), DecoderError> {
        let expected = parameters(config);
        for (name, shape) in &expected {
            let refuse = |message| Err(DecoderError::Tensor { name: name.clone(), message });
            let Some(stored) = self.tensors.get(name) else {
                let bare = name.strip_prefix("model.").filter(|bare| self.tensors.contains_key(*bare));
                return refuse(match bare {
                    Some(bare) => format!(
                        "is missing from the checkpoint, which has {bare}: it holds the layers without the language model's \
                         head; write it again with `AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(FOLDER)` of \
                         the Python package transformers"
                    ),
                    None => "is missing from the checkpoint".into(),
                });
            };
            if &stored.shape != shape {
                return refuse(format!("has shape {:?}; config.json asks for {shape:?}", stored.shape));
            }
            if let Err(dtype) = &stored.block {
                return refuse(unreadable(dtype));
            }
        }
        let tables = 1 + u64::from(config.sliding_rope.is_some());
        let rotary = tables * (config.max_position_embeddings * config.head_dim * size_of::<f32>()) as u64;
        let weights: u64 = self.tensors.values().map(|stored| stored.range.len() as u64).sum();
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
            self.tensors.keys().filter(|name| !expected.contains(name) && !is_ignored(name, config)).min();
        match unknown {
            None => Ok(()),
            Some(name) => Err(DecoderError::Tensor {
                name: name.clone(),
                message: "has no place in the model that config.json describes".into(),
            }),
        }
    }

    /// The float type of most of a model's numbers in the checkpoint; F32 for quantized numbers.
    pub(crate) fn dtype(&self, config: &DecoderConfig) -> FloatDType {
        let mut counts = [FloatDType::F32, FloatDType::BF16, FloatDType::F16].map(|dtype| (dtype, 0));
        for (name, shape) in parameters(config) {
            let block = self.tensors.get(&name).and_then(|stored| stored.block.as_ref().ok());
            let stored = block.map(|&block| float(block).unwrap_or(FloatDType::F32));
            if let Some((_, count)) = counts.iter_mut().find(|(dtype, _)| Some(*dtype) == stored) {
                *count += shape.iter().product::<usize>();
            }
        }
        let [first, rest @ ..] = counts;
        rest.into_iter().fold(first, |best, other| if other.1 > best.1 { other } else { best }).0
    }

    /// Whether a tensor is a matrix in blocks that multiply as they are stored.
    pub(crate) fn is_quantized(&self, name: &str) -> bool {
        self.tensors.get(name).is_some_and(|stored| {
            let block = stored.block.as_ref();
            stored.shape.len() == 2
                && stored.shift == 0.0
                && block.is_ok_and(|&block| product::is_supported(block))
        })
    }

    /// The number of bytes of a tensor in its file.
    pub(crate) fn size(&self, name: &str) -> usize {
        self.tensors.get(name).map_or(0, |stored| stored.range.len())
    }

    /// Reads one tensor.
    pub(crate) fn read(&self, name: &str, dtype: FloatDType) -> Result<TensorData, DecoderError> {
        let (stored, block) = self.stored(name)?;
        let shape = stored.shape.clone();
        let is_aligned = stored.range.start.is_multiple_of(DType::from(dtype).size());
        if float(block) == Some(dtype) && stored.shift == 0.0 && is_aligned && cfg!(target_endian = "little")
        {
            return Ok(TensorData::from_bytes(self.blocks(stored)?, shape, DType::from(dtype)));
        }
        Ok(match DType::from(dtype) {
            DType::F16 => TensorData::new(self.cast(name, f16::from_f32)?, shape),
            DType::BF16 => TensorData::new(self.cast(name, bf16::from_f32)?, shape),
            other => TensorData::new(self.cast(name, |number| number)?, shape).convert_dtype(other),
        })
    }

    /// A matrix in its blocks.
    pub(crate) fn matrix(&self, name: &str) -> Result<Blocks, DecoderError> {
        let (stored, block) = self.stored(name)?;
        let blocks = Blocks { block, shape: stored.matrix(), bytes: self.blocks(stored)? };
        let refuse = |message: String| DecoderError::Tensor { name: name.to_string(), message };
        blocks.check().map_err(|error| refuse(error.to_string()))?;
        Ok(blocks)
    }

    /// The blocks of a tensor, row by row in the order of a Hugging Face folder: mapped, or copied
    /// if the rows are stored in another order.
    fn blocks(&self, stored: &Stored) -> Result<Bytes, DecoderError> {
        let bytes = self.shards[stored.shard].bytes(stored.range.clone())?;
        if stored.order == RowOrder::Same {
            return Ok(bytes);
        }
        let [rows, _] = stored.matrix();
        let row = bytes.len() / rows.max(1);
        let rows =
            (0..rows).map(|index| stored.order.stored(index) * row).map(|from| &bytes[from..from + row]);
        Ok(Bytes::from_bytes_vec(rows.collect::<Vec<_>>().concat()))
    }

    /// Decodes the numbers of a tensor chunk by chunk.
    fn cast<T>(&self, name: &str, narrow: impl Fn(f32) -> T) -> Result<Vec<T>, DecoderError> {
        let (stored, block) = self.stored(name)?;
        let shard = &self.shards[stored.shard];
        let refuse = |message: String| DecoderError::Tensor { name: name.to_string(), message };
        let [rows, columns] = stored.matrix();
        let row = block.bytes_of(columns).map_err(|error| refuse(error.to_string()))?;
        // Rows change their order within groups of this many.
        let group = match stored.order {
            RowOrder::Same => 1,
            RowOrder::Interleaved(head) => head.max(1),
        };
        let chunk = (CHUNK_BYTES / (columns * group * size_of::<f32>()).max(1)).max(1) * group;
        let mut values = Vec::with_capacity(rows * columns);
        let mut numbers = vec![0.0; chunk.min(rows) * columns];
        for from in (0..rows).step_by(chunk) {
            let count = chunk.min(rows - from);
            let start = stored.range.start + from * row;
            let bytes = shard.bytes(start..start + count * row)?;
            let numbers = &mut numbers[..count * columns];
            block.dequantize(&bytes, numbers).map_err(|error| refuse(error.to_string()))?;
            for index in 0..count {
                let from = stored.order.stored(index) * columns;
                let row = numbers[from..from + columns].iter();
                // A zero that is added would change the sign of negative zeros.
                values.extend(row.map(|&number| match stored.shift {
                    0.0 => narrow(number),
                    shift => narrow(number + shift),
                }));
            }
        }
        Ok(values)
    }

    fn stored(&self, name: &str) -> Result<(&Stored, BlockType), DecoderError> {
        let refuse = |message: String| DecoderError::Tensor { name: name.to_string(), message };
        let stored = self.tensors.get(name).ok_or_else(|| refuse("is missing from the checkpoint".into()))?;
        match &stored.block {
            Ok(block) => Ok((stored, *block)),
            Err(dtype) => Err(refuse(unreadable(dtype))),
        }
    }
}

impl Stored {
    /// The number of rows, and of elements of a row.
    fn matrix(&self) -> [usize; 2] {
        match self.shape.split_last() {
            None => [1, 1],
            Some((columns, rows)) => [rows.iter().product(), *columns],
        }
    }
}

/// The message about a type that cannot be read.
fn unreadable(dtype: &str) -> String {
    format!("has dtype {dtype}; F32, F16 and BF16 can be read")
}

/// The float type of blocks that are floats.
fn float(block: BlockType) -> Option<FloatDType> {
    match block {
        BlockType::F32 => Some(FloatDType::F32),
        BlockType::F16 => Some(FloatDType::F16),
        BlockType::BF16 => Some(FloatDType::BF16),
        _ => None,
    }
}

/// A GGUF file that is open.
pub(crate) struct GgufSource(Shard<'static>);

impl GgufSource {
    pub(crate) fn open(path: &Path) -> Result<Self, DecoderError> {
        let file = File::open(path).map_err(|source| DecoderError::Io { path: path.to_owned(), source })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self(Shard { file: name, source: Source::File(file, path.to_owned()) }))
    }

    /// The numbers of a tensor of 32-bit floats.
    pub(crate) fn floats(&self, tensor: &burn_dfa_gguf::Tensor) -> Result<Vec<f32>, DecoderError> {
        let mut numbers = vec![0.0; tensor.shape.iter().product()];
        let bytes = self.0.bytes(tensor.range.clone())?;
        tensor.block.dequantize(&bytes, &mut numbers).map_err(|error| DecoderError::Tensor {
            name: tensor.name.clone(),
            message: error.to_string(),
        })?;
        Ok(numbers)
    }
}

impl Shard<'_> {
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
