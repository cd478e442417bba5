//! A graph in the DOT language of Graphviz.

use std::fmt::Write;

use super::graph::{Graph, Kind};

impl Graph {
    /// The graph in the DOT language of Graphviz.
    pub fn dot(&self) -> String {
        let mut text = String::from("digraph automaton {\n  rankdir=LR;\n  node [shape=circle];\n");
        text.push_str("  start [shape=none, label=\"\"];\n  start -> 0;\n");
        for (state, kind) in self.states.iter().enumerate() {
            let _never = match kind {
                Kind::Reads { accepting: false } => Ok(()),
                Kind::Reads { accepting: true } => writeln!(text, "  {state} [shape=doublecircle];"),
                Kind::Call => writeln!(text, "  {state} [shape=box];"),
                Kind::Return(outcome) => writeln!(text, "  {state} [shape=cds, label=\"return {outcome}\"];"),
            };
        }
        for edge in &self.edges {
            let label = edge.label.replace('\\', "\\\\").replace('"', "\\\"");
            let style = if edge.is_jump { ", style=dashed" } else { "" };
            let _never = writeln!(text, "  {} -> {} [label=\"{label}\"{style}];", edge.from, edge.to);
        }
        text.push_str("}\n");
        text
    }
}
