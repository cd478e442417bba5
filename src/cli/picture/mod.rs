//! Pictures of automata: the graph, its layout, and its output formats.
//!
//! `graph` has the states and edges. `layering` orders the states from left to right, `band`
//! divides them into bands that fit on a page, and `layout` places the states of a band. `svg` and
//! `dot` write the pictures.

mod band;
mod dot;
mod graph;
mod layering;
mod layout;
mod svg;
mod text;

pub use graph::Graph;
pub use svg::{FONT, MAX_WIDTH, page};
pub use text::{escape, shortened};
