//! Random tools, answers and cuts.

use serde_json::{Map, Value, json};

use super::flexible;
use crate::tools::format::Layout;
use crate::{Reasoning, Reply, ReplyEvent, Tool, ToolFormat, Tools};
use burn_dfa_common::random::Random;

const KINDS: usize = 6;

/// The schema of a kind of values, and a value.
fn value(kind: usize, random: &mut Random) -> (Value, Value) {
    let text = |random: &mut Random| -> String {
        let parts = ["a", "é", "\"", "\\", "{", "}", "[", "<tool_call>", "</", "\n", " ", "𝄞", "]"];
        // Line breaks at the ends belong to the format if strings are unquoted.
        let inner: String = (0..random.below(6)).map(|_| parts[random.below(parts.len())]).collect();
        format!("x{inner}y")
    };
    match kind {
        0 => (json!({"type": "string"}), json!(text(random))),
        1 => (json!({"type": "integer"}), json!(random.below(1000))),
        2 => (json!({"enum": ["red", "green"]}), json!(["red", "green"][random.below(2)])),
        3 => {
            let items: Vec<String> = (0..random.below(3)).map(|_| text(random)).collect();
            (json!({"type": "array", "items": {"type": "string"}}), json!(items))
        }
        4 => (json!({"type": ["boolean", "null"]}), [json!(true), Value::Null][random.below(2)].clone()),
        _ => {
            let schema =
                json!({"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]});
            (schema, json!({"k": text(random)}))
        }
    }
}

/// Tools, and for each the kinds of its properties.
fn tools(random: &mut Random) -> (Vec<Tool>, Vec<Vec<usize>>) {
    (0..1 + random.below(4))
        .map(|i| {
            let kinds: Vec<usize> = (0..random.below(4)).map(|_| random.below(KINDS)).collect();
            let properties: Map<String, Value> = kinds
                .iter()
                .enumerate()
                .map(|(i, &kind)| (format!("p{i}"), value(kind, &mut Random(0)).0))
                .collect();
            let schema = json!({"type": "object", "properties": properties});
            // Names with common prefixes.
            (Tool::new("f".repeat(i + 1)).with_parameters(schema), kinds)
        })
        .unzip()
}

/// Arguments as the format writes them.
fn written(arguments: &Map<String, Value>, format: ToolFormat) -> String {
    if format != ToolFormat::QwenXml {
        return Value::from(arguments.clone()).to_string();
    }
    let parameter = |(name, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("<parameter={name}>\n{value}\n</parameter>")
    };
    arguments.iter().map(parameter).collect::<Vec<_>>().join("\n")
}

/// An answer with calls.
fn answer(calls: &[(String, String)], format: ToolFormat, random: &mut Random) -> String {
    let Some(wire) = format.wire() else {
        let begins = ["<|channel|>commentary to=functions.", " to=functions."];
        let middles = [" <|constrain|>json<|message|>", "<|channel|>commentary json<|message|>"];
        let call = |(name, arguments): &(String, String)| {
            let form = random.below(2);
            format!("{}{name}{}{arguments}<|call|>", begins[form], middles[form])
        };
        let calls: Vec<String> = calls.iter().map(call).collect();
        let preamble = "<|channel|>commentary<|message|>Hé <|<|end|>";
        return [&[preamble.to_owned()], &calls[..]].concat().join("<|start|>assistant");
    };
    let call = |(name, arguments): &(String, String)| {
        format!("{}{name}{}{arguments}{}", wire.before, wire.between, wire.after)
    };
    let calls: Vec<String> = calls.iter().map(call).collect();
    let calls = match wire.layout {
        Layout::Section { open, separator, close } => format!("{open}{}{close}", calls.join(separator)),
        Layout::Either { open, separator, close } if random.below(2) == 0 => {
            format!("{open}{}{close}", calls.join(separator))
        }
        _ => calls.join("\nHé <"),
    };
    format!("Hé <{calls}")
}

#[test]
fn deltas_together_are_the_whole_however_an_output_is_cut() {
    let random = &mut Random(7);
    for round in 0..160 {
        let format = ToolFormat::ALL[round % ToolFormat::ALL.len()];
        let (list, kinds) = tools(random);
        let mut own = Tools::new(list.clone()).unwrap().with_format(format);
        let mut calls = Vec::new();
        let mut wanted = Vec::new();
        for _ in 0..1 + random.below(3) {
            let tool = random.below(list.len());
            let mut arguments = Map::new();
            for (i, &kind) in kinds[tool].iter().enumerate() {
                if random.below(4) > 0 {
                    arguments.insert(format!("p{i}"), value(kind, random).1);
                }
            }
            calls.push((list[tool].name.clone(), written(&arguments, format)));
            wanted.push((list[tool].name.clone(), Value::from(arguments)));
        }
        let mut text = answer(&calls, format, random);
        let thinks = format != ToolFormat::Harmony && random.below(2) == 0;
        if thinks {
            own = own.with_reasoning(Reasoning::think());
            text = format!("<think>Hm </thin é</think>{text}");
        }
        assert!(flexible(&own).matches(text.as_bytes()), "{format}: {text}");

        let whole = own.read(&text).unwrap();
        let read: Vec<_> =
            whole.calls.iter().map(|call| (call.name.clone(), call.value().unwrap())).collect();
        assert_eq!(read, wanted, "{format}: {text}");
        assert_eq!(whole.reasoning, if thinks { "Hm </thin é" } else { "" });

        // Each cut into two, single bytes, and random chunks.
        for cut in 0..text.len() {
            assert_eq!(joined(&own, &[&text.as_bytes()[..cut], &text.as_bytes()[cut..]]), whole);
        }
        assert_eq!(joined(&own, &text.as_bytes().chunks(1).collect::<Vec<_>>()), whole);
        let (mut chunks, mut rest) = (Vec::new(), text.as_bytes());
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(random.below(rest.len().min(12) + 1));
            chunks.push(chunk);
            rest = after;
        }
        assert_eq!(joined(&own, &chunks), whole);
    }
}

/// The joined events of all chunks, which must equal the reader's reply.
fn joined(tools: &Tools, chunks: &[&[u8]]) -> Reply {
    let mut reader = tools.reader().unwrap();
    let mut events = Vec::new();
    for chunk in chunks {
        events.extend(reader.push(chunk).unwrap());
    }
    events.extend(reader.finish().unwrap());
    let mut reply = Reply::default();
    let mut open = None;
    for event in &events {
        match event {
            ReplyEvent::CallBegins { index, .. } => {
                assert_eq!((open.replace(*index), *index), (None, reply.calls.len()));
            }
            ReplyEvent::Arguments { index, .. } => assert_eq!(open, Some(*index)),
            ReplyEvent::CallEnds { index } => assert_eq!(open.take(), Some(*index)),
            ReplyEvent::Text(delta) | ReplyEvent::Reasoning(delta) => {
                assert!(open.is_none() && !delta.is_empty());
            }
        }
        reply.add(event);
    }
    assert_eq!(&reply, reader.reply());
    reply
}

#[test]
fn random_bytes_do_no_harm() {
    let random = &mut Random(3);
    let marks =
        ["<tool_call>\n", "{\"name\": \"", "f", "\", \"arguments\": ", "{", "}", "<think>", "</think>", "\n"];
    for round in 0..2_000 {
        let format = ToolFormat::ALL[round % ToolFormat::ALL.len()];
        let own = Tools::new([Tool::new("f")]).unwrap().with_format(format);
        let own = match format {
            ToolFormat::Harmony => own,
            _ => own.with_reasoning(Reasoning::think().optional()),
        };
        let text: String = (0..random.below(12)).map(|_| marks[random.below(marks.len())]).collect();
        let mut reader = own.reader().unwrap();
        let read = reader.push(text.as_bytes()).and_then(|_| reader.finish());
        if automaton_of(&own, round).is_some_and(|automaton| automaton.matches(text.as_bytes())) {
            assert!(read.is_ok(), "{format}: {text}");
        }
    }
}

/// The automaton in some rounds.
fn automaton_of(tools: &Tools, round: usize) -> Option<burn_dfa_automata::ByteAutomaton> {
    (round % 20 < 8).then(|| flexible(tools))
}
