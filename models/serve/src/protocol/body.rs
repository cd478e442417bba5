//! The body of a request: an object whose fields are read by type.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use axum::http::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::warning::Warnings;
use super::words;
use crate::error::{ApiError, Result};

/// The fields of a request, each as a value and as text.
#[derive(Debug)]
pub struct Body {
    text: String,
    fields: Map<String, Value>,
    ranges: HashMap<String, Range<usize>>,
    /// Fields that were not read yet.
    unknown: BTreeSet<String>,
    /// The warnings of the answer.
    pub warnings: Warnings,
}

/// Fields that clients send, but that do not affect the answer.
const PASSED_OVER: [&str; 7] = [
    "user",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "service_tier",
    "request_id",
];

/// Fields that are ignored with a warning, since they do not restrict answers, each with its
/// neutral values.
fn hints() -> [(&'static str, Vec<Value>); 5] {
    [
        ("prediction", Vec::new()),
        ("priority", vec![json!(0)]),
        ("return_token_ids", vec![json!(false)]),
        ("store", vec![json!(false)]),
        ("verbosity", vec![json!("medium")]),
    ]
}

/// Fields that are known, but not supported, each with its neutral values.
fn refused() -> [(&'static str, Vec<Value>); 35] {
    let none = Vec::new;
    let off = || vec![json!(false)];
    let empty = || vec![json!([])];
    [
        ("add_generation_prompt", vec![json!(true)]),
        ("add_special_tokens", off()),
        // An empty list would allow no token.
        ("allowed_token_ids", none()),
        ("audio", none()),
        ("bad_words", empty()),
        ("best_of", vec![json!(1)]),
        ("chat_template", none()),
        ("chat_template_kwargs", vec![json!({})]),
        ("continue_final_message", off()),
        ("custom_params", vec![json!({})]),
        ("documents", empty()),
        ("echo", off()),
        ("function_call", vec![json!("none")]),
        ("functions", empty()),
        ("grammar", none()),
        ("ignore_eos", off()),
        ("include_reasoning", vec![json!(true)]),
        ("include_stop_str_in_output", off()),
        ("length_penalty", vec![json!(1.0), json!(1)]),
        ("logits_processors", empty()),
        ("lora_path", none()),
        ("mm_processor_kwargs", vec![json!({})]),
        ("modalities", vec![json!(["text"])]),
        ("prompt_embeds", empty()),
        ("prompt_logprobs", none()),
        ("reasoning_effort", none()),
        ("return_tokens_as_token_ids", off()),
        ("separate_reasoning", vec![json!(true)]),
        ("skip_special_tokens", vec![json!(true)]),
        ("spaces_between_special_tokens", vec![json!(true)]),
        ("stop_token_ids", empty()),
        ("suffix", vec![json!("")]),
        ("truncate_prompt_tokens", none()),
        ("use_beam_search", off()),
        ("web_search_options", none()),
    ]
}

impl Body {
    /// Reads an object.
    ///
    /// # Errors
    /// 400 if it is not JSON, not an object, or has a field twice.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let wrong = |message: String| ApiError::new(StatusCode::BAD_REQUEST, message).code("invalid_json");
        let text =
            std::str::from_utf8(bytes).map_err(|error| wrong(format!("the body is not UTF-8: {error}")))?;
        let value: Value =
            serde_json::from_str(text).map_err(|error| wrong(format!("the body is not JSON: {error}")))?;
        let Value::Object(fields) = value else { return Err(wrong("the body is not an object".into())) };
        let mut ranges = HashMap::new();
        for (name, range) in top_level(text) {
            if ranges.insert(name.clone(), range).is_some() {
                return Err(ApiError::invalid(&name, format!("`{name}` is there twice")));
            }
        }
        // Null counts as missing.
        let unknown =
            fields.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name.clone()).collect();
        let warnings = Warnings::default();
        Ok(Self { text: text.to_owned(), fields, ranges, unknown, warnings })
    }

    /// Reads the fields of `T`. Unknown fields of its optional objects add warnings.
    ///
    /// # Errors
    /// 400 if a field has another type.
    pub fn take<T: DeserializeOwned>(&mut self) -> Result<T> {
        let mut ignored = BTreeSet::new();
        let mut on_ignored = |path: serde_ignored::Path| _ = ignored.insert(path.to_string());
        let value = Value::Object(self.fields.clone());
        let mut track = serde_path_to_error::Track::new();
        let paths = serde_path_to_error::Deserializer::new(value, &mut track);
        let read = T::deserialize(serde_ignored::Deserializer::new(paths, &mut on_ignored));
        let read = read.map_err(|error| {
            let (path, reason) = (track.path().to_string(), words::of_json(&error.to_string()));
            if path == "." {
                ApiError::new(StatusCode::BAD_REQUEST, reason).code("invalid_value")
            } else {
                ApiError::invalid(&path, format!("`{path}`: {reason}"))
            }
        })?;
        self.unknown.retain(|name| ignored.contains(name));
        // An unknown field of an optional object has a path such as `text.?.indent`.
        for (name, inner) in ignored.iter().filter_map(|path| path.split_once(".?.")) {
            let value = self.fields.get(name).and_then(|object| object.get(inner));
            if value.is_some_and(|value| !value.is_null()) {
                self.warnings.ignore(format!("{name}.{inner}"));
            }
        }
        Ok(read)
    }

    /// The text of a field, with all digits of its numbers; `None` if it is missing or null.
    pub fn raw(&self, name: &str) -> Option<&str> {
        let text = self.text.get(self.ranges.get(name)?.clone())?;
        (text != "null").then_some(text)
    }

    /// Ends reading: refuses fields that are known, but not supported. Returns the warnings,
    /// including the warning about unknown fields.
    ///
    /// # Errors
    /// 400 if a field is not supported.
    pub fn finish(self) -> Result<Warnings> {
        let (refused, hints) = (refused(), hints());
        let mut warnings = self.warnings;
        for name in self.unknown.iter().filter(|name| !PASSED_OVER.contains(&name.as_str())) {
            let value = &self.fields[name];
            if name.starts_with("guided_") {
                return Err(ApiError::unsupported(name, format!("`{name}` is not offered")));
            }
            if let Some((_, harmless)) = hints.iter().find(|(known, _)| known == name) {
                if !harmless.contains(value) {
                    warnings.ignore(name);
                }
                continue;
            }
            match refused.iter().find(|(known, _)| known == name) {
                Some((_, harmless)) if harmless.contains(value) => {}
                Some(_) => {
                    return Err(ApiError::unsupported(
                        name,
                        format!("`{name}` is not offered with this value"),
                    ));
                }
                None => warnings.ignore(name),
            }
        }
        Ok(warnings)
    }
}

/// The fields of a JSON object, and the positions of their values; the last value of a repeated
/// field.
pub fn field_ranges(text: &str) -> HashMap<String, Range<usize>> {
    top_level(text).into_iter().collect()
}

/// The same fields in order.
fn top_level(text: &str) -> Vec<(String, Range<usize>)> {
    let bytes = text.as_bytes();
    let mut fields = Vec::new();
    let mut depth = 0_usize;
    let mut name: Option<String> = None;
    let mut value = 0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = string_end(bytes, at);
                if depth == 1 && name.is_none() {
                    name = serde_json::from_str(&text[at..end]).ok();
                }
                at = end;
                continue;
            }
            b':' if depth == 1 && value == 0 => value = at + 1,
            b'{' | b'[' => depth += 1,
            byte @ (b'}' | b']' | b',') => {
                if depth == 1
                    && let Some(name) = name.take()
                {
                    let text = &text[value..at];
                    let start = value + text.len() - text.trim_start().len();
                    fields.push((name, start..start + text.trim().len()));
                    value = 0;
                }
                if byte != b',' {
                    depth = depth.saturating_sub(1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    fields
}

/// The end of the string that begins at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Own {
        n: Option<usize>,
    }

    #[test]
    fn fields_keep_their_text() {
        let body = br#" {"a" : {"b": [1.50, "x}\"]"], "n": 3}, "n": 12345678901234567890.0 , "\u006d":null,"s":"}"} "#;
        let body = Body::read(body).expect("an object");
        assert_eq!(body.raw("a"), Some(r#"{"b": [1.50, "x}\"]"], "n": 3}"#));
        assert_eq!(body.raw("n"), Some("12345678901234567890.0"));
        assert_eq!(body.raw("m"), None);
        assert_eq!(body.raw("s"), Some("\"}\""));
        assert_eq!(body.raw("b"), None);
    }

    #[test]
    fn a_field_of_another_type_is_named() {
        let mut body = Body::read(br#"{"n": "x"}"#).expect("an object");
        let error = body.take::<Own>().map(|own| own.n).expect_err("of another type");
        assert_eq!(error.param.as_deref(), Some("n"));
    }

    #[test]
    fn unknown_fields_are_one_warning() {
        let fields: Vec<String> = (0..5_000).map(|number| format!("\"unknown{number}\": 1")).collect();
        let mut body = Body::read(format!("{{{}}}", fields.join(",")).as_bytes()).expect("an object");
        body.take::<Own>().expect("it has no fields of its own");
        let told = body.finish().expect("they are ignored").tell();
        let [warning] = &told[..] else { panic!("{} warnings", told.len()) };
        let message = &warning.message;
        assert!(message.contains("unknown0") && message.ends_with(" more"), "{message}");
        assert!(message.len() < 1_000, "{message}");
    }

    #[test]
    fn unsupported_fields_are_refused_unless_they_have_no_effect() {
        let read = |text: &str| {
            let mut body = Body::read(text.as_bytes())?;
            body.take::<Own>()?;
            body.finish()
        };
        let warned = |text: &str| read(text).expect("it is read").tell();
        assert!(warned(r#"{"n": 1, "store": false, "functions": null, "echo": false}"#).is_empty());
        assert!(warned(r#"{"functions": [], "documents": [], "custom_params": {}}"#).is_empty());
        let told = warned(r#"{"n": 1, "what": 2, "store": true, "user": "u"}"#);
        assert_eq!(told[0].param, "store, what");
        for name in ["echo", "functions", "guided_backend", "n"] {
            let error = read(&format!("{{\"{name}\": [true]}}")).expect_err("it is refused");
            assert_eq!(error.param.as_deref(), Some(name));
        }
        assert!(read(r#"{"allowed_token_ids": []}"#).is_err());
        assert!(read(r#"{"n": 1, "n": 2}"#).is_err());
        assert!(read("[]").is_err() && read("{").is_err());
    }
}
