//! Automata over bytes: languages of byte strings, and their algebra.
//!
//! A constraint over text becomes a [`ByteDfa`]: a deterministic automaton that is total, trimmed and minimal, with
//! its states numbered in one way only, so that equal languages are equal values. The way there:
//!
//! ```text
//! Expr ──┐
//!        ├─▶ Nfa ──subsets──▶ RawDfa ──trim, merge equivalent states, number──▶ ByteDfa
//! regex ─┘                      ▲                                                 ▲
//!                products ──────┘                                                 │ write the table
//! JSON schema ──▶ SharedRows ──────────────number──────────────▶ RowDfa ──────────┘
//!                     └──────specialise, trim, number──────────▶ Pushdown
//! ```
//!
//! - `Expr` is a tree of literals, character classes, finished automata and the regular operators;
//! - `Nfa` is a nondeterministic automaton with look-around;
//! - `Rows` hold the states of any deterministic automaton: of each state a list of runs, which are ranges of bytes
//!   with the state that they lead to. `RawDfa` are such rows over classes of bytes; `SharedRows` are rows of which
//!   equal ones are one state; `ByteRows` know the classes of their bytes; `RowDfa` is a finished automaton in this form,
//!   which takes less memory than a `ByteDfa` with its entry for each state and byte class;
//! - [`Pushdown`] is an automaton with a stack, and [`ByteAutomaton`] either of the two.
//!
//! Every step takes a meter, which counts states, memory and time. A breach of a limit is a typed error.
//!
//! ```
//! use burn_dfa::{Constraint, Limits};
//!
//! let limits = Limits::default();
//! let a = Constraint::regex("a|ab")?.to_byte_dfa(&limits)?.unwrap();
//! let b = Constraint::regex("ab?")?.to_byte_dfa(&limits)?.unwrap();
//! assert_eq!(a, b);
//! # Ok::<(), burn_dfa::Error>(())
//! ```

mod byte_automaton;
mod byte_rows;
mod canonical;
mod classes;
mod components;
mod context;
mod count;
mod counted;
mod csr;
mod determinize;
mod determinize_calls;
mod dfa;
mod expr;
mod fast;
mod interner;
mod minimize;
mod network;
mod nfa;
mod partition;
mod product;
mod pushdown;
mod raw;
mod regular;
mod relations;
mod row_dfa;
mod rows;
mod sample;
mod shared;
mod specialise;
mod trim;
mod ways;

pub use byte_automaton::{ByteAutomaton, Configuration};
pub(crate) use byte_rows::ByteRows;
pub(crate) use components::components;
pub(crate) use counted::CountedPart;
pub(crate) use csr::Csr;
pub(crate) use determinize_calls::{Conflict, ConflictKind, Determinized, Failure, MOST_OUTCOMES};
pub use dfa::{ByteDfa, ByteStateId};
pub(crate) use expr::Expr;
pub(crate) use fast::FastMap;
pub(crate) use interner::Interner;
pub(crate) use network::Network;
pub(crate) use nfa::Nfa;
pub(crate) use product::Op;
pub use pushdown::Pushdown;
pub(crate) use pushdown::{Call, Jump};
pub(crate) use raw::RawDfa;
pub(crate) use row_dfa::RowDfa;
pub(crate) use rows::{Differences, Rows, Run};
pub(crate) use shared::SharedRows;
pub(crate) use ways::{FARTHEST, Graph, Way};
