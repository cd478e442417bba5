//! [`GgufFile`]: the metadata and the tensors of a file.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::Path;

use crate::block::BlockType;
use crate::error::GgufError;
use crate::header::Header;
use crate::metadata::Metadata;

const MAGIC: [u8; 4] = *b"GGUF";
/// Offsets of tensors are multiples of it, unless the file says otherwise.
const ALIGNMENT: u64 = 32;
/// Greatest alignment.
const MAX_ALIGNMENT: u64 = 1 << 20;
/// Greatest number of dimensions of a tensor.
const MAX_DIMENSIONS: u32 = 4;

/// The header of a GGUF file: its metadata, and the types, shapes and offsets of its tensors.
///
/// Every length, count and offset was compared with the size of the file: a reader may map the
/// [`range`](Tensor::range) of a tensor without a further check.
///
/// ```no_run
/// use burn_dfa_gguf::GgufFile;
/// use burn_dfa_gguf::block::BlockType;
///
/// let file = GgufFile::open("SmolLM2-135M-Instruct.Q4_1.gguf")?;
/// let tensor = file.tensor("blk.0.attn_q.weight").unwrap();
/// assert_eq!((tensor.block, &tensor.shape[..]), (BlockType::Q4_1, &[576, 576][..]));
/// # Ok::<(), burn_dfa_gguf::GgufError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GgufFile {
    metadata: Metadata,
    pub(crate) tensors: Vec<Tensor>,
    /// The index of each tensor by its name.
    indices: HashMap<String, usize>,
}

/// A tensor of a [`GgufFile`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tensor {
    /// The name in the file, such as `blk.0.attn_q.weight`.
    pub name: String,
    /// The type of its blocks.
    pub block: BlockType,
    /// The shape, with the number of elements of a row last. The file has it in the other order.
    pub shape: Vec<usize>,
    /// The bytes of its blocks in the file.
    pub range: Range<usize>,
}

impl GgufFile {
    /// Whether a file begins as a GGUF file does.
    pub fn is_gguf(path: impl AsRef<Path>) -> bool {
        let mut magic = [0; 4];
        File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == MAGIC
    }

    /// Reads the header of a file.
    ///
    /// # Errors
    /// As [`read`](Self::read), and if the file cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, GgufError> {
        let file = File::open(path).map_err(GgufError::Io)?;
        let length = file.metadata().map_err(GgufError::Io)?.len();
        Self::read(BufReader::new(file), length)
    }

    /// Reads a header from the beginning of a file of `length` bytes.
    ///
    /// # Errors
    /// The file cannot be read, is truncated or damaged, is split into several files, or has a
    /// tensor of a type that is not a [`BlockType`].
    pub fn read(source: impl Read, length: u64) -> Result<Self, GgufError> {
        let mut header = Header::new(source, length);
        if header.take(4)? != MAGIC {
            return Err(GgufError::malformed(0, "this is no GGUF file"));
        }
        match header.u32()? {
            2 | 3 => {}
            version if (2..=3).contains(&version.swap_bytes()) => {
                return Err(GgufError::malformed(4, "the file is big-endian; convert the model again"));
            }
            version => {
                let message =
                    format!("the version is {version}; 2 and 3 can be read, so convert the model again");
                return Err(GgufError::malformed(4, message));
            }
        }
        let (tensor_count, value_count) = (header.u64()?, header.u64()?);

        let mut values = BTreeMap::new();
        for _ in 0..value_count {
            let offset = header.offset() as u64;
            let (key, kind) = (header.name()?, header.kind()?);
            let value = (kind, header.offset());
            header.value(kind)?;
            if values.insert(key.clone(), value).is_some() {
                return Err(GgufError::malformed(offset, format!("the key {key:?} is there twice")));
            }
        }
        let mut heads = Vec::new();
        for _ in 0..tensor_count {
            heads.push(Head::read(&mut header)?);
        }
        let end = header.offset() as u64;
        let metadata = Metadata::new(header.into_bytes(), values);

        if metadata.unsigned("split.count")?.is_some_and(|count| count > 1) {
            let message =
                "says that the model is split into several files; join them with `llama-gguf-split --merge`";
            return Err(GgufError::metadata("split.count", message));
        }
        let alignment = metadata.unsigned("general.alignment")?.unwrap_or(ALIGNMENT);
        if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
            let message = format!("is {alignment}; it must be a power of two, and {MAX_ALIGNMENT} at most");
            return Err(GgufError::metadata("general.alignment", message));
        }
        let start = end.next_multiple_of(alignment);
        let place = |head: Head| head.place(start, alignment, length);
        let tensors = heads.into_iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let mut indices = HashMap::new();
        for (index, tensor) in tensors.iter().enumerate() {
            if indices.insert(tensor.name.clone(), index).is_some() {
                return Err(GgufError::tensor(&tensor.name, "is there twice"));
            }
        }
        let mut ordered: Vec<&Tensor> = tensors.iter().collect();
        ordered.sort_by_key(|tensor| tensor.range.start);
        for pair in ordered.windows(2) {
            if pair[0].range.end > pair[1].range.start {
                return Err(GgufError::tensor(&pair[1].name, format!("overlaps {}", pair[0].name)));
            }
        }
        Ok(Self { metadata, tensors, indices })
    }

    /// The keys and values.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The tensors in the order of the file.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The tensor of a name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.indices.get(name).map(|&index| &self.tensors[index])
    }
}

/// A tensor as described in the header.
struct Head {
    name: String,
    block: u32,
    shape: Vec<u64>,
    offset: u64,
}

impl Head {
    fn read<R: Read>(header: &mut Header<R>) -> Result<Self, GgufError> {
        let name = header.name()?;
        let offset = header.offset() as u64;
        let dimensions = header.u32()?;
        if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
            let message = format!("tensor {name} has {dimensions} dimensions");
            return Err(GgufError::malformed(offset, message));
        }
        let mut shape = Vec::new();
        for _ in 0..dimensions {
            shape.push(header.u64()?);
        }
        shape.reverse();
        Ok(Self { name, shape, block: header.u32()?, offset: header.u64()? })
    }

    /// The tensor, if it lies within a file of `length` bytes whose data begins at `start`.
    fn place(self, start: u64, alignment: u64, length: u64) -> Result<Tensor, GgufError> {
        let Self { name, shape, offset, .. } = self;
        let refuse = |message: String| Err(GgufError::tensor(&name, message));
        let Some(block) = BlockType::from_id(self.block) else {
            let known = BlockType::ALL.map(|block| format!("{block:?}")).join(", ");
            let found = unsupported_type(self.block);
            return refuse(format!(
                "has the type {found}; {known} can be read, so use a file of another type"
            ));
        };
        let columns = shape.last().copied().unwrap_or(0);
        if !columns.is_multiple_of(block.elements() as u64) {
            let elements = block.elements();
            return refuse(format!("has rows of {columns} elements, which blocks of {elements} do not fill"));
        }
        let elements = shape.iter().try_fold(1u64, |product, &size| product.checked_mul(size));
        let blocks = elements.map(|elements| elements / block.elements() as u64);
        let Some(bytes) =
            blocks.and_then(|blocks| blocks.checked_mul(block.bytes() as u64)).filter(|&n| n > 0)
        else {
            return refuse(format!("has the shape {shape:?}"));
        };
        if !offset.is_multiple_of(alignment) {
            return refuse(format!("begins at {offset}, which is no multiple of the alignment {alignment}"));
        }
        let range = start.checked_add(offset).and_then(|from| Some(from..from.checked_add(bytes)?));
        let Some(range) = range.filter(|range| range.end <= length) else {
            return refuse("ends after the file, which is truncated; download it again".into());
        };
        // The sizes are at most the length of the file.
        let size = |size: u64| usize::try_from(size).ok();
        let range = size(range.start).zip(size(range.end)).map(|(start, end)| start..end);
        match (range, shape.into_iter().map(size).collect()) {
            (Some(range), Some(shape)) => Ok(Tensor { name, block, shape, range }),
            _ => refuse("is too large for this computer".into()),
        }
    }
}

/// The name of a type that this crate does not read.
///
/// From the `ggml_type` of the [format](https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
fn unsupported_type(id: u32) -> String {
    let name = match id {
        9 => "Q8_1",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        20 => "IQ4_NL",
        21 => "IQ3_S",
        22 => "IQ2_S",
        23 => "IQ4_XS",
        24 => "I8",
        25 => "I16",
        26 => "I32",
        27 => "I64",
        28 => "F64",
        29 => "IQ1_M",
        34 => "TQ1_0",
        35 => "TQ2_0",
        39 => "MXFP4",
        _ => return id.to_string(),
    };
    name.into()
}
