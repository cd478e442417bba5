//! Compiled constraints as files: compile once, ship the file, and read it in any language.
//!
//! An artifact is a [safetensors](https://github.com/huggingface/safetensors) file: the arrays of a
//! compiled constraint as tensors, and texts about its origin. `docs/artifact.md` describes the
//! format. Reading trusts nothing: any input results in an error or a compiled constraint with
//! in-bounds lookups and a path from every state to the end.

mod arrays;
mod calls;
mod check;
mod container;
mod error;
mod origin;
mod read;
mod stored;
mod vocabulary;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::distance::Distances;
use super::stack::Calls;
use super::{CompiledConstraint, ConstraintParts, Shortest};
use arrays::{Form, StoredArray};
use burn_dfa_common::{Error, Limits, Result, limits::Meter};
use burn_dfa_vocabulary::Vocabulary;
use container::Container;
pub(super) use container::hexadecimal;
use error::broken;
pub use origin::Origin;
pub(super) use origin::to_json as limits_to_json;

/// The value of the metadata `format`.
const FORMAT: &str = "burn-dfa compiled constraint";
/// The value of the metadata `format_version`.
pub(super) const VERSION: &str = "1";

/// The file of a compiled constraint, parsed but not yet validated; see the [module](super) for its
/// content.
///
/// [`CompiledConstraint::load`] is the direct way to a constraint. Use `Artifact` to inspect a file
/// first.
///
/// ```
/// use burn_dfa_tokens::{Artifact, Origin};
/// use burn_dfa_tokens::{Constraint, Limits, TokenId, CompiledConstraint, Vocabulary};
///
/// let vocabulary = Vocabulary::from_chars("ab.".chars())?.with_eos([TokenId(2)])?;
/// let (constraint, limits) = (Constraint::regex("ab*")?, Limits::default());
/// let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &limits)?;
/// let bytes = compiled.to_bytes(&Origin::new(&constraint, &limits))?;
///
/// let artifact = Artifact::from_bytes(&bytes)?;
/// assert_eq!(artifact.metadata("constraint"), Some(r#"{"regex":"ab*"}"#));
/// artifact.validate(&limits)?;
/// assert_eq!(artifact.to_constraint(&vocabulary, &limits)?, compiled);
/// # Ok::<(), burn_dfa_tokens::Error>(())
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
    /// [`ErrorKind::Artifact`](crate::ErrorKind::Artifact): not a safetensors file, or a file with
    /// tensors that overlap or lie outside.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self> {
        Ok(Self { container: Container::read(bytes)?, len: bytes.len() })
    }

    /// The text of a name: `format`, `format_version`, `library_version`, `form`, `start`,
    /// `fingerprint`, `frames`, `constraint`, `limits`, `checksum`, or a name added by another
    /// program.
    pub fn metadata(&self, name: &str) -> Option<&str> {
        self.container.metadata.get(name).map(String::as_str)
    }

    /// All texts, by name.
    pub fn all_metadata(&self) -> &BTreeMap<String, String> {
        &self.container.metadata
    }

    /// The name of each tensor, its safetensors data type, its shape and its size in bytes, by
    /// name.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, String, &[usize], usize)> {
        let tensors = self.container.tensors.iter();
        tensors.map(|(name, view)| (&**name, view.dtype.to_string(), &*view.shape, view.data.len()))
    }

    /// The origin of the compiled constraint.
    pub fn origin(&self) -> Origin {
        Origin::of(self.metadata("constraint"), self.metadata("limits"))
    }

    /// Checks everything that does not need the vocabulary: format, checksum, sizes, and that every
    /// lookup stays in bounds.
    ///
    /// # Errors
    /// - [`ErrorKind::Artifact`](crate::ErrorKind::Artifact), naming the metadata or the tensor;
    /// - [`ErrorKind::Limit`](crate::ErrorKind::Limit): the file exceeds `limits`.
    pub fn validate(&self, limits: &Limits) -> Result<()> {
        let meter = Meter::start(limits);
        let (stored, _) = self.stored(&meter)?;
        stored.check()?;
        if stored.form == Form::Pushdown {
            stored.spelled_distances(&meter)?;
        }
        Ok(())
    }

    /// The compiled constraint, for its own vocabulary. Nothing in the file is trusted.
    ///
    /// # Errors
    /// As [`validate`](Self::validate);
    /// [`ErrorKind::IncompatibleVocabulary`](crate::ErrorKind::IncompatibleVocabulary) for another
    /// vocabulary.
    pub fn to_constraint(&self, vocabulary: &Vocabulary, limits: &Limits) -> Result<CompiledConstraint> {
        let meter = Meter::start(limits);
        let (stored, fingerprint) = self.stored(&meter)?;
        if fingerprint != vocabulary.fingerprint() {
            return Err(Error::incompatible_vocabulary(format!(
                "the artifact was compiled for vocabulary {fingerprint}, this one is {}: compile the constraint for it",
                vocabulary.fingerprint()
            )));
        }
        let counted = stored.check()?;
        stored.check_vocabulary(vocabulary)?;
        if !counted {
            stored.check_token_distances(vocabulary, &meter)?;
        }
        let called = if stored.form == Form::Pushdown { Some(stored.calls(&meter)?) } else { None };
        let frames = stored[StoredArray::FramesToExit].to_vec();
        let is_exact = stored.form == Form::ByteLevel && !counted;
        let mut constraint = finish(stored.into_parts(vocabulary), called)?;
        let parts = Arc::make_mut(&mut constraint.parts);
        parts.check_shortest()?;
        parts.find_shortest();
        if is_exact {
            parts.distances = Distances::exact();
        }
        // Distances in tokens are not read: the constraint finds its own when a budget needs them.
        if !frames.is_empty() {
            parts.check_frames(&frames)?;
        }
        Ok(constraint)
    }

    /// The compiled constraint of a client, with only its bounds checked: a client with wrong
    /// distances harms its own rows. A token-level constraint needs no vocabulary.
    #[doc(hidden)]
    pub fn to_server_constraint(
        &self,
        vocabulary: &Vocabulary,
        limits: &Limits,
    ) -> Result<CompiledConstraint> {
        let meter = Meter::start(limits);
        let (stored, fingerprint) = self.stored(&meter)?;
        stored.check_bounds()?;
        if stored.form == Form::TokenLevel {
            return finish(stored.into_parts_of(fingerprint, vocabulary), None);
        }
        if stored.tokens() != vocabulary.len() || fingerprint != vocabulary.fingerprint() {
            return Err(broken("fingerprint", "of another vocabulary than that of the constraints"));
        }
        let called = if stored.form == Form::Pushdown { Some(stored.calls(&meter)?) } else { None };
        let distances = stored.distances();
        let mut parts = stored.into_parts(vocabulary);
        if let Some(distances) = distances {
            parts.distances = Distances::stored(distances);
        }
        finish(parts, called)
    }
}

impl ConstraintParts {
    /// Checks distances in tokens against the distances that the constraint finds itself.
    fn check_distances(&self, array: StoredArray, distances: &[u32]) -> Result<()> {
        self.check_by_exit(array, distances, &self.all_distances())
    }

    /// Checks the frames of the paths of an artifact.
    fn check_frames(&self, frames: &[u32]) -> Result<()> {
        let own = self.calls.as_ref().map(|calls| &*calls.frames);
        self.check_by_exit(StoredArray::FramesToExit, frames, own.unwrap_or_default())
    }

    fn check_by_exit(&self, array: StoredArray, found: &[u32], own: &[u32]) -> Result<()> {
        match found.iter().zip(own).position(|(found, own)| found != own) {
            Some(at) => {
                let state = at / self.calls.as_ref().map_or(1, |calls| calls.exits);
                let what = format!("state {state}: {} instead of {}", found[at], own[at]);
                Err(broken(array.declare().name, what))
            }
            None => Ok(()),
        }
    }
}

/// The compiled constraint of checked arrays.
fn finish(mut parts: ConstraintParts, calls: Option<Calls>) -> Result<CompiledConstraint> {
    if let Some(calls) = calls {
        parts.set_calls(calls);
    }
    parts.find_rests();
    let constraint = CompiledConstraint { parts: Arc::new(parts), unrolled: None };
    constraint.validate()?;
    Ok(constraint)
}

impl ConstraintParts {
    /// Checks the stored least number of bytes of a legal token against the constraint.
    fn check_shortest(&self) -> Result<()> {
        if !matches!(self.shortest, Shortest::Known(_)) {
            return Ok(());
        }
        let mut own = self.clone();
        own.find_shortest();
        let both = self.all_shortest().into_iter().zip(own.all_shortest());
        match both.enumerate().find(|(_, (found, own))| found != own) {
            Some((state, (found, own))) => {
                Err(broken("shortest", format!("state {state}: {found} instead of {own}")))
            }
            None => Ok(()),
        }
    }

    /// Computes the numbers on demand from now on, under
    /// [`ForcedText::Longest`](crate::ForcedText::Longest).
    fn find_shortest(&mut self) {
        if self.shortest != Shortest::Any {
            self.shortest = Shortest::Found;
        }
    }
}
