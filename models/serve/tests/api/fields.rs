//! Fields of vLLM and OpenAI that set the generation and the form of an answer.

use std::sync::OnceLock;

use burn_dfa_tiny::TOKENIZER;
use serde_json::{Value, json};

use crate::client::{Answer, Folder, Running, start};

fn server() -> &'static Running {
    static SERVER: OnceLock<Running> = OnceLock::new();
    SERVER.get_or_init(|| start(&[]))
}

const SENTENCE: &str = "Please send 12 brass lamps to Oscar Lund.";

fn ask(more: Value) -> Answer {
    let mut body = json!({"messages": [{"role": "user", "content": SENTENCE}], "max_tokens": 30});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    server().post("/v1/chat/completions", &body)
}

fn content(body: &Value) -> String {
    body["choices"][0]["message"]["content"].as_str().expect("a text").to_owned()
}

fn tokens(text: &str) -> Vec<u64> {
    let body = server().post("/tokenize", &json!({"prompt": text})).json(200);
    body["tokens"].as_array().expect("tokens").iter().map(|token| token.as_u64().expect("an id")).collect()
}

/// The field names of the first warning.
fn warned(answer: &Answer) -> String {
    answer
        .warnings()
        .first()
        .map(|warning| warning["param"].as_str().expect("a text").to_owned())
        .unwrap_or_default()
}

#[test]
fn stop_tokens_end_an_answer() {
    let whole = ask(json!({})).json(200);
    let text = content(&whole);
    let ids = tokens(&text);
    let stop = ids[4];
    let at = ids.iter().position(|&id| id == stop).expect("it is there");
    let body = ask(json!({"stop_token_ids": [stop]})).json(200);
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["usage"]["completion_tokens"], at + 1);
    let with = ask(json!({"stop_token_ids": [stop], "include_stop_str_in_output": true})).json(200);
    let (before, after) = (content(&body), content(&with));
    assert!(after.starts_with(&before) && after.len() > before.len() && text.starts_with(&after), "{after}");
    ask(json!({"stop_token_ids": [99999]})).error(400, Some("stop_token_ids"), "invalid_value");
    ask(json!({"stop_token_ids": [-1]})).error(400, Some("stop_token_ids[0]"), "invalid_value");
    ask(json!({"stop_token_ids": vec![1; 500]})).error(400, Some("stop_token_ids"), "invalid_value");
}

#[test]
fn a_stop_text_may_be_included() {
    let text = content(&ask(json!({})).json(200));
    let stop = &text[5..8];
    let end = text.find(stop).expect("it is there");
    let body = ask(json!({"stop": stop, "include_stop_str_in_output": true})).json(200);
    assert_eq!(content(&body), text[..end + stop.len()]);
    let mut stream = json!({"stop": stop, "include_stop_str_in_output": true, "stream": true});
    let events = ask(stream.take()).events();
    let streamed: String =
        events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(streamed, text[..end + stop.len()]);
}

#[test]
fn an_answer_goes_on_where_its_end_is_ignored() {
    let short = ask(json!({"max_tokens": 100})).json(200);
    assert_eq!(short["choices"][0]["finish_reason"], "stop");
    let body = ask(json!({"max_tokens": 100, "ignore_eos": true})).json(200);
    assert_eq!(
        (&body["choices"][0]["finish_reason"], &body["usage"]["completion_tokens"]),
        (&json!("length"), &json!(100))
    );
    // A constraint still ends an answer, and so does a stop text.
    let body = ask(json!({"regex": "[a-z]{3}", "ignore_eos": true})).json(200);
    assert_eq!(content(&body).len(), 3);
    let stop = content(&short)[3..6].to_owned();
    let body = ask(json!({"stop": stop, "ignore_eos": true, "max_tokens": 100})).json(200);
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
}

#[test]
fn the_least_tokens_are_kept_as_far_as_a_constraint_goes_on() {
    let letters = json!({"regex": "[a-z]{1,200}", "min_tokens": 12, "max_tokens": 30});
    let answer = ask(letters);
    assert!(answer.json(200)["usage"]["completion_tokens"].as_u64() > Some(12), "{}", answer.text);
    assert!(answer.warnings().is_empty());
    for stream in [false, true] {
        let short = json!({"regex": "[a-z]{3}", "min_tokens": 12, "stream": stream});
        let answer = ask(short);
        let warnings = match stream {
            false => answer.warnings(),
            true => {
                answer.events().last().expect("an event")["warnings"].as_array().cloned().unwrap_or_default()
            }
        };
        assert_eq!((warnings.len(), &warnings[0]["param"]), (1, &json!("min_tokens")), "{}", answer.text);
    }
    let wide = ask(json!({"min_tokens": 31}));
    assert!(wide.error(400, Some("min_tokens"), "invalid_value").contains("to 30"));
    // Stop texts within the minimum do not count.
    let text = content(&ask(json!({})).json(200));
    let body = ask(json!({"stop": &text[..1], "min_tokens": 5})).json(200);
    assert!(body["usage"]["completion_tokens"].as_u64() > Some(5), "{body}");
}

#[test]
fn values_near_zero_are_raised() {
    let greedy = content(&ask(json!({})).json(200));
    for (field, value) in [("temperature", 0.001), ("temperature", 1e-8), ("top_p", 0.0), ("top_p", 1e-9)] {
        let answer = ask(json!({"temperature": 1.0, "seed": 1, field: value}));
        assert_eq!(content(&answer.json(200)), greedy, "{field} {value}");
        assert_eq!(answer.warnings().len(), 1, "{field} {value}");
        assert_eq!(warned(&answer), field);
    }
    assert!(ask(json!({"temperature": 0})).warnings().is_empty());
    ask(json!({"top_p": -0.1})).error(400, Some("top_p"), "invalid_value");
    ask(json!({"temperature": -1})).error(400, Some("temperature"), "invalid_value");
}

#[test]
fn refusals_of_earlier_answers_are_texts() {
    let prompt_tokens = |answer: Value| {
        let user = json!({"role": "user", "content": "Hi"});
        let body = ask(json!({"messages": [user, answer, user], "max_tokens": 1})).json(200);
        body["usage"]["prompt_tokens"].as_u64().expect("a count")
    };
    let text = prompt_tokens(json!({"role": "assistant", "content": "I cannot."}));
    assert!(text > prompt_tokens(json!({"role": "assistant", "content": ""})));
    let part = json!({"type": "refusal", "refusal": "I cannot."});
    assert_eq!(prompt_tokens(json!({"role": "assistant", "content": [part]})), text);
    assert_eq!(prompt_tokens(json!({"role": "assistant", "content": null, "refusal": "I cannot."})), text);
    let both = json!([{"role": "assistant", "content": "Yes.", "refusal": "I cannot."}]);
    assert_eq!(warned(&ask(json!({"messages": both, "max_tokens": 1}))), "messages[0].refusal");
}

#[test]
fn a_call_of_an_earlier_answer_may_have_the_old_form() {
    let prompt = |role: &str, more: Value| {
        let mut call = json!({"role": "assistant", "content": null});
        call.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let result = json!({"role": role, "name": "f", "content": "rain"});
        let answer = ask(json!({"messages": [call, result], "max_tokens": 1}));
        assert!(answer.warnings().is_empty());
        answer.json(200)["usage"]["prompt_tokens"].as_u64().expect("a count")
    };
    let function = json!({"name": "f", "arguments": "{\"city\": \"Lisbon\"}"});
    let new = prompt("tool", json!({"tool_calls": [{"function": function}]}));
    assert_eq!(prompt("function", json!({"function_call": function})), new);
    assert_eq!(prompt("function", json!({"function_call": function, "tool_calls": []})), new);
    let nameless = json!([{"role": "assistant", "content": null, "function_call": {}}]);
    ask(json!({"messages": nameless})).error(400, Some("messages[0].function_call"), "invalid_value");
}

#[test]
fn a_completion_may_omit_the_special_tokens_of_the_tokenizer() {
    let folder = Folder::new("special", VARIABLES);
    let mut tokenizer: Value = serde_json::from_slice(TOKENIZER).expect("it is JSON");
    let begin = json!({"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}});
    let text = |id: &str| json!({"Sequence": {"id": id, "type_id": 0}});
    tokenizer["post_processor"] = json!({
        "type": "TemplateProcessing", "single": [begin, text("A")], "pair": [begin, text("A"), text("B")],
        "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}}
    });
    folder.write("tokenizer.json", tokenizer.to_string().as_bytes());
    let server = folder.start(&[]);
    let ask = |more: Value| {
        let mut body = json!({"prompt": "Hi", "max_tokens": 1});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let body = server.post("/v1/completions", &body).json(200);
        body["usage"]["prompt_tokens"].as_u64().expect("a count")
    };
    let with = ask(json!({}));
    assert_eq!(ask(json!({"add_special_tokens": true})), with);
    assert_eq!(ask(json!({"add_special_tokens": false})), with - 1);
    let chat = json!({"messages": [{"role": "user", "content": "Hi"}], "add_special_tokens": true});
    server.post("/v1/chat/completions", &chat).error(
        400,
        Some("add_special_tokens"),
        "unsupported_parameter",
    );
}

#[test]
fn all_ignored_fields_share_one_warning() {
    let tool = json!({"type": "function", "cache_control": {"type": "ephemeral"}, "function": {"name": "f", "returns": {}}});
    let answer = ask(json!({
        "store": true, "verbosity": "low", "prediction": {"type": "content", "content": "x"}, "what": 1, "tools": [tool],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {}}], "weight": 1}]
    }));
    assert_eq!(answer.warnings().len(), 1);
    let names = warned(&answer);
    for name in [
        "store",
        "verbosity",
        "prediction",
        "what",
        "tools[0].cache_control",
        "tools[0].function.returns",
        "messages[0].content[0].cache_control",
        "messages[0].weight",
    ] {
        assert!(names.contains(name), "{name} in {names}");
    }
    let quiet = json!({"store": false, "verbosity": "medium", "user": "u", "metadata": {}, "echo": false});
    assert!(ask(quiet).warnings().is_empty());
    let request = json!({
        "input": "Hi", "max_output_tokens": 5, "store": true, "truncation": "auto", "text": {"verbosity": "high", "indent": 2, "x": null},
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"], "reasoning": {"effort": "low", "summary": "auto"}
    });
    let answer = server().post("/v1/responses", &request);
    let params: Vec<String> = answer
        .warnings()
        .iter()
        .map(|warning| warning["param"].as_str().expect("a text").to_owned())
        .collect();
    assert_eq!(params.len(), 3, "{params:?}");
    assert!(
        params[0].contains("include: reasoning.encrypted_content") && params[0].contains("text.verbosity")
    );
    assert!(params[0].contains("text.indent") && !params[0].contains("text.x"), "{params:?}");
    assert!(params.contains(&"truncation".to_owned()) && params.contains(&"reasoning.effort".to_owned()));
}

#[test]
fn ignored_fields_of_items_are_named() {
    let input = json!([
        {"role": "user", "content": [{"type": "input_text", "text": "Hi", "cache_control": {}}], "weight": 1},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "message", "id": "m", "status": "completed", "role": "assistant", "content": [
            {"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}
        ]},
        {"role": "user", "content": "Thank you!"}
    ]);
    let answer = server().post("/v1/responses", &json!({"input": input, "max_output_tokens": 2}));
    assert_eq!(warned(&answer), "input[0].content[0].cache_control, input[0].weight, input[1]");
}

/// A template with variables.
const VARIABLES: &str = "{% for m in messages %}<|user|>{{ m['content'] | trim }}<|endoftext|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}{% if enable_thinking is defined %}T{{ enable_thinking }}{% endif %}E{{ reasoning_effort }}";

#[test]
fn a_template_gets_its_variables() {
    let folder = Folder::new("variables", VARIABLES);
    let server = folder.start(&[]);
    let render = |more: Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "Hi "}]});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let tokens = server.post("/tokenize", &body).json(200)["tokens"].clone();
        server.post("/detokenize", &json!({"tokens": tokens})).json(200)["prompt"]
            .as_str()
            .expect("a text")
            .to_owned()
    };
    assert_eq!(render(json!({})), "<|user|>Hi<|endoftext|><|assistant|>E");
    let thinks = json!({"chat_template_kwargs": {"enable_thinking": false}, "reasoning_effort": "low"});
    assert_eq!(render(thinks), "<|user|>Hi<|endoftext|><|assistant|>TFalseElow");
    let both = json!({"chat_template_kwargs": {"reasoning_effort": "high"}, "reasoning_effort": "low"});
    assert_eq!(render(both), "<|user|>Hi<|endoftext|><|assistant|>Ehigh");
    assert_eq!(render(json!({"add_generation_prompt": false})), "<|user|>Hi<|endoftext|>E");
    assert_eq!(render(json!({"continue_final_message": true})), "<|user|>Hi");
    // Special tokens in variables are text.
    let marks = json!({"chat_template_kwargs": {"enable_thinking": "<|user|>"}});
    let count = |more: &Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "Hi"}]});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let tokens = server.post("/tokenize", &body).json(200)["tokens"].clone();
        let special = server.post("/tokenize", &json!({"prompt": "<|user|>"})).json(200)["tokens"][0].clone();
        tokens.as_array().expect("tokens").iter().filter(|token| **token == special).count()
    };
    assert_eq!(count(&marks), 1);

    let chat = |more: Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        server.post("/v1/chat/completions", &body)
    };
    let known = json!({"chat_template_kwargs": {"enable_thinking": true}, "reasoning_effort": "low"});
    assert!(chat(known).warnings().is_empty());
    let unknown = chat(json!({"chat_template_kwargs": {"thinking_budget": 5}}));
    assert_eq!(unknown.warnings()[0]["param"], "chat_template_kwargs");
    assert!(unknown.warnings()[0]["message"].as_str().is_some_and(|text| text.contains("`thinking_budget`")));
    let own = json!({"chat_template_kwargs": {"messages": []}});
    assert!(chat(own).error(400, Some("chat_template_kwargs"), "invalid_value").contains("`messages`"));
    chat(json!({"chat_template_kwargs": [1]})).error(400, Some("chat_template_kwargs"), "invalid_value");
    let both = json!({"continue_final_message": true, "add_generation_prompt": true});
    chat(both).error(400, Some("continue_final_message"), "invalid_value");
    let calls = json!({"continue_final_message": true, "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": null, "tool_calls": []}
    ]});
    assert_eq!(chat(calls).status, 200);
}

#[test]
fn an_answer_continues_a_message() {
    let whole = content(&ask(json!({})).json(200));
    let begun = &whole[..4];
    let messages = json!([{"role": "user", "content": SENTENCE}, {"role": "assistant", "content": begun}]);
    let more = json!({"messages": messages, "continue_final_message": true});
    let rest = content(&ask(more.clone()).json(200));
    assert!(!rest.starts_with(begun), "{rest}");
    let mut echo = more;
    echo["echo"] = json!(true);
    assert_eq!(content(&ask(echo.clone()).json(200)), format!("{begun}{rest}"));
    echo["stream"] = json!(true);
    let events = ask(echo).events();
    let streamed: String =
        events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(streamed, format!("{begun}{rest}"));
    // Without a continued message there is nothing to echo.
    assert_eq!(content(&ask(json!({"echo": true})).json(200)), whole);
}

#[test]
fn a_completion_may_begin_with_its_prompt() {
    let prompts = ["<|user|>Hi<|assistant|>", "<|user|>Thank you!<|assistant|>"];
    let complete = |more: Value| {
        let mut body = json!({"prompt": prompts, "n": 2, "max_tokens": 4, "temperature": 1.0, "seed": 3});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        server().post("/v1/completions", &body)
    };
    let without = complete(json!({})).json(200);
    let with = complete(json!({"echo": true})).json(200);
    for index in 0..4 {
        let text = without["choices"][index]["text"].as_str().expect("a text");
        assert_eq!(with["choices"][index]["text"], format!("{}{text}", prompts[index / 2]));
    }
    let events = complete(json!({"echo": true, "stream": true})).events();
    for index in 0..4 {
        let own = events.iter().map(|event| &event["choices"][0]).filter(|choice| choice["index"] == index);
        let text: String = own.filter_map(|choice| choice["text"].as_str()).collect();
        assert_eq!(with["choices"][index]["text"], text);
    }
    let tokens = server().post("/tokenize", &json!({"prompt": prompts[0]})).json(200)["tokens"].clone();
    let of_tokens = complete(json!({"echo": true, "prompt": tokens, "n": 1})).json(200);
    assert!(of_tokens["choices"][0]["text"].as_str().is_some_and(|text| text.starts_with(prompts[0])));
    complete(json!({"echo": true, "logprobs": 1})).error(400, Some("echo"), "unsupported_parameter");
}

#[test]
fn special_tokens_may_be_told() {
    // Only a bias makes the model write a special token.
    let special = tokens("<|user|>");
    assert_eq!(special.len(), 1);
    let biased = |more: Value| {
        let mut body = json!({"max_tokens": 3, "logit_bias": { special[0].to_string(): 100 }});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        content(&ask(body).json(200))
    };
    assert_eq!(biased(json!({})), "");
    assert_eq!(biased(json!({"skip_special_tokens": true})), "");
    assert_eq!(biased(json!({"skip_special_tokens": false})), "<|user|><|user|><|user|>");
}
