//! A server of OpenAI's API for one model, in which constraints always hold: a constrained answer
//! satisfies its constraint and is complete, or the request is refused before it begins.
//!
//! ```text
//! routes ──▶ protocol (request) ──▶ constraints, burn_dfa_engine (compile, queue, model)
//!     ──▶ answer (response)
//! ```
//!
//! The program `burn-dfa-serve` is [`App::load`] and [`Server`] with the configuration of its
//! command line.

pub mod answer;
mod app;
mod client;
mod config;
pub mod constraints;
mod conversation;
mod error;
mod metrics;
pub mod protocol;
mod routes;
mod server;
mod text;
mod write_timeout;

pub use app::{App, Failure};
pub use config::{Config, LogForm, ReasoningMode};
pub use error::{ApiError, ErrorBody, ErrorObject, Result};
pub use metrics::Metrics;
pub use server::Server;
pub use text::TextModel;
