//! Automata over bytes: languages of byte strings, and their algebra.
//!
//! A constraint over text becomes a [`ByteDfa`]: a deterministic automaton that is total and
//! trimmed, with canonical state numbers. That of an expression is minimal, so that equal languages
//! are equal values; that of a JSON schema need not be. The steps:
//!
//! ```text
//! Expr ──┐
//!        ├─▶ Nfa ──subsets──▶ Rows ──trim, merge equivalent states, number──▶ ByteDfa
//! regex ─┘                      ▲                                               ▲
//!                products ──────┘                                               │ to_dense
//! JSON schema ──▶ DfaBuilder ───────────────number, trim─────────────▶ SparseDfa ┘
//!                     └───────────specialize, trim, number───────────▶ Pushdown
//! grammar ──▶ TransitionNetwork ──subsets──▶ SparseDfa or Pushdown
//! ```
//!
//! - `Expr` is a tree of literals, character classes, finished automata and the regular operators;
//! - `Nfa` is a nondeterministic automaton with assertions, and `TransitionNetwork` one with calls.
//!   Both store their edges in `Edges`;
//! - `Rows` hold the states of any deterministic automaton: for each state a list of runs, which
//!   are ranges of bytes with their target state. `DfaBuilder` hash-conses rows; `SparseRows` adds
//!   byte classes; `SparseDfa` is a finished automaton in this form, smaller than a `ByteDfa` with
//!   its entry for each state and byte class;
//! - [`Pushdown`] is an automaton with a stack, and [`ByteAutomaton`] either of the two.
//!
//! Every step takes a meter, which counts states, memory and time. Breaching a limit is a typed
//! error.
//!
//! ```
//! use burn_dfa_tokens::{Constraint, Limits};
//!
//! let limits = Limits::default();
//! let a = Constraint::regex("a|ab")?.to_byte_dfa(&limits)?.unwrap();
//! let b = Constraint::regex("ab?")?.to_byte_dfa(&limits)?.unwrap();
//! assert_eq!(a, b);
//! # Ok::<(), burn_dfa_tokens::Error>(())
//! ```

mod byte_automaton;
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
mod dfa_builder;
mod distance;
mod edges;
mod explore;
mod expr;
mod hash;
mod id_table;
mod interner;
mod joint_classes;
mod minimize;
mod network;
mod nfa;
mod partition;
mod product;
mod pushdown;
mod regular;
mod relations;
mod rows;
mod sample;
mod sparse_dfa;
mod sparse_rows;
mod specialize;
mod stamps;
mod sweep;

pub use burn_dfa_common::{Error, ErrorKind, Limits, Result};
#[doc(hidden)]
pub use byte_automaton::SparseAutomaton;
pub use byte_automaton::{ByteAutomaton, Configuration};
#[doc(hidden)]
pub use components::components;
#[doc(hidden)]
pub use counted::CountedPart;
#[doc(hidden)]
pub use csr::Csr;
#[doc(hidden)]
pub use determinize_calls::{Conflict, ConflictKind, Failure, MAX_EXITS};
pub use dfa::{ByteDfa, ByteStateId};
#[doc(hidden)]
pub use dfa_builder::DfaBuilder;
#[doc(hidden)]
pub use distance::{Distance, FARTHEST, Graph};
#[doc(hidden)]
pub use expr::Expr;
#[doc(hidden)]
pub use hash::FastMap;
#[doc(hidden)]
pub use interner::Interner;
#[doc(hidden)]
pub use joint_classes::JointClasses;
#[doc(hidden)]
pub use network::TransitionNetwork;
#[doc(hidden)]
pub use nfa::{Nfa, State as NfaState};
#[doc(hidden)]
pub use product::Op;
pub use pushdown::Pushdown;
#[doc(hidden)]
pub use pushdown::{Call, Jump};
#[doc(hidden)]
pub use rows::{Differences, Rows, Run};
#[doc(hidden)]
pub use sparse_dfa::SparseDfa;
#[doc(hidden)]
pub use sparse_rows::SparseRows;
#[doc(hidden)]
pub use sweep::Cuts;
