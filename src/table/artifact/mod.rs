//! Tables as files: what is compiled once can be shipped, and read by programs in any language.
//!
//! An artefact is a [safetensors](https://github.com/huggingface/safetensors) file: the arrays of a table as
//! tensors, and texts that tell where it comes from. `docs/artifact.md` holds the format. Reading one believes
//! nothing: whatever the bytes are, what comes of them is an error or a table whose lookups stay in bounds and whose
//! states all lead to the end.

mod arrays;
mod calls;
mod check;
mod container;
mod origin;
mod read;
mod stored;
mod vocabulary;
mod write;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use super::stack::Calls;
use super::{TableParts, TokenTable};
use crate::error::{Error, Result};
use crate::limits::{Limits, Meter};
use crate::vocabulary::Vocabulary;
use arrays::Form;
use container::Container;
pub use origin::Origin;
pub(super) use origin::to_json as limits_to_json;

/// What the metadata `format` says.
const FORMAT: &str = "burn-dfa token table";
/// What the metadata `format_version` may say: tables with calls have the last version, all others the first.
pub(super) const VERSIONS: [&str; 2] = ["1", "2"];

/// The file of a table, read but not yet believed; see the [module](super) for what it holds.
///
/// [`TokenTable::load`] is the short way to a table. This is for those who want to look into a file first.
///
/// ```
/// use burn_dfa::table::{Artifact, Origin};
/// use burn_dfa::{Constraint, Limits, TokenId, TokenTable, Vocabulary};
///
/// let vocabulary = Vocabulary::from_chars("ab.".chars())?.with_eos([TokenId(2)])?;
/// let (constraint, limits) = (Constraint::regex("ab*")?, Limits::default());
/// let table = TokenTable::compile(&constraint, &vocabulary, &limits)?;
/// let bytes = table.to_bytes(&Origin::new(&constraint, &limits))?;
///
/// let artifact = Artifact::from_bytes(&bytes)?;
/// assert_eq!(artifact.metadata("constraint"), Some(r#"{"regex":"ab*"}"#));
/// artifact.validate(&limits)?;
/// assert_eq!(artifact.to_table(&vocabulary, &limits)?, table);
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Artifact<'a> {
    container: Container<'a>,
    len: usize,
}

impl<'a> Artifact<'a> {
    /// Finds metadata and tensors in a safetensors file.
    ///
    /// # Errors
    /// [`Error::is_table`]: no such file, or one whose tensors overlap or lie outside.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self> {
        Ok(Self { container: Container::read(bytes)?, len: bytes.len() })
    }

    /// The text of a name: `format`, `format_version`, `library_version`, `form`, `start`, `fingerprint`, `frames`,
    /// `constraint`, `limits`, `checksum`, or what somebody else has added.
    pub fn metadata(&self, name: &str) -> Option<&str> {
        self.container.metadata.get(name).map(String::as_str)
    }

    /// All texts, by name.
    pub fn all_metadata(&self) -> &BTreeMap<String, String> {
        &self.container.metadata
    }

    /// Of each tensor its name, its data type as safetensors has it, its shape and its bytes, by name.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, String, &[usize], usize)> {
        let tensors = self.container.tensors.iter();
        tensors.map(|(name, view)| (&**name, view.dtype.to_string(), &*view.shape, view.data.len()))
    }

    /// Where the table comes from.
    pub fn origin(&self) -> Origin {
        Origin::of(self.metadata("constraint"), self.metadata("limits"))
    }

    /// Checks all that can be checked without the vocabulary: format, checksum, sizes, and that every lookup
    /// stays in bounds.
    ///
    /// # Errors
    /// - [`Error::is_table`], naming the metadata or the tensor;
    /// - [`Error::is_limit`]: larger than `limits` allow.
    pub fn validate(&self, limits: &Limits) -> Result<()> {
        let meter = Meter::start(limits);
        let (stored, _) = self.stored(&meter)?;
        stored.check()?;
        if stored.form == Form::Called {
            stored.ways(&meter)?;
        }
        Ok(())
    }

    /// The table, for the vocabulary that it was compiled for. Nothing in the file is taken on trust.
    ///
    /// # Errors
    /// As [`validate`](Self::validate); [`Error::is_incompatible_vocabulary`] for another vocabulary.
    pub fn to_table(&self, vocabulary: &Vocabulary, limits: &Limits) -> Result<TokenTable> {
        let meter = Meter::start(limits);
        let (stored, fingerprint) = self.stored(&meter)?;
        if fingerprint != vocabulary.fingerprint() {
            return Err(Error::incompatible_vocabulary(format!(
                "the artefact was compiled for vocabulary {fingerprint}, this one is {}: compile the constraint for it",
                vocabulary.fingerprint()
            )));
        }
        let counted = stored.check()?;
        stored.check_vocabulary(vocabulary)?;
        if !counted {
            stored.check_token_distances(vocabulary, &meter)?;
        }
        let called = if stored.form == Form::Called { Some(stored.calls(&meter)?) } else { None };
        finish(stored.into_parts(vocabulary), called)
    }

    /// The table of a client, of which only the bounds are checked: a client that lies about distances harms its own rows. A
    /// tabulated table needs no vocabulary.
    #[cfg(all(feature = "remote-server", feature = "flex"))]
    pub(crate) fn to_hosted(&self, vocabulary: &Vocabulary, limits: &Limits) -> Result<TokenTable> {
        let meter = Meter::start(limits);
        let (stored, fingerprint) = self.stored(&meter)?;
        stored.check_bounds()?;
        if stored.form == Form::Tabulated {
            return finish(stored.into_parts_of(fingerprint, vocabulary), None);
        }
        if stored.tokens() != vocabulary.len() || fingerprint != vocabulary.fingerprint() {
            return Err(broken("fingerprint", "of another vocabulary than that which came with the tables"));
        }
        let called = if stored.form == Form::Called { Some(stored.calls(&meter)?) } else { None };
        finish(stored.into_parts(vocabulary), called)
    }
}

/// What a table is made of once its arrays are checked.
fn finish(mut parts: TableParts, calls: Option<Calls>) -> Result<TokenTable> {
    if let Some(calls) = calls {
        parts.set_calls(calls);
    }
    parts.find_rests();
    let table = TokenTable { parts: Arc::new(parts), unrolled: None };
    table.validate()?;
    Ok(table)
}

/// A fault of an artefact, in one of its tensors or metadata.
fn broken(place: &str, what: impl Display) -> Error {
    Error::table(format!("artefact, `{place}`: {what}; compile the constraint again"))
}

/// Two lower-case digits a byte.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
