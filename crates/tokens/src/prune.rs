//! A compiled constraint for a part of its vocabulary, such as the vocabulary of a draft model.

use std::sync::Arc;

use super::distance::Distances;
use super::{CompiledConstraint, ConstraintParts, Shortest, TokenReading};
use burn_dfa_common::{Error, Result};
use burn_dfa_vocabulary::{TokenId, Vocabulary};

impl CompiledConstraint {
    /// The same automaton, read in other ids: id *d* of the result is the token `ids[d]` of `self`.
    ///
    /// States keep their numbers and their distance to the end. A mask for a draft model with a
    /// reduced vocabulary (the map *draft id → target id* of EAGLE-3, Li et al., arXiv:2503.01840)
    /// is looked up in the target model's state. A state may allow none of the new ids: it has
    /// nothing to draft, but is no dead end.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits, StateId, TokenId, CompiledConstraint, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::from_bytes([Some("a"), Some("b"), Some("ab"), None])?
    ///     .with_eos([TokenId(3)])?;
    /// let compiled = CompiledConstraint::compile(
    ///     &Constraint::regex("ab")?,
    ///     &vocabulary,
    ///     &Limits::default(),
    /// )?;
    /// let pruned = compiled.prune(&vocabulary, &[TokenId(3), TokenId(2)])?;
    /// let start = compiled.start();
    /// assert_eq!(pruned.next(start, TokenId(1)), compiled.next(start, TokenId(2)));
    /// assert_eq!(pruned.next(start, TokenId(0)), StateId::DEAD);
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::IncompatibleVocabulary`](crate::ErrorKind::IncompatibleVocabulary): the
    ///   constraint was compiled for another vocabulary;
    /// - [`ErrorKind::Input`](crate::ErrorKind::Input): an id that the vocabulary does not have;
    /// - [`ErrorKind::Vocabulary`](crate::ErrorKind::Vocabulary): more ids than a vocabulary may
    ///   have.
    pub fn prune(&self, vocabulary: &Vocabulary, ids: &[TokenId]) -> Result<Self> {
        self.check_vocabulary(vocabulary)?;
        if let Some(at) = ids.iter().position(|id| id.index() >= vocabulary.len()) {
            return Err(Error::input(format!(
                "draft id {at} stands for token {}, the vocabulary has {} tokens",
                ids[at],
                vocabulary.len()
            )));
        }
        let content = |&id: &TokenId| (vocabulary.kind(id), vocabulary.content(id).unwrap_or_default());
        let ends = ids.iter().enumerate().filter(|(_, id)| vocabulary.eos().contains(id));
        let ends = ends.map(|(draft, _)| TokenId(draft as u32)).collect::<Vec<_>>();
        let own = Vocabulary::from_tokens(ids.iter().map(content))?.with_eos(ends)?;
        let parts = self.parts();
        let reading = match &parts.reading {
            TokenReading::Classes(class) => {
                let classes: Vec<u32> = ids.iter().filter_map(|&id| class.of(id)).collect();
                TokenReading::Classes(classes.into())
            }
            TokenReading::Bytes { column_of, special, char_transitions, .. } => TokenReading::Bytes {
                column_of: column_of.clone(),
                vocabulary: own.clone(),
                special: special.prune(ids),
                char_transitions: char_transitions.clone(),
            },
        };
        let parts = ConstraintParts {
            next: parts.next.clone(),
            reading,
            bound_to_end: parts.bound_to_end.clone(),
            distances: Distances::pruned_from(&self.parts),
            calls: parts.calls.clone(),
            shortest: match parts.shortest {
                Shortest::Any => Shortest::Any,
                _ => Shortest::Known(parts.all_shortest().into()),
            },
            class_tokens: Default::default(),
            start: parts.start,
            vocabulary_len: own.len(),
            fingerprint: own.fingerprint(),
        };
        Ok(Self { parts: Arc::new(parts), unrolled: self.unrolled })
    }
}
