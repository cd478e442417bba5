//! Accepted and rejected requests.

use burn_dfa_common::ErrorKind;
use serde_json::json;

use super::{both, weather};
use crate::{Reasoning, Tool, ToolChoice, ToolFormat, Tools};

#[test]
fn tools_are_read_and_written() {
    let tool = weather().with_description("Weather now").with_strict(true);
    let chat = json!({"type": "function", "function": {
        "name": "weather", "description": "Weather now", "parameters": tool.parameters, "strict": true
    }});
    assert_eq!(serde_json::to_value(&tool).unwrap(), chat);
    assert_eq!(serde_json::from_value::<Tool>(chat).unwrap(), tool);
    let bare = json!({"type": "function", "name": "f", "parameters": null, "strict": null});
    assert_eq!(serde_json::from_value::<Tool>(bare).unwrap(), Tool::new("f"));
    for (wrong, why) in [
        (json!([]), "not an object"),
        (json!({"name": "f"}), "type null"),
        (json!({"type": "retrieval", "name": "f"}), "type \"retrieval\""),
        (json!({"type": "function", "function": {}}), "no `name`"),
        (json!({"type": "function", "function": {"name": 1}}), "`name`"),
        (json!({"type": "function", "name": "f", "strict": 1}), "`strict`"),
        (json!({"type": "function", "name": "f", "cache": 1}), "`cache`"),
        (json!({"type": "function", "function": {"name": "f"}, "name": "g"}), "`name`"),
    ] {
        let error = serde_json::from_value::<Tool>(wrong).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn errors_in_a_tool_name_the_tool() {
    let body = json!({"tools": [{"type": "function", "name": "f"}, {"type": "function"}]});
    let error = Tools::from_request(&body).unwrap_err().to_string();
    assert_eq!(error, "constraint request: tools[1]: a tool has no `name`");
}

#[test]
fn names_and_parameters_are_checked() {
    let long = "x".repeat(129);
    for name in ["", "a b", "a\"", "é", "a<", "a\n", &long] {
        assert_eq!(Tools::new([Tool::new(name)]).unwrap_err().kind(), ErrorKind::Request, "{name:?}");
    }
    assert!(Tools::new([Tool::new("ns.f:g/h_i-1")]).is_ok());
    assert_eq!(Tools::new([Tool::new("f"), Tool::new("f")]).unwrap_err().kind(), ErrorKind::Request);
    for schema in [json!(true), json!("{}"), json!({"type": "string"}), json!({"type": ["object"]})] {
        assert!(
            Tools::new([Tool::new("f").with_parameters(schema)]).unwrap_err().kind() == ErrorKind::Request
        );
    }
    let wrong = Tool::new("f").with_parameters(json!({"properties": {"a": {"type": "text"}}}));
    let error = Tools::new([wrong]).unwrap().to_constraint().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schema, "{error}");
    assert!(error.pointer().unwrap().ends_with("/json_schema/properties/a/type"), "{error}");
}

#[test]
fn choices_are_read_and_written() {
    let named = json!({"type": "function", "function": {"name": "f"}});
    for (value, choice) in [
        (json!("auto"), ToolChoice::Auto),
        (json!("required"), ToolChoice::Required),
        (json!("none"), ToolChoice::None),
        (named, ToolChoice::Named("f".into())),
        (
            json!({"type": "allowed_tools", "allowed_tools": {
                "mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]
            }}),
            ToolChoice::Allowed { names: vec!["f".into()], required: true },
        ),
    ] {
        assert_eq!(serde_json::to_value(&choice).unwrap(), value);
        assert_eq!(serde_json::from_value::<ToolChoice>(value).unwrap(), choice);
    }
    let flat = json!({"type": "function", "name": "f"});
    assert_eq!(serde_json::from_value::<ToolChoice>(flat).unwrap(), ToolChoice::Named("f".into()));
    for wrong in [json!("any"), json!(1), json!({"type": "allowed_tools"}), json!({"type": "function"})] {
        assert!(serde_json::from_value::<ToolChoice>(wrong).is_err());
    }
}

#[test]
fn an_impossible_choice_is_rejected() {
    let none = || Tools::new([]).unwrap();
    assert!(
        none().with_choice(ToolChoice::Required).to_constraint().unwrap_err().kind() == ErrorKind::Request
    );
    let named = both(ToolFormat::Plain).with_choice(ToolChoice::Named("x".into()));
    assert_eq!(named.to_constraint().unwrap_err().kind(), ErrorKind::Request);
    assert!(none().to_constraint().is_ok());
}

#[test]
fn fields_of_a_request_are_read() {
    let tools = Tools::from_request(&json!({
        "model": "m",
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "tool_choice": "none",
        "parallel_tool_calls": false
    }))
    .unwrap();
    let wanted = Tools::new([Tool::new("f")]).unwrap().with_choice(ToolChoice::None).with_parallel(false);
    assert_eq!(tools, wanted);
    assert_eq!(Tools::from_request(&json!({"tools": null})).unwrap(), Tools::new([]).unwrap());
    let wrong = json!({"tools": [{"type": "function", "name": "f"}, {"type": "function"}]});
    assert!(Tools::from_request(&wrong).unwrap_err().to_string().contains("tools[1]"));
    assert!(
        Tools::from_request(&json!({"parallel_tool_calls": 1})).unwrap_err().kind() == ErrorKind::Request
    );
}

#[test]
fn marks_of_reasoning_are_checked() {
    let with = |reasoning| both(ToolFormat::Hermes).with_reasoning(reasoning).to_constraint();
    assert_eq!(with(Reasoning::text("", "b")).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(with(Reasoning::text("a", "")).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(with(Reasoning::text("a", "b".repeat(300))).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(with(Reasoning::think().opened().optional()).unwrap_err().kind(), ErrorKind::Input);
}

#[test]
fn formats_have_names_and_are_known_by_templates() {
    for format in ToolFormat::ALL {
        let name = format.to_string();
        assert_eq!(name.parse(), Ok(format));
        assert_eq!(serde_json::to_value(format).unwrap(), json!(name));
        assert_eq!(serde_json::from_value::<ToolFormat>(json!(name)).unwrap(), format);
    }
    assert_eq!("llama".parse::<ToolFormat>().unwrap_err().kind(), ErrorKind::Input);
    for (template, format) in [
        ("{{ '<|im_start|>' }}", None),
        ("<tool_call>\n{\"name\": \"{{ name }}\", \"arguments\": {{ arguments }}}", Some(ToolFormat::Hermes)),
        ("<tool_call>\n<function={{ name }}>\n<parameter={{ key }}>", Some(ToolFormat::QwenXml)),
        ("<tool_call>{{ name }}<arg_key>{{ arguments }}", None),
        ("[TOOL_CALLS][{\"name\": …", Some(ToolFormat::Mistral)),
        ("[TOOL_CALLS]{{ name }}[ARGS]", None),
        ("<|start_header_id|>… '{\"name\": \"' … '\"parameters\": '", Some(ToolFormat::Llama31)),
        ("<|start_header_id|>assistant<|end_header_id|>", None),
        ("<｜tool▁calls▁begin｜>… '\\n```json\\n'", Some(ToolFormat::DeepSeek)),
        ("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>", Some(ToolFormat::DeepSeekV31)),
        ("<|start|>assistant<|channel|>final<|message|>", Some(ToolFormat::Harmony)),
    ] {
        assert_eq!(ToolFormat::of_template(template), format, "{template}");
    }
}
