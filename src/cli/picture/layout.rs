//! The layout of states and edges: layers from left to right, after Sugiyama, Tagawa and Toda
//! (1981).
//!
//! Edges that close a cycle are reversed. A state's layer is the length of the longest path from
//! the start. An edge across several layers passes a point in each. The order within the layers
//! follows the barycenters with the fewest crossings. Heights follow the heights of adjacent
//! points.

use super::graph::Graph;

/// Radius of a state.
pub(super) const RADIUS: f64 = 18.0;
/// Maximum number of characters of a label.
pub(super) const LONGEST: usize = 22;
/// Width of a character of a label.
pub(super) const LETTER: f64 = 7.3;
const SWEEPS: usize = 24;

/// A drawing: the points of states first, then the points of long edges.
pub(super) struct Layout {
    pub(super) points: Vec<(f64, f64)>,
    /// `[edges]`: the points of each edge from its source to its target; one point for a loop.
    pub(super) routes: Vec<Vec<usize>>,
    /// `[edges]`: whether the edge runs from right to left.
    pub(super) back: Vec<bool>,
}

/// A graph with its layers and the routes of its edges.
struct Layers {
    layer: Vec<usize>,
    /// `[layers]`: the points of each layer from the top.
    order: Vec<Vec<usize>>,
    left: Vec<Vec<usize>>,
    right: Vec<Vec<usize>>,
    routes: Vec<Vec<usize>>,
    back: Vec<bool>,
}

impl Layout {
    pub(super) fn new(graph: &Graph) -> Self {
        let mut layers = Layers::new(graph);
        layers.untangle();
        let heights = layers.heights(graph);
        let columns = layers.columns(graph);
        let points = layers.layer.iter().zip(heights).map(|(&layer, y)| (columns[layer], y)).collect();
        Self { points, routes: layers.routes, back: layers.back }
    }
}

impl Layers {
    fn new(graph: &Graph) -> Self {
        let states = graph.states.len();
        let (back, finished) = cycles(graph);
        let mut layer = vec![0; states];
        for &state in finished.iter().rev() {
            for (edge, back) in graph.edges.iter().zip(&back) {
                if edge.from == state && edge.to != state && !back {
                    layer[edge.to] = layer[edge.to].max(layer[state] + 1);
                }
            }
        }
        let mut routes = Vec::new();
        for (edge, &back) in graph.edges.iter().zip(&back) {
            let (low, high) = if back { (edge.to, edge.from) } else { (edge.from, edge.to) };
            let mut route = vec![low];
            for between in layer[low] + 1..layer[high] {
                route.push(layer.len());
                layer.push(between);
            }
            if high != low {
                route.push(high);
            }
            if back {
                route.reverse();
            }
            routes.push(route);
        }
        let mut order = vec![Vec::new(); layer.iter().max().map_or(0, |last| last + 1)];
        for (point, &at) in layer.iter().enumerate() {
            order[at].push(point);
        }
        let (mut left, mut right) = (vec![Vec::new(); layer.len()], vec![Vec::new(); layer.len()]);
        for pair in routes.iter().flat_map(|route| route.windows(2)) {
            let (low, high) =
                if layer[pair[0]] < layer[pair[1]] { (pair[0], pair[1]) } else { (pair[1], pair[0]) };
            right[low].push(high);
            left[high].push(low);
        }
        Self { layer, order, left, right, routes, back }
    }

    /// Sorts each layer by the barycenters of the adjacent layer, in alternating sweeps, and keeps
    /// the best order.
    fn untangle(&mut self) {
        let mut best = (self.crossings(), self.order.clone());
        for sweep in 0..SWEEPS {
            let rightwards = sweep % 2 == 0;
            let layers: Vec<usize> = if rightwards {
                (0..self.order.len()).collect()
            } else {
                (0..self.order.len()).rev().collect()
            };
            for at in layers {
                let place = self.places();
                let neighbours = if rightwards { &self.left } else { &self.right };
                let centre = |&point: &usize| match neighbours[point].len() {
                    0 => place[point] as f64,
                    count => neighbours[point].iter().map(|&p| place[p] as f64).sum::<f64>() / count as f64,
                };
                let mut sorted: Vec<(f64, usize)> = self.order[at].iter().map(|p| (centre(p), *p)).collect();
                sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
                self.order[at] = sorted.into_iter().map(|(_, point)| point).collect();
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.order.clone());
            }
        }
        self.order = best.1;
    }

    /// The index of every point within its layer.
    fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.layer.len()];
        for layer in &self.order {
            for (place, &point) in layer.iter().enumerate() {
                places[point] = place;
            }
        }
        places
    }

    fn crossings(&self) -> usize {
        let place = self.places();
        let between = |layer: &Vec<usize>| {
            let lines = || layer.iter().flat_map(|&low| self.right[low].iter().map(move |&high| (low, high)));
            let lines: Vec<(usize, usize)> = lines().map(|(low, high)| (place[low], place[high])).collect();
            let crossed = |&(low, high): &(usize, usize)| {
                lines.iter().filter(|&&(other, end)| other > low && end < high).count()
            };
            lines.iter().map(crossed).sum::<usize>()
        };
        self.order.iter().map(between).sum()
    }

    /// The height of every point: near its adjacent points, with a distance from the next point of
    /// its layer.
    fn heights(&self, graph: &Graph) -> Vec<f64> {
        let has_loop = |point: usize| graph.edges.iter().any(|edge| edge.from == point && edge.to == point);
        let room = |point: usize| match point < graph.states.len() {
            true if has_loop(point) => (RADIUS + 42.0, RADIUS + 10.0),
            true => (RADIUS + 10.0, RADIUS + 10.0),
            false => (14.0, 14.0),
        };
        let mut heights = vec![0.0; self.layer.len()];
        for _ in 0..SWEEPS {
            for layer in &self.order {
                let wanted: Vec<f64> = layer
                    .iter()
                    .map(|&point| {
                        let near = || self.left[point].iter().chain(&self.right[point]);
                        let sum: f64 = near().map(|&other| heights[other]).sum();
                        if near().count() == 0 { heights[point] } else { sum / near().count() as f64 }
                    })
                    .collect();
                let apart = |above: usize, below: usize| room(layer[above]).1 + room(layer[below]).0;
                // Both passes keep the points apart, and so does their mean.
                let (mut down, mut up) = (wanted.clone(), wanted);
                for at in 1..layer.len() {
                    down[at] = down[at].max(down[at - 1] + apart(at - 1, at));
                }
                for at in (1..layer.len()).rev() {
                    up[at - 1] = up[at - 1].min(up[at] - apart(at - 1, at));
                }
                for (at, &point) in layer.iter().enumerate() {
                    heights[point] = f64::midpoint(down[at], up[at]);
                }
            }
        }
        heights
    }

    /// The x coordinate of every layer: its distance from the previous layer is the width of the
    /// labels between them.
    fn columns(&self, graph: &Graph) -> Vec<f64> {
        let mut gaps: Vec<f64> = vec![4.0 * RADIUS; self.order.len()];
        for (edge, route) in graph.edges.iter().zip(&self.routes) {
            let width = LETTER * edge.label.chars().count().min(LONGEST) as f64;
            let low = self.layer[route[label_at(route)]];
            let low = route.get(label_at(route) + 1).map_or(low, |&next| low.min(self.layer[next]));
            // A label over a loop uses the space on both sides of its state.
            let width = if route.len() == 1 { width / 2.0 } else { width };
            gaps[low] = gaps[low].max(width + 2.0 * RADIUS + 40.0);
            if let Some(before) = low.checked_sub(1).filter(|_| route.len() == 1) {
                gaps[before] = gaps[before].max(width + 2.0 * RADIUS + 40.0);
            }
        }
        let mut x = 0.0;
        gaps.iter().map(|gap| (x, x += gap).0).collect()
    }
}

/// The point of a route before its label.
pub(super) fn label_at(route: &[usize]) -> usize {
    (route.len().saturating_sub(1) / 2).min(route.len().saturating_sub(2))
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
