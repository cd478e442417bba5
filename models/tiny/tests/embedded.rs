//! The embedded files fit one another, and the model fulfills its task.

use burn::tensor::Device;
use burn_dfa::generation::{GenerationConfig, Request, generate};
use burn_dfa::{CompiledConstraint, Limits, TokenId};
use burn_dfa_decoder::{Message, Pretrained};
use burn_dfa_tiny::{
    GENERATION_CONFIG, WEIGHTS,
    generator::{Generator, Kind, Split},
    schema,
};
use serde_json::Value;

fn pretrained() -> Pretrained {
    burn_dfa_tiny::load(&Device::flex()).expect("the files fit one another")
}

#[test]
fn the_files_fit_one_another() {
    assert!(WEIGHTS.len() < 8_000_000);
    let pretrained = pretrained();
    let tokenizer = pretrained.tokenizer();
    assert_eq!(pretrained.model().config().vocab_size, tokenizer.get_vocab_size(true));

    let end = tokenizer.token_to_id("<|endoftext|>").expect("there is an end token");
    assert!(pretrained.vocabulary().eos().iter().eq(&[TokenId(end)]));
    let generation: Value = serde_json::from_slice(GENERATION_CONFIG).expect("it is JSON");
    assert_eq!(generation["eos_token_id"], end);

    let template = pretrained.chat_template().expect("there is a chat template");
    let text = template.render(&[Message::user("Hello!")], true).expect("it renders");
    assert_eq!(text, "<|user|>Hello!<|assistant|>");
}

#[test]
fn every_byte_survives_the_tokenizer() {
    let pretrained = pretrained();
    let text = "Zoë Łódź 東京 {\"a\": [1, 23]}\n\t  two  spaces \u{1F980}";
    let tokens = pretrained.encode(text).expect("it encodes");
    assert_eq!(pretrained.decode(&tokens).expect("it decodes"), text);
}

#[test]
fn held_out_sentences_become_records() {
    let pretrained = pretrained();
    let vocabulary = pretrained.vocabulary();
    for kind in Kind::ALL {
        let schema = schema(kind.name()).expect("every kind has a schema");
        let constraint = schema.constraint().expect("it is supported");
        let schema: Value = serde_json::from_str(schema.json).expect("schemas are JSON");
        let validator = jsonschema::validator_for(&schema).expect("it is a schema");
        let compiled =
            CompiledConstraint::compile(&constraint, vocabulary, &Limits::default()).expect("it compiles");

        let generator = Generator::new(77);
        let examples: Vec<_> =
            (0..16).map(|index| generator.example_of(kind, Split::HeldOut, index)).collect();
        let requests: Vec<_> = examples
            .iter()
            .map(|example| {
                let message = Message::user(example.prompt.as_str());
                let prompt = pretrained.encode_chat(&[message]).expect("it encodes");
                Request::new(prompt, 96).with_constraint(&compiled)
            })
            .collect();
        let outputs = generate(pretrained.model(), vocabulary, &requests, &GenerationConfig::new())
            .expect("it generates");

        let mut right = 0;
        for (example, output) in examples.iter().zip(&outputs) {
            let value: Value = serde_json::from_str(&output.text()).expect("outputs are JSON");
            assert!(validator.is_valid(&value), "{}", output.text());
            right += usize::from(output.text() == example.record);
        }
        assert!(right >= 12, "{}: {right} of 16 records are right", kind.name());
    }
}
