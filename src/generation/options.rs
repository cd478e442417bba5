//! How the tokens of one row are chosen: [`SamplingOptions`], and the [features](SamplingFeatures)
//! that a batch may use.

use crate::processor::{
    FrequencyPresencePenalty, LogitBias, MinP, RepetitionPenalty, Temperature, TopK, TopP,
};
use crate::vocabulary::TokenId;
use burn_dfa_tokens::{Error, Result};

/// How the tokens of one row are chosen: greedily by default, else sampled at a temperature.
///
/// The order of application is: the constraint; the repetition penalty; the presence and frequency
/// penalties; the bias; suppressed tokens; the minimum length; the temperature; top-k; top-p;
/// min-p. Tokens masked by the constraint stay masked under all options. A greedy row takes the
/// likeliest token, which top-k, top-p and min-p do not change.
///
/// The options of one row do not affect the other rows of a batch.
///
/// ```
/// use burn_dfa::TokenId;
/// use burn_dfa::generation::{Request, SamplingOptions};
///
/// let warm = SamplingOptions::new().with_temperature(0.8).with_top_p(0.95);
/// let careful =
///     SamplingOptions::new().with_temperature(0.0).with_logit_bias([(TokenId(7), -100.0)]);
/// assert!(careful.is_greedy() && !warm.is_greedy());
/// let rows =
///     [warm, careful].map(|options| Request::new(vec![TokenId(1)], 64).with_sampling(options));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SamplingOptions {
    /// Sample at this temperature; `None` or 0: greedy. Default: `None`.
    pub temperature: Option<f32>,
    /// Keep the `k` likeliest tokens, see [`TopK`]. Default: `None`.
    pub top_k: Option<usize>,
    /// Keep the likeliest tokens of this probability together, see [`TopP`]. Default: `None`.
    pub top_p: Option<f32>,
    /// Keep tokens of at least this fraction of the likeliest, see [`MinP`]. Default: `None`.
    pub min_p: Option<f32>,
    /// For tokens of the prompt and the output, see [`RepetitionPenalty`]. Default: `None`.
    pub repetition_penalty: Option<f32>,
    /// For tokens of the output, however often, see [`FrequencyPresencePenalty`]. Default: `None`.
    pub presence_penalty: Option<f32>,
    /// For tokens of the output, each time, see [`FrequencyPresencePenalty`]. Default: `None`.
    pub frequency_penalty: Option<f32>,
    /// A bias added to the logits of some tokens, see [`LogitBias`]. Default: none.
    pub logit_bias: Vec<(TokenId, f32)>,
    /// Tokens to avoid, see [`SuppressTokens`](crate::processor::SuppressTokens). Default: none.
    pub suppress_tokens: Vec<TokenId>,
    /// Minimum number of tokens before the end, see
    /// [`MinNewTokens`](crate::processor::MinNewTokens). Default: 0.
    pub min_new_tokens: usize,
}

impl SamplingOptions {
    /// Greedy, without filters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Samples at a [temperature](Self::temperature).
    pub fn with_temperature(self, temperature: impl Into<Option<f32>>) -> Self {
        Self { temperature: temperature.into(), ..self }
    }

    /// Samples among the [`top_k`](Self::top_k) likeliest tokens.
    pub fn with_top_k(self, top_k: impl Into<Option<usize>>) -> Self {
        Self { top_k: top_k.into(), ..self }
    }

    /// Samples among the likeliest tokens of [`top_p`](Self::top_p) probability together.
    pub fn with_top_p(self, top_p: impl Into<Option<f32>>) -> Self {
        Self { top_p: top_p.into(), ..self }
    }

    /// Samples among tokens of at least [`min_p`](Self::min_p) times the probability of the
    /// likeliest.
    pub fn with_min_p(self, min_p: impl Into<Option<f32>>) -> Self {
        Self { min_p: min_p.into(), ..self }
    }

    /// Applies a [repetition penalty](Self::repetition_penalty).
    pub fn with_repetition_penalty(self, penalty: impl Into<Option<f32>>) -> Self {
        Self { repetition_penalty: penalty.into(), ..self }
    }

    /// Applies a [presence penalty](Self::presence_penalty).
    pub fn with_presence_penalty(self, penalty: impl Into<Option<f32>>) -> Self {
        Self { presence_penalty: penalty.into(), ..self }
    }

    /// Applies a [frequency penalty](Self::frequency_penalty).
    pub fn with_frequency_penalty(self, penalty: impl Into<Option<f32>>) -> Self {
        Self { frequency_penalty: penalty.into(), ..self }
    }

    /// Adds to the [logits](Self::logit_bias) of some tokens.
    pub fn with_logit_bias(self, bias: impl IntoIterator<Item = (TokenId, f32)>) -> Self {
        Self { logit_bias: bias.into_iter().collect(), ..self }
    }

    /// Avoids [tokens](Self::suppress_tokens) if another one is legal.
    pub fn with_suppress_tokens(self, tokens: impl IntoIterator<Item = TokenId>) -> Self {
        Self { suppress_tokens: tokens.into_iter().collect(), ..self }
    }

    /// Delays the end until [`min_new_tokens`](Self::min_new_tokens) were generated, if another
    /// token is legal.
    pub fn with_min_new_tokens(self, min_new_tokens: usize) -> Self {
        Self { min_new_tokens, ..self }
    }

    /// Whether the likeliest token is taken: without a temperature, or at 0.
    pub fn is_greedy(&self) -> bool {
        self.temperature.is_none_or(|temperature| temperature == 0.0)
    }

    /// Checks whether every option is in range, including options that a greedy row does not use.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) names the first option out of range.
    ///
    /// ```
    /// use burn_dfa::ErrorKind;
    /// use burn_dfa::generation::SamplingOptions;
    ///
    /// let error = SamplingOptions::new().with_top_p(1.5).check().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Input);
    /// ```
    pub fn check(&self) -> Result<()> {
        if !self.is_greedy() {
            self.temperature.map_or(Ok(()), |temperature| Temperature::new(temperature).map(drop))?;
        }
        self.top_k.map_or(Ok(()), |k| TopK::new(k).map(drop))?;
        self.top_p.map_or(Ok(()), |p| TopP::new(p).map(drop))?;
        self.min_p.map_or(Ok(()), |p| MinP::new(p).map(drop))?;
        self.repetition_penalty.map_or(Ok(()), |penalty| RepetitionPenalty::new(penalty).map(drop))?;
        let [presence, frequency] = self.output_penalties();
        FrequencyPresencePenalty::new(presence, frequency)?;
        LogitBias::new(self.logit_bias.iter().copied()).map(drop)
    }

    /// The presence and the frequency penalty; 0 is none.
    pub(super) fn output_penalties(&self) -> [f32; 2] {
        [self.presence_penalty.unwrap_or(0.0), self.frequency_penalty.unwrap_or(0.0)]
    }

    /// The temperature of a row that is sampled.
    pub(super) fn sampled(&self) -> Option<f32> {
        self.temperature.filter(|_| !self.is_greedy())
    }

    /// Whether top-k, top-p or min-p come between the temperature and the sampler.
    pub(super) fn truncates(&self) -> bool {
        SamplingFeatures::of(self).truncate()
    }
}

/// Which options the rows of a batch may use.
///
/// The decode step omits all other options, which then cost nothing. [`generate`](super::generate)
/// finds the features in the requests. A longer-lived batch must declare them in
/// [`GenerationConfig::row_features`](super::GenerationConfig::row_features), because its state on
/// the device and its recorded step are made once.
///
/// ```
/// use burn_dfa::generation::{SamplingFeatures, SamplingOptions};
///
/// let options = SamplingOptions::new().with_temperature(0.8).with_top_k(20);
/// let kinds = SamplingFeatures::of(&options);
/// assert_eq!(
///     kinds,
///     SamplingFeatures { temperature: true, top_k: true, ..SamplingFeatures::NONE }
/// );
/// assert!(SamplingFeatures::ALL.covers(kinds) && !SamplingFeatures::NONE.covers(kinds));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SamplingFeatures {
    /// [`SamplingOptions::temperature`].
    pub temperature: bool,
    /// [`SamplingOptions::top_k`].
    pub top_k: bool,
    /// [`SamplingOptions::top_p`].
    pub top_p: bool,
    /// [`SamplingOptions::min_p`].
    pub min_p: bool,
    /// [`SamplingOptions::repetition_penalty`].
    pub repetition_penalty: bool,
    /// [`SamplingOptions::presence_penalty`] and [`SamplingOptions::frequency_penalty`].
    pub output_penalties: bool,
    /// [`SamplingOptions::logit_bias`].
    pub logit_bias: bool,
    /// [`SamplingOptions::suppress_tokens`].
    pub suppress_tokens: bool,
    /// [`SamplingOptions::min_new_tokens`].
    pub min_new_tokens: bool,
}

impl SamplingFeatures {
    /// Greedy rows without filters.
    pub const NONE: Self = Self::every(false);
    /// Every option.
    pub const ALL: Self = Self::every(true);

    const fn every(used: bool) -> Self {
        Self {
            temperature: used,
            top_k: used,
            top_p: used,
            min_p: used,
            repetition_penalty: used,
            output_penalties: used,
            logit_bias: used,
            suppress_tokens: used,
            min_new_tokens: used,
        }
    }

    /// The features used by a row with `options`. A neutral value, such as top-p of 1 or a penalty
    /// of 0, is not used.
    pub fn of(options: &SamplingOptions) -> Self {
        let sampled = !options.is_greedy();
        Self {
            temperature: sampled,
            top_k: sampled && options.top_k.is_some(),
            top_p: sampled && options.top_p.is_some_and(|p| p != 1.0),
            min_p: sampled && options.min_p.is_some(),
            repetition_penalty: options.repetition_penalty.is_some_and(|penalty| penalty != 1.0),
            output_penalties: options.output_penalties() != [0.0; 2],
            logit_bias: !options.logit_bias.is_empty(),
            suppress_tokens: !options.suppress_tokens.is_empty(),
            min_new_tokens: options.min_new_tokens > 0,
        }
    }

    /// The union of both.
    pub fn or(self, other: Self) -> Self {
        Self {
            temperature: self.temperature || other.temperature,
            top_k: self.top_k || other.top_k,
            top_p: self.top_p || other.top_p,
            min_p: self.min_p || other.min_p,
            repetition_penalty: self.repetition_penalty || other.repetition_penalty,
            output_penalties: self.output_penalties || other.output_penalties,
            logit_bias: self.logit_bias || other.logit_bias,
            suppress_tokens: self.suppress_tokens || other.suppress_tokens,
            min_new_tokens: self.min_new_tokens || other.min_new_tokens,
        }
    }

    /// Whether `self` includes every feature of `other`.
    pub fn covers(self, other: Self) -> bool {
        self.or(other) == self
    }

    /// Every feature with its name.
    fn named(self) -> [(&'static str, bool); 9] {
        [
            ("temperature", self.temperature),
            ("top_k", self.top_k),
            ("top_p", self.top_p),
            ("min_p", self.min_p),
            ("repetition_penalty", self.repetition_penalty),
            ("output_penalties", self.output_penalties),
            ("logit_bias", self.logit_bias),
            ("suppress_tokens", self.suppress_tokens),
            ("min_new_tokens", self.min_new_tokens),
        ]
    }

    /// Whether top-k, top-p or min-p come between the temperature and the sampler.
    pub(super) fn truncate(self) -> bool {
        self.top_k || self.top_p || self.min_p
    }

    /// Refuses options that use a feature outside of `self`.
    pub(super) fn admit(self, row: usize, options: &SamplingOptions) -> Result<()> {
        options.check()?;
        let kinds = Self::of(options).named().into_iter().zip(self.named());
        match kinds.map(|((name, used), (_, allowed))| (name, used && !allowed)).find(|kind| kind.1) {
            None => Ok(()),
            Some((name, _)) => Err(Error::input(format!(
                "row {row} uses {name}, which this batch was not made for: allow it in GenerationConfig::row_features"
            ))),
        }
    }
}
