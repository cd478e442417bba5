//! What is asked of a generation and what comes back.

use crate::error::{Error, Result};
use crate::table::TokenTable;
use crate::tensor::TensorOptions;
use crate::vocabulary::TokenId;

/// One row of a batch: a prompt, its constraint and its budget.
///
/// ```
/// use burn_dfa::TokenId;
/// use burn_dfa::generation::Request;
///
/// let request = Request::new(vec![TokenId(1), TokenId(2)], 64).with_seed(3);
/// assert!(request.table.is_none()); // unconstrained
/// ```
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The prompt, at least one token.
    pub prompt: Vec<TokenId>,
    /// Most tokens to generate, end of sequence included. A constrained output is complete within them.
    pub max_tokens: usize,
    /// The constraint; `None`: free text.
    pub table: Option<&'a TokenTable>,
    /// The seed of the row where tokens are sampled.
    pub seed: u64,
}

impl<'a> Request<'a> {
    /// An unconstrained request with seed 0.
    pub fn new(prompt: Vec<TokenId>, max_tokens: usize) -> Self {
        Self { prompt, max_tokens, table: None, seed: 0 }
    }

    /// With a constraint.
    pub fn with_table(self, table: &'a TokenTable) -> Self {
        Self { table: Some(table), ..self }
    }

    /// With a seed.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }
}

/// How tokens are chosen, for all rows of a batch.
///
/// ```
/// use burn_dfa::generation::Options;
///
/// let greedy = Options::default();
/// let sampled = Options { temperature: Some(0.8), min_p: Some(0.05), ..Options::default() };
/// assert!(greedy.temperature.is_none());
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// Sample at this temperature; `None`: greedy. Default: `None`.
    pub temperature: Option<f32>,
    /// Keep the `k` likeliest tokens, see [`TopK`](crate::processor::TopK). Default: `None`.
    pub top_k: Option<usize>,
    /// Keep the likeliest tokens of this probability together, see [`TopP`](crate::processor::TopP).
    /// Default: `None`.
    pub top_p: Option<f32>,
    /// Keep tokens of at least this fraction of the likeliest, see [`MinP`](crate::processor::MinP).
    /// Default: `None`.
    pub min_p: Option<f32>,
    /// See [`RepetitionPenalty`](crate::processor::RepetitionPenalty). Default: `None`.
    pub repetition_penalty: Option<f32>,
    /// Tokens to avoid, see [`Suppress`](crate::processor::Suppress). Default: none.
    pub suppress: Vec<TokenId>,
    /// Least tokens before the end, see [`MinNewTokens`](crate::processor::MinNewTokens). Default: 0.
    pub min_new_tokens: usize,
    /// Steps between two reads of the host, which streams and stops there. Default: 8.
    pub read_every: usize,
    /// How the constraint lies on the device.
    pub tensors: TensorOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            temperature: None,
            top_k: None,
            top_p: None,
            min_p: None,
            repetition_penalty: None,
            suppress: Vec::new(),
            min_new_tokens: 0,
            read_every: 8,
            tensors: TensorOptions::default(),
        }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<()> {
        if self.read_every == 0 {
            return Err(Error::input(
                "read_every of 0: the host must read at least now and then; use 1 or more",
            ));
        }
        Ok(())
    }
}

/// Why a row ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finish {
    /// An end-of-sequence token: the output is complete.
    EndOfSequence,
    /// `max_tokens` were generated; only rows without a constraint end so.
    MaxTokens,
    /// The callback asked to stop.
    Cancelled,
}

/// What a row generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The tokens, the end-of-sequence token included where there is one.
    pub tokens: Vec<TokenId>,
    /// The bytes of the text tokens.
    pub bytes: Vec<u8>,
    /// Why the row ended.
    pub finish: Finish,
}

impl Output {
    /// The text; U+FFFD where the bytes are not UTF-8, which unconstrained rows may produce.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Whether the row ended by itself.
    pub fn is_complete(&self) -> bool {
        self.finish == Finish::EndOfSequence
    }
}

/// A piece of a row's output, as it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The row of the batch.
    pub row: usize,
    /// The text that is complete, in whole characters; may be empty.
    pub text: &'a str,
    /// The new tokens.
    pub tokens: &'a [TokenId],
}
