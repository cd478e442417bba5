//! Compilation as a method of a constraint.

use burn_dfa_common::{Limits, Result};
use burn_dfa_constraints::Constraint;
use burn_dfa_vocabulary::Vocabulary;

use crate::CompiledConstraint;

/// Compiles a constraint for a vocabulary, within the default [`Limits`].
///
/// [`CompiledConstraint::compile`] takes other limits.
///
/// ```
/// use burn_dfa_tokens::{Compile, Constraint, TokenId, Vocabulary};
///
/// let vocabulary = Vocabulary::from_bytes([Some("a"), None])?.with_eos([TokenId(1)])?;
/// let compiled = Constraint::regex("a{3}")?.compile(&vocabulary)?;
/// assert_eq!(compiled.tokens_to_end(compiled.start()), 4);
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
pub trait Compile {
    /// The constraint over the tokens of `vocabulary`.
    ///
    /// # Errors
    /// As [`CompiledConstraint::compile`].
    fn compile(&self, vocabulary: &Vocabulary) -> Result<CompiledConstraint>;
}

impl Compile for Constraint {
    fn compile(&self, vocabulary: &Vocabulary) -> Result<CompiledConstraint> {
        CompiledConstraint::compile(self, vocabulary, &Limits::default())
    }
}
