//! Tests of tools.

mod cases;
mod inputs;
mod laws;
mod requests;
mod speed;
mod written;

use burn_dfa_common::{ErrorKind, Limits};
use serde_json::{Value, json};

use super::{Call, Reasoning, Reply, Tool, ToolChoice, ToolFormat, Tools};
use crate::{JsonOptions, Whitespace};
use burn_dfa_automata::ByteAutomaton;

pub(super) fn automaton(tools: &Tools) -> ByteAutomaton {
    tools.to_constraint().unwrap().to_automaton(&Limits::default()).unwrap().unwrap()
}

/// With any white space within arguments, in every format.
pub(super) fn flexible(tools: &Tools) -> ByteAutomaton {
    let options = tools.json_options().with_whitespace(Whitespace::FLEXIBLE);
    tools.to_constraint_with(&options).unwrap().to_automaton(&Limits::default()).unwrap().unwrap()
}

fn weather() -> Tool {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    Tool::new("weather").with_parameters(schema)
}

fn both(format: ToolFormat) -> Tools {
    Tools::new([weather(), Tool::new("now")]).unwrap().with_format(format)
}

fn call(name: &str, arguments: &str) -> Call {
    Call { name: name.into(), arguments: arguments.into() }
}

/// A call of the first tool, one of the second, and both in one answer.
fn outputs(format: ToolFormat) -> [String; 3] {
    let texts = match format {
        ToolFormat::Plain => [
            r#"{"name": "weather", "arguments": {"city": "Bern"}}"#,
            r#"[{"name": "now", "arguments": {}}]"#,
            r#"[{"name": "weather", "arguments": {"city": "Bern"}}, {"name": "now", "arguments": {}}]"#,
        ],
        ToolFormat::Hermes => [
            "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\"}}\n</tool_call>",
            "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
            "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
        ],
        ToolFormat::Llama31 => [
            r#"{"name": "weather", "parameters": {"city": "Bern"}}"#,
            r#"{"name": "now", "parameters": {}}"#,
            r#"{"name": "weather", "parameters": {"city": "Bern"}}; {"name": "now", "parameters": {}}"#,
        ],
        ToolFormat::Mistral => [
            r#"[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Bern"}}]"#,
            r#"[TOOL_CALLS][{"name": "now", "arguments": {}}]"#,
            r#"[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Bern"}}, {"name": "now", "arguments": {}}]"#,
        ],
        ToolFormat::QwenXml => [
            "<tool_call>\n<function=weather>\n<parameter=city>\nBern\n</parameter>\n</function>\n</tool_call>",
            "<tool_call>\n<function=now>\n\n</function>\n</tool_call>",
            "<tool_call>\n<function=weather>\n<parameter=city>\nBern\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n\n</function>\n</tool_call>",
        ],
        ToolFormat::DeepSeek => [
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\": \"Bern\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\": \"Bern\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        ],
        ToolFormat::DeepSeekV31 => [
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{\"city\": \"Bern\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{\"city\": \"Bern\"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        ],
        ToolFormat::Harmony => [
            "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\": \"Bern\"}<|call|>",
            " to=functions.now<|channel|>commentary json<|message|>{}",
            "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\": \"Bern\"}<|call|><|start|>assistant<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}<|call|>",
        ],
    };
    texts.map(str::to_owned)
}

/// The text `text` as an answer.
fn said(format: ToolFormat, text: &str) -> String {
    match format {
        ToolFormat::Harmony => format!("<|channel|>final<|message|>{text}<|return|>"),
        _ => text.to_owned(),
    }
}

fn allowed(names: &[&str], required: bool) -> ToolChoice {
    ToolChoice::Allowed { names: names.iter().map(|name| String::from(*name)).collect(), required }
}

#[test]
fn a_choice_selects_the_allowed_calls() {
    for format in ToolFormat::ALL {
        let tools = both(format);
        let [weather, now, two] = outputs(format);
        let said = said(format, "Hello, {world}");
        // The accepted outputs: text, either call, both.
        let cases = [
            (tools.clone(), [true, true, true, true]),
            (tools.clone().with_parallel(false), [true, true, true, false]),
            (tools.clone().with_choice(ToolChoice::Required), [false, true, true, true]),
            (
                tools.clone().with_choice(ToolChoice::Required).with_parallel(false),
                [false, true, true, false],
            ),
            (tools.clone().with_choice(ToolChoice::Named("now".into())), [false, false, true, false]),
            (tools.clone().with_choice(allowed(&["now"], true)), [false, false, true, false]),
            (tools.clone().with_choice(allowed(&["now"], false)), [true, false, true, false]),
            (tools.clone().with_choice(allowed(&["now", "weather"], true)), [false, true, true, true]),
            (tools.clone().with_choice(allowed(&[], false)), [true, false, false, false]),
            (tools.clone().with_choice(ToolChoice::None), [true, false, false, false]),
        ];
        for (tools, taken) in cases {
            let automaton = automaton(&tools);
            for (text, taken) in [&said, &weather, &now, &two].into_iter().zip(taken) {
                assert_eq!(automaton.matches(text.as_bytes()), taken, "{format} {:?}: {text}", tools.choice);
            }
            for text in [&weather, &two] {
                // Arguments that do not fit the schema, an unknown name, and an incomplete call.
                let wrong = [
                    text.replace("city", "town"),
                    text.replace("weather", "whether"),
                    text[..text.find("Bern").unwrap()].to_owned(),
                ];
                for wrong in wrong {
                    assert!(!automaton.matches(wrong.as_bytes()), "{format} {:?}: {wrong}", tools.choice);
                }
            }
        }
    }
}

#[test]
fn calls_are_read_back() {
    for format in ToolFormat::ALL {
        let tools = both(format);
        let [weather, now, two] = outputs(format);
        let city = match format {
            ToolFormat::QwenXml => r#"{"city":"Bern"}"#,
            _ => r#"{"city": "Bern"}"#,
        };
        let (one, other) = (call("weather", city), call("now", "{}"));
        assert_eq!(tools.read(&weather).unwrap().calls, std::slice::from_ref(&one), "{format}");
        assert_eq!(tools.read(&now).unwrap().calls, std::slice::from_ref(&other), "{format}");
        assert_eq!(tools.read(&two).unwrap().calls, [one, other], "{format}");
        assert_eq!(tools.read(&said(format, "é<{[")).unwrap().content, "é<{[", "{format}");
    }
}

#[test]
fn text_may_come_before_and_after_calls() {
    for format in ToolFormat::ALL {
        let [weather, ..] = outputs(format);
        let (text, content) = match format {
            ToolFormat::Harmony => (
                format!("<|channel|>commentary<|message|>Let me see.<|end|><|start|>assistant{weather}"),
                "Let me see.",
            ),
            _ => (format!("Let me see.\n{weather} So."), "Let me see.\n So."),
        };
        let tools = both(format);
        assert!(automaton(&tools).matches(text.as_bytes()), "{format}");
        let reply = tools.read(&text).unwrap();
        assert_eq!((reply.content.as_str(), reply.calls.len()), (content, 1), "{format}");
        let required = both(format).with_choice(ToolChoice::Named("weather".into()));
        assert_eq!(required.read(&text).unwrap_err().kind(), ErrorKind::Output, "{format}");
    }
}

#[test]
fn reasoning_comes_first() {
    for format in ToolFormat::ALL {
        let Some(reasoning) = format.reasoning() else { continue };
        let [weather, ..] = outputs(format);
        let thought = match format {
            ToolFormat::Harmony => {
                "<|channel|>analysis<|message|>Bern or Basel?<|end|><|start|>assistant".to_owned()
            }
            ToolFormat::Hermes | ToolFormat::QwenXml => "<think>Bern or Basel?</think>\n\n".to_owned(),
            _ => "<think>Bern or Basel?</think>".to_owned(),
        };
        let tools = both(format).with_choice(ToolChoice::Required).with_reasoning(reasoning.clone());
        let text = format!("{thought}{weather}");
        assert!(automaton(&tools).matches(text.as_bytes()), "{format}");
        let reply = tools.read(&text).unwrap();
        assert_eq!((reply.reasoning.as_str(), reply.calls.len()), ("Bern or Basel?", 1), "{format}");
        if format == ToolFormat::Harmony {
            assert!(
                both(format).with_reasoning(reasoning.opened()).reader().unwrap_err().kind()
                    == ErrorKind::Request
            );
            continue;
        }
        assert!(!automaton(&tools).matches(weather.as_bytes()), "{format}");
        let open = both(format).with_reasoning(reasoning.clone().opened());
        assert_eq!(open.read(&text["<think>".len()..]).unwrap(), reply, "{format}");
        let optional = tools.clone().with_reasoning(reasoning.optional());
        let automaton = automaton(&optional);
        assert!(automaton.matches(text.as_bytes()) && automaton.matches(weather.as_bytes()), "{format}");
        assert_eq!(optional.read(&text).unwrap(), reply, "{format}");
        assert_eq!(optional.read(&weather).unwrap().calls, reply.calls, "{format}");
    }
}

#[test]
fn optional_reasoning_is_distinguished_from_text() {
    let tools = Tools::new([]).unwrap().with_reasoning(Reasoning::think().optional());
    let read = |text: &str| {
        let Reply { content, reasoning, .. } = tools.read(text).unwrap();
        (reasoning, content)
    };
    assert_eq!(read("<think>a</think>b"), ("a".into(), "b".into()));
    assert_eq!(read("<thin"), ("".into(), "<thin".into()));
    assert_eq!(read("<thing> is"), ("".into(), "<thing> is".into()));
    assert_eq!(read(""), ("".into(), "".into()));
    assert_eq!(tools.read("<think>a").unwrap_err().kind(), ErrorKind::Output);
}

#[test]
fn arguments_of_xml_become_json_of_their_types() {
    let schema = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "unit": {"enum": ["C", "F"]},
            "count": {"type": "integer"},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "list": {"$ref": "#/$defs/list"},
            "either": {"type": ["integer", "string"]}
        },
        "$defs": {"list": {"type": "array", "items": {"type": "boolean"}}}
    });
    let tools =
        Tools::new([Tool::new("f").with_parameters(schema)]).unwrap().with_format(ToolFormat::QwenXml);
    let automaton = automaton(&tools);
    let read = |parameters: &[(&str, &str)]| -> Value {
        let text: String = parameters
            .iter()
            .map(|(name, value)| format!("<parameter={name}>{value}</parameter>\n"))
            .collect();
        let text = format!("<tool_call>\n<function=f>\n{text}\n</function>\n</tool_call>");
        assert!(automaton.matches(text.as_bytes()), "{text}");
        tools.read(&text).unwrap().calls[0].value().unwrap()
    };
    assert_eq!(
        read(&[
            ("text", "\n  \"a\"\n<b>\n\n"),
            ("unit", "\nC \n"),
            ("count", "\n3\n"),
            ("maybe", "\nnull\n"),
            ("list", "[true, false]"),
            ("either", "\n12\n"),
        ]),
        json!({"text": "  \"a\"\n<b>\n", "unit": "C", "count": 3, "maybe": null, "list": [true, false], "either": 12})
    );
    assert_eq!(
        read(&[("text", "12"), ("maybe", "\nnul\n"), ("either", "\n1.5\n")]),
        json!({"text": "12", "maybe": "nul", "either": "1.5"})
    );
    let loose = tools.tools()[0].clone().with_parameters(json!({"type": "object"}));
    let loose = Tools::new([loose]).unwrap().with_format(ToolFormat::QwenXml);
    let text = "<tool_call>\n<function=f>\n<parameter=x>\n{\"a\": 1, \"a\": 2}\n</parameter>\n<parameter=y>\nno {\n</parameter>\n</function>\n</tool_call>";
    assert_eq!(loose.read(text).unwrap().calls[0].arguments, r#"{"x":{"a": 1, "a": 2},"y":"no {"}"#);
}

#[test]
fn arguments_fit_the_schema_with_any_strict() {
    let wrong = br#"{"name": "weather", "arguments": {"x": [{"y": null}]}}"#;
    for tool in [weather(), weather().with_strict(true), weather().with_strict(false)] {
        let tools = |tool| Tools::new([tool]).unwrap().with_choice(ToolChoice::Required);
        assert!(!automaton(&tools(tool.clone())).matches(wrong));
        let any = tool.with_parameters(json!({"type": "object"}));
        assert!(automaton(&tools(any.clone())).matches(wrong));
        assert!(!automaton(&tools(any)).matches(br#"{"name": "weather", "arguments": []}"#));
    }
    let empty = json!({"type": "object", "properties": {}, "required": [], "description": "nothing"});
    for tool in [Tool::new("f"), Tool::new("f").with_parameters(empty)] {
        for format in ToolFormat::ALL {
            let tools = Tools::new([tool.clone()]).unwrap().with_format(format);
            let tag = serde_json::to_string(&tools.to_structural_tag().unwrap()).unwrap();
            assert!(tag.contains(r#""additionalProperties":false"#), "{tag}");
        }
        let tools = Tools::new([tool]).unwrap().with_choice(ToolChoice::Required);
        assert!(automaton(&tools).matches(br#"{"name": "f", "arguments": {}}"#));
        assert!(!automaton(&tools).matches(br#"{"name": "f", "arguments": {"a": 1}}"#));
    }
    let open = Tool::new("f").with_parameters(json!({}));
    let open = Tools::new([open]).unwrap().with_choice(ToolChoice::Required);
    assert!(!automaton(&open).matches(br#"{"name": "f", "arguments": 1}"#));
    assert!(automaton(&open).matches(br#"{"name": "f", "arguments": {"a": 1}}"#));
}

#[test]
fn arguments_have_the_white_space_of_their_format() {
    let schema = json!({
        "type": "object",
        "properties": {"at": {"type": "array", "items": {"type": "integer"}}},
        "required": ["at"],
    });
    for format in ToolFormat::ALL {
        let tools = Tools::new([Tool::new("f").with_parameters(schema.clone())])
            .unwrap()
            .with_format(format)
            .with_choice(ToolChoice::Required);
        let call = |arguments: &str| {
            let [call, ..] = outputs(format);
            let call = call.replace("weather", "f").replace(r#"{"city": "Bern"}"#, arguments);
            call.replace("city", "at").replace("Bern", arguments)
        };
        let styles = match format {
            ToolFormat::QwenXml => ["[1, 2]", "[1,2]", "[\n  1,\n  2\n]"],
            _ => [r#"{"at": [1, 2]}"#, r#"{"at":[1,2]}"#, "{\n  \"at\": [\n    1,\n    2\n  ]\n}"],
        };
        let taken = |options: &JsonOptions| {
            let automaton = tools.to_constraint_with(options).unwrap().to_automaton(&Limits::default());
            let automaton = automaton.unwrap().unwrap();
            styles.map(|style| automaton.matches(call(style).as_bytes()))
        };
        let is_flexible =
            matches!(format, ToolFormat::DeepSeek | ToolFormat::DeepSeekV31 | ToolFormat::Harmony);
        assert_eq!(taken(&tools.json_options()), [true, is_flexible, is_flexible], "{format}");
        let default = automaton(&tools);
        assert_eq!(default.matches(call(styles[1]).as_bytes()), is_flexible, "{format}");
        let with = |whitespace| taken(&tools.json_options().with_whitespace(whitespace));
        assert_eq!(with(Whitespace::Compact), [false, true, false], "{format}");
        assert_eq!(with(Whitespace::FLEXIBLE), [true; 3], "{format}");
    }
}

#[test]
fn malformed_output_is_rejected_at_the_first_wrong_byte() {
    let tools = both(ToolFormat::Hermes);
    let mut reader = tools.reader().unwrap();
    reader.push(b"Hm.<tool_call>\n{\"name\": ").unwrap();
    let error = reader.push(b"\"then\"").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Output, "{error}");
    assert!(error.to_string().contains("at byte 25"), "{error}");
    assert_eq!(reader.push(b"x").unwrap_err(), error);
    assert_eq!(reader.reply().content, "Hm.");

    let mut reader = tools.reader().unwrap();
    assert_eq!(reader.push(b"a\xFF").unwrap_err().kind(), ErrorKind::Output);

    // Text held back at the end of an incomplete output is text.
    let mut reader = tools.reader().unwrap();
    reader.push(b"a <tool").unwrap();
    reader.cut_off();
    assert_eq!(reader.reply().content, "a <tool");
    let cut = tools.read("<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"ci");
    assert_eq!(cut.unwrap_err().kind(), ErrorKind::Output);
}

#[test]
fn a_definition_is_that_of_the_structural_tag() {
    for format in ToolFormat::ALL {
        let tools = both(format);
        let tag = tools.to_structural_tag().unwrap();
        let mut own: Value =
            serde_json::from_str(&tools.to_constraint().unwrap().definition().unwrap()).unwrap();
        let options = own.as_object_mut().unwrap().remove("options");
        assert_eq!(own, serde_json::to_value(&tag).unwrap());
        let is_flexible = format.whitespace() == Whitespace::FLEXIBLE;
        assert_eq!(
            options.map(|options| options["whitespace"].clone()),
            (!is_flexible).then(|| json!("spaced"))
        );
        let text = crate::Constraint::structural_tag(&tag).unwrap().definition().unwrap();
        let again = crate::Constraint::from_request_str(&text).unwrap().unwrap();
        assert_eq!(again.definition().unwrap(), text);
    }
}

#[test]
fn reasoning_may_be_delimited_by_tokens() {
    let tools = both(ToolFormat::Hermes).with_reasoning(Reasoning::tokens("<think>", "</think>"));
    let tag = serde_json::to_value(tools.to_structural_tag().unwrap()).unwrap();
    assert_eq!(tag["format"]["elements"][0]["begin"], json!({"type": "token", "token": "<think>"}));
    let reply = tools.read("<think>a</think>b").unwrap();
    assert_eq!((reply.reasoning.as_str(), reply.content.as_str()), ("a", "b"));
    assert!(tools.to_constraint().is_ok());
}

#[test]
fn names_of_arguments_are_read_as_they_are_written() {
    let names = ["a\"b", "a&b", "a&amp;b", "a<b", "a>b", ">", "a>", ">>a>", "a'b", "a=b", "a\nb", "a b", "é"];
    for name in names {
        let schema = json!({
            "type": "object",
            "properties": {"c": {"type": "integer"}, name: {"type": "string"}},
            "required": ["c", name],
        });
        let tools = Tools::new([Tool::new("f").with_parameters(schema)]).unwrap();
        let tools = tools.with_format(ToolFormat::QwenXml).with_choice(ToolChoice::Required);
        let text = format!(
            "<tool_call>\n<function=f>\n<parameter=c>\n1\n</parameter>\n<parameter={name}>\nv>w\n</parameter>\n</function>\n</tool_call>"
        );
        assert!(automaton(&tools).matches(text.as_bytes()), "{text}");
        let reply = tools.read(&text).unwrap();
        let arguments: Value = serde_json::from_str(&reply.calls[0].arguments).unwrap();
        assert_eq!(arguments, json!({"c": 1, name: "v>w"}));
    }
}

#[test]
fn types_of_arguments_are_found_behind_references() {
    let schema = json!({
        "type": "object",
        "properties": {"count": {"$ref": "#count"}, "text": {"$ref": "#/$defs/any%20text"}, "both": {"allOf": [{"$ref": "#count"}, {}]}},
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": false,
        "required": ["count", "text"],
        "$defs": {
            "number": {"$anchor": "count", "type": "integer"},
            "any text": {"type": "string"}
        }
    });
    let tools = Tools::new([Tool::new("f").with_parameters(schema)]).unwrap();
    let tools = tools.with_format(ToolFormat::QwenXml).with_choice(ToolChoice::Required);
    let parameter = |name: &str| format!("<parameter={name}>\n12\n</parameter>\n");
    let parameters: String = ["count", "text", "both", "x-y"].map(parameter).concat();
    let text = format!("<tool_call>\n<function=f>\n{parameters}</function>\n</tool_call>");
    assert!(automaton(&tools).matches(text.as_bytes()), "{text}");
    let reply = tools.read(&text).unwrap();
    let arguments: Value = serde_json::from_str(&reply.calls[0].arguments).unwrap();
    assert_eq!(arguments, json!({"count": 12, "text": "12", "both": 12, "x-y": "12"}));
}
