//! The embedded pair of models: outputs equal the outputs of plain constrained decoding.

use burn::tensor::{Device, FloatDType};
use burn_dfa::generation::speculative::{
    DraftModel, Drafter, ForcedBytes, ForcedTokens, MergedDrafters, PromptLookup, speculate,
};
use burn_dfa::generation::{GenerationConfig, Request, generate};
use burn_dfa::{CompiledConstraint, Limits, TokenId, Vocabulary};
use burn_dfa_decoder::Decoder;
use burn_dfa_tiny::{
    CONFIG, TOKENIZER, WEIGHTS, draft,
    generator::{Generator, Kind, Split},
    schema,
};
use tokenizers::Tokenizer;

fn llama(config: &[u8], weights: &[u8]) -> Decoder {
    Decoder::from_bytes(str::from_utf8(config).unwrap(), weights, FloatDType::F32, &Device::flex()).unwrap()
}

#[test]
fn the_pair_writes_the_output_of_the_model_alone() {
    let (model, small) = (llama(CONFIG, WEIGHTS), llama(draft::CONFIG, draft::WEIGHTS));
    let tokenizer = Tokenizer::from_bytes(TOKENIZER).unwrap();
    let end = TokenId(tokenizer.token_to_id("<|endoftext|>").unwrap());
    let vocabulary = Vocabulary::from_tokenizer_json(TOKENIZER).unwrap().with_eos([end]).unwrap();
    let constraints = Kind::ALL.map(|kind| {
        let constraint = schema(kind.name()).unwrap().constraint().unwrap();
        CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default()).unwrap()
    });
    // Rows with prompts of different lengths, each under every schema in turn.
    let requests: Vec<_> = (0..12u64)
        .map(|index| {
            let example = Generator::new(5).example(Split::HeldOut, index);
            let text = format!("<|user|>{}<|assistant|>", example.prompt);
            let prompt = tokenizer.encode(text, false).unwrap();
            let prompt = prompt.get_ids().iter().map(|&id| TokenId(id)).collect();
            Request::new(prompt, 64 + index as usize)
                .with_constraint(&constraints[index as usize % constraints.len()])
        })
        .collect();
    let config = GenerationConfig::new();
    let plain = generate(&model, &vocabulary, &requests, &config).unwrap();
    let tokens: usize = plain.iter().map(|output| output.tokens.len()).sum();
    let draft = || DraftModel::new(&small, 4);
    let forced = || ForcedTokens::new(3, ForcedBytes::LongestToken);
    let drafters: [(&str, Box<dyn Drafter>); 4] = [
        ("masked", Box::new(draft())),
        ("unmasked", Box::new(draft().unmasked())),
        ("in front", Box::new(forced().before(draft()).unwrap())),
        ("tree", Box::new(MergedDrafters::new(draft(), PromptLookup::new(3, 2)).unwrap())),
    ];
    for (name, drafter) in drafters {
        let rows = speculate(&model, &vocabulary, &requests, &config, drafter);
        let rows = rows.unwrap();
        for (row, plain) in rows.iter().zip(&plain) {
            assert_eq!(row.output, *plain, "{name}: {} or {}", row.output.text(), plain.text());
        }
        let calls: usize = rows.iter().map(|row| row.calls).sum();
        assert!(2 * calls < tokens, "{name}: {calls} calls for {tokens} tokens");
    }
}
