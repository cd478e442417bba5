//! A graph in the DOT language of Graphviz.

use std::fmt::Write;

use super::graph::Graph;

/// The text of `graph` for `dot`.
pub fn dot(graph: &Graph) -> String {
    let mut text = String::from("digraph automaton {\n  rankdir=LR;\n  node [shape=circle];\n");
    text.push_str("  start [shape=none, label=\"\"];\n  start -> 0;\n");
    for (state, _) in graph.accepting.iter().enumerate().filter(|(_, accepting)| **accepting) {
        let _never = writeln!(text, "  {state} [shape=doublecircle];");
    }
    for edge in &graph.edges {
        let label = edge.label.replace('\\', "\\\\").replace('"', "\\\"");
        let _never = writeln!(text, "  {} -> {} [label=\"{label}\"];", edge.from, edge.to);
    }
    text.push_str("}\n");
    text
}
