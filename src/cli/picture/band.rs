//! Bands: parts of a picture one below the other, each with consecutive layers.
//!
//! A picture in one band is as wide as its automaton is long, and its texts are too small on a
//! page. An edge from one band to another ends in a *link*, a dashed circle with the number of its
//! target. In the band of its target, an arrow with the text `from 3, 7` names the sources.

use std::collections::BTreeMap;
use std::ops::Range;

use super::graph::Graph;
use super::layering::Layering;
use super::text::shortened;

/// Radius of a state.
pub(super) const RADIUS: f64 = 18.0;
/// Maximum number of characters of a label.
const LONGEST: usize = 22;
/// Width of a character of a label.
pub(super) const LETTER: f64 = 7.3;
/// Maximum width of the layers of a band: [`MAX_WIDTH`](super::svg::MAX_WIDTH) without margins.
const WIDEST: f64 = 980.0;

/// A part of a picture: consecutive layers from left to right.
pub(super) struct Band {
    pub(super) nodes: Vec<Node>,
    /// `[nodes]`: the layer within the band.
    pub(super) layer: Vec<usize>,
    pub(super) lines: Vec<Line>,
}

/// What a band shows at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    State(usize),
    /// The number of a state in another band.
    Link(usize),
    /// The empty beginning of the edges from other bands to a state.
    Entry,
}

/// A line of a band.
pub(super) struct Line {
    /// The nodes at its ends.
    pub(super) from: usize,
    pub(super) to: usize,
    /// The label, and its short form.
    pub(super) label: String,
    pub(super) short: String,
    /// The text that the line shows under the pointer.
    pub(super) title: String,
    /// Whether it reads no byte.
    pub(super) is_jump: bool,
    /// Whether it runs from right to left.
    pub(super) back: bool,
}

impl Band {
    /// The bands of a graph: one if it is short, else each with as many layers as fit.
    pub(super) fn all(graph: &Graph) -> Vec<Self> {
        let layering = Layering::new(graph);
        let count = layering.count();
        let mut bands = Vec::new();
        let mut first = 0;
        while first < count {
            let rest = Self::new(graph, &layering, first..count);
            if rest.width() <= WIDEST {
                bands.push(rest);
                break;
            }
            let mut band = Self::new(graph, &layering, first..first + 1);
            let mut end = first + 1;
            while end < count {
                let longer = Self::new(graph, &layering, first..end + 1);
                if longer.width() > WIDEST {
                    break;
                }
                band = longer;
                end += 1;
            }
            bands.push(band);
            first = end;
        }
        bands
    }

    /// The band of some layers of a graph.
    fn new(graph: &Graph, layering: &Layering, layers: Range<usize>) -> Self {
        let mut band = Self { nodes: Vec::new(), layer: Vec::new(), lines: Vec::new() };
        let mut node_of = vec![None; graph.states.len()];
        for (state, layer) in layering.layer.iter().enumerate() {
            if layers.contains(layer) {
                // One layer more on the left, for entries.
                node_of[state] = Some(band.add(Node::State(state), layer - layers.start + 1));
            }
        }
        // The sources of the edges from other bands, by the node of the target.
        let mut entries: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (edge, &back) in graph.edges.iter().zip(&layering.back) {
            let line = |from, to, back| {
                let title = format!("{} → {}: {}", edge.from, edge.to, edge.label);
                Line::new(from, to, edge.label.clone(), title, edge.is_jump, back)
            };
            match (node_of[edge.from], node_of[edge.to]) {
                (Some(from), Some(to)) => band.lines.push(line(from, to, back)),
                (Some(from), None) => {
                    let link = band.add(Node::Link(edge.to), band.layer[from] + 1);
                    band.lines.push(line(from, link, false));
                }
                (None, Some(to)) => {
                    let sources = entries.entry(to).or_default();
                    if !sources.contains(&edge.from) {
                        sources.push(edge.from);
                    }
                }
                (None, None) => {}
            }
        }
        for (to, sources) in entries {
            let entry = band.add(Node::Entry, band.layer[to] - 1);
            let sources: Vec<String> = sources.iter().map(usize::to_string).collect();
            let label = format!("from {}", sources.join(", "));
            band.lines.push(Line::new(entry, to, label.clone(), label, false, false));
        }
        if !band.layer.contains(&0) {
            band.layer.iter_mut().for_each(|layer| *layer -= 1);
        }
        band
    }

    fn add(&mut self, node: Node, layer: usize) -> usize {
        self.nodes.push(node);
        self.layer.push(layer);
        self.nodes.len() - 1
    }

    /// The distance from each layer to the next one, as the labels need it.
    fn gaps(&self) -> Vec<f64> {
        let layers = self.layer.iter().max().map_or(0, |last| last + 1);
        // The widest label between a layer and the next one, and the widest label over a loop.
        let (mut widths, mut loops) = (vec![0.0_f64; layers], vec![0.0_f64; layers + 1]);
        for line in &self.lines {
            let width = LETTER * line.short.chars().count() as f64;
            let (from, to) = (self.layer[line.from], self.layer[line.to]);
            let before = label_at(from.abs_diff(to) + 1);
            match line.back {
                _ if from == to => loops[from] = loops[from].max(width),
                true => widths[from - before - 1] = widths[from - before - 1].max(width),
                false => widths[from + before] = widths[from + before].max(width),
            }
        }
        let gap = |layer: usize| {
            let (width, loops) = (widths[layer], loops[layer].max(loops[layer + 1]));
            let plain = if width == 0.0 { 4.0 * RADIUS } else { width + 2.0 * RADIUS + 40.0 };
            if loops == 0.0 { plain } else { plain.max(width + loops + 12.0) }
        };
        (0..layers).map(gap).collect()
    }

    /// The x coordinate of every layer.
    pub(super) fn columns(&self) -> Vec<f64> {
        let mut x = 0.0;
        self.gaps().iter().map(|gap| (x, x += gap).0).collect()
    }

    fn width(&self) -> f64 {
        self.gaps().iter().sum()
    }
}

impl Line {
    fn new(from: usize, to: usize, label: String, title: String, is_jump: bool, back: bool) -> Self {
        let short = shortened(&label, LONGEST);
        Self { from, to, label, short, title, is_jump, back }
    }
}

/// The point before the label of a line through `points` points.
pub(super) fn label_at(points: usize) -> usize {
    (points.saturating_sub(1) / 2).min(points.saturating_sub(2))
}
