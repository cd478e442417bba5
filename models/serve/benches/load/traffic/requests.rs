//! Requests of all kinds.

use burn_dfa_tiny::generator::{Generator, Split};
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use regex_automata::meta::Regex;
use serde_json::{Value, json};

use super::judge::Expected;

/// The kinds of constraints.
pub const KINDS: [&str; 8] =
    ["regex", "choice", "JSON schema", "grammar", "Lark", "structural tag", "tools", "none"];

/// Number of shared constraints of each kind.
const SHARED: u64 = 16;

/// The field names for a regex, for an EBNF grammar and for a schema.
const REGEX: [&str; 3] = ["structured_outputs", "guided_regex", "regex"];
const GRAMMAR: [&str; 3] = ["structured_outputs", "guided_grammar", "ebnf"];
const SCHEMA: [&str; 4] = ["structured_outputs", "guided_json", "json_schema", "response_format"];

/// A request, and the requirement for its answer.
pub struct LoadRequest {
    /// The index of the kind.
    pub kind: usize,
    /// The body.
    pub body: Value,
    /// The requirement.
    pub expected: Expected,
}

/// A request of a random kind. One constraint in four is new.
pub fn request(random: &mut StdRng) -> LoadRequest {
    let kind = random.random_range(0..KINDS.len());
    let number = if random.random_bool(0.25) { random.random() } else { random.random_range(0..SHARED) };
    let number: u64 = number % 1_000_000_000;
    let example = Generator::new(5).example(Split::HeldOut, random.random_range(0..10_000));
    let mut body = json!({"model": "tiny", "messages": [{"role": "user", "content": example.prompt}]});
    if random.random_bool(0.5) {
        body["temperature"] = json!(1.0);
        body["seed"] = json!(random.random::<u32>());
    }
    let expected = constrain(KINDS[kind], number, &mut body, random);
    LoadRequest { kind, body, expected }
}

/// Adds a constraint to a request; the number makes it unique within its kind.
fn constrain(kind: &str, number: u64, body: &mut Value, random: &mut StdRng) -> Expected {
    match kind {
        "regex" => {
            let pattern = format!("[A-Z]{{2}}-[0-9]{{3,5}}(, [a-z]{{4,8}})?/{number}");
            put(body, &REGEX, "regex", json!(pattern), random);
            Expected::Match(Box::new(regex(&pattern)))
        }
        "choice" => {
            let texts = ["yes", "no", "perhaps", "ask again"].map(|text| format!("{text}, {number}"));
            put(body, &["structured_outputs", "guided_choice"], "choice", json!(texts), random);
            Expected::OneOf(texts.to_vec())
        }
        "JSON schema" => {
            let schema = schema(number);
            put(body, &SCHEMA, "json", schema.clone(), random);
            Expected::Json("", validator(&schema), "")
        }
        "grammar" => {
            let first = number % 10;
            let digits: String = number.to_string().chars().map(|digit| format!(" [0-9{digit}]?")).collect();
            let grammar = format!("root ::= \"(\" root \")\" | \"[\" root \"]\" | [{first}-9]{digits}");
            put(body, &GRAMMAR, "grammar", json!(grammar), random);
            Expected::Brackets
        }
        "Lark" => {
            let grammar = format!(
                "start: sum \" = {number}\"\nsum: NUMBER ((\"+\" | \"-\") NUMBER)*\nNUMBER: /[0-9]{{1,3}}/"
            );
            body["response_format"] =
                json!({"type": "grammar", "grammar": {"syntax": "lark", "definition": grammar}});
            body["max_tokens"] = json!(60);
            Expected::Match(Box::new(regex(&format!("[0-9]{{1,3}}([+-][0-9]{{1,3}})* = {number}"))))
        }
        "structural tag" => {
            let schema = schema(number);
            let content = json!({"type": "json_schema", "json_schema": schema});
            let tag = json!({"type": "tag", "begin": "<order>", "content": content, "end": "</order>"});
            body["response_format"] = json!({"type": "structural_tag", "format": tag});
            Expected::Json("<order>", validator(&schema), "</order>")
        }
        "tools" => {
            let tools = ["get_weather", "set_timer"].map(|name| {
                let mut tool = burn_dfa_tiny::tool(name).expect("a tool of the model").definition();
                tool["function"]["name"] = json!(format!("{name}_{number}"));
                tool
            });
            let choice = *["auto", "required"].choose(random).expect("there are two");
            body["tools"] = json!(tools);
            body["tool_choice"] = json!(choice);
            body["parallel_tool_calls"] = json!(false);
            let known = tools.iter().map(|tool| {
                let function = &tool["function"];
                let name = function["name"].as_str().unwrap_or_default();
                (name.to_owned(), *validator(&function["parameters"]))
            });
            Expected::Calls(known.collect(), choice == "required")
        }
        _ => {
            let max = random.random_range(5..60);
            body["max_tokens"] = json!(max);
            Expected::Anything(max)
        }
    }
}

/// Sets a constraint under one of its field names.
fn put(body: &mut Value, names: &[&str], own: &str, value: Value, random: &mut StdRng) {
    match *names.choose(random).expect("there is a name") {
        "structured_outputs" => body["structured_outputs"] = json!({ own: value }),
        "response_format" => {
            let named = json!({"name": "answer", "schema": value});
            body["response_format"] = json!({"type": "json_schema", "json_schema": named});
        }
        name => body[name] = value,
    }
}

/// A schema whose values take some thirty tokens.
pub fn schema(number: u64) -> Value {
    json!({
        "type": "object",
        "properties": {
            "item": {"type": "string", "minLength": 3, "maxLength": 20},
            "quantity": {"type": "integer", "minimum": number, "maximum": number + 50},
            "colours": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 2},
            format!("paid_{number}"): {"type": "boolean"}
        },
        "required": ["item", "quantity", "colours", format!("paid_{number}")],
        "additionalProperties": false
    })
}

fn regex(pattern: &str) -> Regex {
    Regex::new(&format!(r"\A(?:{pattern})\z")).expect("the pattern is written here")
}

fn validator(schema: &Value) -> Box<jsonschema::Validator> {
    Box::new(jsonschema::validator_for(schema).expect("the schema is written here"))
}
