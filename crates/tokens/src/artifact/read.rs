//! Reading an artifact.

use std::path::Path;

use super::arrays::Form;
use super::container::CHECKSUM;
use super::error::broken;
use super::stored::StoredTable;
use super::{Artifact, FORMAT, VERSION};
use crate::{CompiledConstraint, StateId};
use burn_dfa_common::{Error, Limit, Limits, Result, limits::Meter};
use burn_dfa_vocabulary::{Fingerprint, Vocabulary};

impl Artifact<'_> {
    /// The arrays with only their shapes checked, and the fingerprint of their vocabulary.
    pub(super) fn stored(&self, meter: &Meter) -> Result<(StoredTable<'static>, Fingerprint)> {
        meter.bytes(self.len)?;
        let text = |name: &str| self.metadata(name).ok_or_else(|| broken(name, "it is missing"));
        if self.metadata("format") != Some(FORMAT) {
            return Err(broken("format", format!("a safetensors file, but not of a {FORMAT}")));
        }
        let version = text("format_version")?;
        if version != VERSION {
            return Err(broken("format_version", format!("{version:?}, this library reads {VERSION}")));
        }
        if text(CHECKSUM)? != self.container.checksum() {
            return Err(broken(CHECKSUM, "the contents have another: the file is damaged"));
        }
        let hexadecimal = text("fingerprint")?;
        let fingerprint =
            fingerprint(hexadecimal).ok_or_else(|| broken("fingerprint", "not 64 hexadecimal digits"))?;
        let start = text("start")?;
        let start = start.parse().map_err(|_| broken("start", format!("{start:?} is no state")))?;
        let form = text("form")?;
        let form = Form::ALL.into_iter().find(|own| own.to_string() == form).ok_or_else(|| {
            let known = Form::ALL.map(|form| form.to_string()).join(", ");
            broken("form", format!("{form:?}, which is none of {known}"))
        })?;
        let frames = match form {
            Form::Pushdown => self.frames(text("frames")?)?,
            _ => 0,
        };
        let stored = StoredTable::read(&self.container, form, (StateId(start), frames), meter)?;
        Ok((stored, fingerprint))
    }

    /// The frames of a stack.
    fn frames(&self, text: &str) -> Result<usize> {
        let frames = text.parse().ok().filter(|frames| (1..=Limits::MAX_FRAMES).contains(frames));
        let max = Limits::MAX_FRAMES;
        frames.ok_or_else(|| broken("frames", format!("{text:?} is no number from 1 to {max}")))
    }
}

impl CompiledConstraint {
    /// The compiled constraint of an artifact, for its own vocabulary. Nothing is trusted: see
    /// [`Artifact`].
    ///
    /// # Errors
    /// - [`ErrorKind::Artifact`](crate::ErrorKind::Artifact), naming the metadata or the tensor:
    ///   not an artifact, another version, or a damaged file;
    /// - [`ErrorKind::IncompatibleVocabulary`](crate::ErrorKind::IncompatibleVocabulary): an
    ///   artifact of another vocabulary;
    /// - [`ErrorKind::Limit`](crate::ErrorKind::Limit): the file exceeds `limits`.
    pub fn from_bytes(bytes: &[u8], vocabulary: &Vocabulary, limits: &Limits) -> Result<Self> {
        Artifact::from_bytes(bytes)?.to_constraint(vocabulary, limits)
    }

    /// Reads a file written by [`save`](Self::save); a file of more than [`Limits::bytes`] is
    /// refused unread.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes); [`ErrorKind::Artifact`](crate::ErrorKind::Artifact) if
    /// the file cannot be read.
    pub fn load(path: impl AsRef<Path>, vocabulary: &Vocabulary, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        let cannot = |error| Error::artifact(format!("cannot read {}: {error}", path.display()));
        let len = std::fs::metadata(path).map_err(cannot)?.len();
        if len > limits.bytes as u64 {
            return Err(Error::limit(Limit::Bytes(limits.bytes)));
        }
        Self::from_bytes(&std::fs::read(path).map_err(cannot)?, vocabulary, limits)
    }
}

fn fingerprint(hexadecimal: &str) -> Option<Fingerprint> {
    let digits = hexadecimal.as_bytes();
    let value = |digit: u8| char::from(digit).to_digit(16).filter(|_| !digit.is_ascii_uppercase());
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|&[high, low]| Some((value(high)? << 4 | value(low)?) as u8)).collect();
    let bytes = bytes.filter(|_| rest.is_empty())?;
    Some(Fingerprint(bytes.try_into().ok()?))
}
