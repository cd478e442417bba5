//! Turns the events of the engine into responses.
//!
//! - `logprobs` writes log-probabilities with the texts of their tokens, `legal` counts legal
//!   tokens;
//! - `choice` parses the text of one answer: content, reasoning, calls; `split` separates reasoning
//!   from content;
//! - `whole` collects answers, `stream` sends them as server-sent events, and `chat`, `completion`
//!   and `response` make the frames of these events.

pub mod chat;
pub mod choice;
pub mod completion;
pub mod legal;
pub mod logprobs;
pub mod response;
pub mod split;
pub mod stream;
pub mod whole;

use burn_dfa::ErrorKind;
use std::time::{SystemTime, UNIX_EPOCH};

use burn_dfa_engine::{Failure, PoolError};

use crate::error::ApiError;

/// The fields that all parts of an answer share.
#[derive(Clone, Debug)]
pub struct Head {
    /// The identifier of this request.
    pub id: String,
    /// Seconds since 1970.
    pub created: u64,
    /// The model.
    pub model: String,
}

impl Head {
    /// A new head, whose identifier begins with `kind`.
    pub fn new(kind: &str, model: &str) -> Self {
        Self { id: identifier(kind), created: now(), model: model.to_owned() }
    }
}

/// A unique identifier.
pub fn identifier(kind: &str) -> String {
    format!("{kind}{:032x}", rand::random::<u128>())
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The error for the client of a failed answer, whose constraint is in the field `param`.
pub fn failure(failure: &Failure, param: &str) -> ApiError {
    match failure {
        Failure::Library(error) if error.kind() == ErrorKind::Connection => {
            ApiError::overloaded(format!("{error}; the server does so by itself: send the request again"))
        }
        Failure::Library(error) if error.kind() == ErrorKind::Budget => {
            ApiError::of_library(error, "max_tokens")
        }
        Failure::Library(error) => ApiError::of_library(error, param),
        // A refused constraint is reported before an answer begins. Without a refusal, the queue of
        // the compiler was full.
        Failure::Constraint => PoolError::Overloaded.into(),
        Failure::Panic => ApiError::internal("the engine broke down on this request, or on one beside it"),
        Failure::Shutdown => ApiError::overloaded("the server is shutting down"),
        _ => ApiError::internal(failure.to_string()),
    }
}
