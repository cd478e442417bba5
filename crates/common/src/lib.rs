//! The error, the limits and the threads shared by the crates of burn-dfa.
//!
//! Applications use these types through `burn-dfa` or `burn-dfa-tokens`.

#[doc(hidden)]
pub mod error;
#[doc(hidden)]
pub mod limits;
#[doc(hidden)]
pub mod matcher;
#[doc(hidden)]
pub mod random;
#[doc(hidden)]
pub mod threads;

pub use error::{ArenaSpace, Error, ErrorKind, Limit, Result, Unenforced};
pub use limits::{Cancel, ForcedText, Limits};
