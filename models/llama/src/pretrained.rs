//! [`Pretrained`]: everything that a folder of the Hugging Face hub holds for generation.

use std::path::Path;

use burn::tensor::{Device, FloatDType};
use serde::Deserialize;
use tokenizers::Tokenizer;

use crate::chat::{ChatTemplate, Message, read};
use crate::config::LlamaConfig;
use crate::error::LlamaError;
use crate::model::Llama;
use crate::raw_config::OneOrMany;

/// A model with its tokenizer and its chat template.
///
/// # Example
///
/// ```no_run
/// use burn::tensor::{Device, FloatDType};
/// use burn_dfa_llama::{Message, Pretrained};
///
/// let pretrained = Pretrained::load("SmolLM2-135M-Instruct", FloatDType::F32, &Device::flex())?;
/// let prompt = pretrained.encode_chat(&[Message::user("Name a colour.")])?;
/// println!("{} tokens, ending with {:?}", prompt.len(), pretrained.eos());
/// # Ok::<(), burn_dfa_llama::LlamaError>(())
/// ```
#[derive(Debug)]
pub struct Pretrained {
    model: Llama,
    tokenizer: Tokenizer,
    tokenizer_json: Vec<u8>,
    chat_template: Option<ChatTemplate>,
    eos: Vec<u32>,
}

/// The field of `generation_config.json` that is needed here.
#[derive(Deserialize)]
struct GenerationConfig {
    #[serde(default)]
    eos_token_id: Option<OneOrMany>,
}

impl Pretrained {
    /// Reads a folder: `config.json`, the weights, `tokenizer.json`, and where they are there
    /// `generation_config.json`, `tokenizer_config.json` and `chat_template.jinja`.
    ///
    /// # Errors
    /// As [`Llama::load`]; when the tokenizer or the template is not valid; and when the tokenizer has ids
    /// that the model's embedding matrix does not hold.
    pub fn load(folder: impl AsRef<Path>, dtype: FloatDType, device: &Device) -> Result<Self, LlamaError> {
        let folder = folder.as_ref();
        // The small files first, so that a mistake in them shows before gigabytes are read.
        let config = LlamaConfig::load(folder)?;
        let path = folder.join("tokenizer.json");
        let tokenizer_json = std::fs::read(&path).map_err(|source| LlamaError::Io { path, source })?;
        let generation = read(&folder.join("generation_config.json"))?;
        let chat_template = ChatTemplate::load(folder)?;
        let (tokenizer, eos) = prepare(&config, &tokenizer_json, generation.as_deref())?;
        Ok(Self { model: Llama::load(folder, dtype, device)?, tokenizer, tokenizer_json, chat_template, eos })
    }

    /// Puts together a model and the bytes of its `tokenizer.json`, which may be compiled in.
    ///
    /// # Errors
    /// When the tokenizer is not valid, or has ids that the model's embedding matrix does not hold.
    pub fn new(
        model: Llama,
        tokenizer_json: &[u8],
        chat_template: Option<ChatTemplate>,
    ) -> Result<Self, LlamaError> {
        let (tokenizer, eos) = prepare(model.config(), tokenizer_json, None)?;
        Ok(Self { model, tokenizer, tokenizer_json: tokenizer_json.to_vec(), chat_template, eos })
    }

    /// The model.
    pub fn model(&self) -> &Llama {
        &self.model
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The bytes of `tokenizer.json`.
    pub fn tokenizer_json(&self) -> &[u8] {
        &self.tokenizer_json
    }

    /// The chat template, where the folder has one.
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.chat_template.as_ref()
    }

    /// The tokens that end a sequence: those of `config.json` and of `generation_config.json`, ascending.
    pub fn eos(&self) -> &[u32] {
        &self.eos
    }

    /// Encodes plain text, with the special tokens that the tokenizer adds.
    ///
    /// # Errors
    /// When the tokenizer fails.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, LlamaError> {
        self.ids(text, true)
    }

    /// Encodes a conversation up to the opening of the model's turn.
    ///
    /// # Errors
    /// When the folder has no chat template, or the template or the tokenizer fails.
    pub fn encode_chat(&self, messages: &[Message]) -> Result<Vec<u32>, LlamaError> {
        let template = self.chat_template.as_ref().ok_or_else(|| LlamaError::Template {
            message: "this model has none; encode plain text instead".into(),
        })?;
        self.ids(&template.render(messages, true)?, false)
    }

    /// Decodes tokens, leaving special tokens out.
    ///
    /// # Errors
    /// When the tokenizer fails.
    pub fn decode(&self, ids: &[u32]) -> Result<String, LlamaError> {
        self.tokenizer.decode(ids, true).map_err(tokenizer_error)
    }

    fn ids(&self, text: &str, special: bool) -> Result<Vec<u32>, LlamaError> {
        let encoding = self.tokenizer.encode(text, special).map_err(tokenizer_error)?;
        Ok(encoding.get_ids().to_vec())
    }
}

/// The tokenizer and the ending tokens, checked against the model's vocabulary.
fn prepare(
    config: &LlamaConfig,
    tokenizer_json: &[u8],
    generation: Option<&str>,
) -> Result<(Tokenizer, Vec<u32>), LlamaError> {
    let tokenizer = Tokenizer::from_bytes(tokenizer_json).map_err(tokenizer_error)?;
    let greatest = tokenizer.get_vocab(true).into_values().max().unwrap_or(0);
    if greatest as usize >= config.vocab_size {
        return Err(LlamaError::Tokenizer {
            message: format!(
                "has the id {greatest}, but config.json gives the model {} rows; the files belong to \
                 different models",
                config.vocab_size
            ),
        });
    }
    let mut eos = config.eos_token_id.clone();
    if let Some(text) = generation {
        let generation: GenerationConfig = serde_json::from_str(text)
            .map_err(|source| LlamaError::Json { file: "generation_config.json".into(), source })?;
        eos.extend(generation.eos_token_id.map(Vec::from).unwrap_or_default());
    }
    eos.sort_unstable();
    eos.dedup();
    Ok((tokenizer, eos))
}

fn tokenizer_error(error: tokenizers::Error) -> LlamaError {
    LlamaError::Tokenizer { message: error.to_string() }
}
