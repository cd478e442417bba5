//! All integration tests, in one program: each program links the backends anew.

mod artifact;
mod automaton;
mod backends;
#[path = "../common/mod.rs"]
mod common;
mod filters;
mod generation;
mod json_schema;
mod laws;
mod marker;
mod mistakes;
mod regexes;
mod slots;
mod speculation;
mod steps;
mod streaming;
mod table;
mod typed;
mod vocabulary;
