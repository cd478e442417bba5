//! All integration tests, in one program: each program links the backends anew.

mod artifact;
mod automaton;
mod backends;
mod common;
mod corpus;
mod filters;
mod generation;
mod json_schema;
mod laws;
mod marker;
mod mistakes;
mod slots;
mod speculation;
mod steps;
mod streaming;
mod table;
mod typed;
mod vocabulary;
