//! `response_format` and `structured_outputs`.

use burn_dfa_tokens::{
    Constraint, ErrorKind, Limits,
    constraint::{RequestOptions, ResponseFormat, StructuredOutputs, Whitespace},
};
use serde_json::{Value, json};

fn accepts(request: Value, text: &str) -> bool {
    let constraint = Constraint::from_request(&request)
        .unwrap_or_else(|error| panic!("{request}: {error}"))
        .expect("a constraint");
    constraint.to_byte_dfa(&Limits::default()).unwrap().unwrap().matches(text.as_bytes())
}

fn refusal(request: Value) -> String {
    let error = Constraint::from_request(&request).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Request, "{request}: {error}");
    error.to_string()
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"z": {"type": "null"}, "a": {"type": "null"}}, "required": ["z", "a"]})
}

#[test]
fn every_response_format_is_read() {
    let format = json!({"type": "json_schema", "json_schema": {
        "name": "n", "description": "d", "strict": true, "schema": schema()
    }});
    let text = r#"{"z": null, "a": null}"#;
    assert!(accepts(format.clone(), text));
    assert!(accepts(json!({"model": "m", "response_format": format}), text));
    // A schema from text keeps the order of its properties.
    let read: ResponseFormat = serde_json::from_str(&format.to_string()).unwrap();
    let dfa = read.to_constraint().unwrap().unwrap().to_byte_dfa(&Limits::default()).unwrap().unwrap();
    assert!(dfa.matches(text.as_bytes()) && !dfa.matches(br#"{"a": null, "z": null}"#));
    assert_eq!(serde_json::to_value(&read).unwrap().to_string(), format_of(&format));

    assert!(Constraint::from_request(&json!({"type": "text"})).unwrap().is_none());
    assert!(Constraint::from_request(&json!({"response_format": {"type": "text"}})).unwrap().is_none());
    assert!(accepts(json!({"type": "json_object"}), r#"{"a": [1]}"#));
    assert!(!accepts(json!({"type": "json_object"}), "[]"));
    let tag = json!({"type": "structural_tag", "format": {"type": "const_string", "value": "x"}});
    assert!(accepts(tag.clone(), "x") && !accepts(tag.clone(), "y"));
    assert!(accepts(json!({"structured_outputs": {"structural_tag": tag}}), "x"));
    assert!(accepts(json!({"structural_tag": tag.to_string()}), "x"));
    let error = Constraint::from_request(&json!({"type": "structural_tag"})).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StructuralTag);
    let unnamed = json!({"type": "json_schema", "json_schema": {"schema": {"type": "null"}}});
    assert!(Constraint::from_request(&unnamed).unwrap().is_some(), "a name is not needed");
    assert!(refusal(json!({"type": "json_schema"})).contains("json_schema"));
    assert!(refusal(json!({"type": "json_schema", "json_schema": {"name": "n"}})).contains("schema"));
    assert!(
        refusal(json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "shema": 1}}))
            .contains("shema")
    );
    assert!(
        refusal(json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {}}, "x": 1}))
            .contains("`x`")
    );
    assert!(refusal(json!({"structured_outputs": {"regex": "a\u{0}"}})).contains("NUL"));
    for of_other_kind in [
        json!({"type": "text", "schema": {}}),
        json!({"type": "json_object", "schema": {}}),
        json!({"type": "grammar", "grammar": {"syntax": "regex", "definition": "a"}, "schema": {}}),
        json!({"type": "grammar", "syntax": "regex", "definition": "a", "schema": {}}),
    ] {
        refusal(of_other_kind);
    }
    let bad = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer", "minimum": "1"}}});
    assert_eq!(Constraint::from_request(&bad).unwrap_err().pointer(), Some("/minimum"));
}

#[test]
fn options_are_those_of_all_schemas() {
    let (object, tagged) = (r#"{"z":null,"a":null}"#, "<t>[1,2]</t>");
    let schema = schema();
    let tag = json!({"type": "structural_tag", "format": {"type": "tag", "begin": "<t>", "end": "</t>",
        "content": {"type": "json_schema", "json_schema": {"const": [1, 2]}}}});
    let named = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
    let style = |whitespace| {
        let options = RequestOptions::new();
        let (json, tags) = (options.json.clone(), options.tags.clone());
        options.with_json(json.with_whitespace(whitespace)).with_tags(tags.with_whitespace(whitespace))
    };
    for (request, text) in [
        (named.clone(), object),
        (json!({"response_format": named}), object),
        (json!({"type": "json_object"}), object),
        (json!({"json": schema}), object),
        (json!({"json": schema.to_string()}), object),
        (tag.clone(), tagged),
        (json!({"structural_tag": tag}), tagged),
        (json!({"structural_tag": tag.to_string()}), tagged),
    ] {
        let spaced = text.replace(',', ", ").replace(':', ": ");
        for (whitespace, taken) in [(Whitespace::Compact, [true, false]), (Whitespace::Spaced, [false, true])]
        {
            let constraint = Constraint::from_request_str_with(&request.to_string(), &style(whitespace));
            let automaton = constraint.unwrap().unwrap().to_automaton(&Limits::default()).unwrap().unwrap();
            let found = [text, &spaced].map(|text| automaton.matches(text.as_bytes()));
            assert_eq!(found, taken, "{request}");
        }
    }
}

#[test]
fn grammars_in_every_syntax_are_read() {
    let lark = json!({"syntax": "lark", "definition": "start: A+\nA: /a/\n%ignore / /"});
    let flat = json!({"type": "grammar", "syntax": "lark", "definition": lark["definition"]});
    for form in [json!({"type": "grammar", "grammar": lark}), flat] {
        assert!(accepts(form.clone(), "a a") && !accepts(form, " "));
    }
    assert!(accepts(json!({"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}}), "aa"));
    let from = json!({"syntax": "gbnf", "definition": "a ::= \"x\"", "start": "a"});
    assert!(accepts(json!({"type": "grammar", "grammar": from}), "x"));
    let unknown = json!({"type": "grammar", "syntax": "peg", "definition": ""});
    assert!(refusal(unknown).contains("peg"));
}

/// The output of serde: the fields in the order of the type.
fn format_of(format: &Value) -> String {
    let inner = &format["json_schema"];
    json!({"type": "json_schema", "json_schema": {
        "name": inner["name"], "description": inner["description"], "schema": inner["schema"], "strict": inner["strict"]
    }})
    .to_string()
}

#[test]
fn every_structured_output_is_read() {
    let text = r#"{"z": null, "a": null}"#;
    assert!(accepts(json!({"json": schema()}), text));
    assert!(accepts(json!({"json": schema().to_string()}), text));
    assert!(accepts(json!({"structured_outputs": {"regex": "a+", "grammar": null}}), "aa"));
    for of_backends in [
        json!({"regex": "a+", "disable_fallback": false}),
        json!({"regex": "a+", "disable_fallback": true}),
        json!({"regex": "a+", "_backend_was_auto": false}),
    ] {
        assert!(accepts(json!({"structured_outputs": of_backends}), "aa"));
    }
    for (name, value) in [("disable_fallback", json!("no")), ("_backend_was_auto", json!(true))] {
        assert!(refusal(json!({"structured_outputs": {"regex": "a+", name: value}})).contains(name));
    }
    assert!(refusal(json!({"structured_outputs": {"regex": "a+", "size": false}})).contains("`size`"));
    assert!(accepts(json!({"choice": ["x", "y"]}), "y"));
    let list = r#"root ::= "[" root* "]""#;
    for form in [json!({"grammar": list}), json!({"ebnf": list})] {
        let automaton = Constraint::from_request(&form).unwrap().unwrap();
        let automaton = automaton.to_automaton(&Limits::default()).unwrap().unwrap();
        assert!(automaton.matches(b"[[][[]]]") && !automaton.matches(b"[[]"));
    }
    assert!(refusal(json!({"grammar": list, "ebnf": list})).contains("exactly one"));
    assert!(
        Constraint::from_request(&json!({"grammar": "root ::= ["})).unwrap_err().kind() == ErrorKind::Grammar
    );
    assert!(refusal(json!({"jsn": true})).contains("`jsn`"));
    assert!(refusal(json!({"regex": "a", "choice": ["a"]})).contains("exactly one"));
    assert!(refusal(json!({"structured_outputs": {}})).contains("exactly one"));
    assert!(refusal(json!({"json": "{"})).contains("holds no JSON"));
    assert!(refusal(json!({"regex": 3})).contains("structured_outputs"));
    assert!(refusal(json!([])).contains("object"));
    let both = json!({"response_format": {"type": "text"}, "structured_outputs": {"regex": "a"}});
    assert!(refusal(both).contains("leave one out"));
    assert_eq!(Constraint::from_request(&json!({"regex": "("})).unwrap_err().offset(), Some(0));

    assert!(accepts(json!({"json_object": true}), r#"{"a": [1]}"#));
    assert!(refusal(json!({"json_object": false})).contains("exactly one"));
    assert!(refusal(json!({"json_object": true, "regex": "a"})).contains("exactly one"));
    let outputs = StructuredOutputs { regex: Some("a".into()), ..StructuredOutputs::default() };
    assert_eq!(serde_json::to_value(&outputs).unwrap(), json!({"regex": "a"}));
    Constraint::try_from(&outputs).unwrap();
}

#[test]
fn a_grammar_without_definitions_of_ebnf_is_lark() {
    let lark = "// a sum ::=\nstart: NUMBER (\"+\" NUMBER)*\nNUMBER: /[0-9]+/";
    assert!(accepts(json!({"grammar": lark}), "1+2") && !accepts(json!({"grammar": lark}), "1+"));
    assert!(accepts(json!({"grammar": "root ::= \"a\""}), "a"));
    // SGLang's field accepts only EBNF.
    assert_eq!(Constraint::from_request(&json!({"ebnf": lark})).unwrap_err().kind(), ErrorKind::Grammar);
    assert_eq!(Constraint::from_request(&json!({"grammar": ""})).unwrap_err().kind(), ErrorKind::Grammar);
}

#[test]
fn a_request_says_how_json_is_written() {
    let of = |more: Value| {
        let mut request = json!({"json": {"type": "object", "properties": {"a": {"const": [1, 2]}}}});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request
    };
    let (compact, spaced, loose) = (r#"{"a":[1,2]}"#, r#"{"a": [1, 2]}"#, "{\n\"a\": [1,2] }");
    for (more, taken) in [
        (json!({}), [false, true, false]),
        (json!({"disable_any_whitespace": false}), [false, true, false]),
        (json!({"disable_any_whitespace": true}), [true, false, false]),
        (json!({"disable_any_whitespace": true, "whitespace_pattern": " ?"}), [true, false, false]),
        (json!({"whitespace_pattern": ""}), [true, false, false]),
        (json!({"whitespace_pattern": "[ ]?"}), [false, true, false]),
        (json!({"whitespace_pattern": "\\s*"}), [true, true, true]),
    ] {
        let found = [compact, spaced, loose].map(|text| accepts(of(more.clone()), text));
        assert_eq!(found, taken, "{more}");
    }
    assert!(refusal(of(json!({"whitespace_pattern": " +"}))).contains("`whitespace_pattern`"));
    assert!(refusal(of(json!({"whitespace_pattern": 1}))).contains("structured_outputs"));
    let more = r#"{"b": 1}"#;
    assert!(accepts(of(json!({"disable_additional_properties": false})), more));
    assert!(!accepts(of(json!({"disable_additional_properties": true})), more));
    let any = json!({"json_object": true, "disable_any_whitespace": true});
    assert!(accepts(any.clone(), r#"{"b":1}"#) && !accepts(any, more));
}
