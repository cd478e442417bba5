//! Behavior that depends on a schema's draft.

use burn_dfa_tokens::{
    Constraint, Limits,
    constraint::{Note, Treatment},
};
use serde_json::json;

const DRAFTS: [&str; 5] = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

/// Formats of the latest draft, each with an invalid text.
const FORMATS: [(&str, &str); 18] = [
    ("date-time", "no"),
    ("email", "no"),
    ("hostname", "-no-"),
    ("ipv4", "no"),
    ("ipv6", "no"),
    ("uri", "no"),
    ("uri-reference", "\\\\"),
    ("uri-template", "{"),
    ("json-pointer", "no"),
    ("date", "no"),
    ("time", "no"),
    ("idn-email", "no"),
    ("idn-hostname", "-no-"),
    ("iri", "no"),
    ("iri-reference", "\\\\"),
    ("relative-json-pointer", "no"),
    ("uuid", "no"),
    ("duration", "no"),
];

/// Schemas often name an old draft and use formats of later drafts; these formats are asserted as
/// well.
#[test]
fn formats_bind_in_every_draft() {
    for draft in DRAFTS {
        for (format, invalid) in FORMATS {
            let schema = json!({"$schema": draft, "type": "string", "format": format});
            let text = json!(invalid).to_string();
            assert!(!super::compile(&schema).matches(text.as_bytes()), "{format} in {draft}");
            let notes = Constraint::json_schema(schema).unwrap().explain(&Limits::default());
            let is_ignored = |note: &Note| matches!(note.treatment, Treatment::Ignored(_));
            assert!(!notes.iter().any(is_ignored), "{format} in {draft}: {notes:?}");
        }
    }
}

#[test]
fn an_unknown_draft_is_noted() {
    for draft in
        [json!("https://example.com/schema"), json!("http://json-schema.org/draft-05/schema#"), json!(7)]
    {
        let constraint = Constraint::json_schema(json!({"$schema": draft, "type": "null"})).unwrap();
        let notes = constraint.explain(&Limits::default());
        let [note] = &notes[..] else { panic!("{draft}: {notes:?}") };
        assert_eq!(note.pointer, "/$schema");
        assert!(note.to_string().contains("read as draft 2020-12"), "{note}");
    }
    for draft in DRAFTS {
        let constraint = Constraint::json_schema(json!({"$schema": draft, "type": "null"})).unwrap();
        assert!(constraint.explain(&Limits::default()).is_empty(), "{draft}");
    }
}

#[test]
fn draft_3_is_noted() {
    let draft = "http://json-schema.org/draft-03/schema#";
    let constraint = Constraint::json_schema(json!({"$schema": draft, "type": "null"})).unwrap();
    let notes = constraint.explain(&Limits::default());
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert_eq!(note.pointer, "/$schema");
    assert!(note.to_string().contains("read as draft 4"), "{note}");
    // Keywords of draft 3 alone are refused or noted too.
    let required = json!({"$schema": draft, "properties": {"a": {"type": "null", "required": true}}});
    assert_eq!(Constraint::json_schema(required).unwrap_err().pointer(), Some("/properties/a/required"));
    let divisible = json!({"$schema": draft, "type": "integer", "divisibleBy": 3});
    let notes = Constraint::json_schema(divisible).unwrap().explain(&Limits::default());
    assert!(notes.iter().any(|note| note.pointer == "/divisibleBy"), "{notes:?}");
}
