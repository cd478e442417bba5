//! Structural tags and tools: as JSON, and structural tags that the bytes choose.

use burn_dfa_tokens::ErrorKind;
use std::time::Duration;

use arbitrary::{Result, Unstructured};
use burn_dfa_tokens::automaton::ByteAutomaton;
use burn_dfa_tokens::constraint::{Reasoning, Reply, StructuralTag, ToolFormat, Tools};
use burn_dfa_tokens::{Constraint, Limits};
use serde_json::{Value, json};

use super::examine::{examine, limits};
use super::{schemas, words};

const STYLES: &[&str] = &[
    "json",
    "qwen_xml",
    "minimax_xml",
    "minimax_m3_xml",
    "deepseek_xml",
    "glm_xml",
    "cohere_xml",
    "kimi_k3_xml",
    "deepseek_v4_1_xml",
    "other",
];

/// If the text begins with `{`, a structural tag and a request with tools, otherwise a structural
/// tag that the bytes choose.
pub fn tags(bytes: &[u8]) {
    let chosen = match bytes {
        [b'{', ..] => serde_json::from_slice(bytes).ok(),
        _ => tag(&mut Unstructured::new(bytes)).ok(),
    };
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(tag) = StructuralTag::read(text)
    {
        let again = serde_json::to_string(&tag).expect("JSON");
        assert_eq!(StructuralTag::read(&again).as_ref(), Ok(&tag), "{again}");
    }
    let Some(chosen) = chosen else { return };
    match Constraint::structural_tag(&chosen) {
        Ok(constraint) => examine(&constraint, bytes),
        Err(error) => assert!(
            (error.kind() == ErrorKind::StructuralTag || error.kind() == ErrorKind::Schema)
                && error.pointer().is_some()
                || error.kind() == ErrorKind::Limit,
            "{error}"
        ),
    }
    match Tools::from_request(&chosen) {
        Ok(tools) => called(tools, bytes),
        Err(error) => assert!(error.kind() == ErrorKind::Request, "{error}"),
    }
}

/// Tools in a format that the length of the input chooses: a reader accepts every text that the
/// automaton accepts.
fn called(tools: Tools, bytes: &[u8]) {
    if tools.tools().is_empty() {
        return;
    }
    let format = ToolFormat::ALL[bytes.len() % ToolFormat::ALL.len()];
    let mut tools = tools.with_format(format);
    if bytes.len().is_multiple_of(3) {
        let reasoning = format.reasoning().unwrap_or_else(Reasoning::think);
        tools = tools.with_reasoning(reasoning);
    }
    // With flexible white space, which a reader must accept too.
    let constraint = match tools.to_constraint_with(&StructuralTag::json_options()) {
        Ok(constraint) => constraint,
        Err(error) => {
            return assert!(
                error.kind().is_constraint()
                    || error.kind() == ErrorKind::Input
                    || error.kind() == ErrorKind::Limit,
                "{error}"
            );
        }
    };
    let limits = Limits { time: Duration::from_millis(500), ..limits() }.with_frames(20);
    let Ok(Some(automaton)) = constraint.to_automaton(&limits) else { return };
    let text = walked(&automaton, bytes);
    let mut reader = tools.reader().expect("tools with a constraint");
    let mut reply = Reply::default();
    for piece in text.chunks(1 + bytes.len() % 5) {
        let events = reader.push(piece).unwrap_or_else(|error| panic!("{error}: {text:?}"));
        events.iter().for_each(|event| reply.add(event));
    }
    if automaton.matches(&text) {
        let events = reader.finish().unwrap_or_else(|error| panic!("{error}: {text:?}"));
        events.iter().for_each(|event| reply.add(event));
        assert_eq!(&reply, reader.reply(), "{text:?}");
    }
    // Arbitrary output of a model.
    if let Ok(mut reader) = tools.reader() {
        let _ = reader.push(bytes);
        let _ = reader.finish();
    }
}

/// Legal bytes of a text, chosen by `bytes`.
fn walked(automaton: &ByteAutomaton, bytes: &[u8]) -> Vec<u8> {
    let mut at = automaton.start();
    let mut text = Vec::new();
    for &choice in bytes.iter().cycle().take(160) {
        let alive = |byte: &u8| !automaton.next(&at, *byte).is_dead();
        // The first legal byte, starting from the chosen one.
        let mut order = (0..=u8::MAX).map(|more| choice.wrapping_add(more));
        let Some(byte) = order.find(alive) else { break };
        at = automaton.next(&at, byte);
        text.push(byte);
    }
    text
}

/// A structural tag from bytes, mostly well-formed.
fn tag(choices: &mut Unstructured) -> Result<Value> {
    Ok(json!({"type": "structural_tag", "format": format(choices, 3)?}))
}

fn format(choices: &mut Unstructured, depth: u32) -> Result<Value> {
    let kind = if depth == 0 || choices.is_empty() { 6 } else { 17 };
    Ok(match choices.int_in_range(0..=kind)? {
        0 => json!({"type": "any_text", "excludes": texts(choices)?}),
        1 => {
            json!({"type": "any_text", "max_chars": count(choices)?, "max_tokens": choices.arbitrary::<Option<u32>>()?})
        }
        2 => json!({"type": "const_string", "value": words::text(choices)?}),
        3 => json!({"type": "regex", "pattern": words::pattern(choices)?}),
        4 => json!({
            "type": "json_schema", "json_schema": schemas::schema(choices)?, "style": choices.choose(STYLES)?,
            "any_order": choices.arbitrary::<bool>()?, "max_whitespace_cnt": count(choices)?, "excludes": texts(choices)?
        }),
        5 => json!({"type": "grammar", "grammar": "root ::= \"(\" root? \")\" | \"a\""}),
        6 => json!({"type": "token", "token": token(choices)?}),
        7 | 8 => {
            json!({"type": "sequence", "elements": [format(choices, depth - 1)?, format(choices, depth - 1)?]})
        }
        9 => json!({"type": "or", "elements": [format(choices, depth - 1)?, format(choices, depth - 1)?]}),
        10 => {
            let kind = *choices.choose(&["optional", "star", "plus"])?;
            json!({"type": kind, "content": format(choices, depth - 1)?})
        }
        11 => {
            json!({"type": "repeat", "min": count(choices)?, "max": count(choices)?, "content": format(choices, depth - 1)?})
        }
        12 => one_tag(choices, depth - 1)?,
        13 => {
            json!({"type": "tags_with_separator", "tags": tags_of(choices, depth - 1)?, "separator": words::text(choices)?})
        }
        14 => json!({
            "type": "dispatch", "rules": [[words::text(choices)?, format(choices, depth - 1)?]],
            "loop": choices.arbitrary::<bool>()?, "excludes": texts(choices)?
        }),
        15 => json!({
            "type": "token_triggered_tags", "trigger_tokens": [token(choices)?], "tags": tags_of(choices, depth - 1)?,
            "exclude_tokens": [token(choices)?], "at_least_one": choices.arbitrary::<bool>()?
        }),
        _ => {
            let tags = tags_of(choices, depth - 1)?;
            let begins = tags.iter().filter_map(|tag| tag["begin"].as_str());
            let mut triggers = Vec::new();
            for begin in begins {
                let max = choices.int_in_range(1..=4)?;
                triggers.push(begin.chars().take(max).collect::<String>());
            }
            triggers.dedup();
            json!({
                "type": "triggered_tags", "triggers": triggers, "tags": tags, "excludes": texts(choices)?,
                "at_least_one": choices.arbitrary::<bool>()?, "stop_after_first": choices.arbitrary::<bool>()?
            })
        }
    })
}

fn tags_of(choices: &mut Unstructured, depth: u32) -> Result<Vec<Value>> {
    (0..choices.int_in_range(1..=3)?).map(|_| one_tag(choices, depth)).collect()
}

fn one_tag(choices: &mut Unstructured, depth: u32) -> Result<Value> {
    let mark = |choices: &mut Unstructured| -> Result<Value> {
        Ok(match choices.int_in_range(0..=7)? {
            0 => json!({"type": "token", "token": token(choices)?}),
            _ => json!(words::text(choices)?),
        })
    };
    let begin = mark(choices)?;
    let end = if choices.ratio(1, 8)? { json!(texts(choices)?) } else { mark(choices)? };
    Ok(json!({"type": "tag", "begin": begin, "content": format(choices, depth)?, "end": end}))
}

fn texts(choices: &mut Unstructured) -> Result<Vec<String>> {
    (0..choices.int_in_range(0..=2)?).map(|_| words::text(choices)).collect()
}

fn token(choices: &mut Unstructured) -> Result<Value> {
    Ok(if choices.ratio(1, 6)? {
        json!(words::text(choices)?)
    } else {
        json!(choices.int_in_range(0..=300)?)
    })
}

/// Usually a small count, sometimes none.
fn count(choices: &mut Unstructured) -> Result<Option<i64>> {
    Ok(match choices.int_in_range(0..=7)? {
        0 => None,
        1 => Some(choices.arbitrary::<i32>()?.into()),
        _ => Some(choices.int_in_range(-1..=5)?),
    })
}
