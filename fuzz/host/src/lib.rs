//! The files of the library that need no device. Without Burn, a build with instruments takes a minute or two, and
//! whatever it counts is ours.

// What the other half calls is unused.
#![allow(dead_code, unused_imports)]

#[path = "../../../src/automaton/mod.rs"]
pub mod automaton;
#[path = "../../../src/constraint/mod.rs"]
pub mod constraint;
#[path = "../../../src/error.rs"]
mod error;
#[path = "../../../src/limits.rs"]
mod limits;
#[path = "../../../src/random.rs"]
mod random;
#[path = "../../../src/table/mod.rs"]
pub mod table;
#[path = "../../../src/threads.rs"]
mod threads;
#[path = "../../../src/vocabulary/mod.rs"]
pub mod vocabulary;

pub use automaton::ByteDfa;
pub use constraint::Constraint;
pub use error::{Error, Limit, Result};
pub use limits::Limits;
pub use table::{StateId, TokenTable};
pub use vocabulary::{TokenId, Vocabulary};
