//! What command line tools around this library share, for clap: the arguments that name a constraint, limit its
//! compilation, and choose tokens and a backend; how files are read, and how errors are told.
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
//! let args = Args::parse_from(["tool", "--regex", "[0-9]+", "--top-k", "40", "--max-states", "100"]);
//! assert_eq!(args.sampling.config().sampling.temperature, Some(1.0));
//!
//! let digits = Vocabulary::from_bytes((b'0'..=b'9').map(|digit| Some([digit])).chain([None]))?
//!     .with_eos([burn_dfa::TokenId(10)])?;
//! let constraint = args.constraint.read()?.expect("one is given");
//! // The digits are one class of tokens, beside the three reserved columns.
//! assert_eq!(args.compile.table(&constraint, &digits)?.class_count(), 4);
//! # Ok::<(), Failure>(())
//! ```
//!
//! A tool that compiles no table itself takes [`LimitArgs`] alone, and one that loads a table to a device
//! [`DeviceArgs`]:
//!
//! ```
//! use burn_dfa::cli::{DeviceArgs, Form, LimitArgs};
//! use clap::Parser;
//!
//! #[derive(Parser)]
//! struct Args {
//!     #[command(flatten)]
//!     limits: LimitArgs,
//!     #[command(flatten)]
//!     device: DeviceArgs,
//!     #[arg(long, value_enum, default_value_t = Form::Auto)]
//!     form: Form,
//! }
//!
//! let args = Args::parse_from(["tool", "--max-seconds", "0.5", "--max-device-bytes", "4096", "--form", "walked"]);
//! assert_eq!(args.limits.limits().time.as_millis(), 500);
//! assert_eq!(args.device.options().max_bytes, 4096);
//! assert_eq!(args.form, Form::Walked);
//! ```

mod backend;
pub mod classes;
mod compile;
mod constraint;
mod error;
mod file;
pub mod picture;
mod sampling;

pub use backend::Backend;
pub use compile::{CompileArgs, DeviceArgs, Form, LimitArgs};
pub use constraint::ConstraintArgs;
pub use error::{Failure, message, parse, report};
pub use file::{json, text};
pub use picture::Graph;
pub use sampling::SamplingArgs;
