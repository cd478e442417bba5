//! [`Pretrained`]: a model with everything else that generation needs from a Hugging Face folder.

use std::path::Path;

use burn::tensor::{Device, FloatDType};
use burn_dfa::vocabulary::ModelFiles;
use burn_dfa::{TokenId, Vocabulary};
use tokenizers::Tokenizer;

use crate::chat::{ChatTemplate, Message};
use crate::config::DecoderConfig;
use crate::error::DecoderError;
use crate::folder;
use crate::load::LoadProgress;
use crate::model::Decoder;

/// A model with its tokenizer, its vocabulary and its chat template.
///
/// # Example
///
/// ```no_run
/// use burn::tensor::Device;
/// use burn_dfa_decoder::{Message, Pretrained};
///
/// let pretrained = Pretrained::load("SmolLM2-135M-Instruct", None, &Device::flex())?;
/// let prompt = pretrained.encode_chat(&[Message::user("Name a colour.")])?;
/// println!("{} tokens, and it ends with {:?}", prompt.len(), pretrained.vocabulary().eos());
/// # Ok::<(), burn_dfa_decoder::DecoderError>(())
/// ```
#[derive(Debug)]
pub struct Pretrained {
    model: Decoder,
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    chat_template: Option<ChatTemplate>,
}

impl Pretrained {
    /// Reads a folder: `config.json`, the weights, `tokenizer.json`, and where they are there
    /// `generation_config.json`, `tokenizer_config.json` and `chat_template.jinja`. See [`Decoder::load`] for `dtype`.
    ///
    /// # Errors
    /// As [`Decoder::load`] and [`Vocabulary::from_folder`]; when the template is not valid; and when the tokenizer
    /// has ids that the model's embedding matrix does not hold.
    pub fn load(
        folder: impl AsRef<Path>,
        dtype: impl Into<Option<FloatDType>>,
        device: &Device,
    ) -> Result<Self, DecoderError> {
        Self::load_with_progress(folder, dtype, device, |_| ())
    }

    /// As [`load`](Self::load), and calls `progress` after each tensor of the weights.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_with_progress(
        folder: impl AsRef<Path>,
        dtype: impl Into<Option<FloatDType>>,
        device: &Device,
        progress: impl FnMut(LoadProgress),
    ) -> Result<Self, DecoderError> {
        let folder = folder.as_ref();
        // The small files are read first, so that an error in them is reported before gigabytes are read; but behind the
        // headers of the weights, which the sizes in config.json must fit.
        let (config, checkpoint) = Decoder::open(folder)?;
        folder::check_tokenizer(folder)?;
        let text = TextFiles::new(&config, &ModelFiles::read(folder)?)?;
        Ok(text.with(Decoder::assemble(&config, &checkpoint, dtype.into(), device, progress)?))
    }

    /// Puts together a model and the other files of its folder, which may be compiled in.
    ///
    /// # Errors
    /// As [`load`](Self::load), for all files but the weights.
    pub fn new(model: Decoder, files: &ModelFiles) -> Result<Self, DecoderError> {
        Ok(TextFiles::new(model.config(), files)?.with(model))
    }

    /// The model.
    pub fn model(&self) -> &Decoder {
        &self.model
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The tokens as constraints need them: their bytes, as many ids as the model has logits, and the ids that end a
    /// sequence.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The chat template, where the folder has one.
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.chat_template.as_ref()
    }

    /// Encodes what a user asks: as the first message of a conversation, or as plain text where there is no chat
    /// template.
    ///
    /// # Errors
    /// When the template or the tokenizer fails.
    pub fn prompt(&self, text: &str) -> Result<Vec<TokenId>, DecoderError> {
        match self.chat_template {
            Some(_) => self.encode_chat(&[Message::user(text)]),
            None => self.encode(text),
        }
    }

    /// Encodes plain text, with the special tokens that the tokenizer adds.
    ///
    /// # Errors
    /// When the tokenizer fails.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>, DecoderError> {
        self.ids(text, true)
    }

    /// Encodes a conversation up to the opening of the model's turn.
    ///
    /// # Errors
    /// When the folder has no chat template, or the template or the tokenizer fails.
    pub fn encode_chat(&self, messages: &[Message]) -> Result<Vec<TokenId>, DecoderError> {
        self.encode_chat_with_tools(messages, &[])
    }

    /// Encodes a conversation in which the model may call tools, up to the opening of the model's turn; see
    /// [`ChatTemplate::render_with_tools`].
    ///
    /// # Errors
    /// As [`encode_chat`](Self::encode_chat), and when the template does not find what it looks for in a tool.
    pub fn encode_chat_with_tools(
        &self,
        messages: &[Message],
        tools: &[serde_json::Value],
    ) -> Result<Vec<TokenId>, DecoderError> {
        let template = self.chat_template.as_ref().ok_or_else(|| DecoderError::Template {
            message: "this model has none; encode plain text instead".into(),
        })?;
        self.ids(&template.render_with_tools(messages, tools, true)?, false)
    }

    /// Decodes tokens, leaving special tokens out.
    ///
    /// # Errors
    /// When the tokenizer fails.
    pub fn decode(&self, tokens: &[TokenId]) -> Result<String, DecoderError> {
        let ids: Vec<_> = tokens.iter().map(|token| token.0).collect();
        self.tokenizer.decode(&ids, true).map_err(tokenizer_error)
    }

    fn ids(&self, text: &str, special: bool) -> Result<Vec<TokenId>, DecoderError> {
        let encoding = self.tokenizer.encode(text, special).map_err(tokenizer_error)?;
        Ok(encoding.get_ids().iter().map(|&id| TokenId(id)).collect())
    }
}

/// The contents of the files other than the weights.
struct TextFiles {
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    chat_template: Option<ChatTemplate>,
}

impl TextFiles {
    fn new(config: &DecoderConfig, files: &ModelFiles) -> Result<Self, DecoderError> {
        let chat_template = files.chat_template.as_deref().map(String::from);
        Ok(Self {
            chat_template: ChatTemplate::from_files(files.tokenizer_config.as_deref(), chat_template)?,
            tokenizer: tokenizer(config, &files.tokenizer)?,
            vocabulary: Vocabulary::from_files(files)?,
        })
    }

    fn with(self, model: Decoder) -> Pretrained {
        let Self { tokenizer, vocabulary, chat_template } = self;
        Pretrained { model, tokenizer, vocabulary, chat_template }
    }
}

/// The tokenizer, checked against the model's vocabulary.
fn tokenizer(config: &DecoderConfig, json: &[u8]) -> Result<Tokenizer, DecoderError> {
    // Some malformed parts make the reader panic.
    let read = std::panic::catch_unwind(|| Tokenizer::from_bytes(json));
    let malformed = |_| DecoderError::Tokenizer { message: "is malformed; download it again".into() };
    let tokenizer = read.map_err(malformed)?.map_err(tokenizer_error)?;
    let greatest = tokenizer.get_vocab(true).into_values().max().unwrap_or(0);
    if greatest as usize >= config.vocab_size {
        return Err(DecoderError::Tokenizer {
            message: format!(
                "has the id {greatest}, but config.json gives the model {} rows; the files belong to \
                 different models",
                config.vocab_size
            ),
        });
    }
    Ok(tokenizer)
}

fn tokenizer_error(error: tokenizers::Error) -> DecoderError {
    DecoderError::Tokenizer { message: error.to_string() }
}
