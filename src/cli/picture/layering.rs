//! The layers of a graph. Edges that close a cycle are reversed. A state's layer is the length of
//! the longest path from the start.

use super::graph::Graph;

/// The layers of the states of a graph.
pub(super) struct Layering {
    /// `[states]`
    pub(super) layer: Vec<usize>,
    /// `[edges]`: whether the edge closes a cycle, and runs from right to left.
    pub(super) back: Vec<bool>,
}

impl Layering {
    pub(super) fn new(graph: &Graph) -> Self {
        let (back, finished) = cycles(graph);
        let mut layer = vec![0; graph.states.len()];
        for &state in finished.iter().rev() {
            for (edge, back) in graph.edges.iter().zip(&back) {
                if edge.from == state && edge.to != state && !back {
                    layer[edge.to] = layer[edge.to].max(layer[state] + 1);
                }
            }
        }
        Self { layer, back }
    }

    /// Number of layers.
    pub(super) fn count(&self) -> usize {
        self.layer.iter().max().map_or(0, |last| last + 1)
    }
}

/// Whether each edge closes a cycle, and the states in depth-first postorder.
fn cycles(graph: &Graph) -> (Vec<bool>, Vec<usize>) {
    #[derive(Clone, Copy, PartialEq)]
    enum Met {
        Not,
        Within,
        Left,
    }
    let mut met = vec![Met::Not; graph.states.len()];
    let mut back = vec![false; graph.edges.len()];
    let mut finished = Vec::new();
    let out = |state: usize| -> Vec<usize> {
        (0..graph.edges.len()).rev().filter(|&edge| graph.edges[edge].from == state).collect()
    };
    met[0] = Met::Within;
    let mut path = vec![(0, out(0))];
    while let Some((state, rest)) = path.last_mut() {
        let Some(edge) = rest.pop() else {
            met[*state] = Met::Left;
            finished.push(*state);
            path.pop();
            continue;
        };
        let to = graph.edges[edge].to;
        match met[to] {
            Met::Within => back[edge] = to != *state,
            Met::Left => {}
            Met::Not => {
                met[to] = Met::Within;
                path.push((to, out(to)));
            }
        }
    }
    (back, finished)
}
