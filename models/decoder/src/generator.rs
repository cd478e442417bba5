//! [`Generator`]: text, or a value of a type, from a model folder, a prompt and a constraint.

use std::path::Path;

use burn::tensor::Device;
use burn_dfa::generation::{CausalLm, GenerationConfig, Output, Request, TokenStream, generate, stream};
use burn_dfa::{Compile, Constraint, TokenId};

use crate::chat::Message;
use crate::error::DecoderError;
use crate::pretrained::Pretrained;

/// A model that generates one output per call.
///
/// The prompt is a text or a conversation. If the folder has a chat template, a text is the user's
/// first message.
///
/// [`generate`](burn_dfa::generation::generate) takes several requests at once, and requests with
/// settings of their own. It takes the parts of [`pretrained`](Self::pretrained).
///
/// ```no_run
/// use burn::tensor::Device;
/// use burn_dfa::Constraint;
/// use burn_dfa_decoder::{Generator, Message};
///
/// let model = Generator::from_folder("SmolLM2-135M-Instruct", &Device::flex())?;
/// let city = model.generate("The capital of France is", &Constraint::regex("[A-Z][a-z]+")?)?;
/// let free = model.generate(&[Message::system("Be brief."), Message::user("Hello!")], None)?;
/// # Ok::<(), burn_dfa_decoder::DecoderError>(())
/// ```
#[derive(Debug)]
pub struct Generator {
    pretrained: Pretrained,
    config: GenerationConfig,
    max_new_tokens: usize,
    seed: u64,
}

/// The prompt of a [`Generator`]: a text or a conversation.
///
/// ```
/// use burn_dfa_decoder::{Message, Prompt};
///
/// assert_eq!(Prompt::from("Hello!"), Prompt::Text("Hello!".into()));
/// assert_eq!(Prompt::from(&[Message::user("Hi!")]), Prompt::Chat(vec![Message::user("Hi!")]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// The user's first message, or plain text if the folder has no chat template.
    Text(String),
    /// The messages before the model's turn; the folder needs a chat template.
    Chat(Vec<Message>),
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&[Message]> for Prompt {
    fn from(messages: &[Message]) -> Self {
        Self::Chat(messages.into())
    }
}

impl<const N: usize> From<&[Message; N]> for Prompt {
    fn from(messages: &[Message; N]) -> Self {
        Self::Chat(messages.into())
    }
}

impl Generator {
    /// The default number of [tokens of an output](Self::with_max_new_tokens).
    pub const MAX_NEW_TOKENS: usize = 256;

    /// Reads a model folder or a GGUF file, see [`Pretrained::load`]. Tokens are chosen greedily.
    ///
    /// # Errors
    /// As [`Pretrained::load`].
    pub fn from_folder(folder: impl AsRef<Path>, device: &Device) -> Result<Self, DecoderError> {
        Ok(Self::new(Pretrained::load(folder, None, device)?))
    }

    /// A generator of a model that is in memory.
    pub fn new(pretrained: Pretrained) -> Self {
        let config = GenerationConfig::new();
        Self { pretrained, config, max_new_tokens: Self::MAX_NEW_TOKENS, seed: 0 }
    }

    /// With sampling, processors and further settings.
    #[must_use]
    pub fn with_config(self, config: GenerationConfig) -> Self {
        Self { config, ..self }
    }

    /// With the sampling that the model's `generation_config.json` recommends, or the metadata of
    /// its GGUF file. Other settings of the config stay. If the model recommends nothing, nothing
    /// changes.
    ///
    /// ```no_run
    /// use burn::tensor::Device;
    /// use burn_dfa_decoder::Generator;
    ///
    /// let model = Generator::from_folder("SmolLM2-135M-Instruct", &Device::flex())?;
    /// let model = model.with_recommended_sampling()?.with_seed(7);
    /// let text = model.generate("Name a color.", None)?;
    /// # Ok::<(), burn_dfa_decoder::DecoderError>(())
    /// ```
    ///
    /// # Errors
    /// [`DecoderError::Generation`] for a text that [`GenerationConfig::from_json`] refuses: it
    /// names the field.
    pub fn with_recommended_sampling(mut self) -> Result<Self, DecoderError> {
        if let Some(text) = self.pretrained.generation_config() {
            self.config.sampling = GenerationConfig::from_json(text).map_err(generation)?.sampling;
        }
        Ok(self)
    }

    /// With outputs of at most `tokens` tokens, and no more than the model's positions after the
    /// prompt. A constrained output is complete within this number of tokens.
    #[must_use]
    pub fn with_max_new_tokens(self, tokens: usize) -> Self {
        Self { max_new_tokens: tokens, ..self }
    }

    /// With a seed for sampling. Default: 0.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The settings of the generation.
    pub fn config(&self) -> &GenerationConfig {
        &self.config
    }

    /// The model with its tokenizer, vocabulary and chat template.
    pub fn pretrained(&self) -> &Pretrained {
        &self.pretrained
    }

    /// Generates the text that follows the prompt, within a constraint or free. Each call compiles
    /// the constraint.
    ///
    /// # Errors
    /// As [`Pretrained::prompt`] and [`Pretrained::encode_chat`]; and [`DecoderError::Generation`]
    /// if the constraint is refused, or as [`generate`](burn_dfa::generation::generate).
    pub fn generate<'c>(
        &self,
        prompt: impl Into<Prompt>,
        constraint: impl Into<Option<&'c Constraint>>,
    ) -> Result<String, DecoderError> {
        Ok(self.output(&prompt.into(), constraint.into())?.text())
    }

    /// As [`generate`](Self::generate), as an iterator over chunks of the text. The iterator
    /// computes only when the caller asks for a chunk.
    ///
    /// ```no_run
    /// use burn::tensor::Device;
    /// use burn_dfa_decoder::Generator;
    ///
    /// let model = Generator::from_folder("SmolLM2-135M-Instruct", &Device::flex())?;
    /// for chunk in model.stream("Name a color.", None)? {
    ///     print!("{}", chunk?.text);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`generate`](Self::generate). The iterator yields the errors of its steps.
    pub fn stream<'c>(
        &self,
        prompt: impl Into<Prompt>,
        constraint: impl Into<Option<&'c Constraint>>,
    ) -> Result<TokenStream<'_>, DecoderError> {
        let Self { pretrained, config, .. } = self;
        let request = self.request(&prompt.into(), constraint.into())?;
        stream(pretrained.model(), pretrained.vocabulary(), &[request], config).map_err(generation)
    }

    /// Generates a value of a type. Its JSON schema is the constraint, and the output is read as
    /// the type.
    ///
    /// ```no_run
    /// use burn::tensor::Device;
    /// use burn_dfa_decoder::Generator;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Person {
    ///     name: String,
    ///     age: u8,
    /// }
    ///
    /// let model = Generator::from_folder("SmolLM2-135M-Instruct", &Device::flex())?;
    /// let person: Person = model.generate_as("Meet Nora Keller, a 34 year old baker.")?;
    /// # Ok::<(), burn_dfa_decoder::DecoderError>(())
    /// ```
    ///
    /// # Errors
    /// As [`generate`](Self::generate), and [`DecoderError::Generation`] as
    /// [`generate_as`](burn_dfa::generation::generate_as).
    #[cfg(feature = "typed")]
    pub fn generate_as<T>(&self, prompt: impl Into<Prompt>) -> Result<T, DecoderError>
    where
        T: serde::de::DeserializeOwned + schemars::JsonSchema,
    {
        self.generate_as_with(prompt, &Default::default())
    }

    /// As [`generate_as`](Self::generate_as), with other options for the JSON of the value, such as
    /// [compact](burn_dfa::constraint::Whitespace::Compact) text for a model that was trained on
    /// it.
    ///
    /// # Errors
    /// As [`generate_as`](Self::generate_as).
    #[cfg(feature = "typed")]
    pub fn generate_as_with<T>(
        &self,
        prompt: impl Into<Prompt>,
        options: &burn_dfa::constraint::JsonOptions,
    ) -> Result<T, DecoderError>
    where
        T: serde::de::DeserializeOwned + schemars::JsonSchema,
    {
        let constraint = Constraint::from_type_with::<T>(options).map_err(generation)?;
        self.output(&prompt.into(), Some(&constraint))?.parse().map_err(generation)
    }

    fn output(&self, prompt: &Prompt, constraint: Option<&Constraint>) -> Result<Output, DecoderError> {
        let Self { pretrained, config, .. } = self;
        let request = self.request(prompt, constraint)?;
        let outputs = generate(pretrained.model(), pretrained.vocabulary(), &[request], config);
        Ok(outputs.map_err(generation)?.remove(0))
    }

    fn request(&self, prompt: &Prompt, constraint: Option<&Constraint>) -> Result<Request, DecoderError> {
        let prompt = self.encode(prompt)?;
        let positions = self.pretrained.model().max_positions().unwrap_or(usize::MAX);
        // At least 1, so that a prompt that is too long is refused as such.
        let left = positions.saturating_sub(prompt.len()).max(1);
        let request = Request::new(prompt, self.max_new_tokens.min(left)).with_seed(self.seed);
        let Some(constraint) = constraint else { return Ok(request) };
        let compiled = constraint.compile(self.pretrained.vocabulary()).map_err(generation)?;
        Ok(request.with_constraint(&compiled))
    }

    fn encode(&self, prompt: &Prompt) -> Result<Vec<TokenId>, DecoderError> {
        match prompt {
            Prompt::Text(text) => self.pretrained.prompt(text),
            Prompt::Chat(messages) => self.pretrained.encode_chat(messages),
        }
    }
}

fn generation(source: burn_dfa::Error) -> DecoderError {
    DecoderError::Generation { source }
}
