//! The fields that say how tokens are chosen, and how many.

use std::collections::HashMap;

use burn_dfa::TokenId;
use burn_dfa::generation::SamplingOptions;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{OneOrMany, StreamOptions};
use crate::engine::Sampling;
use crate::error::{ApiError, Result};

/// How tokens are chosen, and how answers come.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct SamplingFields {
    /// Answers. Default: 1.
    #[schema(minimum = 1)]
    pub n: Option<usize>,
    /// The seed of the first answer; those of the others follow it.
    pub seed: Option<i64>,
    /// 0: the likeliest token. Default: 0.
    #[schema(minimum = 0)]
    pub temperature: Option<f32>,
    /// The likeliest tokens of this probability together.
    pub top_p: Option<f32>,
    /// So many of the likeliest tokens; 0 and -1: all.
    pub top_k: Option<i64>,
    /// Tokens of at least this fraction of the likeliest.
    pub min_p: Option<f32>,
    /// Divides the logits of tokens that were there; 1: nothing.
    pub repetition_penalty: Option<f32>,
    /// Lowers the logits of tokens that were generated.
    pub presence_penalty: Option<f32>,
    /// Lowers the logits of tokens by how often they were generated.
    pub frequency_penalty: Option<f32>,
    /// Least tokens of an answer.
    pub min_tokens: Option<usize>,
    /// Texts before which an answer ends.
    #[schema(value_type = Option<Vec<String>>)]
    pub stop: Option<OneOrMany<String>>,
    /// Added to the logits of tokens.
    pub logit_bias: Option<HashMap<String, f32>>,
    /// Whether the answer comes as server-sent events.
    pub stream: Option<bool>,
    /// What the events tell.
    pub stream_options: Option<StreamOptions>,
    /// What was read of the prompt is shared with requests of the same salt alone. Default: with those without one.
    #[schema(min_length = 1, max_length = 1024)]
    pub cache_salt: Option<String>,
}

/// Most texts before which an answer ends, and most bytes of one.
const MAX_STOPS: (usize, usize) = (16, 1024);

/// Most bytes of a salt.
const MAX_SALT: usize = 1024;

impl SamplingFields {
    /// How tokens are chosen.
    ///
    /// # Errors
    /// 400 where a field is out of its range.
    pub fn read(&self) -> Result<Sampling> {
        if self.stream_options.and_then(|options| options.continuous_usage_stats) == Some(true) {
            let message =
                "`continuous_usage_stats` is not offered: `include_usage` tells the usage at the end";
            return Err(ApiError::unsupported("stream_options", message));
        }
        let top_k = self.top_k.filter(|&k| k != 0 && k != -1).map(|k| usize::try_from(k).unwrap_or(0));
        let options = SamplingOptions {
            temperature: self.temperature,
            top_k,
            top_p: self.top_p,
            min_p: self.min_p.filter(|&p| p != 0.0),
            repetition_penalty: self.repetition_penalty,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            logit_bias: self.bias()?,
            min_new_tokens: self.min_tokens.unwrap_or(0),
            ..SamplingOptions::default()
        };
        check(&options)?;
        // Who gives no seed wants another answer each time.
        let seed = self.seed.map_or_else(rand::random, |seed| seed as u64);
        Ok(Sampling { options, stop: self.stops()?, seed })
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
        let (most, longest) = MAX_STOPS;
        let stops = self.stop.clone().map(OneOrMany::into_vec).unwrap_or_default();
        let is_fine = |stop: &String| !stop.is_empty() && stop.len() <= longest;
        if stops.len() > most || !stops.iter().all(is_fine) {
            let message = format!("`stop` is up to {most} texts of 1 to {longest} bytes");
            return Err(ApiError::invalid("stop", message));
        }
        Ok(stops)
    }

    /// The salt of what is shared.
    ///
    /// # Errors
    /// 400 where it is empty or too long.
    pub fn cache_salt(&self) -> Result<Option<String>> {
        match &self.cache_salt {
            Some(salt) if !(1..=MAX_SALT).contains(&salt.len()) => {
                let message = format!("`cache_salt` is a text of 1 to {MAX_SALT} bytes");
                Err(ApiError::invalid("cache_salt", message))
            }
            salt => Ok(salt.clone()),
        }
    }

    /// Answers.
    ///
    /// # Errors
    /// 400 where they are none or too many.
    pub fn answers(&self, most: usize) -> Result<usize> {
        match self.n.unwrap_or(1) {
            n if (1..=most).contains(&n) => Ok(n),
            n => Err(ApiError::invalid("n", format!("`n` is {n}, and has to be from 1 to {most}"))),
        }
    }

    /// Whether the answer comes as events.
    pub fn streams(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    /// Whether a last event tells the usage.
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
        options.check().map_err(|error| ApiError::invalid(name, error.to_string()))?;
    }
    Ok(())
}
