//! The rules of a grammar as syntax diagrams: boxes for text, round boxes for rules and terminals
//! by name. Lines lead from left to right, and arrows back.

mod block;

use std::collections::HashMap;
use std::fmt::Write;

use burn_dfa::cli::picture::{FONT, MAX_WIDTH, escape, page, shortened};
use burn_dfa::constraint::{Grammar, Shape};

use block::{Block, CORNER, HALF, Kind, LABEL};

/// The distance from the left of the picture to the first part of a diagram.
const INDENT: f64 = 24.0;
/// The distance from a name to the top of its diagram.
const HEADING: f64 = 18.0;
/// The distance between diagrams.
const BETWEEN: f64 = 34.0;
/// The distance from the diagrams to the borders of the picture.
const MARGIN: f64 = 20.0;
/// Maximum width of a diagram without the lines at its ends.
const WIDEST: f64 = MAX_WIDTH - 2.0 * (INDENT + MARGIN);
/// Width of a letter of a name.
const LETTER: f64 = 8.0;

/// The diagrams of a grammar.
pub struct Diagrams {
    all: Vec<(String, Block)>,
    /// The index of the diagram of each name.
    numbers: HashMap<String, usize>,
}

/// The drawing so far.
struct Pen<'d> {
    lines: String,
    boxes: String,
    numbers: &'d HashMap<String, usize>,
}

impl Diagrams {
    pub fn new(grammar: &Grammar) -> Self {
        let shapes = grammar.shapes();
        let numbers = shapes.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
        let ignored = grammar.ignored().map(|shape| ("ignored between terminals".to_owned(), shape));
        let block = |(name, shape): (String, Shape)| (name, Block::of(&shape, WIDEST));
        Self { all: shapes.into_iter().chain(ignored).map(block).collect(), numbers }
    }

    /// The number of rules and terminals.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The number of boxes.
    pub fn boxes(&self) -> usize {
        self.all.iter().map(|(_, block)| block.boxes()).sum()
    }

    /// The picture.
    pub fn svg(&self) -> String {
        let mut pen = Pen { lines: String::new(), boxes: String::new(), numbers: &self.numbers };
        let (mut bottom, mut right) = (0.0, 200.0_f64);
        for (at, (name, block)) in self.all.iter().enumerate() {
            let heading = bottom + BETWEEN;
            let line = heading + HEADING + block.above;
            let short = shortened(name, (WIDEST / LETTER) as usize);
            let title =
                if short == *name { String::new() } else { format!("<title>{}</title>", escape(name)) };
            let _never = writeln!(
                pen.boxes,
                r#"<text id="rule-{at}" x="0" y="{heading:.1}" text-anchor="start" font-weight="bold">{title}{}</text>"#,
                escape(&short)
            );
            let end = INDENT + block.width + INDENT;
            pen.line(0.0, line, &format!("m0,-6 v12 m4,-12 v12 m0,-6 H{INDENT:.1}"));
            pen.draw(block, INDENT, line);
            pen.line(end - INDENT, line, &format!("H{:.1} m0,-6 v12 m4,-12 v12", end - 4.0));
            bottom = line + block.below.max(HALF);
            right = right.max(end).max(LETTER * short.chars().count() as f64);
        }
        let body = format!(
            "<g fill=\"none\" stroke=\"#57606a\" stroke-width=\"1.3\">\n{}</g>\n<g {FONT}>\n{}</g>\n",
            pen.lines, pen.boxes
        );
        page(&body, (-MARGIN, 0.0, right + MARGIN, bottom + MARGIN))
    }
}

impl Pen<'_> {
    /// Draws a part whose line enters at `(x, y)`.
    fn draw(&mut self, block: &Block, x: f64, y: f64) {
        match &block.kind {
            Kind::Line => {}
            Kind::Box { text, full, is_name } => {
                self.boxed(text, full.as_deref(), *is_name, (x, y), block.width);
            }
            Kind::Row(parts) => {
                let mut at = x;
                for part in parts {
                    if at > x {
                        self.line(at, y, &format!("h{:.1}", block::GAP));
                        at += block::GAP;
                    }
                    self.draw(part, at, y);
                    at += part.width;
                }
            }
            Kind::Rows(rows) => self.rows(rows, x, y, block.width),
            Kind::Fork(branches) => self.fork(branches, x, y, block.width),
            Kind::Loop(inner, label) => self.again(inner, label.as_deref(), x, y, block.width),
        }
    }

    fn fork(&mut self, branches: &[Block], x: f64, y: f64, width: f64) {
        let (from, to, end) = (x + 2.0 * CORNER, x + width - 2.0 * CORNER, x + width);
        let mut at = y;
        for (number, branch) in branches.iter().enumerate() {
            if number == 0 {
                self.line(x, y, &format!("H{from:.1}"));
            } else {
                at += Block::drop(branches, number);
                let bottom = at - CORNER;
                self.line(x, y, &format!("{DOWN} V{bottom:.1} {FROM_DOWN}"));
            }
            self.draw(branch, from, at);
            let behind = from + branch.width;
            if number == 0 {
                self.line(behind, at, &format!("H{end:.1}"));
            } else {
                let top = y + CORNER;
                self.line(behind, at, &format!("H{to:.1} {UP} V{top:.1} {FROM_UP}"));
            }
        }
    }

    fn again(&mut self, inner: &Block, label: Option<&str>, x: f64, y: f64, width: f64) {
        let (from, to) = (x + 2.0 * CORNER, x + width - 2.0 * CORNER);
        self.line(x, y, &format!("H{from:.1}"));
        self.draw(inner, from, y);
        self.line(from + inner.width, y, &format!("H{:.1}", x + width));
        let back = y + Block::turn(inner);
        let middle = (from + to) / 2.0;
        // Down on the right, back to the arrow in the middle, and up on the left.
        self.arrow(to, y, &format!("{DOWN} V{:.1} {BACK} H{:.1}", back - CORNER, middle - 3.0));
        self.line(middle, back, &format!("H{from:.1} {BACK_UP} V{:.1} {FROM_UP}", y + CORNER));
        if let Some(label) = label {
            let y = back + LABEL - 2.0;
            let _never = writeln!(self.boxes, r#"<text x="{middle:.1}" y="{y:.1}">{}</text>"#, escape(label));
        }
    }

    fn rows(&mut self, rows: &[Block], x: f64, y: f64, width: f64) {
        let (from, end) = (x + 2.0 * CORNER, x + width);
        // The x coordinates of the lines down, and of the last line up.
        let down = end - 4.0 * CORNER;
        self.line(x, y, &format!("H{from:.1}"));
        let mut at = y;
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                let (before, turn) = (&rows[number - 1], Block::turn(&rows[number - 1]));
                let next = at + Block::step(rows, number);
                let path = format!(
                    "H{down:.1} {DOWN} V{:.1} {BACK} H{from:.1} {BACK_DOWN} V{:.1} {FROM_DOWN}",
                    at + turn - CORNER,
                    next - CORNER
                );
                self.line(from + before.width, at, &path);
                at = next;
            }
            self.draw(row, from, at);
        }
        if let Some(last) = rows.last() {
            let path = format!("H{:.1} {UP} V{:.1} {FROM_UP}", end - 2.0 * CORNER, y + CORNER);
            self.line(from + last.width, at, &path);
        }
    }

    fn boxed(&mut self, text: &str, full: Option<&str>, is_name: bool, (x, y): (f64, f64), width: f64) {
        let (fill, round) = if is_name { ("#ddeaff", HALF) } else { ("#f6f8fa", 2.0) };
        let title = full.map(|full| format!("<title>{}</title>", escape(full))).unwrap_or_default();
        let (top, height) = (y - HALF, 2.0 * HALF);
        let drawn = format!(
            concat!(
                r##"<rect x="{:.1}" y="{:.1}" width="{:.1}" height="{}" rx="{}" fill="{}" stroke="#1b1f24" stroke-width="1.2"/>"##,
                r#"<text x="{:.1}" y="{:.1}">{}</text>"#
            ),
            x,
            top,
            width,
            height,
            round,
            fill,
            x + width / 2.0,
            y + 4.0,
            escape(text)
        );
        let _never = match self.numbers.get(full.unwrap_or(text)).filter(|_| is_name) {
            Some(number) => writeln!(self.boxes, r##"<a href="#rule-{number}">{title}{drawn}</a>"##),
            None => writeln!(self.boxes, "<g>{title}{drawn}</g>"),
        };
    }

    /// A line from `(x, y)` along a path.
    fn line(&mut self, x: f64, y: f64, path: &str) {
        let _never = writeln!(self.lines, r#"<path d="M{x:.1},{y:.1} {path}"/>"#);
    }

    /// A line with an arrow at its end.
    fn arrow(&mut self, x: f64, y: f64, path: &str) {
        let _never = writeln!(self.lines, r#"<path d="M{x:.1},{y:.1} {path}" marker-end="url(#arrow)"/>"#);
    }
}

/// Corners, named by the directions of a line: from the left down, from above to the right, and so
/// on.
const DOWN: &str = "a8,8 0 0 1 8,8";
const FROM_DOWN: &str = "a8,8 0 0 0 8,8";
const UP: &str = "a8,8 0 0 0 8,-8";
const FROM_UP: &str = "a8,8 0 0 1 8,-8";
const BACK: &str = "a8,8 0 0 1 -8,8";
const BACK_UP: &str = "a8,8 0 0 1 -8,-8";
const BACK_DOWN: &str = "a8,8 0 0 0 -8,8";
