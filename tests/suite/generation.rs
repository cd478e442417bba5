//! The decode loop: the guarantee, the budget, seeds, streaming, refusals.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::slice;

use crate::common::altered::{Altered, Call};
use crate::common::{data, devices, model::RandomLm};
use burn::tensor::{DType, Device, Int, Tensor};
use burn_dfa::generation::{Finish, GenerationConfig, Output, Request, generate};
use burn_dfa::sampling::{GumbelMax, Sampler};
use burn_dfa::{Constraint, Error, Layout, Limits, StateId, TensorOptions, TokenId, TokenTable, Vocabulary};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

const EOS: TokenId = TokenId(256);

/// The bytes, a few words, the end; padded rows after it.
fn vocabulary() -> Vocabulary {
    let bytes = (0..=255u8).map(|byte| Some(vec![byte]));
    let words = ["true", "false", "null", "\":", ",\"", "{\"", "\"}", "name", "age", "12", "été"];
    let words = words.iter().map(|word| Some(word.as_bytes().to_vec()));
    Vocabulary::from_bytes(bytes.chain([None]).chain(words)).unwrap().with_eos([EOS]).unwrap()
}

fn compile(constraint: &Constraint, vocabulary: &Vocabulary) -> TokenTable {
    // In every layout, so that each can be asked for.
    TokenTable::tabulate(constraint, vocabulary, &Limits::default()).unwrap()
}

fn regex(pattern: &str, vocabulary: &Vocabulary) -> TokenTable {
    compile(&Constraint::regex(pattern).unwrap(), vocabulary)
}

fn run(
    model: &RandomLm,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
) -> Result<Vec<Output>, Error> {
    generate(model, vocabulary, requests, config, |_| ControlFlow::Continue(()))
}

fn sampled() -> GenerationConfig {
    GenerationConfig::new().with_temperature(1.0)
}

/// What an output must satisfy, by an engine that is not ours.
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

/// The first schemas of the sample, and of some files of MaskBench, that the library takes.
fn corpora() -> Vec<(String, Constraint, Oracle)> {
    let few = ["Glaiveai2K", "BFCL", "Github_easy", "Github_trivial"];
    let corpora = data::schemas().into_iter();
    let corpora = corpora.filter(|corpus| corpus.is_sample() || few.iter().any(|name| corpus.name.contains(name)));
    let schemas = corpora.flat_map(|corpus| {
        let rows: Vec<Value> = corpus.read().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
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
        .map(|(name, constraint, oracle)| (name, compile(&constraint, &vocabulary), oracle))
        .collect();
    assert!(compiled.len() >= 40, "{} constraints", compiled.len());
    let mut generations = 0;
    let rounds = 10_000usize.div_ceil(BATCH);
    for round in 0..rounds {
        let width = vocabulary.len() + rng.random_range(0..20);
        let dtype = if round % 4 == 3 { DType::F16 } else { DType::F32 };
        let model = RandomLm::new(width, round as u64, dtype, &device);
        let picks: Vec<_> = (0..BATCH).map(|row| &compiled[(round * BATCH + row) % compiled.len()]).collect();
        let requests: Vec<_> = picks
            .iter()
            .map(|(_, table, _)| {
                let least = table.tokens_to_end(table.start()) as usize;
                let budget = least + rng.random_range(0..24);
                let prompt = (0..rng.random_range(1..5)).map(|_| TokenId(rng.random_range(0..200))).collect();
                Request::new(prompt, budget).with_table(table).with_seed(rng.random())
            })
            .collect();
        let layout = if round % 8 == 0 { Layout::Dense } else { Layout::Classes };
        let config = GenerationConfig::new()
            .with_temperature((round % 5 != 0).then_some(1.5))
            .with_top_k((round % 7 == 1).then_some(20))
            .with_top_p((round % 5 == 1).then_some(0.9))
            .with_min_p((round % 7 == 2).then_some(0.01))
            .with_repetition_penalty((round % 7 == 3).then_some(1.2))
            .with_min_new_tokens(if round % 7 == 4 { 6 } else { 0 })
            .with_suppress_tokens(if round % 7 == 5 { vec![TokenId(u32::from(b'"'))] } else { Vec::new() })
            .with_read_every(1 + round % 9)
            .with_tensors(TensorOptions {
                layout: Some(layout),
                max_bytes: 1 << 30,
                ..TensorOptions::default()
            });
        let outputs = run(&model, &vocabulary, &requests, &config).unwrap();
        for ((output, request), (name, table, oracle)) in outputs.iter().zip(&requests).zip(&picks) {
            let text = std::str::from_utf8(&output.bytes).expect("constrained text is UTF-8");
            assert!(oracle.admits(text), "{name}: {text:?}");
            assert_eq!(output.finish, Finish::EndOfSequence, "{name}: {text:?}");
            assert!(output.tokens.len() <= request.max_new_tokens, "{name}: {text:?}");
            assert!(table.accepts(&output.tokens), "{name}: {text:?}");
            generations += 1;
        }
    }
    eprintln!("{generations} generations over {} constraints", compiled.len());
}

#[test]
fn real_vocabularies_keep_the_guarantee() {
    // The embedded one, and one of 49,152 tokens.
    for tokenizer in data::tokenizers().into_iter().take(2) {
        let vocabulary = tokenizer.vocabulary();
        let device = Device::flex();
        let model = RandomLm::new(vocabulary.len(), 5, DType::F32, &device);
        for (seed, (name, constraint, oracle)) in constraints().into_iter().enumerate() {
            let table = compile(&constraint, &vocabulary);
            let budget = table.tokens_to_end(table.start()) as usize + 12;
            let request = Request::new(vec![TokenId(40)], budget).with_table(&table).with_seed(seed as u64);
            let output = &run(&model, &vocabulary, &[request], &sampled()).unwrap()[0];
            assert!(output.is_complete() && oracle.admits(&output.text()), "{name}: {:?}", output.text());
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_tokens_on_every_device_layout_and_batch_position() {
    let vocabulary = vocabulary();
    let patterns = ["[a-z]{5,30}", r"\d+(,\d+)*", "(true|false|null)+"];
    let tables: Vec<_> = patterns.iter().map(|pattern| regex(pattern, &vocabulary)).collect();
    let row = |index: usize| {
        let prompt = (0..=index as u32).map(TokenId).collect();
        let request = Request::new(prompt, 24 + index).with_seed(40 + index as u64);
        if index < tables.len() { request.with_table(&tables[index]) } else { request }
    };
    let mut expected: HashMap<(bool, usize), Vec<TokenId>> = HashMap::new();
    for (name, device) in devices::all() {
        let model = RandomLm::new(vocabulary.len() + 4, 3, DType::F32, &device);
        for (layout, read_every) in [(Layout::Classes, 8), (Layout::Dense, 1), (Layout::Classes, 5)] {
            let tensors = TensorOptions { layout: Some(layout), ..TensorOptions::default() };
            for temperature in [None, Some(0.9)] {
                let config = GenerationConfig::new()
                    .with_temperature(temperature)
                    .with_read_every(read_every)
                    .with_tensors(tensors.clone());
                for order in [vec![0, 1, 2, 3], vec![3, 1], vec![2], vec![1, 2, 0, 3]] {
                    let requests: Vec<_> = order.iter().map(|&index| row(index)).collect();
                    let outputs = run(&model, &vocabulary, &requests, &config).unwrap();
                    for (index, output) in order.into_iter().zip(outputs) {
                        let known = expected.entry((temperature.is_some(), index));
                        let known = known.or_insert(output.tokens.clone());
                        assert_eq!(*known, output.tokens, "row {index} on {name}, {layout:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn sampling_follows_the_softmax() {
    let device = Device::flex();
    let logits = [0.0f32, 1.0, 2.0, -1.0, f32::NEG_INFINITY, 0.5, 1.5, -3.0];
    let weights: Vec<f64> = logits.iter().map(|&logit| f64::from(logit).exp()).collect();
    let total: f64 = weights.iter().sum();
    const ROWS: usize = 4000;
    const DRAWS: usize = 10;
    let seeds: Vec<u64> = (0..ROWS as u64).collect();
    let sampler = GumbelMax::new(&seeds, logits.len(), &device).unwrap();
    let batch = Tensor::<1>::from_data(logits, &device).reshape([1, 8]).expand([ROWS, 8]);
    let mut counts = [0usize; 8];
    for step in 0..DRAWS {
        let step = Tensor::<1, Int>::from_data([step as i32], (&device, DType::I32));
        for token in sampler.sample(batch.clone(), &step).into_data().try_to_vec::<i32>().unwrap() {
            counts[token as usize] += 1;
        }
    }
    assert_eq!(counts[4], 0, "a masked token is never drawn");
    let drawn = (ROWS * DRAWS) as f64;
    let chi_square: f64 = (0..8)
        .filter(|&token| token != 4)
        .map(|token| {
            let expected = drawn * weights[token] / total;
            (counts[token] as f64 - expected).powi(2) / expected
        })
        .sum();
    // 6 degrees of freedom: exceeded with probability 0.001.
    assert!(chi_square < 22.46, "chi-square {chi_square}, counts {counts:?}");
}

#[test]
fn pieces_join_to_the_output_and_hold_back_half_characters() {
    let vocabulary = vocabulary();
    let table = regex("(日|本|é|x){12}", &vocabulary);
    let device = Device::flex();
    let model = RandomLm::new(vocabulary.len(), 1, DType::F32, &device);
    for read_every in [1, 3, 64] {
        let config = sampled().with_read_every(read_every);
        let requests = [
            Request::new(vec![TokenId(1)], 64).with_table(&table).with_seed(1),
            Request::new(vec![TokenId(1), TokenId(2)], 64).with_table(&table).with_seed(2),
        ];
        let mut texts = [String::new(), String::new()];
        let mut tokens = [Vec::new(), Vec::new()];
        let outputs = generate(&model, &vocabulary, &requests, &config, |piece| {
            assert!(!piece.text.contains(char::REPLACEMENT_CHARACTER));
            texts[piece.row].push_str(&piece.text);
            tokens[piece.row].extend_from_slice(&piece.tokens);
            ControlFlow::Continue(())
        })
        .unwrap();
        for row in 0..2 {
            assert_eq!(texts[row], outputs[row].text());
            assert_eq!(tokens[row], outputs[row].tokens);
            assert_eq!(texts[row].chars().count(), 12);
        }
    }
}

#[test]
fn a_callback_that_breaks_cancels_the_batch() {
    let vocabulary = vocabulary();
    let table = regex("a{50}", &vocabulary);
    let model = RandomLm::new(vocabulary.len(), 1, DType::F32, &Device::flex());
    let request = Request::new(vec![TokenId(1)], 60).with_table(&table);
    let config = GenerationConfig::new().with_read_every(4);
    let outputs = generate(&model, &vocabulary, &[request], &config, |_| ControlFlow::Break(())).unwrap();
    assert_eq!(outputs[0].finish, Finish::Cancelled);
    assert_eq!(outputs[0].tokens.len(), 4);
}

#[test]
fn free_rows_end_at_their_own_limit() {
    let vocabulary = vocabulary();
    let table = regex("a{9}", &vocabulary);
    let model = RandomLm::new(vocabulary.len() + 8, 2, DType::F32, &Device::flex());
    let requests = [Request::new(vec![TokenId(1)], 3), Request::new(vec![TokenId(1)], 40).with_table(&table)];
    let outputs = run(&model, &vocabulary, &requests, &sampled()).unwrap();
    assert!(outputs[0].tokens.len() <= 3);
    assert!(outputs[0].tokens.iter().all(|token| token.index() < vocabulary.len()));
    assert_eq!(outputs[1].text(), "aaaaaaaaa");
}

#[test]
fn several_ids_may_end_a_sequence() {
    let vocabulary = vocabulary().with_eos([EOS, TokenId(0), TokenId(u32::from(b'z'))]).unwrap();
    let table = regex("[a-z]", &vocabulary);
    let state = table.next(table.start(), TokenId(u32::from(b'b')));
    for id in [EOS.0, 0, u32::from(b'z')] {
        assert_eq!(table.next(table.start(), TokenId(id)), StateId::DEAD, "not before the end");
        assert_eq!(table.next(state, TokenId(id)), StateId::DONE);
    }
}

#[test]
fn bad_requests_are_refused_before_the_first_step() {
    let vocabulary = vocabulary();
    let other = vocabulary.clone().with_eos([TokenId(0)]).unwrap();
    let table = regex("abcdef", &vocabulary);
    let foreign = regex("abcdef", &other);
    let device = Device::flex();
    let model = RandomLm::new(vocabulary.len(), 1, DType::F32, &device);
    let narrow = RandomLm::new(vocabulary.len() - 1, 1, DType::F32, &device);
    let ask = |model: &RandomLm, requests: &[Request], config: &GenerationConfig| {
        run(model, &vocabulary, requests, config).unwrap_err()
    };
    let fine = Request::new(vec![TokenId(1)], 8).with_table(&table);
    let with = |change: &dyn Fn(&mut Request)| {
        let mut request = fine.clone();
        change(&mut request);
        ask(&model, &[request], &GenerationConfig::new())
    };
    assert!(ask(&model, &[], &GenerationConfig::new()).is_input(), "batch 0");
    assert!(with(&|request| request.max_new_tokens = 0).is_input());
    assert!(with(&|request| request.prompt.clear()).is_input());
    assert!(with(&|request| request.prompt.push(TokenId(4000))).is_input());
    assert!(with(&|request| request.max_new_tokens = usize::MAX).is_input());
    let generous = GenerationConfig::new().with_read_every(usize::MAX).with_top_k(usize::MAX);
    assert_eq!(run(&model, &vocabulary, slice::from_ref(&fine), &generous).unwrap()[0].text(), "abcdef");
    let short = with(&|request| request.max_new_tokens = 3);
    assert!(short.is_budget());
    assert_eq!(short.tokens_needed(), Some(7));
    assert!(short.to_string().contains("raise it to 7"), "{short}");
    let mut request = fine.clone();
    request.table = Some(&foreign);
    assert!(ask(&model, &[request], &GenerationConfig::new()).is_incompatible_vocabulary());
    assert!(ask(&narrow, slice::from_ref(&fine), &GenerationConfig::new()).is_incompatible_vocabulary());
    for config in [
        GenerationConfig::new().with_temperature(0.0),
        GenerationConfig::new().with_temperature(f32::NAN),
        GenerationConfig::new().with_top_k(0),
        GenerationConfig::new().with_top_p(0.0),
        GenerationConfig::new().with_min_p(2.0),
        GenerationConfig::new().with_repetition_penalty(-1.0),
        GenerationConfig::new().with_temperature(1e-30),
        GenerationConfig::new().with_repetition_penalty(1e30),
        GenerationConfig::new().with_read_every(0),
    ] {
        assert!(ask(&model, slice::from_ref(&fine), &config).is_input(), "{config:?}");
    }
    let tensors = TensorOptions { max_bytes: 100, ..TensorOptions::default() };
    assert!(ask(&model, slice::from_ref(&fine), &GenerationConfig::new().with_tensors(tensors)).is_limit());
}

/// A model of 16 positions whose logits are all −∞.
fn mute(vocabulary: &Vocabulary) -> Altered<impl Fn(Call, Tensor<2>) -> Tensor<2>> {
    let model = RandomLm::new(vocabulary.len(), 1, DType::F32, &Device::flex());
    Altered::new(model, |_, logits: Tensor<2>| logits.full_like(f32::NEG_INFINITY)).with_positions(16)
}

#[test]
fn a_model_without_finite_logits_is_an_error_and_not_an_illegal_output() {
    let vocabulary = vocabulary();
    let table = regex("abc", &vocabulary);
    let model = mute(&vocabulary);
    let request = Request::new(vec![TokenId(1)], 8).with_table(&table);
    let result = generate(&model, &vocabulary, slice::from_ref(&request), &GenerationConfig::new(), |_| {
        ControlFlow::Continue(())
    });
    assert!(result.unwrap_err().is_model());
    // Without a logit for the end, `a*` would go on past its budget with tokens that the table alone allows.
    let zeros = Vocabulary::from_bytes([Some("a"), None]).unwrap().with_eos([TokenId(1)]).unwrap();
    let endless = regex("a*", &zeros);
    let unending = Request::new(vec![TokenId(0)], 4).with_table(&endless);
    let result = generate(&mute(&zeros), &zeros, &[unending], &GenerationConfig::new(), |_| ControlFlow::Continue(()));
    assert!(result.unwrap_err().is_model());
    let long = Request { max_new_tokens: 16, ..request };
    let result =
        generate(&model, &vocabulary, &[long], &GenerationConfig::new(), |_| ControlFlow::Continue(()));
    assert!(result.unwrap_err().is_input(), "more positions than the model has");
}
