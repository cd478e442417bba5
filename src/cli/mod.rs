//! What command line tools around this library share, for clap: the arguments that name a constraint, limit its
//! compilation, and choose tokens and a backend; how files are read, and how errors are told.
//!
//! ```
//! use burn_dfa::Vocabulary;
//! use burn_dfa::cli::{CompileArgs, ConstraintArgs, SamplingArgs};
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
//! assert_eq!(args.sampling.config().temperature, Some(1.0));
//!
//! let digits = Vocabulary::from_bytes((b'0'..=b'9').map(|digit| Some([digit])).chain([None]))?
//!     .with_eos([burn_dfa::TokenId(10)])?;
//! let constraint = args.constraint.read()?.expect("one is given");
//! // The digits are one class of tokens, beside the three reserved columns.
//! assert_eq!(args.compile.table(&constraint, &digits)?.class_count(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backend;
mod compile;
mod constraint;
mod error;
mod file;
mod sampling;

pub use backend::Backend;
pub use compile::{CompileArgs, DeviceArgs, Form, LimitArgs};
pub use constraint::ConstraintArgs;
pub use error::{Failure, message, parse, report};
pub use file::{json, text};
pub use sampling::SamplingArgs;
