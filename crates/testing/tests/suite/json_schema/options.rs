//! The options, each with accepted and rejected texts.

use burn_dfa_tokens::{
    CompiledConstraint, Constraint, Limits, TokenId, Vocabulary,
    constraint::{Additional, Escapes, Formats, JsonOptions, Note, Numbers, Order, Treatment, Whitespace},
};
use serde_json::{Value, json};

use super::{compact, compile_with};

fn case(schema: &Value, options: &JsonOptions, accepted: &[&str], rejected: &[&str]) {
    let dfa = compile_with(schema, options);
    for text in accepted {
        assert!(dfa.matches(text.as_bytes()), "{schema} under {options:?} rejects {text:?}");
    }
    for text in rejected {
        assert!(!dfa.matches(text.as_bytes()), "{schema} under {options:?} accepts {text:?}");
    }
}

#[test]
fn every_style_of_white_space_is_kept() {
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}});
    let compact = r#"{"a":[1,2]}"#;
    let spaced = r#"{"a": [1, 2]}"#;
    let pretty = "{\n  \"a\": [\n    1,\n    2\n  ]\n}";
    let loose = "{ \"a\"\t:[ 1\n,2]}";
    let of = |whitespace| JsonOptions { whitespace, ..JsonOptions::default() };
    case(&schema, &JsonOptions::default(), &[spaced, "{}"], &[compact, pretty, loose]);
    case(&schema, &of(Whitespace::Compact), &[compact, "{}"], &[spaced, pretty, loose]);
    case(&schema, &of(Whitespace::Spaced), &[spaced, "{}", r#"{"a": []}"#], &[compact, pretty, loose]);
    case(
        &schema,
        &of(Whitespace::Pretty(2)),
        &[pretty, "{}", "{\n  \"a\": []\n}"],
        &[compact, spaced, loose],
    );
    case(&schema, &of(Whitespace::Flexible(1)), &[compact, spaced, loose, "{}"], &[pretty, r#"{"a":  []}"#]);
    // Also for listed values.
    let listed = json!({"enum": [{"b": [1, 2]}]});
    case(&listed, &of(Whitespace::Spaced), &[r#"{"b": [1, 2]}"#], &[r#"{"b":[1,2]}"#]);
    case(
        &listed,
        &of(Whitespace::Flexible(1)),
        &[r#"{"b": [1, 2]}"#, r#"{"b":[1,2]}"#],
        &[r#"{"b":  [1,2]}"#],
    );
}

#[test]
fn styles_have_names() {
    for (name, style) in Whitespace::NAMED {
        assert_eq!(name.parse(), Ok(style));
    }
    assert_eq!(Whitespace::default(), Whitespace::Spaced);
    let error = "wide".parse::<Whitespace>().unwrap_err().to_string();
    assert_eq!(error, "\"wide\" is no style of white space; these are: compact, spaced, pretty, flexible");
}

#[test]
fn options_close_and_order_objects() {
    let schema = json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"]});
    let closed = JsonOptions { additional: Additional::Closed, ..compact() };
    case(&schema, &closed, &[r#"{"b":1}"#, r#"{"a":1,"b":1}"#], &[r#"{"b":1,"c":1}"#]);
    let open = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": true});
    case(&open, &closed, &[r#"{"a":1,"c":1}"#], &[]);
    case(&json!({"type": "object"}), &closed, &[r#"{"c":1}"#], &[]);
    let first = JsonOptions { order: Order::RequiredFirst, ..compact() };
    case(&schema, &first, &[r#"{"b":1}"#, r#"{"b":1,"a":1}"#], &[r#"{"a":1,"b":1}"#]);
}

#[test]
fn options_change_formats_and_numbers() {
    let default = compact;
    let date = json!({"type": "string", "format": "date"});
    case(
        &date,
        &JsonOptions { formats: Formats::Annotate, ..default() },
        &["\"x\"", "\"2024-01-01\""],
        &["1"],
    );
    let any = JsonOptions { numbers: Numbers::Any, ..default() };
    case(&json!({"type": "integer"}), &any, &["1", "1.0", "-0", "-3.00"], &["1.5", "01"]);
    case(&json!({"type": "integer"}), &default(), &["1"], &["1.0", "-0"]);
    case(&json!({"enum": [1, "a"]}), &any, &["1", "1.0", "\"a\""], &["2"]);
    let text = json!({"type": "string", "maxLength": 2});
    let ascii = JsonOptions { ascii: true, ..default() };
    case(&text, &ascii, &[r#""a""#, r#""\u00e4""#, r#""\ud83d\ude00""#], &["\"ä\"", "\"😀\""]);
    let escapes = JsonOptions { escapes: Escapes::Any, ..default() };
    case(
        &text,
        &escapes,
        &["\"ä\"", r#""\u00e4""#, r#""\/\u0061""#],
        &[r#""abc""#, r#""\u0061\u0061\u0061""#],
    );
    let numbered = JsonOptions { escapes: Escapes::Numbered, ..default() };
    case(&text, &numbered, &["\"ä\"", r#""\u00e4""#, r#""\u0061\ud83d\ude00""#], &[r#""\/""#, r#""\ud83d""#]);
    case(&json!({"const": "ab"}), &escapes, &["\"ab\"", r#""\u0061b""#], &["\"ac\"", r#""\u0062b""#]);
    let short = JsonOptions { max_string: Some(2), max_digits: Some(2), ..default() };
    case(&json!({"type": "string"}), &short, &["\"\"", "\"ab\""], &["\"abc\""]);
    case(&json!({"type": "string", "minLength": 3, "maxLength": 3}), &short, &["\"abc\""], &["\"ab\""]);
    case(&json!({"type": "number"}), &short, &["12", "-12.34"], &["123", "1.234"]);
    case(&json!({"type": "integer"}), &short, &["12", "-1"], &["123"]);
}

#[test]
fn options_limit_the_depth() {
    let of = |recursion, any_depth| JsonOptions { recursion, any_depth, ..compact() };
    let tree = json!({"type": "array", "items": {"$ref": "#"}});
    case(&tree, &of(Some(2), None), &["[]", "[[]]", "[[[]]]"], &["[[[[[]]]]]"]);
    case(&tree, &of(Some(0), None), &["[]"], &["[[[]]]"]);
    case(&json!({}), &of(None, Some(0)), &["1", "[]", "{}"], &["[1]"]);
    case(&json!({}), &of(None, Some(2)), &["1", "[1]", "[{\"a\":1}]"], &["[[[1]]]"]);
    let constraint = Constraint::json_schema_with(tree, &of(Some(1), None)).unwrap();
    let notes = constraint.explain(&Limits::default());
    assert_eq!(notes[0].to_string(), "the root: bounded: recursion is followed 1 time");
    assert!(matches!(notes[0].treatment, Treatment::Bounded(_)));
    let text = |value: Value| constraint.json_text(&value, &Limits::default()).unwrap().unwrap();
    assert_eq!(text(json!([[]])), ("[[]]".into(), true));
    assert_eq!(text(json!([[[[]]]])), ("[[[[]]]]".into(), false));
}

#[test]
fn values_are_written_in_the_order_of_the_schema() {
    let schema = json!({"properties": {"b": {"type": "number"}, "a": {}}, "required": ["b"]});
    let constraint = Constraint::json_schema_with(schema, &compact()).unwrap();
    let text = |value: Value| constraint.json_text(&value, &Limits::default()).unwrap().unwrap();
    assert_eq!(text(json!({"z": 1, "a": "ä\n", "b": 2.0})), (r#"{"b":2,"a":"ä\n","z":1}"#.into(), true));
    assert_eq!(text(json!({"a": 1, "b": "x"})), (r#"{"b":"x","a":1}"#.into(), false));
    assert!(Constraint::regex("a").unwrap().json_text(&json!(1), &Limits::default()).unwrap().is_none());
}

#[test]
fn depths_are_reported() {
    let bytes = (0..=u8::MAX).map(|byte| Some([byte])).chain([None]);
    let vocabulary = Vocabulary::from_bytes(bytes).unwrap().with_eos([TokenId(256)]).unwrap();
    let copied = Limits::new().with_frames(0);
    let unrolled = |schema: Value, options: &JsonOptions| {
        let constraint = Constraint::json_schema_with(schema, options).unwrap();
        let compile = [
            CompiledConstraint::compile,
            CompiledConstraint::compile_token_level,
            CompiledConstraint::compile_byte_level,
        ];
        let [one, other, third] = compile.map(|compile| {
            let compiled = compile(&constraint, &vocabulary, &copied).unwrap();
            compiled.unrolled().unwrap()
        });
        assert!(one == other && other == third);
        [one.recursion, one.any, one.unnamed]
    };
    let default = compact();
    assert_eq!(unrolled(json!({"type": "integer"}), &default), [None; 3]);
    let tree = json!({
        "type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}, "additionalProperties": false
    });
    let [recursion, any, unnamed] = unrolled(tree.clone(), &default);
    assert!(matches!([recursion, any, unnamed], [Some(2..=8), None, None]));
    let asked = JsonOptions { recursion: Some(2), any_depth: Some(1), ..compact() };
    assert_eq!(unrolled(tree, &asked), [Some(2), None, None]);
    assert_eq!(unrolled(json!({}), &asked), [None, Some(1), None]);
    let open = json!({"type": "object", "properties": {"a": {"type": "null"}}});
    assert_eq!(unrolled(open.clone(), &asked), [None, None, Some(1)]);
    let [_, _, unnamed] = unrolled(open.clone(), &default);
    // `explain` reports the depth too.
    let notes = |schema: Value| Constraint::json_schema_with(schema, &default).unwrap().explain(&copied);
    let said = format!(
        "any JSON in properties that the schema does not name is followed {} levels deep",
        unnamed.unwrap()
    );
    assert_eq!(notes(open.clone())[0].treatment, Treatment::Bounded(said));
    let [_, any, _] = unrolled(json!({"type": "array"}), &default);
    let said = format!("any JSON is followed {} levels deep", any.unwrap());
    assert_eq!(notes(json!({"type": "array"}))[0].treatment, Treatment::Bounded(said));
    assert_eq!(notes(json!({"type": "array", "items": {"type": "null"}})), []);
    // With a stack, depth has no limit and needs no note.
    let said = Constraint::json_schema(open.clone()).unwrap().explain(&Limits::default());
    assert!(matches!(&said[..], [Note { treatment: Treatment::Repeated(_), .. }]), "{said:?}");
    // The reported depth is exact.
    let dfa = Constraint::json_schema_with(open, &default).unwrap();
    let dfa = dfa.to_byte_dfa(&Limits::default()).unwrap().unwrap();
    let nested = |depth: usize| format!("{{\"b\":{}1{}}}", "{\"c\":".repeat(depth), "}".repeat(depth));
    let depth = unnamed.unwrap();
    assert!(dfa.matches(nested(depth).as_bytes()) && !dfa.matches(nested(depth + 1).as_bytes()));
}

#[test]
fn arrays_within_arrays_count_two_levels() {
    let any = Constraint::json_schema_with(json!({}), &compact()).unwrap();
    let dfa = any.to_byte_dfa(&Limits::default()).unwrap().unwrap();
    let arrays = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}{{}}{}", "{\"a\":".repeat(depth - 1), "}".repeat(depth - 1));
    let deepest = |text: &dyn Fn(usize) -> String| {
        (1..20).take_while(|&depth| dfa.matches(text(depth).as_bytes())).count()
    };
    // The innermost bracket is empty and adds no level.
    let (of_arrays, of_objects) = (deepest(&arrays), deepest(&objects));
    assert!(
        of_objects > 4 && of_arrays >= of_objects / 2 && of_arrays < of_objects,
        "{of_arrays}, {of_objects}"
    );
}
