//! Calls as text, and prompts.

use serde_json::json;

use super::{automaton, both, outputs};
use crate::GrammarText;
use crate::tools::{Tool, ToolChoice, ToolFormat, ToolInput, Tools};

#[test]
fn written_calls_are_read_as_calls() {
    for format in ToolFormat::ALL {
        let tools = both(format).with_choice(ToolChoice::Required);
        let weather = ("weather", json!({"city": "Bern"}));
        for calls in [vec![weather.clone()], vec![weather, ("now", json!({}))]] {
            let text = format.write(&calls);
            let is_legal = automaton(&tools).matches(text.as_bytes());
            assert!(is_legal || format == ToolFormat::Llama31 && calls.len() > 1, "{format}: {text}");
            let reply = tools.read(&text).unwrap();
            let read: Vec<_> =
                reply.calls.iter().map(|call| (call.name.as_str(), call.value().unwrap())).collect();
            assert_eq!(read, calls, "{format}");
        }
        // In the style of models.
        let [one, ..] = outputs(format);
        let own = format.write(&[("weather", json!({"city": "Bern"}))]);
        assert!(own == one || format == ToolFormat::QwenXml, "{own}");
    }
}

#[test]
fn calls_begin_with_a_beginning() {
    for format in ToolFormat::ALL {
        let tools = both(format).with_choice(ToolChoice::Required);
        let Some(beginnings) = tools.beginnings() else {
            assert_eq!(format, ToolFormat::Harmony);
            continue;
        };
        for text in outputs(format) {
            let begun = beginnings.iter().filter(|beginning| text.starts_with(beginning.as_str()));
            assert_eq!(begun.count(), 1, "{format}: {text}");
        }
    }
}

#[test]
fn a_prompt_lists_tools_and_the_call_format() {
    let grammar = GrammarText { syntax: "lark".into(), definition: "start: /[0-9]+/".into(), start: None };
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let tools = [
        Tool::new("weather").with_description("Tells the weather.").with_parameters(schema),
        Tool::custom("sum", ToolInput::Grammar(grammar)),
        Tool::custom("note", ToolInput::Text),
    ];
    for format in ToolFormat::ALL {
        let prompt = Tools::new(tools.clone()).unwrap().with_format(format).prompt();
        for part in [
            "weather: Tells the weather.",
            r#"{"type": "object", "properties": {"city": {"type": "string"}}}"#,
            "lark grammar:\nstart: /[0-9]+/",
            "`input` is any text",
            &format.write(&[("weather", json!({"city": "…"}))]),
        ] {
            assert!(prompt.contains(part), "{part} in {prompt}");
        }
        let one = Tools::new(tools[1..2].iter().cloned()).unwrap().with_format(format).prompt();
        assert!(one.contains("TEXT") && !one.contains("Several"), "{one}");
        let several = Tools::new(tools[..1].iter().cloned().chain([Tool::new("now")])).unwrap();
        assert!(several.with_format(format).prompt().contains("Several calls"));
    }
    let required = Tools::new([Tool::new("now")]).unwrap().with_choice(ToolChoice::Required);
    assert!(required.prompt().contains("Answer with a call"));
}

#[test]
fn errors_are_of_a_tool() {
    let wrong = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}});
    for format in ToolFormat::ALL {
        let tools = [Tool::new("now"), Tool::new("then").with_parameters(wrong.clone())];
        let tools = Tools::new(tools).unwrap().with_format(format);
        let error = tools.to_constraint().unwrap_err();
        let location = error.pointer().and_then(|pointer| tools.locate(pointer));
        assert_eq!(location, Some((1, "/properties/a/pattern")), "{format}: {error}");
    }
    assert_eq!(Tools::new([]).unwrap().locate("/format"), None);
}
