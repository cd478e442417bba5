//! Every output matches its constraint and is complete within its budget, for all logits and
//! options.

use burn::tensor::{DType, Device};
use burn_dfa::generation::{FinishReason, GenerationConfig, Request};
use burn_dfa::{Constraint, Kernels, TensorOptions, TokenId};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use crate::common::model::{RandomLm, run};
use burn_dfa_testing::{
    data,
    words::{token_level, vocabulary},
};

/// The expected language of an output, by an independent engine.
enum Oracle {
    Regex(regex_automata::meta::Regex),
    Schema(Box<jsonschema::Validator>),
}

impl Oracle {
    fn admits(&self, text: &str) -> bool {
        match self {
            Self::Regex(regex) => regex.is_match(text),
            Self::Schema(validator) => {
                serde_json::from_str(text).is_ok_and(|value: Value| validator.is_valid(&value))
            }
        }
    }
}

fn by_regex(pattern: &str) -> (String, Constraint, Oracle) {
    let oracle = regex_automata::meta::Regex::new(&format!(r"\A(?:{pattern})\z")).unwrap();
    (pattern.to_owned(), Constraint::regex(pattern).unwrap(), Oracle::Regex(oracle))
}

fn by_schema(name: &str, schema: &Value) -> Option<(String, Constraint, Oracle)> {
    let validator = jsonschema::validator_for(schema).ok()?;
    let constraint = Constraint::json_schema(schema.clone()).ok()?;
    Some((name.to_owned(), constraint, Oracle::Schema(Box::new(validator))))
}

/// Twenty regexes, ten schemas, and schemas of every corpus.
fn constraints() -> Vec<(String, Constraint, Oracle)> {
    let patterns = [
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
        r"[a-z]+@[a-z]+\.(com|org)",
        "(yes|no|maybe)",
        r"-?[0-9]+(\.[0-9]+)?",
        "(ab|a)*",
        r"\p{Lu}\p{Ll}{2,8}",
        r"[^\n]{1,12}",
        "a{20}",
        "(foo|foobar|bar)+",
        "é*",
        r"\w+( \w+){0,3}",
        "x?",
        r"(\d\d:){2}\d\d",
        "[[:punct:]]{3}",
        r"[0-9a-f]{8}(-[0-9a-f]{4}){3}",
        "(((a|b)c){2}d)+",
        ".",
        r"(?i)hello world",
        r"[\x00-\x7f]{4,6}",
        "日本?語+",
    ];
    let schemas = [
        json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name", "age"], "additionalProperties": false}),
        json!({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "boolean"}}, "additionalProperties": false}),
        json!({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 5}),
        json!({"enum": [1, "two", null, [3], {"four": 4}]}),
        json!({"const": {"a": [true, 1.5, "\"\\\n"]}}),
        json!({"type": "string", "minLength": 3, "maxLength": 6}),
        json!({"type": "string", "pattern": "^[A-Z][a-z]+$"}),
        json!({"type": ["string", "null", "boolean"]}),
        json!({"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "string"}, "maxItems": 2}]}),
        json!({"$ref": "#/$defs/pair", "$defs": {"pair": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"$ref": "#/$defs/name"}}, "required": ["y"], "additionalProperties": false}, "name": {"type": "string", "maxLength": 4}}}),
    ];
    let mut all: Vec<_> = patterns.into_iter().map(by_regex).collect();
    all.extend(schemas.iter().map(|schema| by_schema(&schema.to_string(), schema).unwrap()));
    all.extend(corpora());
    all
}

/// The first supported schemas of the sample and of some files of MaskBench.
fn corpora() -> Vec<(String, Constraint, Oracle)> {
    let few = ["Glaiveai2K", "BFCL", "Github_easy", "Github_trivial"];
    let corpora = data::schemas().into_iter();
    let corpora =
        corpora.filter(|corpus| corpus.is_sample() || few.iter().any(|name| corpus.name.contains(name)));
    let schemas = corpora.flat_map(|corpus| {
        let rows: Vec<Value> =
            corpus.read().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        rows.into_iter().filter_map(|row| by_schema(row["id"].as_str().unwrap(), &row["schema"])).take(10)
    });
    schemas.collect()
}

#[test]
fn every_generation_matches_its_constraint_and_is_complete_within_its_budget() {
    const BATCH: usize = 24;
    let vocabulary = vocabulary();
    let device = Device::flex();
    let mut rng = StdRng::seed_from_u64(1);
    let compiled: Vec<_> = constraints()
        .into_iter()
        .map(|(name, constraint, oracle)| (name, token_level(&constraint, &vocabulary), oracle))
        .collect();
    assert!(compiled.len() >= 40, "{} constraints", compiled.len());
    let mut generations = 0;
    let rounds = 10_000usize.div_ceil(BATCH);
    for round in 0..rounds {
        let vocab_size = vocabulary.len() + rng.random_range(0..20);
        let dtype = if round % 4 == 3 { DType::F16 } else { DType::F32 };
        let model = RandomLm::new(vocab_size, round as u64, dtype, &device);
        let picks: Vec<_> = (0..BATCH).map(|row| &compiled[(round * BATCH + row) % compiled.len()]).collect();
        let requests: Vec<_> = picks
            .iter()
            .map(|(_, constraint, _)| {
                let least = constraint.tokens_to_end(constraint.start()) as usize;
                let budget = least + rng.random_range(0..24);
                let prompt = (0..rng.random_range(1..5)).map(|_| TokenId(rng.random_range(0..200))).collect();
                Request::new(prompt, budget).with_constraint(constraint).with_seed(rng.random())
            })
            .collect();
        let kernels = if round % 8 == 0 { Kernels::BuiltIn } else { Kernels::Fused };
        let config = GenerationConfig::new()
            .with_temperature((round % 5 != 0).then_some(1.5))
            .with_top_k((round % 7 == 1).then_some(20))
            .with_top_p((round % 5 == 1).then_some(0.9))
            .with_min_p((round % 7 == 2).then_some(0.01))
            .with_repetition_penalty((round % 7 == 3).then_some(1.2))
            .with_min_new_tokens(if round % 7 == 4 { 6 } else { 0 })
            .with_suppress_tokens(if round % 7 == 5 { vec![TokenId(u32::from(b'"'))] } else { Vec::new() })
            .with_sync_interval(1 + round % 9)
            .with_tensors(TensorOptions { kernels, max_bytes: 1 << 30, ..TensorOptions::default() });
        let outputs = run(&model, &vocabulary, &requests, &config).unwrap();
        for ((output, request), (name, constraint, oracle)) in outputs.iter().zip(&requests).zip(&picks) {
            let text = std::str::from_utf8(&output.bytes).expect("constrained text is UTF-8");
            assert!(oracle.admits(text), "{name}: {text:?}");
            assert_eq!(output.finish, FinishReason::EndOfSequence, "{name}: {text:?}");
            assert!(output.tokens.len() <= request.max_new_tokens, "{name}: {text:?}");
            assert!(constraint.accepts(&output.tokens), "{name}: {text:?}");
            generations += 1;
        }
    }
    eprintln!("{generations} generations over {} constraints", compiled.len());
}

#[test]
fn real_vocabularies_keep_the_guarantee() {
    // The embedded vocabulary, and a vocabulary of 49,152 tokens.
    for tokenizer in data::tokenizers().into_iter().take(2) {
        let vocabulary = tokenizer.vocabulary();
        let device = Device::flex();
        let model = RandomLm::new(vocabulary.len(), 5, DType::F32, &device);
        for (seed, (name, constraint, oracle)) in constraints().into_iter().enumerate() {
            let compiled = token_level(&constraint, &vocabulary);
            let budget = compiled.tokens_to_end(compiled.start()) as usize + 12;
            let request =
                Request::new(vec![TokenId(40)], budget).with_constraint(&compiled).with_seed(seed as u64);
            let output =
                &run(&model, &vocabulary, &[request], &GenerationConfig::new().with_temperature(1.0))
                    .unwrap()[0];
            assert!(output.is_complete() && oracle.admits(&output.text()), "{name}: {:?}", output.text());
        }
    }
}
