//! Logit bias.

use burn::tensor::{DType, IndexingUpdateOp, Tensor, TensorData};

use super::{InitContext, LogitsProcessor, RowParam, StepContext, in_range, of_batch};
use crate::tensor::ints;
use crate::vocabulary::TokenId;
use burn_dfa_tokens::{Error, Result};

/// Adds a bias to the logits of some tokens.
///
/// A bias is finite, so it never bans a token completely: a token with a bias of −100 is still
/// chosen if no other token is legal, and a bias of 100 makes no masked token legal. Biases of
/// equal tokens add up.
///
/// ```
/// use burn_dfa::{ErrorKind, TokenId};
/// use burn_dfa::processor::LogitBias;
///
/// assert!(LogitBias::new([(TokenId(7), -100.0)]).is_ok());
/// assert_eq!(
///     LogitBias::new([(TokenId(7), f32::NEG_INFINITY)]).unwrap_err().kind(),
///     ErrorKind::Input
/// );
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LogitBias {
    /// One entry per row, or one for all rows.
    rows: Vec<Vec<(TokenId, f32)>>,
}

impl LogitBias {
    /// The greatest bias, of either sign.
    pub const MAX: f32 = 100.0;

    /// The same bias in all rows; ids at or past the `vocab_size` of the logits have no effect.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) for a bias outside of −100 to 100.
    pub fn new(bias: impl IntoIterator<Item = (TokenId, f32)>) -> Result<Self> {
        Self::of_rows([bias.into_iter().collect()])
    }

    /// A bias for each row.
    pub(crate) fn of_rows(rows: impl IntoIterator<Item = Vec<(TokenId, f32)>>) -> Result<Self> {
        let rows: Vec<_> = rows.into_iter().collect();
        let wrong = rows.iter().flatten().find(|(_, bias)| !(-Self::MAX..=Self::MAX).contains(bias));
        if let Some((token, bias)) = wrong {
            return Err(Error::input(format!(
                "logit bias {bias} of token {token}: it must be from -100 to 100; what must never come is left out of \
                 the vocabulary of the constraint"
            )));
        }
        Ok(Self { rows })
    }
}

impl LogitsProcessor for LogitBias {
    /// `[batch, vocab_size]`, `f32`
    type State = RowParam<Tensor<2>>;

    fn init(&self, context: &InitContext) -> Self::State {
        let (rows, vocab_size, device) = (self.rows.len(), context.vocab_size, context.device());
        let longest = self.rows.iter().map(Vec::len).max().unwrap_or(0).max(1);
        // Short rows are padded with a bias of 0.
        let entries = self.rows.iter().flat_map(|row| {
            let inside = |&&(token, _): &&(TokenId, f32)| token.index() < vocab_size;
            let row = row.iter().filter(inside).map(|&(token, bias)| (token.0 as i32, bias));
            row.chain(std::iter::repeat((0, 0.0))).take(longest)
        });
        let (ids, biases): (Vec<i32>, Vec<f32>) = entries.unzip();
        let ids = ints(ids, &device).reshape([rows, longest]);
        let biases = TensorData::new(biases, [rows, longest]);
        let biases = Tensor::from_data(biases, (&device, DType::F32));
        let none = Tensor::zeros([rows, vocab_size], (&device, DType::F32));
        of_batch(none.scatter(1, ids, biases, IndexingUpdateOp::Add), context)
    }

    fn process(
        &self,
        bias: Self::State,
        logits: Tensor<2>,
        _context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        let dtype = logits.dtype();
        (in_range(logits, |logits| logits + bias.get().clone().cast(dtype)), bias)
    }
}
