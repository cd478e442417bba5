//! Masks on the CPU: the legal tokens of a position, and logits without the illegal tokens.

mod cache;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod reference;
mod row;
mod search;
mod simd;
mod thresholds;
mod token_mask;

use std::ops::Range;
use std::sync::Arc;

use burn_dfa_vocabulary::TokenId;

use self::cache::MaskCache;
pub use self::row::Logit;
use self::search::Row;
pub use self::thresholds::Thresholds;
pub use self::token_mask::TokenMask;
use crate::{CompiledConstraint, RowPosition};

/// Masks logits in the memory of the host. It caches the masks of the latest new positions.
///
/// ```
/// use burn_dfa_tokens::{
///     CompiledConstraint, Constraint, Limits, Masker, RowPosition, TokenId, Vocabulary,
/// };
///
/// let vocabulary =
///     Vocabulary::from_bytes([Some("yes"), Some("no"), None])?.with_eos([TokenId(2)])?;
/// let compiled =
///     CompiledConstraint::compile(&Constraint::choice(["no"])?, &vocabulary, &Limits::default())?;
/// let masker = Masker::new(&compiled);
///
/// let start = RowPosition::unlimited(compiled.start());
/// let mut logits = [0.9, 0.1, 0.5];
/// masker.mask(&start, &mut logits);
/// assert_eq!(logits, [f32::NEG_INFINITY, 0.1, f32::NEG_INFINITY]);
/// assert_eq!(masker.tokens(&start), [TokenId(1)]);
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Debug)]
pub struct Masker {
    constraint: CompiledConstraint,
    cache: MaskCache,
    thresholds: Thresholds,
}

impl Masker {
    /// The size of the cache of [`new`](Self::new): 4 MiB.
    pub const CACHE_BYTES: usize = 4 << 20;

    /// A masker for positions of `constraint`.
    pub fn new(constraint: &CompiledConstraint) -> Self {
        Self::with_cache_bytes(constraint, Self::CACHE_BYTES)
    }

    /// A masker for positions of `constraint` with a cache of at most `bytes`.
    pub fn with_cache_bytes(constraint: &CompiledConstraint, bytes: usize) -> Self {
        Self::with_thresholds(constraint, bytes, Thresholds::default())
    }

    /// The same with other thresholds. The masker uses the steps that other maskers kept in
    /// `constraint`.
    #[doc(hidden)]
    pub fn with_thresholds(constraint: &CompiledConstraint, bytes: usize, thresholds: Thresholds) -> Self {
        Self { constraint: constraint.clone(), cache: MaskCache::new(bytes), thresholds }
    }

    /// The constraint.
    pub fn constraint(&self) -> &CompiledConstraint {
        &self.constraint
    }

    /// The legal tokens at `position`, in order.
    ///
    /// # Panics
    /// If the state of `position` is not a state of the constraint.
    pub fn tokens(&self, position: &RowPosition) -> Vec<TokenId> {
        self.legal(position).0.to_bits(self.constraint.vocabulary_len()).ones().map(TokenId).collect()
    }

    /// Writes −∞ over the logits of illegal tokens at `position`, and over logits past the
    /// vocabulary.
    ///
    /// # Panics
    /// If there are fewer logits than [tokens](CompiledConstraint::vocabulary_len), or if the state
    /// of `position` is not a state of the constraint.
    pub fn mask<L: Logit>(&self, position: &RowPosition, logits: &mut [L]) {
        self.apply(&self.legal(position).0, logits);
    }

    /// The legal token with the greatest logit at `position`: the lowest id of equal logits, the
    /// first NaN before all numbers, 0 if all logits are −∞. May overwrite `logits`.
    ///
    /// # Panics
    /// As [`mask`](Self::mask).
    pub fn greatest<L: Logit>(&self, position: &RowPosition, logits: &mut [L]) -> TokenId {
        self.check_len(logits);
        TokenId(row::greatest(logits, self.constraint.vocabulary_len(), &self.legal(position).0))
    }

    /// The same for `score(logit, id)`, which must keep −∞.
    #[doc(hidden)]
    pub fn best_by<L: Logit>(
        &self,
        position: &RowPosition,
        logits: &mut [L],
        score: impl Fn(f32, u32) -> f32,
    ) -> TokenId {
        self.check_len(logits);
        TokenId(row::best_by(logits, self.constraint.vocabulary_len(), &self.legal(position).0, score))
    }

    /// The mask, and the budgets after the next token that have the same mask.
    #[doc(hidden)]
    pub fn legal(&self, position: &RowPosition) -> (Arc<TokenMask>, Range<u32>) {
        search::legal(&self.row(position))
    }

    fn row<'a>(&'a self, position: &'a RowPosition) -> Row<'a> {
        Row { constraint: &self.constraint, position, cache: &self.cache, thresholds: &self.thresholds }
    }

    /// Writes −∞ over the logits of tokens that are not in a mask of this constraint.
    #[doc(hidden)]
    pub fn apply<L: Logit>(&self, mask: &TokenMask, logits: &mut [L]) {
        self.check_len(logits);
        row::mask(logits, self.constraint.vocabulary_len(), mask);
    }

    fn check_len<L>(&self, logits: &[L]) {
        let (len, tokens) = (logits.len(), self.constraint.vocabulary_len());
        assert!(
            len >= tokens,
            "{len} logits for a vocabulary of {tokens} tokens: pass one logit for each token"
        );
    }
}
