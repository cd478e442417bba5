//! Shared code of command line tools around this library, for clap: the arguments that name a
//! constraint, limit its compilation, and choose tokens and a backend; reading files; reporting
//! errors.
//!
//! ```
//! use burn_dfa::Vocabulary;
//! use burn_dfa::cli::{CompileArgs, ConstraintArgs, Failure, SamplingArgs};
//! use clap::Parser;
//!
//! #[derive(Parser)]
//! struct Args {
//!     #[command(flatten)]
//!     constraint: ConstraintArgs,
//!     #[command(flatten)]
//!     compile: CompileArgs,
//!     #[command(flatten)]
//!     sampling: SamplingArgs,
//! }
//!
//! let args =
//!     Args::parse_from(["tool", "--regex", "[0-9]+", "--top-k", "40", "--max-states", "100"]);
//! assert_eq!(args.sampling.config().sampling.temperature, Some(1.0));
//!
//! let digits = Vocabulary::from_bytes((b'0'..=b'9').map(|digit| Some([digit])).chain([None]))?
//!     .with_eos([burn_dfa::TokenId(10)])?;
//! let constraint = args.constraint.read()?.expect("one is given");
//! // The digits are one class of tokens, beside the three reserved columns.
//! assert_eq!(args.compile.compile(&constraint, &digits)?.class_count(), 4);
//! # Ok::<(), Failure>(())
//! ```
//!
//! A tool that does not compile constraints uses only [`LimitArgs`], a tool that loads a constraint
//! to a device [`DeviceArgs`], and a tool with its own source of schemas [`JsonArgs`]:
//!
//! ```
//! use burn_dfa::cli::{DeviceArgs, Form, JsonArgs, LimitArgs};
//! use burn_dfa::constraint::{JsonOptions, Whitespace};
//! use clap::Parser;
//!
//! #[derive(Parser)]
//! struct Args {
//!     #[command(flatten)]
//!     limits: LimitArgs,
//!     #[command(flatten)]
//!     device: DeviceArgs,
//!     #[command(flatten)]
//!     json: JsonArgs,
//!     #[arg(long, value_enum, default_value_t = Form::Auto)]
//!     form: Form,
//! }
//!
//! let args = [
//!     "tool", "--max-seconds", "0.5", "--max-device-bytes", "4096", "--form", "byte-level",
//!     "--whitespace", "pretty",
//! ];
//! let args = Args::parse_from(args);
//! assert_eq!(args.limits.limits().time.as_millis(), 500);
//! assert_eq!(args.device.options().max_bytes, 4096);
//! assert_eq!(args.json.over(JsonOptions::new()).whitespace, Whitespace::Pretty(2));
//! assert_eq!(args.form, Form::ByteLevel);
//! ```

mod backend;
pub mod classes;
mod compile;
mod constraint;
mod error;
mod file;
mod json;
pub mod picture;
mod sampling;

pub use backend::Backend;
pub use compile::{CompileArgs, DeviceArgs, ForcedTextArgs, Form, LimitArgs};
pub use constraint::ConstraintArgs;
pub use error::{Failure, is_refusal, message, parse, report};
pub use file::{json, json_text, text};
pub use json::JsonArgs;
pub use picture::Graph;
pub use sampling::SamplingArgs;
