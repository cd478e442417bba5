//! Pictures of automata: the graph, its layout, and its output formats.

mod dot;
mod graph;
mod layout;
mod svg;

pub use graph::Graph;
pub use svg::{escape, page};
