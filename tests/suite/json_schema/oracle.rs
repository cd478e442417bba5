//! The crate `jsonschema` as a judge, and members drawn at random for it.

use burn_dfa::ByteDfa;
use jsonschema::{Draft, Validator};
use serde_json::Value;

/// A validator of a schema that may name its draft; the error is why it cannot be had.
pub fn build(draft: Draft, schema: &Value, formats: bool) -> Result<Validator, String> {
    jsonschema::options()
        .with_draft(draft.detect(schema))
        .should_validate_formats(formats)
        .build(schema)
        .map_err(|error| error.to_string())
}

/// Whether `text` is JSON and valid; the error says what it is instead.
pub fn check(validator: &Validator, text: &[u8]) -> Result<(), String> {
    match serde_json::from_slice::<Value>(text) {
        // The judge holds numbers in 64 bits.
        Err(error) if error.to_string().contains("out of range") => Ok(()),
        Err(error) => Err(format!("no JSON: {error}")),
        Ok(value) => match validator.validate(&value) {
            Err(error) if !has_long_number(text) && !has_line_end(text) => Err(error.to_string()),
            _ => Ok(()),
        },
    }
}

/// Whether some number has more digits than the judge can hold.
fn has_long_number(text: &[u8]) -> bool {
    text.split(|byte| !matches!(byte, b'0'..=b'9' | b'.')).any(|digits| digits.len() > 15)
        || text.windows(2).any(|two| two[0].is_ascii_digit() && matches!(two[1], b'e' | b'E'))
}

/// Whether there is a line end but U+000A, which the `.` of ECMA-262 does not match and that of the judge does.
fn has_line_end(text: &[u8]) -> bool {
    let ends = [b"\\r".as_slice(), "\u{2028}".as_bytes(), "\u{2029}".as_bytes()];
    ends.iter().any(|end| text.windows(end.len()).any(|part| part == *end))
}

/// Members of a language, drawn at random, not much longer than need be.
pub fn draw(dfa: &ByteDfa, count: usize, seed: u64) -> Vec<Vec<u8>> {
    dfa.samples(seed, 300).take(count).collect()
}
