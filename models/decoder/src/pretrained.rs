//! [`Pretrained`]: a model, and all further parts that generation needs from a Hugging Face folder
//! or a GGUF file.

use std::fmt;
use std::path::Path;

use burn::tensor::{Device, FloatDType};
use burn_dfa::vocabulary::ModelFiles;
use burn_dfa::{TokenId, Vocabulary};
use burn_dfa_gguf::GgufFile;
use serde_json::json;
use tokenizers::models::bpe::BPE;
use tokenizers::{
    DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, Tokenizer, TokenizerImpl,
};

use crate::chat::{ChatPrompt, ChatTemplate, Marks, Message, RenderOptions};
use crate::checkpoint::Checkpoint;
use crate::config::DecoderConfig;
use crate::error::DecoderError;
use crate::folder;
use crate::gguf;
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
/// let prompt = pretrained.encode_chat(&[Message::user("Name a color.")])?;
/// println!("{} tokens, and it ends with {:?}", prompt.len(), pretrained.vocabulary().eos());
/// # Ok::<(), burn_dfa_decoder::DecoderError>(())
/// ```
#[derive(Debug)]
pub struct Pretrained {
    model: Decoder,
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    chat_template: Option<ChatTemplate>,
    generation_config: Option<String>,
    marks: Marks,
}

impl Pretrained {
    /// Reads a folder: `config.json`, the weights, `tokenizer.json`, and, if they exist,
    /// `generation_config.json`, `tokenizer_config.json` and `chat_template.jinja`; or a GGUF file,
    /// which holds all of it. See [`Decoder::load`] for `dtype`.
    ///
    /// # Errors
    /// As [`Decoder::load`] and [`Vocabulary::from_folder`]; and if the template is not valid, or
    /// an id of the tokenizer exceeds the model's embedding matrix (unless it is a special token).
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
        Self::open(folder)?.load(dtype, device, progress)
    }

    /// Reads the headers of the weights and all other files of a folder, or the header of a GGUF
    /// file.
    ///
    /// # Errors
    /// As [`load`](Self::load), except for errors in the weights.
    ///
    /// # Example
    ///
    /// ```no_run
    /// use burn::tensor::Device;
    /// use burn_dfa::{Constraint, Limits, CompiledConstraint};
    /// use burn_dfa_decoder::Pretrained;
    ///
    /// let folder = Pretrained::open("SmolLM2-135M-Instruct")?;
    /// // A constraint that is refused is known before gigabytes are read.
    /// let constraint = Constraint::regex("[0-9]+")?;
    /// let compiled =
    ///     CompiledConstraint::compile(&constraint, folder.vocabulary(), &Limits::default())?;
    /// let pretrained = folder.load(None, &Device::flex(), |_| ())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(folder: impl AsRef<Path>) -> Result<PretrainedFolder, DecoderError> {
        let folder = folder.as_ref();
        if GgufFile::is_gguf(folder) {
            let file = gguf::header(folder)?;
            let (config, checkpoint) = gguf::open(folder, &file)?;
            let files = ModelFiles::from_gguf(folder, &file)?;
            // The header has megabytes, the tokens among them.
            drop(file);
            let text = TextFiles::new(&config, &files).map_err(gguf::content(folder))?;
            return Ok(PretrainedFolder { config, checkpoint, text });
        }
        // The headers of the weights come first: the sizes in config.json must fit them.
        let (config, checkpoint) = Decoder::open(folder)?;
        folder::check_tokenizer(folder)?;
        let files = ModelFiles::read(folder)?;
        let text = TextFiles::new(&config, &files)?;
        Ok(PretrainedFolder { config, checkpoint, text })
    }

    /// Combines a model with the other files of its folder, which may be compiled in.
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

    /// The tokens in the form for constraints: their bytes, as many ids as the model has logits,
    /// and the ids that end a sequence.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The chat template, if the folder has one.
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.chat_template.as_ref()
    }

    /// The text of `generation_config.json`, if there is one;
    /// [`Generator::with_recommended_sampling`](crate::Generator::with_recommended_sampling) uses
    /// its sampling. A GGUF file has one that was made from its metadata.
    pub fn generation_config(&self) -> Option<&str> {
        self.generation_config.as_deref()
    }

    /// Encodes a user's prompt: as the first message of a conversation, or as plain text if there
    /// is no chat template.
    ///
    /// # Errors
    /// The template or the tokenizer fails.
    pub fn prompt(&self, text: &str) -> Result<Vec<TokenId>, DecoderError> {
        match self.chat_template {
            Some(_) => self.encode_chat(&[Message::user(text)]),
            None => self.encode(text),
        }
    }

    /// Encodes plain text, with the special tokens that the tokenizer adds. The `truncation` and
    /// `padding` of `tokenizer.json` are not applied, as in transformers.
    ///
    /// # Errors
    /// The tokenizer fails, or the model has no embedding for a special token of the text.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>, DecoderError> {
        self.ids(text, true)
    }

    /// Encodes a conversation up to the opening of the model's turn. Special tokens within messages
    /// are text. To write special tokens, render the [`chat_template`](Self::chat_template) and
    /// encode the result.
    ///
    /// # Errors
    /// The folder has no chat template, or the template or the tokenizer fails.
    pub fn encode_chat(&self, messages: &[Message]) -> Result<Vec<TokenId>, DecoderError> {
        self.encode_chat_with_tools(messages, &[])
    }

    /// Encodes a conversation in which the model may call tools, up to the opening of the model's
    /// turn; see [`ChatTemplate::render_with_tools`].
    ///
    /// # Errors
    /// As [`encode_chat`](Self::encode_chat), and if a tool lacks a field that the template reads.
    pub fn encode_chat_with_tools(
        &self,
        messages: &[Message],
        tools: &[serde_json::Value],
    ) -> Result<Vec<TokenId>, DecoderError> {
        let messages: Vec<_> = messages
            .iter()
            .map(|Message { role, content }| json!({"role": role, "content": content}))
            .collect();
        self.encode_prompt(&self.chat_prompt(&messages, tools)?)
    }

    /// Renders a conversation of messages as in a request, up to the opening of the model's turn;
    /// see [`ChatTemplate::render_json`]. Special tokens within messages and tools will be encoded
    /// as text, and so will be other tokens of the template, such as `<think>`, unless an
    /// assistant's message holds them.
    ///
    /// # Errors
    /// The folder has no chat template, or the template fails.
    pub fn chat_prompt(
        &self,
        messages: &[serde_json::Value],
        tools: &[serde_json::Value],
    ) -> Result<ChatPrompt, DecoderError> {
        self.chat_prompt_with(messages, tools, &RenderOptions::new())
    }

    /// Like [`chat_prompt`](Self::chat_prompt), with other options; see
    /// [`ChatTemplate::render_json_with`]. Special tokens in variables will be encoded as text too.
    ///
    /// # Errors
    /// As there.
    pub fn chat_prompt_with(
        &self,
        messages: &[serde_json::Value],
        tools: &[serde_json::Value],
        options: &RenderOptions,
    ) -> Result<ChatPrompt, DecoderError> {
        let template = self.chat_template.as_ref().ok_or_else(|| DecoderError::Template {
            message: "this model has none; encode plain text instead".into(),
        })?;
        // Appends the variables to the tools, and removes them again below.
        let mut values = tools.to_vec();
        values.push(serde_json::Value::Object(options.variables.clone()));
        let escaped = self.marks.escape(messages, &values, template.source());
        match escaped.map_err(|message| DecoderError::Template { message })? {
            None => template.render_json_with(messages, tools, options).map(ChatPrompt::from),
            Some(mut escaped) => {
                let variables = match escaped.tools.pop() {
                    Some(serde_json::Value::Object(variables)) => variables,
                    _ => options.variables.clone(),
                };
                let options = options.clone().with_variables(variables);
                let text = template.render_json_with(&escaped.messages, &escaped.tools, &options)?;
                Ok(escaped.prompt(text))
            }
        }
    }

    /// Encodes a rendered conversation.
    ///
    /// # Errors
    /// The tokenizer fails, or has only special tokens for a text of a message.
    pub fn encode_prompt(&self, prompt: &ChatPrompt) -> Result<Vec<TokenId>, DecoderError> {
        self.marks.encode(&self.tokenizer, prompt).map_err(tokenizer_error)
    }

    /// Decodes tokens without special tokens.
    ///
    /// # Errors
    /// The tokenizer fails.
    pub fn decode(&self, tokens: &[TokenId]) -> Result<String, DecoderError> {
        let ids: Vec<_> = tokens.iter().map(|token| token.0).collect();
        self.tokenizer.decode(&ids, true).map_err(tokenizer_error)
    }

    fn ids(&self, text: &str, special: bool) -> Result<Vec<TokenId>, DecoderError> {
        let encoding = self.tokenizer.encode(text, special).map_err(tokenizer_error)?;
        let rows = self.model.config().vocab_size;
        if let Some(id) = encoding.get_ids().iter().find(|&&id| id as usize >= rows) {
            let token = self.tokenizer.id_to_token(*id).unwrap_or_default();
            return Err(DecoderError::Tokenizer {
                message: format!(
                    "the text holds {token:?}, the token {id}, but the model has {rows} embeddings; remove it from the text"
                ),
            });
        }
        Ok(encoding.get_ids().iter().map(|&id| TokenId(id)).collect())
    }
}

/// A model folder or GGUF file whose weights are not read yet; see [`Pretrained::open`].
pub struct PretrainedFolder {
    config: DecoderConfig,
    checkpoint: Checkpoint<'static>,
    text: TextFiles,
}

impl PretrainedFolder {
    /// The tokens in the form for constraints.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.text.vocabulary
    }

    /// The text of `generation_config.json`, if there is one.
    pub fn generation_config(&self) -> Option<&str> {
        self.text.generation_config.as_deref()
    }

    /// Reads the weights, and calls `progress` after each tensor. No other file is read again.
    ///
    /// # Errors
    /// As [`Decoder::load`], but only errors in the weights.
    pub fn load(
        self,
        dtype: impl Into<Option<FloatDType>>,
        device: &Device,
        progress: impl FnMut(LoadProgress),
    ) -> Result<Pretrained, DecoderError> {
        let Self { config, checkpoint, text } = self;
        Ok(text.with(Decoder::assemble(&config, &checkpoint, dtype.into(), device, progress)?))
    }
}

impl fmt::Debug for PretrainedFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PretrainedFolder").field("config", &self.config).finish_non_exhaustive()
    }
}

/// The byte order mark of UTF-8; some editors write it at the beginning of a file.
const BOM: &[u8] = "\u{feff}".as_bytes();

/// The contents of the files other than the weights.
struct TextFiles {
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    chat_template: Option<ChatTemplate>,
    generation_config: Option<String>,
}

impl TextFiles {
    fn new(config: &DecoderConfig, files: &ModelFiles) -> Result<Self, DecoderError> {
        let chat_template = files.chat_template.as_deref().map(String::from);
        Ok(Self {
            chat_template: ChatTemplate::from_files(files.tokenizer_config.as_deref(), chat_template)?,
            generation_config: files.generation_config.as_deref().map(String::from),
            tokenizer: tokenizer(config, &files.tokenizer)?,
            vocabulary: Vocabulary::from_files(files)?,
        })
    }

    fn with(self, model: Decoder) -> Pretrained {
        let Self { tokenizer, vocabulary, chat_template, generation_config } = self;
        let marks = Marks::new(&tokenizer, chat_template.as_ref().map(ChatTemplate::source));
        Pretrained { model, tokenizer, vocabulary, chat_template, generation_config, marks }
    }
}

/// A tokenizer with a BPE model. The reader of tokenizers with any model copies the vocabulary and
/// the merges several times before it makes the model, and the allocator keeps the memory of the
/// copies.
type Bpe = TokenizerImpl<BPE, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// The tokenizer, checked against the model's vocabulary.
fn tokenizer(config: &DecoderConfig, json: &[u8]) -> Result<Tokenizer, DecoderError> {
    // The reader panics on some malformed files.
    let json = json.strip_prefix(BOM).unwrap_or(json);
    let read = std::panic::catch_unwind(|| {
        Bpe::from_bytes(json).map(Tokenizer::from).or_else(|_| Tokenizer::from_bytes(json))
    });
    let malformed = |_| DecoderError::Tokenizer { message: "is malformed; download it again".into() };
    let mut tokenizer = read.map_err(malformed)?.map_err(tokenizer_error)?;
    // Both are settings of the training run that wrote the file; transformers ignores them as well.
    tokenizer.with_truncation(None).map_err(tokenizer_error)?;
    tokenizer.with_padding(None);
    // Gemma 3 has a special token for images beyond the last row of its embedding matrix.
    let added = tokenizer.get_added_tokens_decoder();
    let is_special = |id: &u32| added.get(id).is_some_and(|token| token.special);
    let ids = tokenizer.get_vocab(true).into_values();
    let greatest = ids.filter(|id| !is_special(id)).max().unwrap_or(0);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bpe_tokenizer_is_the_one_that_the_reader_of_all_models_reads() {
        for name in ["gemma", "llama3", "mistral", "qwen"] {
            let path = format!("{}/tests/golden/tokenizers/{name}.json", env!("CARGO_MANIFEST_DIR"));
            let json = std::fs::read(path).unwrap();
            let read = [Bpe::from_bytes(&json).map(Tokenizer::from), Tokenizer::from_bytes(&json)];
            let [found, expected] = read.map(|tokenizer| tokenizer.unwrap().to_string(false).unwrap());
            assert_eq!(found, expected, "{name}");
        }
    }
}
