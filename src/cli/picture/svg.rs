//! A graph as an SVG picture.

use std::fmt::Write;

use super::band::{Band, LETTER, Line, Node, RADIUS, label_at};
use super::graph::{Graph, Kind};
use super::layout::Layout;
use super::text::escape;

/// Maximum width of a picture: texts have 10 pixels or more on a page 900 pixels wide.
pub const MAX_WIDTH: f64 = 1080.0;

/// The font of texts, as attributes.
pub const FONT: &str =
    r##"font-family="ui-monospace, monospace" font-size="12" text-anchor="middle" fill="#1b1f24""##;

/// Half the height of a letter, to center texts in every renderer.
const MIDDLE: f64 = 4.0;
/// The distances of a point from the borders of the page.
const MARGINS: (f64, f64, f64, f64) = (60.0, 70.0, 50.0, 50.0);

type Point = (f64, f64);

/// The drawing so far.
struct Pen<'g> {
    graph: &'g Graph,
    /// Whether states are targets of links.
    has_links: bool,
    lines: String,
    labels: String,
    states: String,
    /// The labels of the band, with their widths.
    placed: Vec<(Point, f64)>,
    /// Left, top, right and bottom.
    page: (f64, f64, f64, f64),
}

impl Graph {
    /// The graph as an SVG picture of at most [`MAX_WIDTH`]. A long automaton has several bands,
    /// one below the other; dashed circles have the numbers of states in other bands.
    pub fn svg(&self) -> String {
        let bands = Band::all(self);
        let mut pen = Pen {
            graph: self,
            has_links: bands.len() > 1,
            lines: String::new(),
            labels: String::new(),
            states: String::new(),
            placed: Vec::new(),
            page: (f64::MAX, f64::MAX, f64::MIN, f64::MIN),
        };
        for (at, band) in bands.iter().enumerate() {
            let mut layout = Layout::new(band);
            if at > 0 {
                layout.move_down(pen.page.3 + MARGINS.1 - layout.top());
            }
            pen.draw(band, &layout);
        }
        let Pen { lines, labels, states, page: bounds, .. } = pen;
        let body = format!(
            "<g fill=\"none\" stroke=\"#57606a\" stroke-width=\"1.3\">{lines}</g>\n<g {FONT}>{labels}{states}</g>\n"
        );
        page(&body, bounds)
    }

    /// The text in the circle of a state.
    fn name(&self, state: usize) -> String {
        match self.states[state] {
            Kind::Return(outcome) => format!("↩{outcome}"),
            _ => state.to_string(),
        }
    }
}

impl Pen<'_> {
    fn draw(&mut self, band: &Band, layout: &Layout) {
        for &(x, y) in &layout.points {
            let (left, top, right, bottom) = MARGINS;
            self.cover((x - left, y - top, x + right, y + bottom));
        }
        // The nodes of states are in order, so the start is the first one.
        if band.nodes[0] == Node::State(0) {
            let (x, y) = layout.points[0];
            edge(&mut self.lines, &format!("M{:.1},{y:.1} h24", x - RADIUS - 27.0), "start", false);
        }
        // Labels of loops have fixed points, so they come first.
        self.placed.clear();
        for is_loop in [true, false] {
            for (line, route) in band.lines.iter().zip(&layout.routes) {
                if (line.from == line.to) == is_loop {
                    self.line(line, curve(layout, route, line.back));
                }
            }
        }
        for (&node, &at) in band.nodes.iter().zip(&layout.points) {
            match node {
                Node::State(state) => self.state(state, at),
                Node::Link(state) => self.link(state, at),
                Node::Entry => {}
            }
        }
    }

    /// Draws a line along a path, with its label at the first free point.
    fn line(&mut self, line: &Line, (path, points): (String, Vec<Point>)) {
        edge(&mut self.lines, &path, &escape(&line.title), line.is_jump);
        let width = LETTER * line.short.chars().count() as f64 + 2.0;
        let is_free = |at: &&Point| {
            let apart = |other: &(Point, f64)| {
                (at.0 - other.0.0).abs() > f64::midpoint(width, other.1) || (at.1 - other.0.1).abs() > 14.0
            };
            self.placed.iter().all(apart)
        };
        let at = *points.iter().find(is_free).unwrap_or(&points[0]);
        self.placed.push((at, width));
        self.cover((at.0 - width / 2.0, at.1 - 8.0, at.0 + width / 2.0, at.1 + 8.0));
        ground(&mut self.labels, at, width);
        let full = (line.short != line.label).then_some(line.label.as_str());
        text(&mut self.labels, at, &escape(&line.short), full);
    }

    fn state(&mut self, state: usize, (x, y): Point) {
        let kind = self.graph.states[state];
        let accepting = kind == Kind::Reads { accepting: true };
        let fill = match kind {
            Kind::Reads { accepting: true } => "#ddf4e4",
            Kind::Reads { accepting: false } => "#f6f8fa",
            Kind::Call => "#ddeaff",
            Kind::Return(_) => "#fff1d6",
        };
        let id = if self.has_links { format!(r#"id="state-{state}" "#) } else { String::new() };
        let inner = accepting.then_some((RADIUS - 4.0, ""));
        for (radius, id) in [Some((RADIUS, id.as_str())), inner].into_iter().flatten() {
            let circle = format!(
                r##"<circle {id}cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{fill}" stroke="#1b1f24" stroke-width="1.3"/>"##
            );
            self.states.push_str(&circle);
        }
        text(&mut self.states, (x, y), &self.graph.name(state), None);
    }

    /// Draws the number of a state in another band.
    fn link(&mut self, state: usize, (x, y): Point) {
        let circle = format!(
            r##"<a href="#state-{state}"><circle cx="{x:.1}" cy="{y:.1}" r="{RADIUS}" fill="#ffffff" stroke="#57606a" stroke-dasharray="3 3"/>"##
        );
        self.states.push_str(&circle);
        text(&mut self.states, (x, y), &self.graph.name(state), None);
        self.states.push_str("</a>");
    }

    /// Extends the page to a rectangle.
    fn cover(&mut self, (left, top, right, bottom): (f64, f64, f64, f64)) {
        let page = self.page;
        self.page = (page.0.min(left), page.1.min(top), page.2.max(right), page.3.max(bottom));
    }
}

/// A picture that shows `(left, top, right, bottom)`.
pub fn page(body: &str, (left, top, right, bottom): (f64, f64, f64, f64)) -> String {
    let (width, height) = (right - left, bottom - top);
    format!(
        concat!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{:.0}" height="{:.0}" viewBox="{:.1} {:.1} {:.1} {:.1}">"#,
            "\n",
            r##"<defs><marker id="arrow" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#57606a"/></marker></defs>"##,
            "\n",
            r##"<rect x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}" fill="#ffffff"/>"##,
            "\n{}</svg>\n"
        ),
        width, height, left, top, width, height, left, top, width, height, body
    )
}

fn edge(lines: &mut String, line: &str, title: &str, is_dashed: bool) {
    let dashes = if is_dashed { r#" stroke-dasharray="4 3""# } else { "" };
    lines.push('\n');
    lines.push_str(&format!(
        r#"<path d="{line}"{dashes} marker-end="url(#arrow)"><title>{title}</title></path>"#
    ));
}

/// A background for a label, so no line crosses it.
fn ground(labels: &mut String, (x, y): Point, width: f64) {
    let (left, top) = (x - width / 2.0, y - 8.0);
    labels.push('\n');
    labels.push_str(&format!(
        r##"<rect x="{left:.1}" y="{top:.1}" width="{width:.1}" height="16" fill="#ffffff" fill-opacity="0.85"/>"##
    ));
}

/// A text that is escaped; `full` if it is shortened.
fn text(texts: &mut String, (x, y): Point, said: &str, full: Option<&str>) {
    let y = y + MIDDLE;
    let title = full.map(|full| format!("<title>{}</title>", escape(full))).unwrap_or_default();
    texts.push('\n');
    texts.push_str(&format!(r#"<text x="{x:.1}" y="{y:.1}">{title}{said}</text>"#));
}

/// The line of an edge, and the possible points of its label, the best first.
fn curve(layout: &Layout, route: &[usize], back: bool) -> (String, Vec<Point>) {
    let at = |index: usize| layout.points[route[index]];
    let last = route.len() - 1;
    if last == 0 {
        let (x, y) = at(0);
        let (out, top) = (RADIUS * 0.6, y - RADIUS * 0.8);
        let line = format!(
            "M{:.1},{top:.1} C{:.1},{:.1} {:.1},{:.1} {:.1},{top:.1}",
            x - out,
            x - 24.0,
            y - 54.0,
            x + 24.0,
            y - 54.0,
            x + out
        );
        return (line, vec![(x, y - 50.0)]);
    }
    // Forward edges join the sides of states; backward edges join the bottoms, or the tops if the
    // route passes above.
    let side = |index: usize, other: usize| if at(other).1 < at(index).1 { -RADIUS } else { RADIUS };
    let (from, to) = if back {
        let ends = (side(0, 1), side(last, last - 1));
        let ends = if last == 1 { (RADIUS, RADIUS) } else { ends };
        ((at(0).0, at(0).1 + ends.0), (at(last).0, at(last).1 + ends.1))
    } else {
        ((at(0).0 + RADIUS, at(0).1), (at(last).0 - RADIUS, at(last).1))
    };
    let mut line = format!("M{:.1},{:.1}", from.0, from.1);
    let mut labels = Vec::new();
    for index in 0..last {
        let p = if index == 0 { from } else { at(index) };
        let q = if index + 1 == last { to } else { at(index + 1) };
        let reach = (q.0 - p.0) / 2.0;
        let mut first = (p.0 + reach, p.1);
        let mut second = (q.0 - reach, q.1);
        if back && index == 0 {
            first = (p.0, p.1 + (p.1 - at(0).1).signum() * 30.0);
        }
        if back && index + 1 == last {
            second = (q.0, q.1 + (q.1 - at(last).1).signum() * 30.0);
        }
        let _never = write!(
            line,
            " C{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}",
            first.0, first.1, second.0, second.1, q.0, q.1
        );
        if index == label_at(route.len()) {
            // The middle of the curve, or near it.
            labels = [0.5, 0.43, 0.57, 0.36, 0.64].map(|t| bezier([p, first, second, q], t)).to_vec();
        }
    }
    (line, labels)
}

/// The point of a cubic Bézier curve at `t`, from 0 to 1.
fn bezier([p, a, b, q]: [Point; 4], t: f64) -> Point {
    let s = 1.0 - t;
    let at = |p: f64, a: f64, b: f64, q: f64| {
        s * s * s * p + 3.0 * s * s * t * a + 3.0 * s * t * t * b + t * t * t * q
    };
    (at(p.0, a.0, b.0, q.0), at(p.1, a.1, b.1, q.1))
}
