//! The stack of a recursive constraint along a text, as an SVG picture.

use std::fmt::Write;

use burn_dfa::automaton::{ByteAutomaton, Configuration};
use burn_dfa::cli::Graph;
use burn_dfa::cli::picture::{FONT, MAX_WIDTH, escape, page, shortened};

use crate::output::Result;

/// Height and least width of a frame.
const FRAME: (f64, f64) = (22.0, 48.0);
/// Width of a letter.
const LETTER: f64 = 7.3;
/// Maximum number of letters of a part of the text.
const LONGEST: usize = 24;
/// Width of the labels on the left.
const SIDE: f64 = 60.0;
/// The distance from the steps to the other borders, and between blocks.
const MARGIN: f64 = 20.0;
/// The distances from the stack down to the text and to the state.
const BELOW: (f64, f64) = (18.0, 36.0);

/// The stack along a text.
pub struct Steps {
    steps: Vec<Step>,
}

/// A part of the text during which the stack stays the same.
struct Step {
    /// The part, with visible white space.
    text: String,
    /// The numbers of the call states on the stack, from the bottom.
    frames: Vec<String>,
    /// The number of the state after the part; with a mark if the text may end.
    state: String,
}

impl Steps {
    /// Follows a text, or its prefix.
    ///
    /// # Errors
    /// The constraint has no stack, or no text of the constraint begins with `text`.
    pub fn new(automaton: &ByteAutomaton, text: &str) -> Result<Self> {
        if automaton.frames() == 0 {
            return Err("the constraint has no stack: it is not recursive".into());
        }
        let graph = Graph::new(automaton);
        let mut at = automaton.start();
        let mut parts = vec![(String::new(), at.clone())];
        for (byte, char) in text.char_indices() {
            let mut buffer = [0; 4];
            let bytes = char.encode_utf8(&mut buffer).bytes();
            let next = bytes.fold(at, |at, byte| automaton.next(&at, byte));
            if next.is_dead() {
                return Err(format!("at byte {byte}: {char:?} cannot come here").into());
            }
            match parts.last_mut() {
                Some(part) if !part.0.is_empty() && part.1.stack() == next.stack() => {
                    part.0.push(char);
                    part.1 = next.clone();
                }
                _ => parts.push((char.to_string(), next.clone())),
            }
            at = next;
        }
        let step = |(text, at): (String, Configuration)| {
            let number = |state| graph.number(state).map(|number| number.to_string()).unwrap_or_default();
            let end = if automaton.is_accepting(&at) { " ◎" } else { "" };
            let frames = at.stack().iter().map(|&state| number(state)).collect();
            Step { text: visible(&text), frames, state: number(at.state()) + end }
        };
        Ok(Self { steps: parts.into_iter().map(step).collect() })
    }

    /// The number of steps, the start included.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// The greatest number of frames.
    pub fn frames(&self) -> usize {
        deepest(self.steps.iter())
    }

    /// The picture: a column for each step, in blocks as wide as a page.
    pub fn svg(&self) -> String {
        let mut blocks: Vec<Vec<&Step>> = Vec::new();
        let mut right = f64::MAX;
        for step in &self.steps {
            right += step.width();
            match blocks.last_mut() {
                Some(block) if right <= MAX_WIDTH - SIDE - MARGIN => block.push(step),
                _ => {
                    right = step.width();
                    blocks.push(vec![step]);
                }
            }
        }
        let mut body = String::new();
        let (mut top, mut widest) = (0.0, 0.0_f64);
        for block in blocks {
            let base = top + FRAME.0 * deepest(block.iter().copied()).max(1) as f64;
            for (label, y) in [("stack", -6.0), ("text", BELOW.0), ("state", BELOW.1)] {
                let y = base + y;
                let _never = writeln!(
                    body,
                    r##"<text x="-8" y="{y:.0}" text-anchor="end" fill="#57606a">{label}</text>"##
                );
            }
            let mut left = 0.0;
            for step in block {
                step.write(&mut body, left, base);
                left += step.width();
            }
            widest = widest.max(left);
            top = base + BELOW.1 + 2.0 * MARGIN;
        }
        page(&format!("<g {FONT}>\n{body}</g>\n"), (-SIDE, -MARGIN, widest + MARGIN, top - MARGIN))
    }
}

impl Step {
    fn width(&self) -> f64 {
        let letters = shortened(&self.text, LONGEST).chars().count();
        FRAME.1.max(LETTER * letters as f64 + 12.0)
    }

    /// Writes the column of a step from `left`, with the bottom of its stack at `base`.
    fn write(&self, body: &mut String, left: f64, base: f64) {
        let (middle, width) = (left + self.width() / 2.0, FRAME.1 - 6.0);
        let _never = writeln!(
            body,
            r##"<path d="M{:.1},{base:.0} h{:.1}" stroke="#57606a" stroke-width="1.3"/>"##,
            left + 3.0,
            self.width() - 6.0
        );
        for (at, frame) in self.frames.iter().enumerate() {
            let top = base - FRAME.0 * (at + 1) as f64;
            let _never = writeln!(
                body,
                r##"<g><title>the call of state {frame}</title><rect x="{:.1}" y="{top:.0}" width="{width}" height="{}" fill="#ddeaff" stroke="#1b1f24"/><text x="{middle:.1}" y="{:.0}">{frame}</text></g>"##,
                middle - width / 2.0,
                FRAME.0,
                top + 15.0
            );
        }
        let short = shortened(&self.text, LONGEST);
        let title =
            if short == self.text { String::new() } else { format!("<title>{}</title>", escape(&self.text)) };
        let (text, state) = (base + BELOW.0, base + BELOW.1);
        let _never = writeln!(
            body,
            r#"<text x="{middle:.1}" y="{text:.0}" font-weight="bold">{title}{}</text><text x="{middle:.1}" y="{state:.0}">{}</text>"#,
            escape(&short),
            self.state
        );
    }
}

/// The greatest number of frames of some steps.
fn deepest<'s>(steps: impl Iterator<Item = &'s Step>) -> usize {
    steps.map(|step| step.frames.len()).max().unwrap_or(0)
}

/// A text with visible spaces and line feeds; the empty text is the start.
fn visible(text: &str) -> String {
    if text.is_empty() {
        return "(start)".to_owned();
    }
    text.chars().fold(String::new(), |mut visible, c| {
        match c {
            ' ' => visible.push('␣'),
            _ if c.is_control() => visible.extend(c.escape_default()),
            _ => visible.push(c),
        }
        visible
    })
}
