//! Chat templates against their renderings by Hugging Face transformers (`golden/export.py`).

use std::collections::BTreeMap;

use burn_dfa_decoder::{ChatTemplate, DecoderError, Message};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    templates: BTreeMap<String, String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    template: String,
    messages: Vec<Turn>,
    add_generation_prompt: bool,
    /// `None` where the template refuses the messages.
    text: Option<String>,
}

#[derive(Deserialize)]
struct Turn {
    role: String,
    content: String,
}

#[test]
fn renders_as_transformers_does() {
    let golden: Golden = serde_json::from_str(include_str!("golden/chat.json")).unwrap();
    assert!(golden.cases.len() >= 32);
    for case in &golden.cases {
        let template = ChatTemplate::new(golden.templates[&case.template].as_str())
            .unwrap()
            .with_bos_token("<s>")
            .with_eos_token("</s>");
        let messages: Vec<Message> =
            case.messages.iter().map(|turn| Message::new(&turn.role, &turn.content)).collect();
        let text = template.render(&messages, case.add_generation_prompt);
        match &case.text {
            Some(expected) => assert_eq!(&text.unwrap(), expected, "{}", case.template),
            None => {
                let error = text.unwrap_err();
                assert!(matches!(error, DecoderError::Template { .. }));
                assert!(error.to_string().contains("Roles must alternate"), "{error}");
            }
        }
    }
}

#[test]
fn finds_the_template_wherever_it_is() {
    let hello = [Message::user("hi")];
    let render = |config: Option<&str>, jinja: Option<&str>| {
        ChatTemplate::from_files(config, jinja.map(String::from))
            .unwrap()
            .map(|template| template.render(&hello, false).unwrap())
    };
    let plain = r#"{"chat_template": "A{{ bos_token }}", "bos_token": "<s>"}"#;
    assert_eq!(render(Some(plain), None).unwrap(), "A<s>");
    // Special tokens may be objects, and null.
    let object = r#"{"chat_template": "{{ bos_token }}{{ eos_token }}.",
        "bos_token": {"content": "<b>", "lstrip": false}, "eos_token": null}"#;
    assert_eq!(render(Some(object), None).unwrap(), "<b>.");
    let named = r#"{"chat_template": [{"name": "tool_use", "template": "T"},
        {"name": "default", "template": "D"}]}"#;
    assert_eq!(render(Some(named), None).unwrap(), "D");
    // The file of its own takes precedence, and finds the special tokens in the other.
    assert_eq!(render(Some(plain), Some("B{{ bos_token }}")).unwrap(), "B<s>");
    assert_eq!(render(None, Some("B")).unwrap(), "B");
    assert_eq!(render(Some("{}"), None), None);
    assert_eq!(render(None, None), None);
    assert!(ChatTemplate::from_files(Some("{"), None).is_err());
}

#[test]
fn a_date_is_the_fallback_of_the_template() {
    let template = ChatTemplate::new(
        "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% else %}26 Jul 2024{% endif %}",
    )
    .unwrap();
    assert_eq!(template.render(&[], false).unwrap(), "26 Jul 2024");
}

#[test]
fn hostile_templates_end() {
    assert!(ChatTemplate::new("{% for x in %}").is_err());
    for source in [
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
        "{{ nothing.at.all }}",
        "{{ messages[0].content.undefined_method() }}",
        "{{ raise_exception() }}",
        "{% include 'elsewhere' %}",
    ] {
        let template = ChatTemplate::new(source).unwrap();
        let result = template.render(&[Message::user("x")], false);
        assert!(matches!(result, Err(DecoderError::Template { .. })), "{source}");
    }
}
