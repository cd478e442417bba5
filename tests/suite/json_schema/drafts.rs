//! What a schema's draft decides.

use burn_dfa::constraint::Treatment;
use burn_dfa::{Constraint, Limits};
use serde_json::json;

const DRAFTS: [&str; 5] = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

/// Formats with the place of the first draft that defines them (draft 4 section 7.3, draft 6 section 8.3, draft 7
/// section 7.3, 2019-09 and 2020-12 section 7.3 of the validation vocabulary), and a text that none of them allows.
const FORMATS: [(&str, usize, &str); 17] = [
    ("date-time", 0, "no"),
    ("email", 0, "no"),
    ("hostname", 0, "-no-"),
    ("ipv4", 0, "no"),
    ("ipv6", 0, "no"),
    ("uri", 0, "no"),
    ("uri-reference", 1, "\\\\"),
    ("uri-template", 1, "{"),
    ("json-pointer", 1, "no"),
    ("date", 2, "no"),
    ("time", 2, "no"),
    ("idn-email", 2, "no"),
    ("idn-hostname", 2, "-no-"),
    ("iri", 2, "no"),
    ("iri-reference", 2, "\\\\"),
    ("relative-json-pointer", 2, "no"),
    ("uuid", 3, "no"),
];

#[test]
fn formats_bind_in_the_drafts_that_have_them() {
    for (at, draft) in DRAFTS.into_iter().enumerate() {
        for (format, first, invalid) in FORMATS.into_iter().chain([("duration", 3, "no")]) {
            let schema = json!({"$schema": draft, "type": "string", "format": format});
            let text = json!(invalid).to_string();
            let binds = !super::compile(&schema).matches(text.as_bytes());
            assert_eq!(binds, first <= at, "{format} in {draft}");
            let judge = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
            // The judge has the first two in every draft, and is built without names beyond ASCII.
            let differs = ["date", "time"].contains(&format) && at < first || format.starts_with("idn-");
            if !differs {
                assert_eq!(
                    !judge.is_valid(&json!(invalid)),
                    binds,
                    "{format} in {draft}, as the judge has it"
                );
            }
            let notes = Constraint::json_schema(schema).unwrap();
            let notes = notes.explain(&Limits::default());
            let ignored = notes
                .iter()
                .any(|note| note.pointer == "/format" && matches!(note.treatment, Treatment::Ignored(_)));
            assert_eq!(ignored, !binds, "{format} in {draft}: {notes:?}");
        }
    }
    // Without a draft there is nothing that lacks one.
    let schema = json!({"type": "string", "format": "uuid"});
    assert!(!super::compile(&schema).matches(b"\"no\""));
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
    // What only draft 3 has is refused or noted too.
    let required = json!({"$schema": draft, "properties": {"a": {"type": "null", "required": true}}});
    assert_eq!(Constraint::json_schema(required).unwrap_err().pointer(), Some("/properties/a/required"));
    let divisible = json!({"$schema": draft, "type": "integer", "divisibleBy": 3});
    let notes = Constraint::json_schema(divisible).unwrap().explain(&Limits::default());
    assert!(notes.iter().any(|note| note.pointer == "/divisibleBy"), "{notes:?}");
}
