//! Reads `generation_config.json`, the file in which a model folder recommends how to choose
//! tokens.

use serde_json::{Map, Value};

use super::config::GenerationConfig;
use super::options::SamplingOptions;
use crate::vocabulary::TokenId;
use burn_dfa_tokens::{Error, Result};

/// Fields that do not change how a token is chosen: token ids, lengths, times, caches, drafts, and
/// the parts of the result.
const OTHER: [&str; 32] = [
    "assistant_confidence_threshold",
    "assistant_early_exit",
    "assistant_lookbehind",
    "bos_token_id",
    "cache_config",
    "cache_implementation",
    "compile_config",
    "decoder_start_token_id",
    "disable_compile",
    "early_stopping",
    "eos_token_id",
    "is_assistant",
    "length_penalty",
    "low_memory",
    "max_length",
    "max_matching_ngram_size",
    "max_new_tokens",
    "max_time",
    "num_assistant_tokens",
    "num_assistant_tokens_schedule",
    "output_attentions",
    "output_hidden_states",
    "output_logits",
    "output_scores",
    "pad_token_id",
    "prefill_chunk_size",
    "prompt_lookup_num_tokens",
    "return_dict_in_generate",
    "return_legacy_cache",
    "target_lookbehind",
    "transformers_version",
    "use_cache",
];

/// Fields that this library does not implement, with the value at which they do nothing.
const NEUTRAL: [(&str, f64); 13] = [
    ("diversity_penalty", 0.0),
    ("encoder_no_repeat_ngram_size", 0.0),
    ("encoder_repetition_penalty", 1.0),
    ("epsilon_cutoff", 0.0),
    ("eta_cutoff", 0.0),
    ("guidance_scale", 1.0),
    ("min_length", 0.0),
    ("no_repeat_ngram_size", 0.0),
    ("num_beam_groups", 1.0),
    ("num_beams", 1.0),
    ("num_return_sequences", 1.0),
    ("penalty_alpha", 0.0),
    ("typical_p", 1.0),
];

/// The number of tokens that transformers keeps if a file that samples has no `top_k`.
const DEFAULT_TOP_K: usize = 50;

impl GenerationConfig {
    /// Reads the text of a `generation_config.json`, as transformers does: without `do_sample` the
    /// choice is greedy, and sampling without `top_k` keeps the 50 likeliest tokens.
    ///
    /// Fields about token ids, lengths, caches, drafts and the form of the result are not part of a
    /// `GenerationConfig`, and are ignored. [`Vocabulary`](crate::Vocabulary) reads the ends of
    /// sequence from a folder, and a [`Request`](super::Request) has the number of tokens. Fields
    /// whose name begins with `_` and fields of `null` are ignored as well.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) names a field that is out of range, that has
    /// an effect that this library does not implement, such as `num_beams` above 1, or that the
    /// library does not know, unless its value is `false` or empty.
    ///
    /// ```
    /// use burn_dfa::generation::GenerationConfig;
    ///
    /// let text = r#"{"do_sample": true, "temperature": 0.6, "top_p": 0.95, "eos_token_id": 2}"#;
    /// let sampling = GenerationConfig::from_json(text)?.sampling;
    /// assert_eq!(
    ///     (sampling.temperature, sampling.top_p, sampling.top_k),
    ///     (Some(0.6), Some(0.95), Some(50))
    /// );
    ///
    /// let error = GenerationConfig::from_json(r#"{"num_beams": 4}"#).unwrap_err();
    /// assert!(error.to_string().contains("num_beams"));
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    pub fn from_json(text: &str) -> Result<Self> {
        let fields: Map<String, Value> = serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text))
            .map_err(|error| wrong(format!("is not valid: {error}")))?;
        let mut sampling = SamplingOptions::new();
        let (mut samples, mut temperature, mut top_k) = (false, 1.0, Some(DEFAULT_TOP_K));
        for (name, value) in &fields {
            match (name.as_str(), value) {
                ("top_k", Value::Null) => top_k = None,
                (_, Value::Null) => {}
                ("do_sample", _) => {
                    samples = value.as_bool().ok_or_else(|| field(name, value, "must be true or false"))?;
                }
                ("temperature", _) => temperature = number(name, value)?,
                ("top_k", _) => top_k = Some(count(name, value)?).filter(|&k| k > 0),
                ("top_p", _) => sampling.top_p = Some(number(name, value)?),
                ("min_p", _) => sampling.min_p = Some(number(name, value)?).filter(|&p| p != 0.0),
                ("repetition_penalty", _) => sampling.repetition_penalty = Some(number(name, value)?),
                ("min_new_tokens", _) => sampling.min_new_tokens = count(name, value)?,
                ("suppress_tokens", Value::Array(ids)) => {
                    let ids = ids.iter().map(|id| {
                        let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
                        id.map(TokenId).ok_or_else(|| field(name, value, "must be a list of token ids"))
                    });
                    sampling.suppress_tokens = ids.collect::<Result<_>>()?;
                }
                // The sampler normalizes the logits.
                ("renormalize_logits", Value::Bool(_)) => {}
                (name, _) if OTHER.contains(&name) || name.starts_with('_') => {}
                (name, value) => check_neutral(name, value)?,
            }
        }
        if samples {
            sampling = sampling.with_temperature(temperature).with_top_k(top_k);
        }
        sampling.check().map_err(|error| wrong(format!("holds an option out of range: {error}")))?;
        Ok(Self::new().with_sampling(sampling))
    }
}

/// Refuses a field that this library does not implement, unless its value does nothing.
fn check_neutral(name: &str, value: &Value) -> Result<()> {
    let known = NEUTRAL.iter().find(|(neutral, _)| *neutral == name);
    let is_neutral = match (value, known) {
        (Value::Number(number), Some((_, neutral))) => number.as_f64() == Some(*neutral),
        (Value::Bool(is_on), _) => !is_on,
        (Value::Array(values), _) => values.is_empty(),
        (Value::Object(fields), _) => fields.is_empty(),
        _ => false,
    };
    let problem = match name {
        "stop_strings" => "is an option of each request: remove it, and set `Request::stop`",
        _ => "is not supported: remove it, or write it as a `LogitsProcessor`",
    };
    if is_neutral { Ok(()) } else { Err(field(name, value, problem)) }
}

fn number(name: &str, value: &Value) -> Result<f32> {
    value.as_f64().map(|number| number as f32).ok_or_else(|| field(name, value, "must be a number"))
}

fn count(name: &str, value: &Value) -> Result<usize> {
    // A file that was made from the metadata of a GGUF file has 40.0 for 40.
    let whole = |number: &f64| number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(number);
    let count = value.as_u64().or_else(|| value.as_f64().filter(whole).map(|number| number as u64));
    let count = count.and_then(|count| usize::try_from(count).ok());
    count.ok_or_else(|| field(name, value, "must be a whole number of at least 0"))
}

fn field(name: &str, value: &Value, problem: &str) -> Error {
    let value: String = value.to_string().chars().take(40).collect();
    wrong(format!("{name} of {value} {problem}"))
}

fn wrong(problem: String) -> Error {
    Error::input(format!("generation_config.json: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampling(text: &str) -> SamplingOptions {
        GenerationConfig::from_json(text).unwrap().sampling
    }

    #[test]
    fn options_are_read_and_others_refused() {
        assert_eq!(sampling("{}"), SamplingOptions::new());
        assert!(sampling(r#"{"temperature": 0.7, "top_k": 20, "do_sample": false}"#).is_greedy());
        let all = r#"{"do_sample": true, "temperature": 0.7, "top_k": 0, "top_p": 0.8, "min_p": 0.0,
            "repetition_penalty": 1.05, "min_new_tokens": 2, "suppress_tokens": [3, 5], "num_beams": 1,
            "eos_token_id": [1, 2], "transformers_version": "4.51.0", "_from_model_config": true,
            "no_repeat_ngram_size": 0, "bad_words_ids": null, "forced_eos_token_id": null,
            "return_legacy_cache": true, "max_time": 9.5}"#;
        let expected = SamplingOptions::new()
            .with_temperature(0.7)
            .with_top_p(0.8)
            .with_repetition_penalty(1.05)
            .with_min_new_tokens(2)
            .with_suppress_tokens([TokenId(3), TokenId(5)]);
        assert_eq!(sampling(all), expected);
        assert_eq!(
            sampling(r#"{"do_sample": true, "top_k": null}"#),
            SamplingOptions::new().with_temperature(1.0)
        );
        assert_eq!(sampling(r#"{"do_sample": true, "top_k": 40.0}"#).top_k, Some(40));
        for (text, name) in [
            ("[]", "is not valid"),
            (r#"{"do_sample": 1}"#, "do_sample"),
            (r#"{"num_beams": 4}"#, "num_beams"),
            (r#"{"no_repeat_ngram_size": 2}"#, "no_repeat_ngram_size"),
            (r#"{"bad_words_ids": [[3]]}"#, "bad_words_ids"),
            (r#"{"stop_strings": ["END"]}"#, "Request::stop"),
            (r#"{"top_q": 0.9}"#, "top_q"),
            (r#"{"watermarking_config": {"bias": 2.0}}"#, "watermarking_config"),
            (r#"{"suppress_tokens": [-1]}"#, "suppress_tokens"),
            (r#"{"do_sample": true, "top_k": 2.5}"#, "top_k"),
            (r#"{"top_p": 2.0}"#, "top-p"),
            (r#"{"do_sample": true, "temperature": 1000.0}"#, "temperature"),
            (r#"{"dola_layers": "low"}"#, "dola_layers"),
        ] {
            let error = GenerationConfig::from_json(text).unwrap_err().to_string();
            assert!(error.starts_with("generation_config.json: ") && error.contains(name), "{error}");
        }
    }
}
