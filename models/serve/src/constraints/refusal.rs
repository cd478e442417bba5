//! The reasons for refused constraints.

use burn_dfa::Error;
use burn_dfa_engine::Refusal as EngineRefusal;

use super::left_out::{LeftOut, location_in_tool};
use crate::error::ApiError;

/// The reason why there is no compiled constraint.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// The compiler refused the constraint.
    Engine(EngineRefusal),
    /// The library refused the parameters of this tool, at this JSON pointer.
    Tool(Error, usize, String),
    /// A keyword cannot be enforced, and the request is strict.
    Strict(LeftOut),
    /// The server refuses the constraint.
    Refused(String),
    /// The automaton is too large for a picture.
    TooManyStates(String),
}

impl From<EngineRefusal> for Refusal {
    fn from(refusal: EngineRefusal) -> Self {
        Self::Engine(refusal)
    }
}

impl Refusal {
    /// An error of the library.
    pub(super) fn library(error: Error) -> Self {
        Self::Engine(EngineRefusal::Library(error))
    }

    /// The error of the library that caused the refusal.
    pub(super) fn error(&self) -> Option<&Error> {
        match self {
            Self::Engine(EngineRefusal::Library(error)) | Self::Tool(error, ..) => Some(error),
            _ => None,
        }
    }

    /// The error for a request with the constraint in the field `param`.
    pub fn api_error(&self, param: &str) -> ApiError {
        let too_large = |message: String| ApiError::invalid(param, message).code("constraint_too_large");
        match self {
            Self::Engine(EngineRefusal::Library(error)) => ApiError::of_library(error, param),
            Self::Engine(EngineRefusal::TooLarge {
                size: [states, classes],
                capacity: [max_states, max_classes],
            }) => too_large(format!(
                "the constraint takes {states} states of {classes} classes, and the server has space for {max_states} of {max_classes}: simplify it, or raise --arena-states and --arena-classes"
            )),
            Self::Engine(refusal) => ApiError::internal(refusal.to_string()).at(param),
            Self::Tool(error, number, pointer) => {
                let told = ApiError::of_library(error, "tools");
                let location = location_in_tool(*number, pointer);
                let message = told.message.replacen(error.pointer().unwrap_or_default(), &location, 1);
                ApiError { message, ..told }
            }
            Self::Strict(left_out) => {
                let param = if left_out.tool.is_some() { "tools" } else { param };
                ApiError::invalid(param, left_out.refusal(param)).code("constraint_refused")
            }
            Self::Refused(message) => ApiError::invalid(param, message).code("constraint_refused"),
            Self::TooManyStates(message) => too_large(message.clone()),
        }
    }
}
