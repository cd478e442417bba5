//! From the events of the engine to what clients get.
//!
//! - `logprobs` are told with the texts of their tokens, `legal` how many tokens there were to choose from;
//! - `choice` reads the text of one answer: content, reasoning, calls; `split` tells reasoning from content;
//! - `whole` collects answers, `stream` sends them as server-sent events, whose frames are made by `chat`, `completion` and
//!   `response`.

pub mod chat;
pub mod choice;
pub mod completion;
pub mod legal;
pub mod logprobs;
pub mod response;
pub mod split;
pub mod stream;
pub mod whole;

use std::time::{SystemTime, UNIX_EPOCH};

use crate::engine::Failure;
use crate::error::ApiError;

/// What all parts of an answer say of themselves.
#[derive(Clone, Debug)]
pub struct Head {
    /// Of this request.
    pub id: String,
    /// Seconds since 1970.
    pub created: u64,
    /// The model.
    pub model: String,
}

impl Head {
    /// A new one, whose identifier begins with `kind`.
    pub fn new(kind: &str, model: &str) -> Self {
        Self { id: identifier(kind), created: now(), model: model.to_owned() }
    }
}

/// An identifier that nobody else has.
pub fn identifier(kind: &str) -> String {
    format!("{kind}{:032x}", rand::random::<u128>())
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// What a client is told of an answer that failed, whose constraint stands in `param`.
pub fn failure(failure: &Failure, param: &str) -> ApiError {
    match failure {
        Failure::Library(error) if error.is_connection() => {
            ApiError::overloaded(format!("{error}; the server does so by itself: send the request again"))
        }
        Failure::Library(error) if error.is_budget() => ApiError::of_library(error, "max_tokens"),
        Failure::Library(error) => ApiError::of_library(error, param),
        Failure::Refused(refusal) => refusal.error(param),
        Failure::Panic => ApiError::internal("the engine broke down on this request, or on one beside it"),
        Failure::Shutdown => ApiError::overloaded("the server is shutting down"),
    }
}
