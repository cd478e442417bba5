//! Entry points for hostile bytes, one function per kind of input.
//!
//! A function panics if the library breaks a promise; returned errors are fine. `cargo fuzz` calls
//! the functions with its inputs. The project's tests call them with the seeds, with inputs of
//! earlier failures, and with mutations of both.

mod artifact;
mod examine;
mod schemas;
mod tags;
mod words;

use arbitrary::Unstructured;
use burn_dfa_tokens::ErrorKind;
use burn_dfa_tokens::constraint::{CharPattern, ResponseFormat, StructuredOutputs, Syntax, Transitions};
use burn_dfa_tokens::vocabulary::{TokenKind, eos_from_config};
use burn_dfa_tokens::{CompiledConstraint, Constraint, Limits, TokenId, Vocabulary};
use serde_json::Value;

pub use self::artifact::artifact;
use self::examine::{examine, limits};
pub use self::tags::tags;

/// A pattern in three dialects: `Constraint::regex`, `pattern` of a schema, and `CharPattern`.
pub fn regex(bytes: &[u8]) {
    let Ok(pattern) = std::str::from_utf8(bytes) else { return };
    match Constraint::regex(pattern) {
        Ok(constraint) => examine(&constraint, bytes),
        Err(error) => assert!(error.offset().is_some_and(|offset| offset <= pattern.len()), "{error}"),
    }
    let schema = serde_json::json!({"type": "string", "pattern": pattern});
    match Constraint::json_schema(schema) {
        Ok(constraint) => examine(&constraint, bytes),
        Err(error) => assert!(error.kind() == ErrorKind::Schema, "{error}"),
    }
    if let Ok(pattern) = CharPattern::parse(pattern) {
        examine(&Constraint::pattern(pattern), bytes);
    }
}

/// A JSON schema: the text if it begins with `{`, otherwise a schema that the bytes choose.
pub fn schema(bytes: &[u8]) {
    let (schema, options) = match bytes {
        [b'{', ..] => (serde_json::from_slice(bytes).ok(), Default::default()),
        _ => {
            let mut choices = Unstructured::new(bytes);
            (schemas::schema(&mut choices).ok(), schemas::options(&mut choices).unwrap_or_default())
        }
    };
    let Some(schema) = schema else { return };
    match Constraint::json_schema_with(schema, &options) {
        Ok(constraint) => examine(&constraint, bytes),
        Err(error) => {
            assert!(error.kind() == ErrorKind::Schema || error.kind() == ErrorKind::Limit, "{error}")
        }
    }
}

/// A grammar, in a syntax that the first byte chooses.
pub fn grammar(bytes: &[u8]) {
    let Some((syntax, text)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let syntax = Syntax::ALL[usize::from(*syntax) % Syntax::ALL.len()];
    match Constraint::grammar(syntax, text) {
        Ok(constraint) => examine(&constraint, bytes),
        Err(error) => {
            assert!(error.kind() == ErrorKind::Grammar || error.kind() == ErrorKind::Limit, "{error}")
        }
    }
}

/// A request in OpenAI's or vLLM's form.
pub fn request(bytes: &[u8]) {
    if let Ok(format) = serde_json::from_slice::<ResponseFormat>(bytes) {
        let _ = format.to_constraint();
    }
    if let Ok(outputs) = serde_json::from_slice::<StructuredOutputs>(bytes) {
        let _ = outputs.to_constraint();
    }
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
    if let Ok(Some(constraint)) = Constraint::from_request(&value) {
        examine(&constraint, bytes);
    }
}

/// A `tokenizer.json`, and the same bytes as a `config.json`.
pub fn tokenizer(bytes: &[u8]) {
    let named = std::str::from_utf8(bytes).ok().and_then(|json| eos_from_config(json).ok());
    let vocabulary = match Vocabulary::from_tokenizer_json(bytes) {
        Ok(vocabulary) => vocabulary,
        Err(error) => return assert!(error.kind() == ErrorKind::Vocabulary, "{error}"),
    };
    assert!(vocabulary.len() <= Vocabulary::MAX_LEN);
    let ids = (0..vocabulary.len() as u32 + 1).map(TokenId);
    assert!(ids.clone().all(|id| vocabulary.bytes(id).is_none_or(|text| !text.is_empty())));
    if let Ok(own) = vocabulary.clone().with_eos(named.unwrap_or_default()) {
        assert!(own.eos().iter().all(|id| id.index() < own.len()));
    }
    let end = TokenId(vocabulary.len() as u32);
    let Ok(vocabulary) = vocabulary.pad_to(end.index() + 1).and_then(|wider| wider.with_eos([end])) else {
        return;
    };
    for pattern in ["(?s:.)*", "[a-z ]{1,3}|é", "(?s-u:.)"] {
        let Ok(constraint) = Constraint::regex(pattern) else { continue };
        examine::compile(&constraint, &vocabulary, bytes);
    }
}

/// A vocabulary, a constraint and tokens that the bytes choose.
pub fn walk(bytes: &[u8]) {
    let _ = chosen(&mut Unstructured::new(bytes), bytes);
}

fn chosen(choices: &mut Unstructured, bytes: &[u8]) -> arbitrary::Result<()> {
    let mut tokens = Vec::new();
    for _ in 0..choices.int_in_range(0..=40)? {
        let kind = *choices.choose(&[
            TokenKind::Normal,
            TokenKind::Normal,
            TokenKind::Normal,
            TokenKind::Added,
            TokenKind::Special,
            TokenKind::Unused,
        ])?;
        let length = choices.int_in_range(0..=5)?;
        let content: Vec<u8> = match choices.arbitrary()? {
            true => choices.bytes(length)?.to_vec(),
            false => (0..length)
                .map(|_| Ok(*choices.choose(b"ab01\"{}[]:, ")?))
                .collect::<arbitrary::Result<_>>()?,
        };
        tokens.push((kind, content));
    }
    let Ok(vocabulary) = Vocabulary::from_tokens(tokens) else { return Ok(()) };
    let ids = |choices: &mut Unstructured, max: u32| -> arbitrary::Result<Vec<TokenId>> {
        let count = choices.int_in_range(0..=max)?;
        (0..count).map(|_| Ok(TokenId(id(choices)?))).collect()
    };
    let named = ids(choices, 3)?;
    let end = TokenId(vocabulary.len() as u32);
    let vocabulary = match vocabulary.clone().with_eos(named) {
        Ok(vocabulary) if !vocabulary.eos().is_empty() => vocabulary,
        _ => match vocabulary.pad_to(end.index() + 1).and_then(|wider| wider.with_eos([end])) {
            Ok(vocabulary) => vocabulary,
            Err(_) => return Ok(()),
        },
    };
    let constraint = match choices.int_in_range(0..=4)? {
        0 => {
            let mut transitions = Vec::new();
            for _ in 0..choices.int_in_range(0..=30)? {
                transitions.push((state(choices)?, TokenId(id(choices)?), state(choices)?));
            }
            let accepting = [state(choices)?, state(choices)?];
            Transitions::new(state(choices)?, accepting, transitions).map(Constraint::transitions)
        }
        1 => {
            let count = choices.int_in_range(0..=6)?;
            let sets = (0..count).map(|_| ids(choices, 6)).collect::<arbitrary::Result<_>>()?;
            Constraint::token_sets(sets)
        }
        2 => {
            let count = choices.int_in_range(0..=6)?;
            let texts = (0..count).map(|_| words::text(choices)).collect::<arbitrary::Result<Vec<_>>>()?;
            Constraint::choice(texts)
        }
        3 => Constraint::regex(&words::pattern(choices)?),
        _ => Constraint::json_schema(schemas::schema(choices)?),
    };
    let Ok(mut constraint) = constraint else { return Ok(()) };
    // Sometimes, free text precedes the constraint.
    match choices.int_in_range(0..=7)? {
        6 => constraint = Constraint::after(words::text(choices)?, constraint),
        7 => constraint = Constraint::after(TokenId(id(choices)?), constraint),
        _ => {}
    }
    let Some(compiled) = examine::compile(&constraint, &vocabulary, bytes) else { return Ok(()) };
    let kept = ids(choices, 12)?;
    if let Ok(pruned) = compiled.prune(&vocabulary, &kept) {
        pruned.validate().unwrap_or_else(|error| panic!("{error}"));
        for (at, &id) in (0..).zip(&kept) {
            assert_eq!(pruned.next(pruned.start(), TokenId(at)), compiled.next(compiled.start(), id));
        }
    }
    let tight = Limits {
        states: choices.int_in_range(0..=50)?,
        bytes: choices.arbitrary::<u16>()?.into(),
        ..limits()
    };
    let _ = CompiledConstraint::compile(&constraint, &vocabulary, &tight);
    Ok(())
}

/// Usually a small id, sometimes any id.
fn id(choices: &mut Unstructured) -> arbitrary::Result<u32> {
    if choices.ratio(1, 16)? { choices.arbitrary() } else { choices.int_in_range(0..=41) }
}

fn state(choices: &mut Unstructured) -> arbitrary::Result<u32> {
    if choices.ratio(1, 16)? { choices.arbitrary() } else { choices.int_in_range(0..=6) }
}
