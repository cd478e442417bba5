//! Builds the tokenizer: byte-level BPE over generated text.
//!
//! Every digit and every space is a separate token. So a word has the same tokens in a sentence,
//! after a space, and in a record, after a quote, and the model can copy it token by token.

use std::path::Path;

use serde_json::json;
use tokenizers::decoders::byte_level::ByteLevel;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::Split as SplitBy;
use tokenizers::processors::PostProcessorWrapper;
use tokenizers::{AddedToken, SplitDelimiterBehavior, Tokenizer, TokenizerBuilder, TokenizerImpl};

use super::Error;
use super::prompt::{CHAT_TEMPLATE, END, PROMPT_END, PROMPT_START};
use crate::generator::{Generator, Split};

/// Trains a tokenizer of `size` tokens on `examples` examples of the training split and writes
/// `tokenizer.json`, `tokenizer_config.json` and `generation_config.json` to `folder`.
pub fn build_tokenizer(
    folder: &Path,
    size: usize,
    seed: u64,
    examples: u64,
    positions: usize,
) -> Result<Tokenizer, Error> {
    let special = [END, PROMPT_START, PROMPT_END].map(|token| AddedToken::from(token, true));
    let mut trainer = BpeTrainer::builder()
        .vocab_size(size)
        .min_frequency(2)
        .show_progress(false)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .special_tokens(special.to_vec())
        .build();

    let splits: Vec<PreTokenizerWrapper> = vec![
        Digits::new(true).into(),
        SplitBy::new(" ", SplitDelimiterBehavior::Isolated, false)?.into(),
        ByteLevel::new(false, true, true).into(),
    ];
    let mut tokenizer: TokenizerImpl<
        BPE,
        NormalizerWrapper,
        PreTokenizerWrapper,
        PostProcessorWrapper,
        ByteLevel,
    > = TokenizerBuilder::default()
        .with_model(BPE::default())
        .with_normalizer(None)
        .with_pre_tokenizer(Some(Sequence::new(splits).into()))
        .with_post_processor(None)
        .with_decoder(Some(ByteLevel::default()))
        .build()?;

    let generator = Generator::new(seed);
    let text = (0..examples).flat_map(|index| {
        let example = generator.example(Split::Train, index);
        [example.prompt, example.record]
    });
    tokenizer.train(&mut trainer, text)?;

    let tokenizer: Tokenizer = tokenizer.into();
    tokenizer.save(folder.join("tokenizer.json"), true)?;
    write_json(
        &folder.join("tokenizer_config.json"),
        &json!({
            "tokenizer_class": "PreTrainedTokenizerFast",
            "add_bos_token": false,
            "add_eos_token": false,
            "bos_token": null,
            "eos_token": END,
            "pad_token": END,
            "model_max_length": positions,
            "clean_up_tokenization_spaces": false,
            "chat_template": CHAT_TEMPLATE,
        }),
    )?;
    let end = tokenizer.token_to_id(END).ok_or("the end token is missing from the tokenizer")?;
    write_json(
        &folder.join("generation_config.json"),
        &json!({ "eos_token_id": end, "pad_token_id": end, "do_sample": false }),
    )?;
    Ok(tokenizer)
}

/// Reads `tokenizer.json` of a folder.
pub fn load_tokenizer(folder: &Path) -> Result<Tokenizer, Error> {
    Tokenizer::from_file(folder.join("tokenizer.json"))
}

/// Writes a JSON file, indented, with a line feed at the end.
pub(super) fn write_json(path: &Path, value: &serde_json::Value) -> Result<(), Error> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    std::fs::write(path, text)?;
    Ok(())
}
