//! Custom tools.

use burn_dfa_common::ErrorKind;
use serde_json::{Value, json};

use super::{automaton, weather};
use crate::tools::{ReplyEvent, Tool, ToolChoice, ToolFormat, ToolInput, Tools};
use crate::{GrammarText, Reasoning};

fn grammar(syntax: &str, definition: &str) -> ToolInput {
    ToolInput::Grammar(GrammarText { syntax: syntax.into(), definition: definition.into(), start: None })
}

/// A word with marks of every format in it.
const ODD: &str = "a\"}}\n</tool_call>\n</parameter>\n\"}<|call|>é";

fn tools(format: ToolFormat) -> Tools {
    let odd = Tool::custom("odd", grammar("lark", &format!("start: {}", json!(ODD))));
    let digits = Tool::custom("digits", grammar("regex", r"\d+"));
    Tools::new([weather(), odd, digits]).unwrap().with_format(format)
}

/// An answer that is a call, of a custom tool or of a function.
fn output(format: ToolFormat, name: &str, input: &str) -> String {
    let arguments = match format {
        ToolFormat::QwenXml => format!("<parameter=input>\n{input}\n</parameter>"),
        _ => format!("{{\"input\": \"{input}\"}}"),
    };
    format.write_raw(&[(name, arguments)])
}

#[test]
fn an_input_is_read_as_it_is_in_every_format() {
    for format in ToolFormat::ALL {
        for choice in [ToolChoice::Auto, ToolChoice::Required, ToolChoice::Named("odd".into())] {
            let tools = tools(format).with_choice(choice.clone());
            let text = output(format, "odd", ODD);
            assert!(automaton(&tools).matches(text.as_bytes()), "{format} {choice:?}: {text}");
            assert!(!automaton(&tools).matches(output(format, "odd", "a").as_bytes()), "{format}");
            // However it is cut.
            for size in [1, 2, 3, 7, text.len()] {
                let mut reader = tools.reader().unwrap();
                let mut streamed = String::new();
                let mut add = |events: Vec<ReplyEvent>| {
                    for event in events {
                        if let ReplyEvent::Arguments { delta, .. } = event {
                            streamed.push_str(&delta);
                        }
                    }
                };
                text.as_bytes().chunks(size).for_each(|chunk| add(reader.push(chunk).unwrap()));
                add(reader.finish().unwrap());
                let calls = &reader.reply().calls;
                assert_eq!((calls.len(), calls[0].name.as_str()), (1, "odd"), "{format}");
                assert_eq!((calls[0].arguments.as_str(), streamed.as_str()), (ODD, ODD), "{format} {size}");
            }
        }
    }
}

#[test]
fn a_text_may_come_before_an_input_and_nothing_after_it() {
    let tools = tools(ToolFormat::Hermes).with_reasoning(Reasoning::think());
    let call = output(ToolFormat::Hermes, "digits", "12");
    let text = format!("<think>Well.</think>Let me see. {call}");
    assert!(automaton(&tools).matches(text.as_bytes()));
    let reply = tools.read(&text).unwrap();
    assert_eq!((reply.content.as_str(), reply.calls[0].arguments.as_str()), ("Let me see. ", "12"));
    assert!(!automaton(&tools).matches(format!("{text}{call}").as_bytes()));
    assert!(!automaton(&tools).matches(format!("{text} Done.").as_bytes()));
    // Regex classes are ASCII.
    assert!(!automaton(&tools).matches(text.replace("12", "१२").as_bytes()));
}

#[test]
fn any_text_is_an_argument() {
    let note = || Tool::custom("note", ToolInput::Text);
    let tools = Tools::new([note(), Tool::new("now")]).unwrap().with_choice(ToolChoice::Required);
    let text = r#"[{"name": "note", "arguments": {"input": "a \"b\"\n"}}, {"name": "now", "arguments": {}}]"#;
    assert!(automaton(&tools).matches(text.as_bytes()));
    let reply = tools.read(text).unwrap();
    let inputs: Vec<&str> = reply.calls.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(inputs, ["a \"b\"\n", "{}"]);
    // An incomplete call has no input.
    let mut reader = tools.reader().unwrap();
    reader.push(&text.as_bytes()[..40]).unwrap();
    reader.cut_off();
    assert_eq!(reader.reply().calls[0].arguments, "");
    let xml = Tools::new([note()]).unwrap().with_format(ToolFormat::QwenXml);
    let text = ToolFormat::QwenXml.write(&[("note", json!({"input": "a\nb"}))]);
    assert_eq!(xml.read(&text).unwrap().calls[0].arguments, "a\nb");
}

#[test]
fn definitions_are_read_and_written() {
    let format = json!({"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: \"a\""}});
    let chat = json!({"type": "custom", "custom": {"name": "x", "format": format, "description": "d"}});
    let tool = Tool::custom("x", grammar("lark", "start: \"a\"")).with_description("d");
    assert_eq!(serde_json::from_value::<Tool>(chat.clone()).unwrap(), tool);
    assert_eq!(serde_json::to_value(&tool).unwrap(), chat);
    let flat = json!({"type": "custom", "name": "x", "description": "d", "format": {"type": "grammar", "syntax": "lark", "definition": "start: \"a\""}});
    assert_eq!(serde_json::from_value::<Tool>(flat).unwrap(), tool);
    let bare = json!({"type": "custom", "name": "x"});
    assert_eq!(serde_json::from_value::<Tool>(bare).unwrap(), Tool::custom("x", ToolInput::Text));
    for choice in [json!({"type": "custom", "custom": {"name": "x"}}), json!({"type": "custom", "name": "x"})]
    {
        assert_eq!(serde_json::from_value::<ToolChoice>(choice).unwrap(), ToolChoice::Named("x".into()));
    }
    let refused = |value: Value| serde_json::from_value::<Tool>(value).unwrap_err().to_string();
    assert!(
        refused(json!({"type": "custom", "custom": {"name": "x", "parameters": {}}})).contains("parameters")
    );
    assert!(refused(json!({"type": "custom", "name": "x", "format": {"type": "json"}})).contains("format"));
    assert!(refused(json!({"type": "mcp"})).contains("custom"));
    let both = Tool { parameters: Some(json!({})), ..Tool::custom("x", ToolInput::Text) };
    assert_eq!(Tools::new([both]).unwrap_err().kind(), ErrorKind::Request);
}
