//! Pictures of automata: a graph, where its parts go, and how they are written.

mod dot;
mod graph;
mod layout;
mod svg;

pub use graph::Graph;
pub use svg::{escape, page};
