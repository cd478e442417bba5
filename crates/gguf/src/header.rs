//! Reads the header of a GGUF file, and keeps its bytes.
//!
//! Memory is allocated for bytes that were read, never for bytes that a length promises.

use std::io::{ErrorKind, Read};

use crate::error::GgufError;

/// Greatest size of a header. The largest known, of vocabularies of 262,144 tokens, have about ten
/// megabytes.
const MAX_HEADER: u64 = 1 << 28;
/// Bytes that are allocated at a time.
const CHUNK: usize = 1 << 16;

/// The type of a value in the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    Array,
    U64,
    I64,
    F64,
}

impl Kind {
    pub(crate) fn from_id(id: u32) -> Option<Self> {
        Some(match id {
            0 => Self::U8,
            1 => Self::I8,
            2 => Self::U16,
            3 => Self::I16,
            4 => Self::U32,
            5 => Self::I32,
            6 => Self::F32,
            7 => Self::Bool,
            8 => Self::String,
            9 => Self::Array,
            10 => Self::U64,
            11 => Self::I64,
            12 => Self::F64,
            _ => return None,
        })
    }

    /// Bytes of a value; `None` if its length is stored with it.
    pub(crate) fn size(self) -> Option<usize> {
        match self {
            Self::U8 | Self::I8 | Self::Bool => Some(1),
            Self::U16 | Self::I16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::String | Self::Array => None,
        }
    }
}

/// A header that is being read, from a file of `length` bytes.
pub(crate) struct Header<R> {
    source: R,
    length: u64,
    bytes: Vec<u8>,
}

impl<R: Read> Header<R> {
    pub(crate) fn new(source: R, length: u64) -> Self {
        Self { source, length, bytes: Vec::new() }
    }

    /// The offset of the next byte.
    pub(crate) fn offset(&self) -> usize {
        self.bytes.len()
    }

    /// All bytes that were read.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The error of a file that is damaged at the next byte.
    pub(crate) fn malformed(&self, message: impl Into<String>) -> GgufError {
        GgufError::malformed(self.bytes.len() as u64, message)
    }

    /// Reads `count` bytes.
    pub(crate) fn take(&mut self, count: u64) -> Result<&[u8], GgufError> {
        let start = self.bytes.len();
        if count > self.length.saturating_sub(start as u64) {
            return Err(self.malformed("the file ends early; download it again"));
        }
        if count > MAX_HEADER - start as u64 {
            return Err(self.malformed(format!("the header has more than {MAX_HEADER} bytes")));
        }
        let end = start + count as usize;
        while self.bytes.len() < end {
            let from = self.bytes.len();
            self.bytes.resize(end.min(from + CHUNK), 0);
            if let Err(error) = self.source.read_exact(&mut self.bytes[from..]) {
                self.bytes.truncate(from);
                return Err(match error.kind() {
                    ErrorKind::UnexpectedEof => self.malformed("the file ends early; download it again"),
                    _ => GgufError::Io(error),
                });
            }
        }
        Ok(&self.bytes[start..])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, GgufError> {
        let bytes = self.take(4)?;
        Ok(bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, GgufError> {
        let bytes = self.take(8)?;
        Ok(bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
    }

    /// Reads a name: a string that must be UTF-8.
    pub(crate) fn name(&mut self) -> Result<String, GgufError> {
        let length = self.u64()?;
        let offset = self.bytes.len() as u64;
        match str::from_utf8(self.take(length)?) {
            Ok(name) => Ok(name.to_owned()),
            Err(_) => Err(GgufError::malformed(offset, "a name is not UTF-8")),
        }
    }

    /// Reads the type of a value.
    pub(crate) fn kind(&mut self) -> Result<Kind, GgufError> {
        let offset = self.bytes.len() as u64;
        let id = self.u32()?;
        Kind::from_id(id)
            .ok_or_else(|| GgufError::malformed(offset, format!("a value has the unknown type {id}")))
    }

    /// Reads a value, whose bytes are kept.
    pub(crate) fn value(&mut self, kind: Kind) -> Result<(), GgufError> {
        match (kind, kind.size()) {
            (_, Some(size)) => self.take(size as u64).map(drop),
            (Kind::Array, _) => self.array(),
            _ => self.string(),
        }
    }

    fn string(&mut self) -> Result<(), GgufError> {
        let length = self.u64()?;
        self.take(length).map(drop)
    }

    fn array(&mut self) -> Result<(), GgufError> {
        let (offset, kind) = (self.bytes.len() as u64, self.kind()?);
        let count = self.u64()?;
        match (kind, kind.size()) {
            (_, Some(size)) => self.take(count.saturating_mul(size as u64)).map(drop),
            (Kind::Array, _) => {
                Err(GgufError::malformed(offset, "an array holds arrays, which is not supported"))
            }
            // Each string takes eight bytes at least, so the file ends before a false count does.
            _ => (0..count).try_for_each(|_| self.string()),
        }
    }
}
