//! A graph as an SVG picture.

use std::fmt::Write;

use super::graph::{Graph, Kind};
use super::layout::{LETTER, LONGEST, Layout, RADIUS, label_at};

/// Half the height of a letter, to center texts in every renderer.
const MIDDLE: f64 = 4.0;

impl Graph {
    /// The graph as an SVG picture.
    pub fn svg(&self) -> String {
        let layout = Layout::new(self);
        let (mut lines, mut labels, mut states) = (String::new(), String::new(), String::new());
        let start = layout.points[0];
        edge(&mut lines, &format!("M{:.1},{:.1} h24", start.0 - RADIUS - 27.0, start.1), "start", false);
        for (arc, (route, &back)) in self.edges.iter().zip(layout.routes.iter().zip(&layout.back)) {
            let (line, place) = curve(&layout, route, back);
            edge(
                &mut lines,
                &line,
                &escape(&format!("{} → {}: {}", arc.from, arc.to, arc.label)),
                arc.is_jump,
            );
            let mut short: String = arc.label.chars().take(LONGEST).collect();
            if short.len() < arc.label.len() {
                short.pop();
                short.push('…');
            }
            ground(&mut labels, place, short.chars().count());
            text(&mut labels, place, &escape(&short));
        }
        for (state, &kind) in self.states.iter().enumerate() {
            let (x, y) = layout.points[state];
            let accepting = kind == Kind::Reads { accepting: true };
            let fill = match kind {
                Kind::Reads { accepting: true } => "#ddf4e4",
                Kind::Reads { accepting: false } => "#f6f8fa",
                Kind::Call => "#ddeaff",
                Kind::Return(_) => "#fff1d6",
            };
            for radius in [Some(RADIUS), accepting.then_some(RADIUS - 4.0)].into_iter().flatten() {
                let circle = format!(
                    r##"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{fill}" stroke="#1b1f24" stroke-width="1.3"/>"##
                );
                states.push_str(&circle);
            }
            let name = match kind {
                Kind::Return(outcome) => format!("↩{outcome}"),
                _ => state.to_string(),
            };
            text(&mut states, (x, y), &name);
        }
        let body = format!(
            "<g fill=\"none\" stroke=\"#57606a\" stroke-width=\"1.3\">{lines}</g>\n<g {FONT}>{labels}{states}</g>\n"
        );
        page(&body, bounds(&layout))
    }
}

/// The font of texts.
const FONT: &str =
    r##"font-family="ui-monospace, monospace" font-size="12" text-anchor="middle" fill="#1b1f24""##;

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

/// A background for a label of `letters` letters, so no line crosses it.
fn ground(labels: &mut String, (x, y): (f64, f64), letters: usize) {
    let width = LETTER * letters as f64 + 2.0;
    let (left, top) = (x - width / 2.0, y - 8.0);
    labels.push('\n');
    labels.push_str(&format!(
        r##"<rect x="{left:.1}" y="{top:.1}" width="{width:.1}" height="16" fill="#ffffff" fill-opacity="0.85"/>"##
    ));
}

fn text(texts: &mut String, (x, y): (f64, f64), said: &str) {
    let y = y + MIDDLE;
    texts.push('\n');
    texts.push_str(&format!(r#"<text x="{x:.1}" y="{y:.1}">{said}</text>"#));
}

/// The line of an edge, and the position of its label.
fn curve(layout: &Layout, route: &[usize], back: bool) -> (String, (f64, f64)) {
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
        return (line, (x, y - 50.0));
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
    let mut label = from;
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
        if index == label_at(route) {
            // The middle of the curve.
            let middle = |p: f64, a: f64, b: f64, q: f64| (p + 3.0 * a + 3.0 * b + q) / 8.0;
            label = (middle(p.0, first.0, second.0, q.0), middle(p.1, first.1, second.1, q.1));
        }
    }
    (line, label)
}

fn bounds(layout: &Layout) -> (f64, f64, f64, f64) {
    let fold = |pick: fn(&(f64, f64)) -> f64, best: fn(f64, f64) -> f64, from: f64| {
        layout.points.iter().map(pick).fold(from, best)
    };
    let (left, right) = (fold(|p| p.0, f64::min, f64::MAX), fold(|p| p.0, f64::max, f64::MIN));
    let (top, bottom) = (fold(|p| p.1, f64::min, f64::MAX), fold(|p| p.1, f64::max, f64::MIN));
    (left - 60.0, top - 70.0, right + 50.0, bottom + 50.0)
}

/// Escapes text for XML; invalid or invisible characters get Rust escapes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\\' | '\'' => escaped.push(c),
            _ => escaped.extend(c.escape_debug()),
        }
    }
    escaped
}
