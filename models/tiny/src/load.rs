//! The embedded model, ready to use.

use burn::tensor::{Device, FloatDType};
use burn_dfa::Constraint;
use burn_dfa::constraint::{JsonOptions, Whitespace};
use burn_dfa::vocabulary::ModelFiles;
use burn_dfa_decoder::{Decoder, DecoderError, Pretrained};

use crate::{CONFIG, GENERATION_CONFIG, Schema, TOKENIZER, TOKENIZER_CONFIG, WEIGHTS};

/// White space in the JSON of the training text: none. Constraints for the model use the same
/// style, since it has seen no other.
pub const WHITESPACE: Whitespace = Whitespace::Compact;

impl Schema {
    /// The constraint of the schema, with the [white space](WHITESPACE) of the training text.
    ///
    /// ```
    /// use burn_dfa::Limits;
    ///
    /// let person = burn_dfa_tiny::schema("person")
    ///     .unwrap()
    ///     .constraint()?
    ///     .to_byte_dfa(&Limits::default())?
    ///     .unwrap();
    /// assert!(person.matches(br#"{"name":"Ada Lovell","age":36,"city":"London","job":"baker"}"#));
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// None for the schemas of this crate.
    pub fn constraint(&self) -> burn_dfa::Result<Constraint> {
        Constraint::json_schema_from_str_with(self.json, &JsonOptions::new().with_whitespace(WHITESPACE))
    }
}

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
/// Only errors of the device: the files are compiled in.
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
