//! Chat templates against their renderings by Hugging Face transformers (`golden/export.py`).

use std::collections::BTreeMap;

use burn_dfa_decoder::{ChatTemplate, DecoderError, Message};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Golden {
    templates: BTreeMap<String, String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    template: String,
    messages: Vec<Value>,
    #[serde(default)]
    tools: Vec<Value>,
    #[serde(default)]
    variables: BTreeMap<String, Value>,
    add_generation_prompt: bool,
    /// `None` where the template refuses the messages.
    text: Option<String>,
}

#[test]
fn renders_as_transformers_does() {
    let golden: Golden = serde_json::from_str(include_str!("golden/chat.json")).unwrap();
    assert!(golden.cases.len() >= 80);
    for (number, case) in golden.cases.iter().enumerate() {
        let mut template = ChatTemplate::new(golden.templates[&case.template].as_str())
            .unwrap()
            .with_date(2025, 2, 9)
            .with_bos_token("<s>")
            .with_eos_token("</s>");
        for (name, value) in &case.variables {
            template = template.with_variable(name, value);
        }
        let text = template.render_json(&case.messages, &case.tools, case.add_generation_prompt);
        match &case.text {
            Some(expected) => assert_eq!(&text.unwrap(), expected, "{}, case {number}", case.template),
            None => {
                let error = text.unwrap_err();
                assert!(matches!(error, DecoderError::Template { .. }), "{error}");
                let is_refusal = error.to_string().contains("Roles must alternate");
                assert!(is_refusal || case.messages[0]["content"].is_array(), "{error}");
            }
        }
        // Messages of a role and a text alone.
        let plain = |message: &Value| {
            let fields = message.as_object()?;
            let (role, content) = (message["role"].as_str()?, message["content"].as_str()?);
            (fields.len() == 2).then(|| Message::new(role, content))
        };
        let messages: Option<Vec<Message>> = case.messages.iter().map(plain).collect();
        if let (Some(messages), Some(expected)) = (messages, &case.text) {
            let text = template.render_with_tools(&messages, &case.tools, case.add_generation_prompt);
            assert_eq!(&text.unwrap(), expected, "{}, case {number}", case.template);
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
    assert_eq!(template.with_date(2024, 2, 29).render(&[], false).unwrap(), "29 Feb 2024");
    // Where there is none, it is today.
    let template = ChatTemplate::new("{{ strftime_now('%Y') }}").unwrap();
    let year: u16 = template.render(&[], false).unwrap().parse().unwrap();
    assert!(year >= 2026);
    for (year, month, day, text) in [
        (1970, 1, 1, "Thursday 1 January"),
        (1999, 12, 31, "Friday 31 December"),
        (2000, 2, 29, "Tuesday 29 February"),
        (2100, 3, 1, "Monday 1 March"),
    ] {
        let template = ChatTemplate::new("{{ strftime_now('%A %d %B').replace(' 0', ' ') }}").unwrap();
        assert_eq!(template.with_date(year, month, day).render(&[], false).unwrap(), text);
    }
}

#[test]
#[should_panic(expected = "no day 2100-2-29")]
fn a_day_that_is_none() {
    let _ = ChatTemplate::new("").unwrap().with_date(2100, 2, 29);
}

#[test]
fn hostile_templates_end() {
    for source in ["{% for x in %}", "{% generation %}", "{%", "{% endgeneration %}", "{% elsewhere %}"] {
        assert!(ChatTemplate::new(source).is_err(), "{source}");
    }
    for source in [
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
        "{{ nothing.at.all }}",
        "{{ messages[0].content.undefined_method() }}",
        "{{ raise_exception() }}",
        "{{ strftime_now('%Q') }}",
        "{% include 'elsewhere' %}",
    ] {
        let template = ChatTemplate::new(source).unwrap();
        let result = template.render(&[Message::user("x")], false);
        assert!(matches!(result, Err(DecoderError::Template { .. })), "{source}");
    }
}
