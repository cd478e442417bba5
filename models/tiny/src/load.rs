//! The embedded model, ready to use.

use burn::tensor::{Device, FloatDType};
use burn_dfa_llama::{ChatTemplate, Llama, LlamaError, Pretrained};

use crate::{CONFIG, TOKENIZER, TOKENIZER_CONFIG, WEIGHTS};

/// Loads the model with its tokenizer, vocabulary and chat template, in 32-bit floats.
///
/// ```
/// use burn::tensor::Device;
///
/// let tiny = burn_dfa_tiny::load(&Device::flex())?;
/// let prompt = tiny.prompt("Meet Nora Keller, a 34 year old baker from Lisbon.")?;
/// assert!(prompt.len() < tiny.model().config().max_position_embeddings);
/// # Ok::<(), burn_dfa_llama::LlamaError>(())
/// ```
///
/// # Errors
/// None but those of the device: the files are compiled in.
pub fn load(device: &Device) -> Result<Pretrained, LlamaError> {
    let model = Llama::from_bytes(&text(CONFIG), WEIGHTS, FloatDType::F32, device)?;
    let template = ChatTemplate::from_files(Some(&text(TOKENIZER_CONFIG)), None)?;
    Pretrained::new(model, TOKENIZER, template)
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
