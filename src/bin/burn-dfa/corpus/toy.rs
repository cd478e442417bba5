//! Rows with their own vocabulary: lists of token ids instead of texts, and masks.

use burn_dfa::vocabulary::TokenKind;
use burn_dfa::{TokenId, Vocabulary};
use serde_json::Value;

use super::parts::Members;
use super::rows::{Begin, Instance, Prefix, Test};
use burn_dfa::vocabulary::cutter::Cutter;

/// The content of such a row.
pub struct Toy {
    pub vocabulary: Vocabulary,
    pub tests: Vec<Test>,
    pub prefixes: Vec<Prefix>,
}

/// `None` if the row has no such lists.
///
/// A mask gives for each token whether it may continue the text. A mask that allows nothing, not
/// even the end, marks a dead end, which no compiled constraint reaches: prefixes of the dead end
/// then have no verdict.
pub fn read(row: &Members) -> Option<Toy> {
    let value = |key: &str| row.get(key).map_or(Some(Value::Array(Vec::new())), |text| parsed(text));
    let (vocabulary, stop) = vocabulary(&value("vocab")?, &ids(&value("stop")?)?)?;
    let lists = |key: &str| value(key)?.as_array()?.iter().map(ids).collect::<Option<Vec<_>>>();
    let (mut tests, mut prefixes) = (Vec::new(), Vec::new());
    let test = |tokens, valid| Test { instance: Instance::Tokens(tokens), valid, needs_format: false };
    for (key, valid) in [("accepts", true), ("rejects", false), ("rejects_incomplete", false)] {
        tests.extend(lists(key)?.into_iter().map(|tokens| test(tokens, valid)));
    }
    for (key, viable) in [("rejects_incomplete", true), ("prefixes", true), ("dead", false)] {
        prefixes.extend(lists(key)?.into_iter().map(|tokens| (tokens, viable)));
    }
    let mut dead_ends = Vec::new();
    for mask in value("masks")?.as_array()? {
        let allowed = ids(mask.get("allowed")?)?;
        let after = match mask.get("after")? {
            Value::String(text) => Cutter::new(&vocabulary).cuts(text).into_iter().flatten().next()?,
            list => ids(list)?,
        };
        if stop && allowed.is_empty() {
            dead_ends.push(after);
            continue;
        }
        for token in (0..vocabulary.len() as u32).map(TokenId) {
            if !vocabulary.eos().contains(&token) {
                prefixes.push(([after.as_slice(), &[token]].concat(), allowed.contains(&token)));
            }
        }
        if stop {
            tests.push(test(after, allowed.iter().any(|token| vocabulary.eos().contains(token))));
        }
    }
    prefixes.retain(|(tokens, _)| !dead_ends.iter().any(|end| end.starts_with(tokens)));
    prefixes.extend(dead_ends.into_iter().map(|tokens| (tokens, false)));
    let prefix = |(tokens, viable)| Prefix { begin: Begin::Tokens(tokens), viable };
    Some(Toy { vocabulary, tests, prefixes: prefixes.into_iter().map(prefix).collect() })
}

/// The vocabulary, and whether the row names the tokens that end a sequence; otherwise an
/// additional token does.
fn vocabulary(tokens: &Value, stop: &[TokenId]) -> Option<(Vocabulary, bool)> {
    let contents = tokens.as_array()?.iter().map(|token| match token {
        Value::String(text) => Some((TokenKind::Normal, text.as_bytes().to_vec())),
        token => Some((TokenKind::Normal, bytes(token.get("hex")?.as_str()?)?)),
    });
    let contents: Vec<_> = contents.collect::<Option<_>>()?;
    let len = contents.len();
    let own = Vocabulary::from_tokens(contents).ok()?;
    let vocabulary = match stop {
        [] => own.pad_to(len + 1).ok()?.with_eos([TokenId(len as u32)]),
        stop => own.with_eos(stop.iter().copied()),
    };
    Some((vocabulary.ok()?, !stop.is_empty()))
}

/// Bytes of hex digits.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    let pairs = (0..hex.len()).step_by(2).map(|at| hex.get(at..at + 2));
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

fn ids(list: &Value) -> Option<Vec<TokenId>> {
    let ids = list.as_array()?.iter().map(|id| u32::try_from(id.as_u64()?).ok().map(TokenId));
    ids.collect()
}

fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}
