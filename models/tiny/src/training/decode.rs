//! Decodes prompts in batches.

use burn_dfa::CompiledConstraint;
use burn_dfa::generation::{GenerationConfig, Request, generate};
use burn_dfa::vocabulary::TokenId;
use burn_dfa_decoder::Pretrained;
use indicatif::ProgressBar;

use super::Error;

/// Prompts decoded together.
const ROWS: usize = 32;

/// The longest record has about 50 tokens, the longest call about 75. A long prompt may leave less.
const MAX_TOKENS: usize = 96;

/// Tokens to continue from, and the constraint of the output.
pub(super) struct Prompt<'a> {
    pub(super) tokens: Vec<TokenId>,
    pub(super) constraint: Option<&'a CompiledConstraint>,
}

/// The outputs for all prompts: greedily, or sampled at a temperature with the number of the prompt
/// as seed.
pub(super) fn decode(
    pretrained: &Pretrained,
    prompts: Vec<Prompt<'_>>,
    temperature: Option<f32>,
) -> Result<Vec<String>, Error> {
    let bar = ProgressBar::new(prompts.len() as u64);
    let config = GenerationConfig::new().with_temperature(temperature);
    let mut outputs = Vec::with_capacity(prompts.len());
    let mut requests: Vec<Request> = (0..)
        .zip(prompts)
        .map(|(seed, prompt)| {
            let request = Request::new(prompt.tokens, MAX_TOKENS).with_seed(seed);
            match prompt.constraint {
                Some(constraint) => request.with_constraint(constraint),
                None => request,
            }
        })
        .collect();
    let (model, vocabulary) = (pretrained.model(), pretrained.vocabulary());
    let positions = model.config().max_position_embeddings;
    for rows in requests.chunks_mut(ROWS) {
        let longest = rows.iter().map(|row| row.prompt.len()).max().unwrap_or(0);
        let left = positions.saturating_sub(longest).min(MAX_TOKENS);
        rows.iter_mut().for_each(|row| row.max_new_tokens = left);
        let batch = generate(model, vocabulary, rows, &config)?;
        outputs.extend(batch.iter().map(|output| output.text()));
        bar.inc(rows.len() as u64);
    }
    bar.finish_and_clear();
    Ok(outputs)
}
