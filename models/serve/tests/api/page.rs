//! The page at `/`, and its examples.

use serde_json::{Value, json};

use crate::client::{Running, start};

/// The examples of the page.
fn examples(server: &Running) -> Vec<Value> {
    let page = server.get("/").text;
    let rest = page.split("id=\"examples\">").nth(1).expect("examples");
    serde_json::from_str(rest.split("</script>").next().expect("their end")).expect("JSON")
}

/// The fields of a request for the constraint of an example, as the page sends them.
fn fields(example: &Value) -> Value {
    let (kind, constraint) = (example["kind"].as_str().expect("a kind"), &example["constraint"]);
    let text = constraint.as_str();
    match kind {
        "regex" => json!({"structured_outputs": {"regex": text}}),
        "choice" => {
            let lines: Vec<&str> = text.expect("texts").lines().collect();
            json!({"structured_outputs": {"choice": lines}})
        }
        "json_schema" => {
            let schema = json!({"name": "answer", "schema": constraint});
            json!({"response_format": {"type": "json_schema", "json_schema": schema}})
        }
        "ebnf" | "lark" => {
            let grammar = json!({"syntax": kind, "definition": text});
            json!({"response_format": {"type": "grammar", "grammar": grammar}})
        }
        "tools" => json!({"tools": constraint}),
        "none" => json!({}),
        kind => panic!("{kind} is no kind of the page"),
    }
}

#[test]
fn the_examples_of_the_page_work_with_the_embedded_model() {
    let server = start(&[]);
    let examples = examples(&server);
    for kind in ["regex", "choice", "json_schema", "ebnf", "lark", "tools", "none"] {
        assert!(examples.iter().any(|example| example["kind"] == kind), "{kind}");
    }
    for example in &examples {
        let fields = fields(example);
        if !matches!(example["kind"].as_str(), Some("tools" | "none")) {
            let picture = server.post("/automaton", &fields);
            assert_eq!(picture.status, 200, "{example}: {}", picture.text);
        }
        let mut request = fields;
        request["messages"] = json!([{"role": "user", "content": example["prompt"]}]);
        request["logprobs"] = json!(true);
        request["top_logprobs"] = json!(5);
        let answer = server.post("/v1/chat/completions", &request).json(200);
        let choice = &answer["choices"][0];
        assert_ne!(choice["finish_reason"], "length", "{example}: {answer}");
        let tokens = choice["logprobs"]["content"].as_array().expect("tokens");
        assert!(tokens.iter().all(|token| token["logprob"].is_number()), "{answer}");
    }
}

#[test]
fn the_page_has_the_controls_and_loads_nothing_else() {
    let server = start(&[]);
    let page = server.get("/").text;
    for id in ["example", "prompt", "constraint", "temperature", "tokens", "smaller", "larger", "fit", "view"]
    {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    for loaded in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(loaded), "{loaded}");
    }
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("width=device-width"));
}
