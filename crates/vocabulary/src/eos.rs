//! The end-of-sequence ids of `generation_config.json`, `config.json` and `tokenizer_config.json`.

use serde_json::Value;

use super::{TokenId, Vocabulary};
use burn_dfa_common::{Error, Result};
use burn_dfa_gguf::is_end;

/// The `eos_token_id` of a `generation_config.json` or `config.json`: a number or a list of
/// numbers. Empty if the file has none. A `config.json` may nest it under `text_config`.
///
/// ```
/// use burn_dfa_tokens::vocabulary::eos_from_config;
/// use burn_dfa_tokens::TokenId;
///
/// assert_eq!(eos_from_config(r#"{"eos_token_id": 2}"#)?, [TokenId(2)]);
/// assert_eq!(eos_from_config(r#"{"eos_token_id": [1, 106]}"#)?, [TokenId(1), TokenId(106)]);
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Vocabulary`](crate::ErrorKind::Vocabulary): not a JSON object, or the ids are not
/// token ids.
pub fn eos_from_config(json: &str) -> Result<Vec<TokenId>> {
    let config = object(json)?;
    let own = &config["eos_token_id"];
    let ids = if own.is_null() { &config["text_config"]["eos_token_id"] } else { own };
    match ids {
        Value::Null => Ok(Vec::new()),
        Value::Array(ids) => ids.iter().map(id).collect(),
        one => Ok(vec![id(one)?]),
    }
}

/// The number of rows of the output layer in a `config.json`, if present.
pub(super) fn vocab_size(json: &str) -> Result<Option<usize>> {
    let config = object(json)?;
    let own = &config["vocab_size"];
    let vocab_size = if own.is_null() { &config["text_config"]["vocab_size"] } else { own };
    match vocab_size {
        Value::Null => Ok(None),
        vocab_size => match vocab_size.as_u64().map(usize::try_from) {
            Some(Ok(vocab_size)) if vocab_size <= Vocabulary::MAX_LEN => Ok(Some(vocab_size)),
            _ => Err(Error::vocabulary(format!(
                "`vocab_size` is {vocab_size}, not a number up to {}",
                Vocabulary::MAX_LEN
            ))),
        },
    }
}

/// The `eos_token` of a `tokenizer_config.json`, if present: a string, or an object with a
/// `content`.
pub(super) fn token(json: &str) -> Result<Option<String>> {
    let config = object(json)?;
    match &config["eos_token"] {
        Value::Null => Ok(None),
        Value::String(token) => Ok(Some(token.clone())),
        other => match other["content"].as_str() {
            Some(token) => Ok(Some(token.to_owned())),
            None => Err(Error::vocabulary(format!("`eos_token` is {other}, not a token"))),
        },
    }
}

fn object(json: &str) -> Result<Value> {
    match serde_json::from_str(json) {
        Ok(Value::Object(object)) => Ok(Value::Object(object)),
        Ok(_) => Err(Error::vocabulary("the configuration is not a JSON object")),
        Err(error) => Err(Error::vocabulary(format!("the configuration is not JSON: {error}"))),
    }
}

fn id(value: &Value) -> Result<TokenId> {
    match value.as_u64().map(u32::try_from) {
        Some(Ok(id)) => Ok(TokenId(id)),
        _ => Err(Error::vocabulary(format!("`eos_token_id` is {value}, not a token id or a list of them"))),
    }
}

impl Vocabulary {
    /// The special tokens with the name of an end of sequence in common models, such as
    /// `<|im_end|>`.
    ///
    /// ```
    /// use burn_dfa_tokens::vocabulary::TokenKind;
    /// use burn_dfa_tokens::{TokenId, Vocabulary};
    ///
    /// let special = |names: &[&str]| {
    ///     Vocabulary::from_tokens(names.iter().map(|name| (TokenKind::Special, *name)))
    /// };
    /// let ends = special(&["<bos>", "<eos>", "<end_of_turn>", "<start_of_turn>"])?.known_ends();
    /// assert_eq!(ends, [TokenId(1), TokenId(2)]);
    /// // In the harmony format other messages follow <|end|>.
    /// assert_eq!(special(&["<|end|>", "<|return|>"])?.known_ends(), [TokenId(1)]);
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    pub fn known_ends(&self) -> Vec<TokenId> {
        let specials = || {
            let ids = (0..self.len() as u32).map(TokenId).filter(|&id| self.bytes(id).is_none());
            ids.filter_map(|id| Some((id, str::from_utf8(self.content(id)?).ok()?)))
        };
        let has = |other: &str| specials().any(|(_, name)| name == other);
        specials().filter(|(_, name)| is_end(name, has)).map(|(id, _)| id).collect()
    }
}
