//! The layout of a band: layers from left to right, after Sugiyama, Tagawa and Toda (1981).
//!
//! An edge across several layers passes a point in each. The order within the layers follows the
//! barycenters with the fewest crossings. Heights follow the heights of adjacent points.

use super::band::{Band, Node, RADIUS};

const SWEEPS: usize = 24;

/// A drawing: the points of nodes first, then the points of long lines.
pub(super) struct Layout {
    pub(super) points: Vec<(f64, f64)>,
    /// `[lines]`: the points of each line from its source to its target; one point for a loop.
    pub(super) routes: Vec<Vec<usize>>,
}

/// The points of a band with their layers, and the routes of its lines.
struct Grid {
    layer: Vec<usize>,
    /// `[layers]`: the points of each layer from the top.
    order: Vec<Vec<usize>>,
    left: Vec<Vec<usize>>,
    right: Vec<Vec<usize>>,
    routes: Vec<Vec<usize>>,
}

impl Layout {
    pub(super) fn new(band: &Band) -> Self {
        let mut grid = Grid::new(band);
        grid.untangle();
        let heights = grid.heights(band);
        let columns = band.columns();
        let points = grid.layer.iter().zip(heights).map(|(&layer, y)| (columns[layer], y)).collect();
        Self { points, routes: grid.routes }
    }

    /// The y coordinate of the highest point.
    pub(super) fn top(&self) -> f64 {
        self.points.iter().map(|point| point.1).fold(f64::MAX, f64::min)
    }

    /// Moves all points down.
    pub(super) fn move_down(&mut self, by: f64) {
        self.points.iter_mut().for_each(|point| point.1 += by);
    }
}

impl Grid {
    fn new(band: &Band) -> Self {
        let mut layer = band.layer.clone();
        let mut routes = Vec::new();
        for line in &band.lines {
            let (low, high) = if line.back { (line.to, line.from) } else { (line.from, line.to) };
            let mut route = vec![low];
            for between in layer[low] + 1..layer[high] {
                route.push(layer.len());
                layer.push(between);
            }
            if high != low {
                route.push(high);
            }
            if line.back {
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
        Self { layer, order, left, right, routes }
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
                let rank = self.ranks();
                let neighbors = if rightwards { &self.left } else { &self.right };
                let center = |&point: &usize| match neighbors[point].len() {
                    0 => rank[point] as f64,
                    count => neighbors[point].iter().map(|&p| rank[p] as f64).sum::<f64>() / count as f64,
                };
                let mut sorted: Vec<(f64, usize)> = self.order[at].iter().map(|p| (center(p), *p)).collect();
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
    fn ranks(&self) -> Vec<usize> {
        let mut ranks = vec![0; self.layer.len()];
        for layer in &self.order {
            for (rank, &point) in layer.iter().enumerate() {
                ranks[point] = rank;
            }
        }
        ranks
    }

    fn crossings(&self) -> usize {
        let rank = self.ranks();
        let between = |layer: &Vec<usize>| {
            let lines = || layer.iter().flat_map(|&low| self.right[low].iter().map(move |&high| (low, high)));
            let lines: Vec<(usize, usize)> = lines().map(|(low, high)| (rank[low], rank[high])).collect();
            let crossed = |&(low, high): &(usize, usize)| {
                lines.iter().filter(|&&(other, end)| other > low && end < high).count()
            };
            lines.iter().map(crossed).sum::<usize>()
        };
        self.order.iter().map(between).sum()
    }

    /// The height of every point: near its adjacent points, with a distance from the next point of
    /// its layer.
    fn heights(&self, band: &Band) -> Vec<f64> {
        let has_loop = |point: usize| band.lines.iter().any(|line| line.from == point && line.to == point);
        // The space above and below a point.
        let space = |point: usize| match band.nodes.get(point) {
            Some(Node::State(_)) if has_loop(point) => (RADIUS + 42.0, RADIUS + 10.0),
            Some(Node::State(_) | Node::Link(_)) => (RADIUS + 10.0, RADIUS + 10.0),
            Some(Node::Entry) | None => (14.0, 14.0),
        };
        let spaces: Vec<(f64, f64)> = (0..self.layer.len()).map(space).collect();
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
                let apart = |above: usize, below: usize| spaces[layer[above]].1 + spaces[layer[below]].0;
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
}
