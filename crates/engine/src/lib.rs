//! Runs a model for many requests: an engine thread with a continuous batch, a compile pool, and a
//! cache of compiled constraints.
//!
//! ```text
//! source ──▶ Compiler: Frontend, Pool, cache ──▶ RequestConstraint ─┐
//! prompt ──▶ Prompt ────────────────────────────────────────────────┴─▶ Engine: queue
//!     ──▶ thread: ContinuousBatch ──▶ Generation: events
//! ```
//!
//! | module | contains |
//! |---|---|
//! | `compiler` | [`Compiler`] compiles each constraint once, with a deadline |
//! | `frontend` | [`Frontend`], which a program implements to read its constraints; each compilation is a [`Task`] |
//! | `compilation` | [`Compilation`], a constraint that is compiled or being compiled |
//! | `cache` | results of compilations, by [`Key`] |
//! | `pool` | [`Pool`], threads for CPU work with queues that are fair between [`Client`]s |
//! | `request` | [`GenerationRequest`], and the [`Event`]s of its answers |
//! | `engine` | [`Engine`], the handle of the thread |
//! | `scheduler` | the thread: admits answers to rows, runs steps, restarts after a panic |
//! | `config` | [`CompilerConfig`], [`EngineConfig`] |
//! | `metrics` | [`Metrics`], which a program implements to measure the engine |
//! | `error` | [`Refusal`], [`CompileError`], [`SubmitError`], [`Failure`], [`PoolError`] |
//!
//! The crate knows no protocol: a program converts its errors and measurements to its own.
//! [`Engine`] and [`Compiler`] have examples. The methods are called from any thread, and the
//! futures wait on any executor, except that [`Compiler::get`] needs a Tokio runtime with timers.

mod cache;
mod compilation;
mod compiler;
mod config;
mod engine;
mod error;
mod frontend;
mod metrics;
mod pool;
mod request;
mod scheduler;

pub use cache::Key;
pub use compilation::{Compilation, Pending, RequestConstraint, Running};
pub use compiler::Compiler;
pub use config::{CompilerConfig, EngineConfig};
pub use engine::Engine;
pub use error::{CompileError, Failure, PoolError, Refusal, SubmitError};
pub use frontend::{Frontend, Task};
pub use metrics::{Load, Metrics};
pub use pool::{Client, Pool};
pub use request::{Ending, Event, Generation, GenerationRequest, Prompt, Sampling, Tokens};
pub use scheduler::Reload;

/// The example of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
