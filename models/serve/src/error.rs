//! Errors in the form of the API: `{"error": {"message", "type", "param", "code"}}`.

use burn_dfa::ErrorKind;
use std::collections::BTreeMap;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use burn_dfa::Error;
use burn_dfa_engine::{PoolError, SubmitError};
use serde::Serialize;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};

use crate::protocol::words;

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The status of the response.
    pub status: StatusCode,
    /// The problem and its remedy.
    pub message: String,
    /// The field at fault.
    pub param: Option<String>,
    /// The problem, for programs.
    pub code: Option<&'static str>,
    /// The least budget of the constraint, in tokens, if the budget is below it.
    pub least_tokens: Option<usize>,
}

/// The result of a request.
pub type Result<T> = std::result::Result<T, ApiError>;

/// The body of an error response.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorObject,
}

/// An error in the form for clients.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorObject {
    /// The problem and its remedy.
    pub message: String,
    /// The kind of error: `invalid_request_error`, `authentication_error`, `permission_error`,
    /// `not_found_error`, `overloaded_error` or `server_error`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The field of the request at fault.
    pub param: Option<String>,
    /// The problem, for programs.
    pub code: Option<&'static str>,
    /// With the code `budget_too_small`: the number of tokens of the shortest answer, with the end
    /// of sequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_tokens: Option<usize>,
}

impl ApiError {
    /// An error with any status.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), param: None, code: None, least_tokens: None }
    }

    /// A field with an unsupported value.
    pub fn invalid(param: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message).at(param).code("invalid_value")
    }

    /// A field that is known, but not supported.
    pub fn unsupported(param: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message).at(param).code("unsupported_parameter")
    }

    /// A full queue.
    pub fn overloaded(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message).code("overloaded")
    }

    /// An internal error of the server.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message).code("internal_error")
    }

    /// Sets the field at fault.
    #[must_use]
    pub fn at(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    /// Sets the code.
    #[must_use]
    pub fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// An error of the library, about the field `param`.
    pub fn of_library(error: &Error, param: &str) -> Self {
        let code = if error.kind() == ErrorKind::Budget {
            "budget_too_small"
        } else if error.kind() == ErrorKind::Limit {
            "constraint_too_large"
        } else if error.kind() == ErrorKind::Unsatisfiable {
            "constraint_unsatisfiable"
        } else if error.kind().is_constraint()
            || error.kind() == ErrorKind::Input
            || error.kind() == ErrorKind::IncompatibleVocabulary
        {
            "constraint_refused"
        } else {
            return Self::internal(error.to_string());
        };
        let mut message = words::of_library(error);
        if param == "text.format" {
            // The library reads it as the equivalent field of a chat.
            message = message.replacen("`response_format`", "`text.format`", 1);
        }
        let told = Self::new(StatusCode::BAD_REQUEST, message).at(param).code(code);
        Self { least_tokens: error.tokens_needed(), ..told }
    }

    /// The budget of an answer is below the shortest answer that its constraint allows.
    pub fn budget(param: &str, needed: usize, given: usize) -> Self {
        let message = format!(
            "the shortest answer under the constraint takes {needed} tokens (end of sequence included), and there is space for {given}: raise `{param}` to {needed} at least, or shorten the prompt"
        );
        let error = Self::new(StatusCode::BAD_REQUEST, message).at(param).code("budget_too_small");
        Self { least_tokens: Some(needed), ..error }
    }

    /// The body of the response.
    pub fn body(&self) -> ErrorBody {
        let kind = match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::NOT_FOUND => "not_found_error",
            StatusCode::SERVICE_UNAVAILABLE => "overloaded_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        let Self { message, param, code, least_tokens, .. } = self.clone();
        ErrorBody { error: ErrorObject { message, kind, param, code, least_tokens } }
    }
}

impl From<PoolError> for ApiError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Overloaded => {
                Self::overloaded("too many requests are being prepared: try again later")
            }
            PoolError::Panic => Self::internal("the work on this request panicked"),
            error => Self::internal(error.to_string()),
        }
    }
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Shutdown => Self::overloaded("the server is shutting down"),
            SubmitError::Full { .. } => Self::overloaded(error.to_string()),
            _ => Self::internal(error.to_string()),
        }
    }
}

/// The error responses of an endpoint that reads a body.
impl IntoResponses for ApiError {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        let refusals = [
            ("400", "The request is wrong, or asks for what is not offered."),
            ("401", "A key is missing or wrong."),
            ("403", "The request is for another host, or comes from a page of another origin."),
            ("404", "The model, or the response that is named, does not exist."),
            ("408", "The request did not come in time."),
            ("413", "The request is too large."),
            ("415", "The body is not JSON."),
            ("500", "A fault of the server."),
            ("503", "Too much is waiting, or the server ends."),
        ];
        let body = || ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorBody"))).build();
        let response = |description: &str| {
            ResponseBuilder::new().description(description).content("application/json", body()).build()
        };
        refusals.map(|(status, description)| (status.into(), response(description).into())).into()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(self.body())).into_response();
        let headers = response.headers_mut();
        match self.status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }
}
