//! Constrained decoding of plain `f32` logits, with `burn-dfa-tokens` alone.
//!
//! In a program that uses another engine, replace `fake_model` by the engine's last row of logits:
//! - candle: `logits.to_vec1::<f32>()?`, then `Tensor::from_vec` for the masked row;
//! - ort: the slice of `output.try_extract_tensor::<f32>()?`, copied to a `Vec`;
//! - mistral.rs: a `CustomLogitsProcessor`, which receives the logits and the tokens so far.
//!
//! Read the vocabulary from the model's folder with `Vocabulary::from_folder`, and let the engine's
//! sampler choose among the masked logits. Run this program with
//! `cargo run -p burn-dfa-tokens --example plain_logits`.

use burn_dfa_tokens::{
    CompiledConstraint, Constraint, Limits, Masker, Result, RowPosition, StateId, TokenId, Vocabulary,
};

fn main() -> Result<()> {
    // Ids 0 to 255 are the bytes, then some words, then the end of the sequence.
    let words = ["{\"", "\":", "name", "age", "Ada", "Grace", ", \""];
    let bytes = (0..=u8::MAX).map(|byte| Some(vec![byte]));
    let words = words.iter().map(|word| Some(word.as_bytes().to_vec()));
    let vocabulary = Vocabulary::from_bytes(bytes.chain(words).chain([None]))?;
    let end = TokenId(vocabulary.len() as u32 - 1);
    let vocabulary = vocabulary.with_eos([end])?;

    let schema = r#"{
        "type": "object",
        "properties": {
            "name": {"type": "string", "pattern": "^[A-Z][a-z]+$"}, "age": {"type": "integer", "minimum": 0}
        },
        "required": ["name", "age"], "additionalProperties": false
    }"#;
    let constraint = Constraint::json_schema_from_str(schema)?;
    let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default())?;
    let masker = Masker::new(&compiled);

    // The budget of 32 tokens includes the end of the sequence: the output is complete within it.
    let mut position = RowPosition::new(compiled.start(), 32);
    let (mut seed, mut text) = (1u64, Vec::new());
    while position.state != StateId::DONE {
        let mut logits = fake_model(vocabulary.len(), &mut seed);
        masker.mask(&position, &mut logits);
        let greatest = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
        let token = TokenId(greatest.unwrap_or_default() as u32);
        text.extend_from_slice(vocabulary.bytes(token).unwrap_or_default());
        position = compiled.after(&position, token);
    }
    println!("{}", String::from_utf8_lossy(&text));
    Ok(())
}

/// Pseudo-random logits.
fn fake_model(count: usize, seed: &mut u64) -> Vec<f32> {
    let mut next = || {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 40) as f32
    };
    (0..count).map(|_| next()).collect()
}
