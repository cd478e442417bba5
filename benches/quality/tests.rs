//! Tests of the parts of the benchmark `quality` that need no model: the judge, the prompts and the
//! counts of draft tokens.

mod acceptance;
mod judge;
mod sets;

use std::collections::BTreeMap;

use acceptance::DraftCounts;
use burn_dfa::{CompiledConstraint, Constraint, Limits, TokenId, Vocabulary};
use judge::{Expected, Verdict, judge};
use serde_json::{Value, json};

/// The error of all parts.
type Failure = Box<dyn std::error::Error>;

/// A request for the area of a triangle; the unit is optional.
fn area() -> Expected {
    let values = [("base", json!([10])), ("height", json!([5])), ("unit", json!(["square units", ""]))];
    let values =
        values.map(|(name, values)| (name.to_owned(), values.as_array().cloned().unwrap_or_default()));
    Expected {
        schema: json!({
            "type": "object",
            "properties": {"base": {"type": "integer"}, "height": {"type": "integer"}, "unit": {"type": "string"}},
            "required": ["base", "height"],
            "additionalProperties": false
        }),
        values: Some(BTreeMap::from(values)),
        function: Some("area".into()),
    }
}

const RIGHT: Verdict = Verdict { is_json: true, fits: true, is_right: true, right_values: 3 };

#[test]
fn right_answers_may_be_written_in_several_forms() {
    for text in [
        r#"{"base": 10, "height": 5}"#,
        r#" {"height":5,"base":10.0,"unit":" Square Units"} "#,
        "```json\n{\"base\": 10, \"height\": 5}\n```\nDone.",
        r#"Sure: {"base": 10, "height": 5}. Do you need more?"#,
        r#"{"area": {"base": 10, "height": 5}}"#,
    ] {
        assert_eq!(judge(text, &area()), RIGHT, "{text}");
    }
}

#[test]
fn wrong_values_missing_fields_and_other_fields_are_wrong() {
    let fits = Verdict { is_right: false, ..RIGHT };
    let cases = [
        (r#"{"base": 10, "height": 6}"#, Verdict { right_values: 2, ..fits }),
        (r#"{"base": 10}"#, Verdict { right_values: 2, fits: false, ..fits }),
        (r#"{"base": "10", "height": 5}"#, Verdict { right_values: 2, fits: false, ..fits }),
        (r#"{"base": 10, "height": 5, "color": "red"}"#, Verdict { fits: false, ..fits }),
        (r#"{"triangle": {"base": 10, "height": 5}}"#, Verdict { right_values: 1, fits: false, ..fits }),
        ("[10, 5]", Verdict { right_values: 0, fits: false, ..fits }),
    ];
    for (text, verdict) in cases {
        assert_eq!(judge(text, &area()), verdict, "{text}");
    }
}

#[test]
fn text_without_an_object_is_not_json() {
    for text in ["", "The area is 25.", r#"{"base": 10, "height""#, "{base: 10}", "```"] {
        assert_eq!(judge(text, &area()), Verdict::default(), "{text}");
    }
}

#[test]
fn without_right_values_an_object_only_has_to_fit() {
    let expected = Expected { schema: json!({"type": "object"}), values: None, function: None };
    let verdict = judge("{}", &expected);
    assert!(verdict.is_json && verdict.fits && !verdict.is_right);
    assert!(!judge("3", &expected).fits);
}

#[test]
fn the_true_values_of_every_text_are_right() {
    let set = sets::extraction(usize::MAX).unwrap();
    assert_eq!((set.title.as_str(), set.tasks.len()), ("Extraction", 100));
    for task in &set.tasks {
        assert!(!task.system.is_empty() && !task.user.contains('{'), "{}", task.user);
        let values = task.expected.values.as_ref().unwrap();
        let object: Value = values.iter().map(|(name, values)| (name.clone(), values[0].clone())).collect();
        let verdict = judge(&object.to_string(), &task.expected);
        assert_eq!(verdict, Verdict { right_values: 4, ..RIGHT }, "{}", task.user);
    }
    assert_eq!(sets::objects(7).tasks.len(), 7);
    assert!(sets::long(3).unwrap().user.len() > set.tasks[0].user.len());
}

#[test]
fn calls_are_read_from_the_rows_of_a_file() {
    let row = json!({
        "id": "simple_python_7", "category": "simple_python",
        "messages": [[{"role": "user", "content": "How large is it?"}]],
        "functions": [{"name": "area", "description": "The area.", "parameters": {
            "type": "dict", "properties": {"base": {"type": "integer", "description": "The base.", "default": 1}},
            "required": ["base"]
        }}],
        "ground_truth": [{"area": {"base": [10]}}],
        "json_schema": {"properties": {"area": {"type": "object", "properties": {"base": {"type": "integer"}}}}}
    });
    let other = json!({"id": "multiple_1", "category": "multiple", "functions": [{}, {}]});
    let file = std::env::temp_dir().join(format!("burn-dfa-calls-{}.jsonl", std::process::id()));
    std::fs::write(&file, format!("{row}\n{other}\n")).unwrap();
    let set = sets::calls(&file, 9);
    std::fs::write(&file, format!("{other}\n")).unwrap();
    let none = sets::calls(&file, 9).err().map(|error| error.to_string());
    std::fs::remove_file(&file).unwrap();

    assert!(none.unwrap().ends_with("has no row of the category simple_python"));
    let [task] = &set.unwrap().tasks[..] else { panic!("one call") };
    let prompt = "Function area: The area.\n\
        Arguments: {\"base\": {\"type\": \"integer\", \"description\": \"The base.\"}}\n\
        Required: [\"base\"]\n\nRequest: How large is it?";
    assert_eq!(task.user, prompt);
    assert!(judge(r#"{"area": {"base": 10}}"#, &task.expected).is_right);
}

/// Token ids.
fn ids<const N: usize>(ids: [u32; N]) -> Vec<TokenId> {
    ids.map(TokenId).to_vec()
}

#[test]
fn draft_tokens_are_legal_up_to_the_first_illegal_one_and_accepted_up_to_the_first_difference() {
    let vocabulary = Vocabulary::from_chars("ab.".chars()).unwrap().with_eos([TokenId(2)]).unwrap();
    let constraint = Constraint::regex("ab*").unwrap();
    let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default()).unwrap();

    // `ab`, then an illegal `a`; the end, then tokens after it.
    let calls = [ids([0, 1, 0]), ids([2, 2, 1])];
    let mut counts = DraftCounts::of(&calls, &ids([0, 1, 1, 2]), &compiled, 9);
    assert_eq!(counts, DraftCounts { verified: 6, legal: 3, accepted: 3 });
    // A legal draft that the model does not choose.
    let other = DraftCounts::of(&[ids([0, 1])], &ids([0, 2]), &compiled, 9);
    assert_eq!(other, DraftCounts { verified: 2, legal: 2, accepted: 1 });
    // The budget leaves only the end after `a`.
    let short = DraftCounts::of(&[ids([0, 1])], &ids([0, 2]), &compiled, 2);
    assert_eq!(short, DraftCounts { verified: 2, legal: 1, accepted: 1 });
    // Without a constraint all tokens are legal.
    let free = CompiledConstraint::unconstrained(&vocabulary);
    let free = DraftCounts::of(&[ids([1, 1, 1])], &ids([0]), &free, 9);
    assert_eq!(free, DraftCounts { verified: 3, legal: 3, accepted: 0 });

    counts.add(other);
    assert_eq!(counts, DraftCounts { verified: 8, legal: 5, accepted: 4 });
}
