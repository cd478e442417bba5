//! What is tested on the host, or on the CPU alone: constraints, automata, vocabularies, artefacts, streams, Rust types.

mod artifact;
mod automaton;
#[path = "../common/mod.rs"]
mod common;
mod grammar;
mod guarantee;
mod json_schema;
mod mistakes;
mod regexes;
mod stack;
mod streaming;
mod structural_tags;
mod threads;
mod tools;
mod typed;
mod vocabulary;
