//! Rust values out of a model.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::config::GenerationConfig;
use super::decode::stream;
use super::model::CausalLm;
use super::request::{Output, Request};
use crate::constraint::Constraint;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::table::TokenTable;
use crate::vocabulary::Vocabulary;

/// Generates a value of a type: its JSON schema is the constraint, and the output is read as the type.
///
/// The constraint is compiled anew each time. For many requests, or several in a batch, compile
/// [`Constraint::of`] once, [`generate`](super::generate) with its table, and read the outputs with
/// [`Output::parse`].
///
/// ```
/// use burn_dfa::generation::{CausalLm, GenerationConfig, Request, generate_as};
/// use burn_dfa::{Result, TokenId, Vocabulary};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Person {
///     name: String,
///     age: u8,
/// }
///
/// fn ask(model: &impl CausalLm, vocabulary: &Vocabulary, prompt: Vec<TokenId>) -> Result<Option<Person>> {
///     match generate_as(model, vocabulary, Request::new(prompt, 64), &GenerationConfig::new()) {
///         Ok(person) => Ok(Some(person)),
///         Err(error) if error.is_cancelled() => Ok(None),
///         // Also: `is_constraint`, where the schema is refused; `is_budget`, where 64 tokens are too few.
///         Err(error) => Err(error),
///     }
/// }
/// ```
///
/// # Errors
/// - [`Error::is_constraint`]: the schema of `T` cannot be honoured;
/// - [`Error::is_budget`]: no value fits within the request's `max_new_tokens`;
/// - [`Error::is_cancelled`]: the request's [`Cancel`](super::Cancel) ended it;
/// - [`Error::is_output`]: the `Deserialize` of `T` is narrower than its `JsonSchema`;
/// - [`Error::is_input`]: the request has a table already;
/// - and as [`generate`](super::generate).
pub fn generate_as<T: DeserializeOwned + JsonSchema>(
    model: &impl CausalLm,
    vocabulary: &Vocabulary,
    request: Request,
    config: &GenerationConfig,
) -> Result<T> {
    one(&Constraint::of::<T>()?, model, vocabulary, request, config)?.parse()
}

/// Generates a value of an enum without fields: the output is the bare name of a variant, as serde spells it.
///
/// ```
/// use burn_dfa::generation::{CausalLm, GenerationConfig, Request, choose};
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
///     choose(model, vocabulary, Request::new(prompt, 8), &GenerationConfig::new())
/// }
/// ```
///
/// # Errors
/// As [`generate_as`]; [`Error::is_schema`] where `T` is anything but such an enum.
pub fn choose<T: DeserializeOwned + JsonSchema>(
    model: &impl CausalLm,
    vocabulary: &Vocabulary,
    request: Request,
    config: &GenerationConfig,
) -> Result<T> {
    one(&Constraint::choice_of::<T>()?, model, vocabulary, request, config)?.parse_name()
}

/// The output of one request under a constraint.
fn one(
    constraint: &Constraint,
    model: &impl CausalLm,
    vocabulary: &Vocabulary,
    request: Request,
    config: &GenerationConfig,
) -> Result<Output> {
    if request.table.is_some() {
        return Err(Error::input(
            "the request has a constraint already, and the type is another: leave its table out",
        ));
    }
    let table = TokenTable::compile(constraint, vocabulary, &Limits::default())?;
    let request = Request { table: Some(&table), ..request };
    let mut outputs = stream(model, vocabulary, &[request], config)?.finish()?;
    outputs.pop().ok_or_else(|| Error::model("a request without an output"))
}
