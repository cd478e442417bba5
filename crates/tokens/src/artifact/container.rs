//! The container of an artifact: safetensors with ordered metadata, and a checksum over both.

use std::collections::BTreeMap;

use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};

use super::error::broken;
use burn_dfa_common::{Error, Result};

/// The metadata key of the checksum.
pub(super) const CHECKSUM: &str = "checksum";

/// The maximum header size of safetensors readers, in bytes.
const LONGEST_HEADER: usize = 100_000_000;

/// The maximum number of tensors, and of metadata entries.
const MAX_ENTRIES: usize = 4096;

/// Named texts and named tensors.
#[derive(Clone, Debug)]
pub(super) struct Container<'a> {
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) tensors: BTreeMap<String, View<'a>>,
}

/// A borrowed tensor.
#[derive(Clone, Debug)]
pub(super) struct View<'a> {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    pub(super) data: &'a [u8],
}

#[derive(Serialize)]
struct Header<'a> {
    #[serde(rename = "__metadata__")]
    metadata: &'a BTreeMap<String, String>,
    #[serde(flatten)]
    tensors: &'a Metadata,
}

/// A header whose entries were counted and not kept. A header with too many of them is refused
/// before it takes memory and time.
struct Counted;

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(Counted)
    }
}

impl<'de> Visitor<'de> for Counted {
    type Value = Self;

    fn expecting(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self, A::Error> {
        for _ in 0..MAX_ENTRIES {
            let Some(name) = map.next_key::<String>()? else { return Ok(self) };
            if name == "__metadata__" {
                map.next_value::<Self>()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Err(A::Error::custom(format!("more than {MAX_ENTRIES} entries")))
    }
}

impl<'a> Container<'a> {
    /// Reads the header of `bytes` and finds the tensors.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self> {
        let no = |what: String| broken("header", format!("{what}: this is no safetensors file"));
        let Some((length, rest)) = bytes.split_first_chunk() else {
            return Err(no(format!("a file of {} bytes", bytes.len())));
        };
        let length = u64::from_le_bytes(*length);
        let longest = LONGEST_HEADER.min(rest.len());
        let Some(length) = usize::try_from(length).ok().filter(|&length| length <= longest) else {
            return Err(no(format!("it should have {length} bytes of at most {longest}")));
        };
        let (header, data) = rest.split_at(length);
        let _: Counted = serde_json::from_slice(header).map_err(|error| no(error.to_string()))?;
        let header: Metadata = serde_json::from_slice(header).map_err(|error| no(error.to_string()))?;
        if header.data_len() != data.len() {
            return Err(broken(
                "header",
                format!(
                    "tensors of {} bytes in all, the file holds {}: it was cut or added to",
                    header.data_len(),
                    data.len()
                ),
            ));
        }
        let mut tensors = BTreeMap::new();
        for name in header.offset_keys() {
            let info =
                header.info(&name).map(|info| (info, data.get(info.data_offsets.0..info.data_offsets.1)));
            let Some((&TensorInfo { dtype, ref shape, .. }, Some(data))) = info else {
                return Err(broken(&name, "it lies outside the file"));
            };
            tensors.insert(name, View { dtype, shape: shape.clone(), data });
        }
        let metadata = header.metadata().iter().flatten();
        let metadata = metadata.map(|(key, value)| (key.clone(), value.clone())).collect();
        Ok(Self { metadata, tensors })
    }

    /// The file: the header, padded to 8 bytes with spaces, and the tensors.
    pub(super) fn write(mut self) -> Result<Vec<u8>> {
        self.metadata.insert(CHECKSUM.to_owned(), self.checksum());
        // Larger elements first, so that each tensor is aligned.
        let mut tensors: Vec<_> = self.tensors.iter().collect();
        tensors.sort_by_key(|(name, view)| (std::cmp::Reverse(view.dtype), *name));
        let mut end = 0;
        let infos = tensors.iter().map(|(name, view)| {
            let start = end;
            end += view.data.len();
            let info =
                TensorInfo { dtype: view.dtype, shape: view.shape.clone(), data_offsets: (start, end) };
            ((*name).clone(), info)
        });
        let cannot =
            |error: &dyn std::fmt::Display| Error::artifact(format!("it cannot be written: {error}"));
        let infos = Metadata::new(None, infos.collect()).map_err(|error| cannot(&error))?;
        let header = Header { metadata: &self.metadata, tensors: &infos };
        let mut header = serde_json::to_vec(&header).map_err(|error| cannot(&error))?;
        header.resize(header.len().next_multiple_of(size_of::<u64>()), b' ');
        if header.len() > LONGEST_HEADER {
            return Err(cannot(&format!("a header of {} bytes, {LONGEST_HEADER} at most", header.len())));
        }
        let mut file = Vec::with_capacity(size_of::<u64>() + header.len() + end);
        file.extend((header.len() as u64).to_le_bytes());
        file.extend(header);
        for (_, view) in tensors {
            file.extend(view.data);
        }
        Ok(file)
    }

    /// SHA-256 over all metadata except the checksum, and the tensors, each in the order of their
    /// names; in hexadecimal.
    ///
    /// The hash covers, with integers as `u64` little-endian and texts after their length in bytes:
    /// the number of metadata entries, the key and value of each; the number of tensors, and for
    /// each its name, its data type, its rank, its dimensions and its data.
    pub(super) fn checksum(&self) -> String {
        let mut hasher = Sha256::new();
        let number = |hasher: &mut Sha256, number: usize| hasher.update((number as u64).to_le_bytes());
        let text = |hasher: &mut Sha256, text: &str| {
            number(hasher, text.len());
            hasher.update(text);
        };
        let entries: Vec<_> = self.metadata.iter().filter(|(key, _)| *key != CHECKSUM).collect();
        number(&mut hasher, entries.len());
        for (key, value) in entries {
            text(&mut hasher, key);
            text(&mut hasher, value);
        }
        number(&mut hasher, self.tensors.len());
        for (name, view) in &self.tensors {
            text(&mut hasher, name);
            text(&mut hasher, &view.dtype.to_string());
            number(&mut hasher, view.shape.len());
            view.shape.iter().for_each(|&dimension| number(&mut hasher, dimension));
            hasher.update(view.data);
        }
        hexadecimal(&hasher.finalize())
    }
}

/// Two lower-case digits per byte.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
