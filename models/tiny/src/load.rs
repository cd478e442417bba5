//! The embedded model, ready to use.

use burn::tensor::{Device, FloatDType};
use burn_dfa::vocabulary::ModelFiles;
use burn_dfa_decoder::{Decoder, DecoderError, Pretrained};

use crate::{CONFIG, GENERATION_CONFIG, TOKENIZER, TOKENIZER_CONFIG, WEIGHTS};

/// Loads the model with its tokenizer, vocabulary and chat template, in 32-bit floats.
///
/// ```
/// use burn::tensor::Device;
///
/// let tiny = burn_dfa_tiny::load(&Device::flex())?;
/// let prompt = tiny.prompt("Meet Nora Keller, a 34 year old baker from Lisbon.")?;
/// assert!(prompt.len() < tiny.model().config().max_position_embeddings);
/// # Ok::<(), burn_dfa_decoder::DecoderError>(())
/// ```
///
/// # Errors
/// None but those of the device: the files are compiled in.
pub fn load(device: &Device) -> Result<Pretrained, DecoderError> {
    let model = Decoder::from_bytes(&text(CONFIG), WEIGHTS, FloatDType::F32, device)?;
    let files = ModelFiles {
        tokenizer: TOKENIZER.into(),
        config: Some(text(CONFIG)),
        generation_config: Some(text(GENERATION_CONFIG)),
        tokenizer_config: Some(text(TOKENIZER_CONFIG)),
        ..ModelFiles::default()
    };
    Pretrained::new(model, &files)
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
