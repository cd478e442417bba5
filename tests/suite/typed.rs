//! Rust types as constraints: every output of random logits is a value of the type.

use burn_dfa::ErrorKind;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Debug;
use std::net::Ipv4Addr;

use burn::tensor::{DType, Device};
use burn_dfa::constraint::{JsonOptions, Whitespace};
use burn_dfa::generation::{
    Cancel, FinishReason, GenerationConfig, Request, generate, generate_as, generate_choice,
};
use burn_dfa::{CompiledConstraint, Constraint, Limits, TokenId, Vocabulary};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::common::model::RandomLm;
use burn_dfa_testing::words::vocabulary_of;

fn vocabulary() -> Vocabulary {
    vocabulary_of(&["true", "null", "\":", "\",\"", "{\"", "12", "9999999", "kind", "e9", "é", "日本"])
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Numbers {
    a: u8,
    b: i16,
    c: u32,
    d: i64,
    e: u64,
    f: usize,
    g: isize,
    h: f32,
    i: f64,
    j: u128,
    k: std::num::NonZeroU16,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Texts {
    /// With a description.
    first_one: String,
    letter: char,
    address: Ipv4Addr,
    #[serde(default)]
    maybe: Option<bool>,
    unit: (),
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
enum Shape {
    Empty,
    Circle { radius: u16 },
    Named(Named),
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Named {
    name: Option<char>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
enum External {
    Nothing,
    One(u8),
    Two(u8, bool),
    Struct { inner: Named },
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Untagged {
    Number(u8),
    Pair([bool; 2]),
    Object { x: u8 },
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Flat {
    id: u8,
    #[serde(flatten)]
    named: Named,
    #[serde(flatten)]
    shape: Shape,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Tree {
    leaf: bool,
    first: Option<Box<Tree>>,
    children: Vec<Tree>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Collections {
    list: Vec<Named>,
    map: BTreeMap<String, u8>,
    pair: (u8, Option<Box<Named>>),
}

#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Mood {
    Cheerful,
    /// With a description, schemars writes it elsewhere.
    DeadSerious,
    #[serde(rename = "Überdreht")]
    Wild,
}

/// Samples texts of a type, and checks that each is a value; serializes some again.
fn always_read<T: DeserializeOwned + Serialize + JsonSchema + Debug>(count: usize) -> Vec<String> {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 7, DType::F32, &Device::flex());
    let constraint =
        CompiledConstraint::compile(&Constraint::from_type::<T>().unwrap(), &vocabulary, &Limits::default())
            .unwrap();
    let least = constraint.tokens_to_end(constraint.start()) as usize;
    let config = GenerationConfig::new().with_temperature(1.5);
    let requests: Vec<_> = (0..count)
        .map(|row| {
            let request = Request::new(vec![TokenId((row % 200) as u32)], least + 4 + row % 120);
            request.with_constraint(&constraint).with_seed(row as u64)
        })
        .collect();
    let outputs = generate(&model, &vocabulary, &requests, &config).unwrap();
    for output in &outputs {
        let value: T = output.parse().unwrap_or_else(|error| panic!("{error}"));
        serde_json::to_string(&value).unwrap();
    }
    outputs.iter().map(|output| output.text()).collect()
}

#[test]
fn every_output_is_a_value_of_the_type() {
    always_read::<Numbers>(96);
    always_read::<Texts>(64);
    always_read::<External>(64);
    always_read::<Untagged>(64);
    always_read::<Collections>(64);
    always_read::<Tree>(32);
    always_read::<Option<Vec<Mood>>>(32);
    let shapes = always_read::<Shape>(64);
    assert!(["Empty", "Circle", "Named"].iter().all(|kind| shapes.iter().any(|shape| shape.contains(kind))));
    // Through two levels of `flatten`: no named field is lost, and no unknown field appears.
    for text in always_read::<Flat>(64) {
        let value: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
        let known = ["id", "name", "kind", "radius"];
        assert!(value.keys().all(|key| known.contains(&key.as_str())), "{text}");
        assert!(value.contains_key("id") && value.contains_key("kind"), "{text}");
    }
}

#[test]
fn a_type_and_its_constraint_are_the_same_set() {
    let limits = Limits::default();
    let dfa = |constraint: Constraint| constraint.to_byte_dfa(&limits).unwrap().unwrap();
    let shape = dfa(Constraint::from_type::<Shape>().unwrap());
    for (text, is) in [
        (r#"{"kind": "Empty"}"#, true),
        (r#"{"kind": "Circle", "radius": 65535}"#, true),
        (r#"{"kind": "Circle", "radius": 65536}"#, false),
        (r#"{"kind": "Circle"}"#, false),
        (r#"{"kind": "Empty", "radius": 1}"#, false),
        (r#"{"kind": "Empty", "other": 1}"#, false),
    ] {
        assert_eq!(shape.matches(text.as_bytes()), is, "{text}");
        // Every accepted text can be deserialized.
        assert!(!is || serde_json::from_str::<Shape>(text).is_ok(), "{text}");
    }
    let compact = JsonOptions::new().with_whitespace(Whitespace::Compact);
    let compact = dfa(Constraint::from_type_with::<Shape>(&compact).unwrap());
    let [text, other] = [r#"{"kind":"Circle","radius":65535}"#, r#"{"kind":"Circle","radius":65536}"#];
    assert!(compact.matches(text.as_bytes()) && !compact.matches(other.as_bytes()));
    assert!(!shape.matches(text.as_bytes()));
    let size = dfa(Constraint::from_type::<(usize, isize)>().unwrap());
    assert!(size.matches(format!("[{}, {}]", usize::MAX, isize::MIN).as_bytes()));
    assert!(!size.matches(format!("[{}0, 1]", usize::MAX).as_bytes()));
}

#[test]
fn a_type_is_generated() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 3, DType::F32, &Device::flex());
    let request = |tokens| Request::new(vec![TokenId(1)], tokens);
    let config = GenerationConfig::new();
    let ask = |request| generate_as::<Numbers>(&model, &vocabulary, request, &config);
    let numbers = ask(request(200)).unwrap();
    let mut again = generate(
        &model,
        &vocabulary,
        &[request(200).with_constraint(
            &CompiledConstraint::compile(
                &Constraint::from_type::<Numbers>().unwrap(),
                &vocabulary,
                &Limits::default(),
            )
            .unwrap(),
        )],
        &config,
    )
    .unwrap();
    let same: Numbers = again.pop().unwrap().parse().unwrap();
    assert_eq!(format!("{numbers:?}"), format!("{same:?}"));

    let small = ask(request(10)).unwrap_err();
    assert!(
        small.kind() == ErrorKind::Budget
            && small.tokens_needed().unwrap() > 10
            && !small.kind().is_constraint(),
        "{small}"
    );
    let cancel = Cancel::default();
    cancel.cancel();
    let canceled = ask(request(200).with_cancel(&cancel)).unwrap_err();
    assert!(canceled.kind() == ErrorKind::Canceled && canceled.tokens_done() == Some(0), "{canceled}");
    let set = generate_as::<HashSet<u64>>(&model, &vocabulary, request(200), &config).unwrap_err();
    assert!(
        set.kind().is_constraint() && set.kind() == ErrorKind::Schema && set.kind() != ErrorKind::Canceled,
        "{set}"
    );
    let constraint = CompiledConstraint::unconstrained(&vocabulary);
    assert_eq!(ask(request(200).with_constraint(&constraint)).unwrap_err().kind(), ErrorKind::Input);
}

#[test]
fn a_variant_is_chosen() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 3, DType::F32, &Device::flex());
    let config = GenerationConfig::new().with_temperature(1.0);
    let moods: HashSet<Mood> = (0..60)
        .map(|seed| {
            let request = Request::new(vec![TokenId(seed as u32)], 20).with_seed(seed);
            generate_choice(&model, &vocabulary, request, &config).unwrap()
        })
        .collect();
    assert_eq!(moods.len(), 3);
    for refused in [Constraint::choice_from_type::<Shape>(), Constraint::choice_from_type::<u8>()] {
        let error = refused.unwrap_err();
        assert!(
            error.kind() == ErrorKind::Schema && error.to_string().contains("Constraint::from_type"),
            "{error}"
        );
    }
}

#[test]
fn cut_off_outputs_and_outputs_of_another_type_are_errors() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 3, DType::F32, &Device::flex());
    let free = Request::new(vec![TokenId(1)], 5);
    let config = GenerationConfig::new().with_suppress_tokens(vec![TokenId(256)]);
    let output = generate(&model, &vocabulary, &[free], &config).unwrap().remove(0);
    assert_eq!(output.finish, FinishReason::MaxNewTokens);
    let cut = output.parse::<u8>().unwrap_err();
    assert!(cut.kind() == ErrorKind::Output && cut.to_string().contains("5 tokens"), "{cut}");
    let constraint =
        CompiledConstraint::compile(&Constraint::choice(["maybe"]).unwrap(), &vocabulary, &Limits::default());
    let constraint = constraint.unwrap();
    let request = Request::new(vec![TokenId(1)], 9).with_constraint(&constraint);
    let config = GenerationConfig::new();
    let output = generate(&model, &vocabulary, &[request], &config).unwrap().remove(0);
    let other = output.parse_name::<Mood>().unwrap_err();
    assert!(other.kind() == ErrorKind::Output && other.to_string().contains("maybe"), "{other}");
}
