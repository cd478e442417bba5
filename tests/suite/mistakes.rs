//! The page of likely mistakes, `docs/errors.md`: this test makes each mistake, and the page shows
//! the results.
//!
//! `BURN_DFA_REWRITE=1 cargo test --release --test suite mistakes` rewrites the page.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use burn::tensor::{DType, Device};
use burn_dfa::constraint::Syntax;
use burn_dfa::generation::{Cancel, GenerationConfig, Output, Request, generate_as, generate_choice, stream};
use burn_dfa::{CompiledConstraint, Constraint, Limits, Result, TokenId, Vocabulary};
use burn_dfa_decoder::{Decoder, DecoderConfig};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::common::model::RandomLm;

const PAGE: &str = "docs/errors.md";

const INTRODUCTION: &str = "# Likely mistakes and their messages

Every refusal is a [`burn_dfa::Error`](../crates/common/src/error.rs). Its message names the
location and a remedy. Its `kind()` tells a program what was refused; `kind().is_constraint()` is
true if the constraint itself is refused, whatever the request. This page shows twenty-four common
mistakes with their messages. A [test](../tests/suite/mistakes.rs) makes the mistakes and writes
this page.

In the examples `vocabulary` is the vocabulary of the embedded model, `model` a model with as many
logits, `prompt` some of its tokens, and `compiled` the regex `[a-z]{12}` compiled for it. `limits`
and `config` are the defaults.
";

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Person {
    name: String,
    age: u8,
}

/// The code of each mistake, with its error message.
macro_rules! mistakes {
    ($($title:literal, $mistake:expr;)*) => {
        [$(match $mistake.map(drop) {
            Ok(()) => panic!("{}: that was no mistake", $title),
            Err(error) => ($title, stringify!($mistake), error.to_string()),
        }),*]
    };
}

fn page() -> String {
    let device = Device::flex();
    let tiny = burn_dfa_tiny::load(&device).unwrap();
    let (limits, config) = (Limits::default(), GenerationConfig::new());
    let vocabulary = tiny.vocabulary().clone();
    let tokenizer = burn_dfa_tiny::TOKENIZER;
    let model = RandomLm::new(vocabulary.len(), 1, DType::F32, &device);
    let narrow = RandomLm::new(1000, 1, DType::F32, &device);
    let broken = RandomLm::constant(f32::NEG_INFINITY, vocabulary.len(), &device);
    let prompt = tiny.prompt("Who?").unwrap();
    let word = Constraint::regex("[a-z]{12}").unwrap();
    let compiled = CompiledConstraint::compile(&word, &vocabulary, &limits).unwrap();
    let other =
        Vocabulary::from_chars('a'..='z').unwrap().pad_to(27).unwrap().with_eos([TokenId(26)]).unwrap();
    let cancel = Cancel::default();
    cancel.cancel();

    let request = |max_new_tokens| Request::new(prompt.clone(), max_new_tokens);
    let run =
        |model: &RandomLm,
         vocabulary: &Vocabulary,
         request: Request,
         config: &GenerationConfig|
         -> Result<Output> { Ok(stream(model, vocabulary, &[request], config)?.finish()?.remove(0)) };
    let with_tiny = |request| stream(tiny.model(), &vocabulary, &[request], &config);

    let mistakes = mistakes![
        "A regex with a group that is not closed", Constraint::regex("(yes|no");
        "A regex that looks ahead", Constraint::regex("(?=.*[0-9])[a-z0-9]+");
        "A bound of a schema in quotes",
            Constraint::json_schema(json!({"properties": {"age": {"minimum": "0"}}}));
        "A reference that leads nowhere", Constraint::json_schema(json!({"items": {"$ref": "#/$defs/persn"}}));
        "A reference out of the document",
            Constraint::json_schema(json!({"$ref": "https://example.com/person.json"}));
        "A schema that contradicts itself",
            Constraint::json_schema(json!({"type": "integer", "minimum": 5, "maximum": 3}))
                .and_then(|constraint| CompiledConstraint::compile(&constraint, &vocabulary, &limits));
        "A constraint that is too large",
            CompiledConstraint::compile(&Constraint::regex("([a-z]{1,2000} ){1,2000}").unwrap(), &vocabulary, &limits);
        "A set as a type", generate_as::<HashSet<u64>>(&model, &vocabulary, request(64), &config);
        "A choice of a type with fields",
            generate_choice::<Person>(&model, &vocabulary, request(64), &config);
        "A response format that nobody knows", Constraint::from_request(&json!({"type": "json"}));
        "A structural tag", Constraint::from_request(&json!({"structured_outputs": {"structural_tag": "{}"}}));
        "A rule that is not defined", Constraint::grammar(Syntax::Gbnf, "root ::= term (\"+\" term)*");
        "A literal that is not closed", Constraint::grammar(Syntax::Ebnf, "root ::= \"yes");
        "Palindromes, whose middle nothing marks",
            Constraint::grammar(Syntax::Gbnf, r#"root ::= "a" root "a" | "b" root "b" | "c"?"#)
                .and_then(|constraint| CompiledConstraint::compile(&constraint, &vocabulary, &limits));
        "A syntax of grammars that nobody knows",
            Constraint::from_request(&json!({"type": "grammar", "grammar": {"syntax": "yacc", "definition": "s: 'a';"}}));
        "A vocabulary without an end of sequence",
            Vocabulary::from_tokenizer_json(tokenizer)
                .and_then(|vocabulary| CompiledConstraint::compile(&word, &vocabulary, &limits));
        "A folder without a tokenizer", Vocabulary::from_folder("models");
        "A compiled constraint of another vocabulary", run(&model, &other, request(64).with_constraint(&compiled), &config);
        "A vocabulary of another model", run(&narrow, &vocabulary, request(64).with_constraint(&compiled), &config);
        "Too few tokens", generate_as::<Person>(&model, &vocabulary, request(4), &config);
        "More tokens than the model has positions", with_tiny(request(4096));
        "A temperature below 0",
            run(&model, &vocabulary, request(64), &GenerationConfig::new().with_temperature(-1.0));
        "Free text, read as a value",
            run(&model, &vocabulary, request(4), &config).and_then(|output| output.parse::<Person>());
        "A model whose logits are all −∞", run(&broken, &vocabulary, request(64).with_constraint(&compiled), &config);
    ];
    assert_eq!(mistakes.len(), 24);

    let mut page = INTRODUCTION.to_owned();
    for (number, (title, mistake, said)) in (1..).zip(mistakes) {
        let mistake = mistake.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = quoted(&said);
        write!(page, "\n## {number}. {title}\n\n```text\n{mistake}\n```\n\n{said}").unwrap();
    }
    // Not a mistake, but an error.
    let canceled = generate_as::<Person>(&model, &vocabulary, request(64).with_cancel(&cancel), &config);
    let other = DecoderConfig::from_json(r#"{"model_type": "gpt2"}"#).unwrap_err();
    let missing = Decoder::load("Qwen/Qwen3-0.6B", None, &device).unwrap_err();
    write!(
        page,
        "\n## Three more\n\nA canceled generation, with the text so far:\n\n> {}\n\nA model folder of another \
         architecture, which [`burn-dfa-decoder`](../models/decoder) refuses:\n\n> {other}\n\nThe name of a model instead of its \
         folder\n([other folders](models.md#what-is-said-of-other-folders)):\n\n> {missing}\n",
        canceled.unwrap_err()
    )
    .unwrap();
    page
}

/// The message as a quotation. Quoted grammar lines are indented, so Markdown shows them as code.
fn quoted(said: &str) -> String {
    let (reason, shown) = said.split_once('\n').unwrap_or((said, ""));
    let shown: String = shown.lines().map(|line| format!("> {line}\n")).collect();
    let between = if shown.is_empty() { "" } else { ">\n" };
    format!("> {reason}\n{between}{shown}")
}

#[test]
fn the_page_of_mistakes_is_true() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PAGE);
    let page = page();
    if std::env::var_os("BURN_DFA_REWRITE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = page.lines().zip(written.lines()).find(|(now, then)| now != then);
    assert!(page == written, "{PAGE} is out of date, see the top of this test's file: {differs:?}");
}
