//! What is asked of a generation and what comes back.

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer};

use super::cancel::Cancel;
use super::logprobs::TokenLogprobs;
use super::options::SamplingOptions;
use crate::error::{Error, Result};
use crate::table::{PendingTable, TokenTable};
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
    pub max_new_tokens: usize,
    /// The constraint; `None`: free text.
    pub table: Option<&'a TokenTable>,
    /// The constraint where it is still being compiled, instead of [`table`](Self::table), in [`Slots`](super::Slots) alone.
    pub pending: Option<PendingTable>,
    /// The seed of the row where tokens are sampled.
    pub seed: u64,
    /// How tokens are chosen; `None`: as [`GenerationConfig::sampling`](super::GenerationConfig::sampling) says.
    pub sampling: Option<SamplingOptions>,
    /// Texts before which the output ends, see [`Finish::Stop`], however short it is. Default: none.
    pub stop: Vec<String>,
    /// Ends the row early.
    pub cancel: Cancel,
    /// With a [prefix cache](super::GenerationConfig::prefix_cache), the row shares what was read with requests of the same
    /// salt alone. Default: none.
    pub cache_salt: Option<String>,
}

impl<'a> Request<'a> {
    /// An unconstrained request with seed 0.
    pub fn new(prompt: Vec<TokenId>, max_new_tokens: usize) -> Self {
        Self {
            prompt,
            max_new_tokens,
            table: None,
            pending: None,
            seed: 0,
            sampling: None,
            stop: Vec::new(),
            cancel: Cancel::default(),
            cache_salt: None,
        }
    }

    /// With a constraint.
    pub fn with_table(self, table: &'a TokenTable) -> Self {
        Self { table: Some(table), ..self }
    }

    /// With a constraint that is still being compiled: in [`Slots`](super::Slots) the prompt is read meanwhile.
    pub fn with_pending(self, pending: &PendingTable) -> Self {
        Self { pending: Some(pending.clone()), ..self }
    }

    /// With a seed.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// With options of its own.
    pub fn with_sampling(self, sampling: SamplingOptions) -> Self {
        Self { sampling: Some(sampling), ..self }
    }

    /// With texts before which the output ends.
    pub fn with_stop<S: Into<String>>(self, stop: impl IntoIterator<Item = S>) -> Self {
        Self { stop: stop.into_iter().map(Into::into).collect(), ..self }
    }

    /// With a flag that ends the row early.
    pub fn with_cancel(self, cancel: &Cancel) -> Self {
        Self { cancel: cancel.clone(), ..self }
    }

    /// Shares what was read with requests of the same [salt](Self::cache_salt) alone.
    pub fn with_cache_salt(self, salt: impl Into<String>) -> Self {
        Self { cache_salt: Some(salt.into()), ..self }
    }
}

/// Why a row ended.
///
/// ```
/// use burn_dfa::generation::{Finish, Output};
///
/// fn advice(output: &Output) -> &'static str {
///     match output.finish {
///         Finish::EndOfSequence => "complete",
///         Finish::MaxNewTokens => "cut off: raise max_new_tokens, or give the request a constraint",
///         _ => "cancelled",
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finish {
    /// An end-of-sequence token: the output is complete.
    #[default]
    EndOfSequence,
    /// One of the request's [`stop`](Request::stop) strings came: the output ends before it.
    ///
    /// A stop string ends a row wherever it comes, in a row with a constraint as well: its text is then a beginning of a
    /// text of the constraint, and need not be one itself. To end a constrained row only where the constraint does, give
    /// it no stop strings.
    Stop,
    /// `max_new_tokens` were generated; only rows without a constraint end so.
    MaxNewTokens,
    /// The callback asked to stop, or the request's [`Cancel`].
    Cancelled,
}

/// What a row generated.
///
/// ```
/// use burn_dfa::generation::{Finish, Output};
///
/// let output = Output { bytes: b"caf\xc3\xa9".to_vec(), ..Output::default() };
/// assert!(output.is_complete());
/// assert_eq!(output.text(), "café");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The tokens, the end-of-sequence token included where there is one; those of a stop string as well.
    pub tokens: Vec<TokenId>,
    /// The bytes of the text tokens, up to a stop string.
    pub bytes: Vec<u8>,
    /// Of every token, where the [config](super::GenerationConfig::logprobs) asks for them; else empty.
    pub logprobs: Vec<TokenLogprobs>,
    /// Why the row ended.
    pub finish: Finish,
}

impl Output {
    /// The text; U+FFFD where the bytes are not UTF-8, which unconstrained rows may produce.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Whether the row ended by itself, at the end of the sequence.
    pub fn is_complete(&self) -> bool {
        self.finish == Finish::EndOfSequence
    }

    /// Reads the output, which is JSON, as a value.
    ///
    /// It never fails on a complete output under the constraint of `T` itself, see `Constraint::of`, unless the
    /// `Deserialize` of `T` is narrower than its `JsonSchema`.
    ///
    /// ```
    /// use burn_dfa::generation::{Finish, Output};
    ///
    /// let mut output = Output { bytes: b"[1, 2]".to_vec(), ..Output::default() };
    /// assert_eq!(output.parse::<Vec<u8>>()?, [1, 2]);
    /// output.finish = Finish::Cancelled;
    /// assert!(output.parse::<Vec<u8>>().unwrap_err().is_cancelled());
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::is_cancelled`]: the row was cancelled;
    /// - [`Error::is_output`]: it was cut off by `max_new_tokens`, or is no `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        self.complete()?;
        serde_json::from_slice(&self.bytes).map_err(|error| self.refused::<T>(&error))
    }

    /// Reads the output, which is the bare name of a variant, as a value of an enum without fields.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_name<T: DeserializeOwned>(&self) -> Result<T> {
        self.complete()?;
        let text = self.text();
        let name: StrDeserializer<serde::de::value::Error> = text.as_str().into_deserializer();
        T::deserialize(name).map_err(|error| self.refused::<T>(&error))
    }

    fn complete(&self) -> Result<()> {
        match self.finish {
            Finish::EndOfSequence | Finish::Stop => Ok(()),
            Finish::Cancelled => Err(Error::cancelled(self.tokens.len(), self.text())),
            Finish::MaxNewTokens => Err(Error::output(format!(
                "cut off after {} tokens, at {:?}: raise max_new_tokens, or give the request a constraint, within which \
                 it is complete",
                self.tokens.len(),
                self.text()
            ))),
        }
    }

    fn refused<T>(&self, error: &dyn std::error::Error) -> Error {
        Error::output(format!(
            "{:?} is no {}: {error}; constrain it by the type, and keep what the type reads as wide as its schema",
            self.text(),
            std::any::type_name::<T>()
        ))
    }
}

/// A piece of a row's output, as it comes.
///
/// ```
/// use burn_dfa::generation::Piece;
///
/// /// Prints the rows of a batch side by side.
/// fn show(piece: &Piece) {
///     println!("row {}: {:?} ({} tokens)", piece.row, piece.text, piece.tokens.len());
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Piece {
    /// The row of the batch.
    pub row: usize,
    /// The text that is complete, in whole characters, and can be no part of a stop string; may be empty.
    pub text: String,
    /// The new tokens.
    pub tokens: Vec<TokenId>,
    /// Of every new token, where the [config](super::GenerationConfig::logprobs) asks for them; else empty.
    pub logprobs: Vec<TokenLogprobs>,
}
