//! Properties of the generated tool calls: disjoint splits, arguments that fit the schemas of the
//! tools, and a prompt equal to the chat template's.

use std::collections::HashSet;

use burn_dfa::constraint::ToolFormat;
use burn_dfa_decoder::{ChatTemplate, Message};
use burn_dfa_tiny::{
    TOKENIZER, TOKENIZER_CONFIG, Tool, catalogue,
    generator::{AnswerExample, CallExample, GREETING, Generator, NO_TOOL, Split, WELCOME},
    tool, tools,
};
use serde_json::{Value, json};
use tokenizers::Tokenizer;

fn examples(split: Split, count: u64) -> impl Iterator<Item = CallExample> {
    let generator = Generator::new(11);
    (0..count).map(move |index| generator.call_example(split, index))
}

fn template() -> ChatTemplate {
    let config = std::str::from_utf8(TOKENIZER_CONFIG).expect("it is text");
    ChatTemplate::from_files(Some(config), None).expect("it is well formed").expect("there is a template")
}

/// The prompt in the form of the trainer.
fn prompt(example: &CallExample) -> String {
    format!("{}<|user|>{}<|assistant|>", example.catalogue(), example.prompt)
}

fn render(tools: &[&Tool], sentence: &str) -> String {
    let definitions: Vec<Value> = tools.iter().map(|tool| tool.definition()).collect();
    template().render_with_tools(&[Message::user(sentence)], &definitions, true).expect("it renders")
}

#[test]
fn the_splits_do_not_touch() {
    let held_out: HashSet<String> = examples(Split::HeldOut, 3000).map(|example| example.key).collect();
    for example in examples(Split::Train, 20_000) {
        assert_eq!(Split::of(&example.key), Split::Train);
        assert!(!held_out.contains(&example.key), "{}", example.key);
    }
}

#[test]
fn the_key_of_a_request_is_what_it_asks_for() {
    for example in examples(Split::HeldOut, 2000) {
        match &example.call {
            Some(call) => {
                assert!(example.key.starts_with(call.tool.name), "{example:?}");
                for value in call.arguments.values() {
                    assert!(example.key.contains(&value.to_string()), "{example:?}");
                }
            }
            None if example.answer == NO_TOOL => {
                let name = example.key.split(' ').next().unwrap_or_default();
                assert!(tool(name).is_some(), "{example:?}");
                assert!(example.tools.iter().all(|tool| tool.name != name), "{example:?}");
            }
            None => assert_eq!(example.key, example.prompt),
        }
    }
}

#[test]
fn calls_are_json_that_the_schema_of_the_tool_admits() {
    let validators: Vec<_> = tools()
        .iter()
        .map(|tool| jsonschema::validator_for(&tool.parameters()).expect("it is a schema"))
        .collect();
    let mut called = HashSet::new();
    for example in examples(Split::Train, 5000) {
        let Some(call) = &example.call else { continue };
        called.insert(call.tool.name);
        let at = tools().iter().position(|tool| tool == call.tool).expect("it is a tool");
        let arguments = Value::from(call.arguments.clone());
        assert!(validators[at].is_valid(&arguments), "{}", example.answer);

        let inner =
            example.answer.strip_prefix("<tool_call>\n").and_then(|text| text.strip_suffix("\n</tool_call>"));
        let value: Value = serde_json::from_str(inner.expect("calls are marked")).expect("calls are JSON");
        assert_eq!(value, serde_json::json!({"name": call.tool.name, "arguments": arguments}));

        let parameters = call.tool.parameters();
        let mut declared = parameters["properties"].as_object().expect("properties").keys();
        assert!(call.arguments.keys().all(|name| declared.any(|other| other == name)), "{}", example.answer);
    }
    assert_eq!(called.len(), tools().len());
}

#[test]
fn two_to_four_different_tools_are_offered_and_the_right_one_anywhere() {
    let mut positions = [[0; 4]; 5];
    for example in examples(Split::Train, 3000) {
        let names: HashSet<_> = example.tools.iter().map(|tool| tool.name).collect();
        assert_eq!(names.len(), example.tools.len());
        assert!((2..=4).contains(&names.len()));
        if let Some(call) = &example.call {
            let position = example.tools.iter().position(|tool| *tool == call.tool).expect("it is on offer");
            positions[names.len()][position] += 1;
        }
    }
    for count in 2..=4 {
        assert!(positions[count][..count].iter().all(|&seen| seen > 100), "{positions:?}");
    }
}

#[test]
fn sentences_that_need_no_tool_get_one_of_three_texts() {
    let mut seen = HashSet::new();
    let mut calls = 0;
    for example in examples(Split::Train, 3000) {
        if example.call.is_some() {
            calls += 1;
        } else {
            seen.insert(example.answer);
        }
    }
    assert!((1600..=1900).contains(&calls), "{calls}");
    assert_eq!(seen, HashSet::from([NO_TOOL, GREETING, WELCOME].map(String::from)));
}

#[test]
fn strings_stand_in_the_sentence() {
    for example in examples(Split::HeldOut, 2000) {
        let Some(call) = &example.call else { continue };
        let schema = call.tool.parameters();
        let sentence = example.prompt.to_lowercase();
        for (name, value) in &call.arguments {
            let listed = schema["properties"][name].get("enum").is_some();
            if let Some(text) = value.as_str().filter(|_| !listed) {
                assert!(sentence.contains(&text.to_lowercase()), "{example:?}");
            }
        }
    }
}

#[test]
fn an_example_depends_on_seed_split_and_index_only() {
    let generator = Generator::new(5);
    let late = generator.call_example(Split::Train, 1_000_000);
    assert_eq!(late, generator.call_example(Split::Train, 1_000_000));
    assert_ne!(late, Generator::new(6).call_example(Split::Train, 1_000_000));
}

#[test]
fn the_chat_template_writes_what_the_generator_writes() {
    for example in examples(Split::Train, 300) {
        assert_eq!(render(&example.tools, &example.prompt), prompt(&example));
    }
    let all: Vec<&Tool> = tools().iter().collect();
    assert_eq!(render(&all, "Hello!"), format!("{}<|user|>Hello!<|assistant|>", catalogue(&all)));
    assert_eq!(render(&[], "Hello!"), "<|user|>Hello!<|assistant|>");
}

#[test]
fn the_chat_template_takes_tools_of_all_forms() {
    let parameters = [
        (json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}}), "f(a?:string,b?:)\n"),
        (json!({"type": "object", "properties": {"a": true}, "required": ["a"]}), "f(a:)\n"),
        (json!({"type": "object"}), "f()\n"),
        (json!({}), "f()\n"),
        (json!(null), "f()\n"),
    ];
    for (parameters, line) in parameters {
        let tool = json!({"type": "function", "function": {"name": "f", "parameters": parameters}});
        let rendered =
            template().render_with_tools(&[Message::user("Hi")], &[tool], true).expect("it renders");
        assert_eq!(rendered, format!("{line}<|user|>Hi<|assistant|>"));
    }
}

#[test]
fn the_chat_template_shows_how_calls_are_written() {
    assert_eq!(ToolFormat::of_template(template().source()), Some(ToolFormat::Hermes));
}

#[test]
fn prompts_with_their_answers_fit_the_positions_of_the_model() {
    let tokenizer = Tokenizer::from_bytes(TOKENIZER).expect("it is well formed");
    for example in examples(Split::Train, 10_000) {
        let text = format!("{}{}<|endoftext|>", prompt(&example), example.answer);
        let tokens = tokenizer.encode(text, false).expect("it encodes");
        assert!(tokens.len() <= 256, "{example:?}");
    }
    let generator = Generator::new(11);
    for index in 0..20_000 {
        let example = generator.answer_example(Split::Train, index);
        let text = format!("{}{}<|endoftext|>", answer_prompt(&example), example.answer);
        let tokens = tokenizer.encode(text, false).expect("it encodes");
        assert!(tokens.len() <= 256, "{example:?}");
    }
}

/// The prompt of an answer in the form of the trainer.
fn answer_prompt(example: &AnswerExample) -> String {
    let call = format!("{}{}<|endoftext|>", prompt(&example.request), example.request.answer);
    format!("{call}<|user|><tool_response>{}</tool_response><|assistant|>", example.result)
}

#[test]
fn answers_say_what_the_tool_returned() {
    let generator = Generator::new(11);
    for index in 0..2000 {
        let example = generator.answer_example(Split::HeldOut, index);
        assert!(!example.answer.contains(['{', '}']), "{example:?}");
        for value in
            example.result.as_object().expect("an object").values().filter(|value| !value.is_boolean())
        {
            let said = value.as_str().map_or_else(|| value.to_string(), String::from);
            assert!(example.answer.contains(&said), "{example:?}");
        }
        let definitions: Vec<Value> = example.request.tools.iter().map(|tool| tool.definition()).collect();
        let messages = [
            Message::user(&example.request.prompt),
            Message::assistant(&example.request.answer),
            Message::new("tool", example.result.to_string()),
        ];
        let rendered = template().render_with_tools(&messages, &definitions, true).expect("it renders");
        assert_eq!(rendered, answer_prompt(&example));
        // The same, with the call in the form in which clients send it back.
        let call = example.request.call.as_ref().expect("it is a call");
        let function = json!({"name": call.tool.name, "arguments": call.arguments});
        let messages = [
            json!({"role": "user", "content": example.request.prompt}),
            json!({"role": "assistant", "content": null, "tool_calls": [{"type": "function", "function": function}]}),
            json!({"role": "tool", "content": example.result.to_string()}),
        ];
        let rendered = template().render_json(&messages, &definitions, true).expect("it renders");
        assert_eq!(rendered, answer_prompt(&example));
    }
}
