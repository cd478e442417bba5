//! [`Metadata`]: the keys and values of a GGUF file.

use std::collections::BTreeMap;

use crate::error::GgufError;
use crate::header::Kind;

/// The keys and values of a GGUF file.
///
/// Values stay in the bytes of the header, which were checked to be complete. A reader of a value
/// returns `None` if the key is missing, and an error if the value has another type.
///
/// ```no_run
/// use burn_dfa_gguf::GgufFile;
///
/// let file = GgufFile::open("SmolLM2-135M-Instruct.Q4_1.gguf")?;
/// assert_eq!(file.metadata().text("general.architecture")?, Some("llama"));
/// assert_eq!(file.metadata().unsigned("llama.block_count")?, Some(30));
/// # Ok::<(), burn_dfa_gguf::GgufError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    /// The header of the file.
    bytes: Vec<u8>,
    /// The type of each value, and its offset.
    values: BTreeMap<String, (Kind, usize)>,
}

impl Metadata {
    pub(crate) fn new(bytes: Vec<u8>, values: BTreeMap<String, (Kind, usize)>) -> Self {
        Self { bytes, values }
    }

    /// The keys in alphabetical order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// A string.
    ///
    /// # Errors
    /// [`GgufError::Metadata`]: the value is no string, or not UTF-8.
    pub fn text(&self, key: &str) -> Result<Option<&str>, GgufError> {
        match self.values.get(key) {
            None => Ok(None),
            Some(&(Kind::String, at)) => {
                let text = str::from_utf8(self.string_at(at).0);
                text.map(Some).map_err(|_| GgufError::metadata(key, "is not UTF-8"))
            }
            Some(_) => Err(GgufError::metadata(key, "is no string")),
        }
    }

    /// An integer of any size that is not negative.
    ///
    /// # Errors
    /// [`GgufError::Metadata`]: the value is no such integer.
    pub fn unsigned(&self, key: &str) -> Result<Option<u64>, GgufError> {
        let Some(&(kind, at)) = self.values.get(key) else { return Ok(None) };
        let number = self.integer_at(kind, at).and_then(|number| u64::try_from(number).ok());
        number.map(Some).ok_or_else(|| GgufError::metadata(key, "is no number that counts something"))
    }

    /// A number. A 32-bit float becomes the shortest decimal that it is the nearest float of, such
    /// as 0.00001.
    ///
    /// # Errors
    /// [`GgufError::Metadata`]: the value is no number.
    pub fn number(&self, key: &str) -> Result<Option<f64>, GgufError> {
        let Some(&(kind, at)) = self.values.get(key) else { return Ok(None) };
        self.number_at(kind, at).map(Some).ok_or_else(|| GgufError::metadata(key, "is no number"))
    }

    /// A truth value.
    ///
    /// # Errors
    /// [`GgufError::Metadata`]: the value is neither true nor false.
    pub fn truth(&self, key: &str) -> Result<Option<bool>, GgufError> {
        let Some(&(kind, at)) = self.values.get(key) else { return Ok(None) };
        match (kind, self.bytes[at]) {
            (Kind::Bool, byte @ 0..=1) => Ok(Some(byte == 1)),
            _ => Err(GgufError::metadata(key, "is neither true nor false")),
        }
    }

    /// An array of strings.
    ///
    /// # Errors
    /// [`GgufError::Metadata`]: the value is no array of strings, or one of them is not UTF-8.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<&str>>, GgufError> {
        let Some((kind, count, mut at)) = self.array(key)? else { return Ok(None) };
        if kind != Kind::String {
            return Err(GgufError::metadata(key, "is no array of strings"));
        }
        let mut texts = Vec::with_capacity(count);
        for index in 0..count {
            let (text, next) = self.string_at(at);
            let text = str::from_utf8(text)
                .map_err(|_| GgufError::metadata(key, format!("is not UTF-8 at its entry {index}")))?;
            texts.push(text);
            at = next;
        }
        Ok(Some(texts))
    }

    /// An array of numbers of one type.
    ///
    /// # Errors
    /// [`GgufError::Metadata`]: the value is no array of numbers.
    pub fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>, GgufError> {
        let Some((kind, count, at)) = self.array(key)? else { return Ok(None) };
        let size = kind.size().unwrap_or(0);
        let numbers: Option<Vec<f64>> =
            (0..count).map(|index| self.number_at(kind, at + index * size)).collect();
        numbers.map(Some).ok_or_else(|| GgufError::metadata(key, "is no array of numbers"))
    }

    /// Whether a value is an array.
    pub(crate) fn is_array(&self, key: &str) -> bool {
        matches!(self.values.get(key), Some((Kind::Array, _)))
    }

    /// The type, the length and the offset of the entries of an array.
    fn array(&self, key: &str) -> Result<Option<(Kind, usize, usize)>, GgufError> {
        match self.values.get(key) {
            None => Ok(None),
            Some(&(Kind::Array, at)) => {
                let kind = Kind::from_id(u32::from_le_bytes(self.bytes_at(at)));
                let count = u64::from_le_bytes(self.bytes_at(at + 4)) as usize;
                Ok(kind.map(|kind| (kind, count, at + 12)))
            }
            Some(_) => Err(GgufError::metadata(key, "is no array")),
        }
    }

    /// The string at an offset, and the offset of its end.
    fn string_at(&self, at: usize) -> (&[u8], usize) {
        let start = at + 8;
        let end = start + u64::from_le_bytes(self.bytes_at(at)) as usize;
        (&self.bytes[start..end], end)
    }

    fn integer_at(&self, kind: Kind, at: usize) -> Option<i128> {
        Some(match kind {
            Kind::U8 => u8::from_le_bytes(self.bytes_at(at)).into(),
            Kind::I8 => i8::from_le_bytes(self.bytes_at(at)).into(),
            Kind::U16 => u16::from_le_bytes(self.bytes_at(at)).into(),
            Kind::I16 => i16::from_le_bytes(self.bytes_at(at)).into(),
            Kind::U32 => u32::from_le_bytes(self.bytes_at(at)).into(),
            Kind::I32 => i32::from_le_bytes(self.bytes_at(at)).into(),
            Kind::U64 => u64::from_le_bytes(self.bytes_at(at)).into(),
            Kind::I64 => i64::from_le_bytes(self.bytes_at(at)).into(),
            _ => return None,
        })
    }

    fn number_at(&self, kind: Kind, at: usize) -> Option<f64> {
        match kind {
            Kind::F32 => decimal(f32::from_le_bytes(self.bytes_at(at))),
            Kind::F64 => Some(f64::from_le_bytes(self.bytes_at(at))),
            _ => self.integer_at(kind, at).map(|number| number as f64),
        }
    }

    /// The bytes of a value. They were there when the header was read.
    fn bytes_at<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.bytes[at..at + N]);
        bytes
    }
}

/// The shortest decimal that rounds to `float`.
fn decimal(float: f32) -> Option<f64> {
    float.to_string().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::decimal;

    #[test]
    fn floats_become_the_decimals_they_were_written_as() {
        for (float, expected) in [(1e-5, 1e-5), (1e6, 1e6), (0.1, 0.1), (f32::MAX, 3.4028235e38)] {
            assert_eq!(decimal(float), Some(expected));
        }
        assert!(decimal(f32::NAN).is_some_and(f64::is_nan));
    }
}
