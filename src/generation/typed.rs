//! Generates Rust values.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::config::GenerationConfig;
use super::decode::generate;
use super::model::CausalLm;
use super::request::{Output, Request};
use crate::constraint::{Constraint, JsonOptions};
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::{Compile, Error, Result};

/// Generates a value of a type: its JSON schema is the constraint, and the output is read as the
/// type.
///
/// Each call compiles the constraint again. For many requests, or several in a batch, compile
/// [`Constraint::from_type`] once, call [`generate`](super::generate) with the compiled constraint,
/// and read the outputs with [`Output::parse`].
///
/// ```
/// use burn_dfa::generation::{CausalLm, GenerationConfig, Request, generate_as};
/// use burn_dfa::{ErrorKind, Result, TokenId, Vocabulary};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Person {
///     name: String,
///     age: u8,
/// }
///
/// fn ask(
///     model: &impl CausalLm,
///     vocabulary: &Vocabulary,
///     prompt: Vec<TokenId>,
/// ) -> Result<Option<Person>> {
///     match generate_as(model, vocabulary, Request::new(prompt, 64), &GenerationConfig::new()) {
///         Ok(person) => Ok(Some(person)),
///         Err(error) if error.kind() == ErrorKind::Canceled => Ok(None),
///         // `ErrorKind::Schema`: the schema is refused. `ErrorKind::Budget`: 64 tokens are too few.
///         Err(error) => Err(error),
///     }
/// }
/// ```
///
/// # Errors
/// - [`ErrorKind::is_constraint`](crate::ErrorKind::is_constraint): the schema of `T` is not
///   supported;
/// - [`ErrorKind::Budget`](crate::ErrorKind::Budget): no value fits within the request's
///   `max_new_tokens`;
/// - [`ErrorKind::Canceled`](crate::ErrorKind::Canceled): the request's [`Cancel`](super::Cancel)
///   ended it;
/// - [`ErrorKind::Output`](crate::ErrorKind::Output): the `Deserialize` of `T` is narrower than its
///   `JsonSchema`;
/// - [`ErrorKind::Input`](crate::ErrorKind::Input): the request has a constraint already;
/// - and as [`generate`](super::generate).
pub fn generate_as<T: DeserializeOwned + JsonSchema>(
    model: &impl CausalLm,
    vocabulary: &Vocabulary,
    request: Request,
    config: &GenerationConfig,
) -> Result<T> {
    generate_as_with(model, vocabulary, request, config, &JsonOptions::default())
}

/// As [`generate_as`], with other options for the JSON of the value, such as
/// [compact](crate::constraint::Whitespace::Compact) text for a model that was trained on it.
///
/// # Errors
/// As [`generate_as`].
pub fn generate_as_with<T: DeserializeOwned + JsonSchema>(
    model: &impl CausalLm,
    vocabulary: &Vocabulary,
    request: Request,
    config: &GenerationConfig,
    options: &JsonOptions,
) -> Result<T> {
    one(&Constraint::from_type_with::<T>(options)?, model, vocabulary, request, config)?.parse()
}

/// Generates a value of an enum without fields: the output is the bare name of a variant, as serde
/// spells it.
///
/// ```
/// use burn_dfa::generation::{CausalLm, GenerationConfig, Request, generate_choice};
/// use burn_dfa::{Result, TokenId, Vocabulary};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// enum Answer {
///     Yes,
///     No,
/// }
///
/// fn ask(model: &impl CausalLm, vocabulary: &Vocabulary, prompt: Vec<TokenId>) -> Result<Answer> {
///     generate_choice(model, vocabulary, Request::new(prompt, 8), &GenerationConfig::new())
/// }
/// ```
///
/// # Errors
/// As [`generate_as`]; [`ErrorKind::Schema`](crate::ErrorKind::Schema) if `T` is not an enum
/// without fields.
pub fn generate_choice<T: DeserializeOwned + JsonSchema>(
    model: &impl CausalLm,
    vocabulary: &Vocabulary,
    request: Request,
    config: &GenerationConfig,
) -> Result<T> {
    one(&Constraint::choice_from_type::<T>()?, model, vocabulary, request, config)?.parse_name()
}

/// The output of one request under a constraint.
fn one(
    constraint: &Constraint,
    model: &impl CausalLm,
    vocabulary: &Vocabulary,
    request: Request,
    config: &GenerationConfig,
) -> Result<Output> {
    if request.constraint.is_some() {
        return Err(Error::input(
            "the request has a constraint already, and the type is another: leave its constraint out",
        ));
    }
    let request = request.with_constraint(&constraint.compile(vocabulary)?);
    let mut outputs = generate(model, vocabulary, &[request], config)?;
    outputs.pop().ok_or_else(|| Error::model("a request without an output"))
}
