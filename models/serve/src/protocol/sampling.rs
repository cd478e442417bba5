//! The fields that set how tokens are chosen, and how many.

use std::collections::HashMap;

use burn_dfa::TokenId;
use burn_dfa::generation::SamplingOptions;
use burn_dfa_engine::Sampling;
use serde::Deserialize;
use utoipa::ToSchema;

use super::warning::Warnings;
use super::words;
use super::{OneOrMany, StreamOptions};
use crate::error::{ApiError, Result};

/// How tokens are chosen, and how answers are delivered.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct SamplingFields {
    /// Number of answers. Default: 1.
    #[schema(minimum = 1)]
    pub n: Option<usize>,
    /// The seed of the first answer to each prompt; its further answers use the following numbers.
    pub seed: Option<i64>,
    /// 0: the most likely token. Default: 0.
    #[schema(minimum = 0)]
    pub temperature: Option<f32>,
    /// The most likely tokens with this total probability.
    pub top_p: Option<f32>,
    /// The number of most likely tokens; 0 and -1: all.
    pub top_k: Option<i64>,
    /// Tokens of at least this fraction of the most likely token's probability.
    pub min_p: Option<f32>,
    /// Divides the logits of tokens in prompt and answer; 1: no change.
    pub repetition_penalty: Option<f32>,
    /// Lowers the logits of generated tokens.
    pub presence_penalty: Option<f32>,
    /// Lowers the logits of generated tokens in proportion to their counts.
    pub frequency_penalty: Option<f32>,
    /// Minimum number of tokens of an answer, if its constraint can continue: ends and stops do not
    /// count before it.
    pub min_tokens: Option<usize>,
    /// Texts that end an answer; the answer stops before them.
    #[schema(value_type = Option<Vec<String>>)]
    pub stop: Option<OneOrMany<String>>,
    /// Tokens that end an answer.
    pub stop_token_ids: Option<Vec<u32>>,
    /// Whether the text of an answer includes the stop text.
    pub include_stop_str_in_output: Option<bool>,
    /// Whether an answer continues after the model's end of sequence, as far as its budget and its
    /// constraint allow.
    pub ignore_eos: Option<bool>,
    /// Whether special tokens are left out of the text of an answer. Default: true.
    pub skip_special_tokens: Option<bool>,
    /// Added to the logits of tokens.
    pub logit_bias: Option<HashMap<String, f32>>,
    /// Whether the answer comes as server-sent events.
    pub stream: Option<bool>,
    /// Options of the events.
    pub stream_options: Option<StreamOptions>,
    /// Cached prefixes of the prompt are shared only with requests of the same salt. Default: with
    /// requests without a salt.
    #[schema(min_length = 1, max_length = 1024)]
    pub cache_salt: Option<String>,
}

/// Greatest number of stop texts, and greatest number of bytes of one.
const MAX_STOPS: (usize, usize) = (16, 1024);

/// Greatest number of stop tokens.
const MAX_STOP_TOKENS: usize = 256;

/// Least temperature above 0 (lower ones would make logits infinite), and least `top_p`: both make
/// the most likely token all but certain.
const LEAST: (f32, f32) = (0.01, 1e-5);

/// Greatest number of bytes of a salt.
const MAX_SALT: usize = 1024;

impl SamplingFields {
    /// Reads the options. Values below the least supported value are raised, with a warning.
    ///
    /// # Errors
    /// 400 if a field is out of its range.
    pub fn read(&self, warnings: &mut Warnings) -> Result<Sampling> {
        if self.stream_options.and_then(|options| options.continuous_usage_stats) == Some(true) {
            let message =
                "`continuous_usage_stats` is not offered: `include_usage` tells the usage at the end";
            return Err(ApiError::unsupported("stream_options", message));
        }
        let top_k = self.top_k.filter(|&k| k != 0 && k != -1).map(|k| usize::try_from(k).unwrap_or(0));
        let mut raised = |name, given: Option<f32>, is_near: &dyn Fn(f32) -> bool, least| match given {
            Some(value) if is_near(value) => {
                warnings.add(
                    name,
                    format!("`{name}` of {value} is raised to {least}, the least that is offered"),
                );
                Some(least)
            }
            given => given,
        };
        let (cold, narrow) = LEAST;
        let ignores_eos = self.ignore_eos.unwrap_or(false);
        let min_tokens = self.min_tokens.unwrap_or(0);
        let options = SamplingOptions {
            temperature: raised("temperature", self.temperature, &|t| t > 0.0 && t < cold, cold),
            top_k,
            top_p: raised("top_p", self.top_p, &|p| (0.0..narrow).contains(&p), narrow),
            min_p: self.min_p.filter(|&p| p != 0.0),
            repetition_penalty: self.repetition_penalty,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            logit_bias: self.bias()?,
            min_new_tokens: if ignores_eos { usize::MAX } else { min_tokens },
            ..SamplingOptions::default()
        };
        check(&options)?;
        // Without a seed, each request gets another answer.
        let seed = self.seed.map_or_else(rand::random, |seed| seed as u64);
        Ok(Sampling {
            options,
            stop: self.stops()?,
            stop_tokens: self.stop_tokens()?,
            include_stop: self.include_stop_str_in_output.unwrap_or(false),
            min_tokens,
            special_tokens: self.skip_special_tokens == Some(false),
            seed,
        })
    }

    fn bias(&self) -> Result<Vec<(TokenId, f32)>> {
        let wrong = |message: String| ApiError::invalid("logit_bias", message);
        let bias = self.logit_bias.iter().flatten().map(|(token, &bias)| {
            let id =
                token.parse().map_err(|_| wrong(format!("{token:?} is no token: `logit_bias` is by ids")))?;
            if !(-100.0..=100.0).contains(&bias) {
                return Err(wrong(format!("{bias} is not from -100 to 100")));
            }
            Ok((TokenId(id), bias))
        });
        let mut bias = bias.collect::<Result<Vec<_>>>()?;
        bias.sort_by_key(|(token, _)| *token);
        Ok(bias)
    }

    fn stops(&self) -> Result<Vec<String>> {
        let (max, longest) = MAX_STOPS;
        let stops = self.stop.clone().map(OneOrMany::into_vec).unwrap_or_default();
        let is_fine = |stop: &String| !stop.is_empty() && stop.len() <= longest;
        if stops.len() > max || !stops.iter().all(is_fine) {
            let message = format!("`stop` is up to {max} texts of 1 to {longest} bytes");
            return Err(ApiError::invalid("stop", message));
        }
        Ok(stops)
    }

    fn stop_tokens(&self) -> Result<Vec<TokenId>> {
        let tokens = self.stop_token_ids.as_deref().unwrap_or_default();
        if tokens.len() > MAX_STOP_TOKENS {
            let message = format!("`stop_token_ids` has up to {MAX_STOP_TOKENS} tokens");
            return Err(ApiError::invalid("stop_token_ids", message));
        }
        Ok(tokens.iter().map(|&token| TokenId(token)).collect())
    }

    /// The salt of the prefix cache.
    ///
    /// # Errors
    /// 400 if it is empty or too long.
    pub fn cache_salt(&self) -> Result<Option<String>> {
        match &self.cache_salt {
            Some(salt) if !(1..=MAX_SALT).contains(&salt.len()) => {
                let message = format!("`cache_salt` is a text of 1 to {MAX_SALT} bytes");
                Err(ApiError::invalid("cache_salt", message))
            }
            salt => Ok(salt.clone()),
        }
    }

    /// The number of answers.
    ///
    /// # Errors
    /// 400 if it is zero or too large.
    pub fn answers(&self, max: usize) -> Result<usize> {
        match self.n.unwrap_or(1) {
            n if (1..=max).contains(&n) => Ok(n),
            n => Err(ApiError::invalid("n", format!("`n` is {n}, and has to be from 1 to {max}"))),
        }
    }

    /// Whether the answer is sent as events.
    pub fn streams(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    /// Whether a last event reports the usage.
    pub fn includes_usage(&self) -> bool {
        self.stream_options.and_then(|options| options.include_usage).unwrap_or(false)
    }
}

/// Refuses options that are out of range, by name.
fn check(options: &SamplingOptions) -> Result<()> {
    let none = SamplingOptions::default;
    let each = [
        ("temperature", SamplingOptions { temperature: options.temperature, ..none() }),
        ("top_k", SamplingOptions { top_k: options.top_k, ..none() }),
        ("top_p", SamplingOptions { top_p: options.top_p, ..none() }),
        ("min_p", SamplingOptions { min_p: options.min_p, ..none() }),
        ("repetition_penalty", SamplingOptions { repetition_penalty: options.repetition_penalty, ..none() }),
        ("presence_penalty", SamplingOptions { presence_penalty: options.presence_penalty, ..none() }),
        ("frequency_penalty", SamplingOptions { frequency_penalty: options.frequency_penalty, ..none() }),
        ("logit_bias", SamplingOptions { logit_bias: options.logit_bias.clone(), ..none() }),
    ];
    for (name, options) in each {
        options.check().map_err(|error| ApiError::invalid(name, words::of_library(&error)))?;
    }
    Ok(())
}
