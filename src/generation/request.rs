//! Requests, outputs and streamed chunks.

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer};

use super::logprobs::TokenLogprobs;
use super::options::SamplingOptions;
use crate::vocabulary::TokenId;
use burn_dfa_tokens::{Cancel, CompiledConstraint, Error, PendingConstraint, Result};

/// One row of a batch: a prompt, its constraint and its budget.
///
/// ```
/// use burn_dfa::TokenId;
/// use burn_dfa::generation::Request;
///
/// let request = Request::new(vec![TokenId(1), TokenId(2)], 64).with_seed(3);
/// assert!(request.constraint.is_none()); // unconstrained
/// ```
#[derive(Clone, Debug)]
pub struct Request {
    /// The prompt, at least one token.
    pub prompt: Vec<TokenId>,
    /// Maximum number of tokens to generate, end of sequence included. A constrained output is
    /// complete within this budget.
    pub max_new_tokens: usize,
    /// The constraint; `None`: free text.
    pub constraint: Option<CompiledConstraint>,
    /// A constraint that is still being compiled, instead of [`constraint`](Self::constraint), in
    /// [`ContinuousBatch`](super::ContinuousBatch) alone.
    pub pending: Option<PendingConstraint>,
    /// The seed of the row if tokens are sampled.
    pub seed: u64,
    /// How tokens are chosen; `None`: as
    /// [`GenerationConfig::sampling`](super::GenerationConfig::sampling) says.
    pub sampling: Option<SamplingOptions>,
    /// The output ends before any of these texts, however short it is, see [`FinishReason::Stop`].
    /// Default: none.
    pub stop: Vec<String>,
    /// The output ends at any of these tokens, see [`FinishReason::Stop`]; its text does not
    /// include the token. Default: none.
    pub stop_tokens: Vec<TokenId>,
    /// Whether the text includes the stop string or stop token that ended it. Default: no.
    pub include_stop: bool,
    /// Stop strings and stop tokens count only after this number of tokens. Default: 0.
    pub stop_after: usize,
    /// Whether the text includes special tokens by their [content](crate::Vocabulary::content).
    /// Default: no. The token that ends the sequence is part of the text only with
    /// [`include_stop`](Self::include_stop).
    pub special_tokens: bool,
    /// Ends the row early.
    pub cancel: Cancel,
    /// With a [prefix cache](super::GenerationConfig::prefix_cache), the row shares prefixes only
    /// with requests of the same salt. Default: none.
    pub cache_salt: Option<String>,
}

impl Request {
    /// An unconstrained request with seed 0.
    pub fn new(prompt: Vec<TokenId>, max_new_tokens: usize) -> Self {
        Self {
            prompt,
            max_new_tokens,
            constraint: None,
            pending: None,
            seed: 0,
            sampling: None,
            stop: Vec::new(),
            stop_tokens: Vec::new(),
            include_stop: false,
            stop_after: 0,
            special_tokens: false,
            cancel: Cancel::default(),
            cache_salt: None,
        }
    }

    /// With a constraint, which the request shares.
    pub fn with_constraint(self, constraint: &CompiledConstraint) -> Self {
        Self { constraint: Some(constraint.clone()), ..self }
    }

    /// With a constraint that is still being compiled: [`ContinuousBatch`](super::ContinuousBatch)
    /// reads the prompt during the compilation.
    pub fn with_pending(self, pending: &PendingConstraint) -> Self {
        Self { pending: Some(pending.clone()), ..self }
    }

    /// With a seed.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// With sampling options.
    pub fn with_sampling(self, sampling: SamplingOptions) -> Self {
        Self { sampling: Some(sampling), ..self }
    }

    /// With stop strings.
    pub fn with_stop<S: Into<String>>(self, stop: impl IntoIterator<Item = S>) -> Self {
        Self { stop: stop.into_iter().map(Into::into).collect(), ..self }
    }

    /// With stop tokens.
    pub fn with_stop_tokens(self, tokens: impl IntoIterator<Item = TokenId>) -> Self {
        Self { stop_tokens: tokens.into_iter().collect(), ..self }
    }

    /// With a flag that ends the row early.
    pub fn with_cancel(self, cancel: &Cancel) -> Self {
        Self { cancel: cancel.clone(), ..self }
    }

    /// Shares prefixes only with requests of the same [salt](Self::cache_salt).
    pub fn with_cache_salt(self, salt: impl Into<String>) -> Self {
        Self { cache_salt: Some(salt.into()), ..self }
    }
}

/// Why a row ended.
///
/// ```
/// use burn_dfa::generation::{FinishReason, Output};
///
/// fn advice(output: &Output) -> &'static str {
///     match output.finish {
///         FinishReason::EndOfSequence => "complete",
///         FinishReason::MaxNewTokens => "cut off: raise max_new_tokens, or set a constraint",
///         _ => "canceled",
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FinishReason {
    /// An end-of-sequence token: the output is complete.
    #[default]
    EndOfSequence,
    /// The row generated one of the request's [`stop`](Request::stop) strings or
    /// [`stop_tokens`](Request::stop_tokens), and the output ends before it.
    ///
    /// A stop string ends any row, also a constrained one: its text is then a prefix of a text of
    /// the constraint, and may be incomplete. For complete constrained outputs, use no stop
    /// strings.
    Stop,
    /// `max_new_tokens` were generated; only unconstrained rows end this way.
    MaxNewTokens,
    /// The request's [`Cancel`] ended the row, or the caller [stopped](super::TokenStream::stop)
    /// the stream.
    Canceled,
}

/// What a row generated.
///
/// ```
/// use burn_dfa::generation::{FinishReason, Output};
///
/// let output = Output { bytes: b"caf\xc3\xa9".to_vec(), ..Output::default() };
/// assert!(output.is_complete());
/// assert_eq!(output.text(), "café");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The tokens, including the end-of-sequence token and the tokens of a stop string, if any.
    pub tokens: Vec<TokenId>,
    /// The bytes of the text tokens, up to a stop string.
    pub bytes: Vec<u8>,
    /// The log-probabilities of every token if the [config](super::GenerationConfig::logprobs)
    /// requests them; else empty.
    pub logprobs: Vec<TokenLogprobs>,
    /// Why the row ended.
    pub finish: FinishReason,
    /// Whether the output is complete, but ended only because `max_new_tokens` left a single token
    /// for the end of the sequence, and the constraint would have allowed more text. Free text
    /// before a tool call can end this way.
    pub ended_by_budget: bool,
}

impl Output {
    /// The text, with U+FFFD for invalid UTF-8, which unconstrained rows may produce.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Whether the row ended at an end-of-sequence token.
    pub fn is_complete(&self) -> bool {
        self.finish == FinishReason::EndOfSequence
    }

    /// Reads the output, which is JSON, as a value.
    ///
    /// It never fails on a complete output under the constraint of `T`, see
    /// `Constraint::from_type`, unless the `Deserialize` of `T` is narrower than its `JsonSchema`.
    ///
    /// ```
    /// use burn_dfa::ErrorKind;
    /// use burn_dfa::generation::{FinishReason, Output};
    ///
    /// let mut output = Output { bytes: b"[1, 2]".to_vec(), ..Output::default() };
    /// assert_eq!(output.parse::<Vec<u8>>()?, [1, 2]);
    /// output.finish = FinishReason::Canceled;
    /// assert_eq!(output.parse::<Vec<u8>>().unwrap_err().kind(), ErrorKind::Canceled);
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::Canceled`](crate::ErrorKind::Canceled): the row was canceled;
    /// - [`ErrorKind::Output`](crate::ErrorKind::Output): it was cut off by `max_new_tokens`, or is
    ///   no `T`.
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
            FinishReason::EndOfSequence | FinishReason::Stop => Ok(()),
            FinishReason::Canceled => Err(Error::canceled(self.tokens.len(), self.text())),
            FinishReason::MaxNewTokens => Err(Error::output(format!(
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

/// A streamed chunk of a row's output.
///
/// ```
/// use burn_dfa::generation::Chunk;
///
/// /// Prints the rows of a batch side by side.
/// fn show(chunk: &Chunk) {
///     println!("row {}: {:?} ({} tokens)", chunk.row, chunk.text, chunk.tokens.len());
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chunk {
    /// The row of the batch.
    pub row: usize,
    /// New text in whole characters, which cannot be part of a stop string; may be empty.
    pub text: String,
    /// The new tokens.
    pub tokens: Vec<TokenId>,
    /// The log-probabilities of every new token if the [config](super::GenerationConfig::logprobs)
    /// requests them; else empty.
    pub logprobs: Vec<TokenLogprobs>,
}
