//! The table of a constraint, states × token classes, as an SVG picture.

use std::collections::HashMap;
use std::fmt::Write;

use burn_dfa::cli::picture::{FONT, MAX_WIDTH, escape, page, shortened};
use burn_dfa::{CompiledConstraint, StateId, TokenId, Vocabulary};

/// Height and least width of a cell.
const CELL: f64 = 24.0;
/// Width of a letter.
const LETTER: f64 = 7.3;
/// Height and width of a letter of a column label, which is slanted.
const SLANTED: (f64, f64) = (6.4, 3.8);
/// Width of the labels of rows.
const SIDE: f64 = 90.0;
/// The distance between blocks, and from the last block to the border.
const BETWEEN: f64 = 30.0;
/// Maximum number of classes.
const MAX: usize = 200;
/// Maximum number of letters of a token in a column label.
const LONGEST: usize = 14;

/// A table to draw.
struct Table<'t> {
    constraint: &'t CompiledConstraint,
    vocabulary: &'t Vocabulary,
    /// The states except the reserved ones.
    states: Vec<StateId>,
}

/// Tokens with the same next state in every state.
struct Class {
    next: Vec<StateId>,
    count: usize,
    first: TokenId,
}

/// The picture of `constraint`: a row for each state except the reserved states, a column for each
/// class that is legal in some state. Columns beyond the width of a page are in further blocks
/// below.
pub fn svg(constraint: &CompiledConstraint, vocabulary: &Vocabulary) -> String {
    let states = (StateId::RESERVED..constraint.state_count() as u32).map(StateId).collect();
    let table = Table { constraint, vocabulary, states };
    let classes = table.classes();
    let shown = &classes[..classes.len().min(MAX)];
    let longest = shown.iter().map(|class| table.label(class, LONGEST).chars().count()).max();
    let longest = longest.unwrap_or(0) as f64;
    let (head, overhang) = (SLANTED.0 * longest + 24.0, SLANTED.1 * longest + 12.0);
    // The longest text of a cell is a number, or `end`.
    let letters = table.constraint.state_count().to_string().len().max(3);
    let width = CELL.max(LETTER * letters as f64 + 2.0);
    let columns = (((MAX_WIDTH - SIDE - overhang) / width) as usize).max(1);
    let height = CELL * table.states.len() as f64;
    let (mut body, mut bottom) = (String::new(), 0.0);
    for (block, classes) in shown.chunks(columns).enumerate() {
        let top = (head + height + BETWEEN) * block as f64;
        table.write_rows(&mut body, top);
        for (column, class) in classes.iter().enumerate() {
            table.write_column(&mut body, class, (width * column as f64, top), width);
        }
        bottom = top + height;
    }
    if classes.len() > MAX {
        let (more, y) = (classes.len() - MAX, bottom + 18.0);
        let _never =
            writeln!(body, r#"<text text-anchor="start" x="0" y="{y:.0}">{more} more classes</text>"#);
    }
    let right = width * shown.len().min(columns) as f64 + overhang;
    page(&format!("<g {FONT}>\n{body}</g>\n"), (-SIDE, -head, right, bottom + BETWEEN))
}

impl Table<'_> {
    /// The classes that some state allows, largest first.
    fn classes(&self) -> Vec<Class> {
        let mut classes: HashMap<Vec<StateId>, Class> = HashMap::new();
        for id in (0..self.constraint.vocabulary_len() as u32).map(TokenId) {
            let next: Vec<StateId> =
                self.states.iter().map(|&state| self.constraint.next(state, id)).collect();
            if next.iter().any(|&next| next != StateId::DEAD) {
                let class = classes.entry(next.clone()).or_insert(Class { next, count: 0, first: id });
                class.count += 1;
            }
        }
        let mut classes: Vec<Class> = classes.into_values().collect();
        classes.sort_by_key(|class| (std::cmp::Reverse(class.count), class.first));
        classes
    }

    /// One of the tokens of a class, of at most `longest` letters, and how many more there are.
    fn label(&self, class: &Class, longest: usize) -> String {
        let first = match self.vocabulary.bytes(class.first) {
            Some(bytes) => shortened(&bytes.escape_ascii().to_string(), longest),
            None => "end".to_owned(),
        };
        if class.count > 1 { format!("{first} +{}", class.count - 1) } else { first }
    }

    /// Writes the labels of the rows of a block.
    fn write_rows(&self, body: &mut String, top: f64) {
        for (row, &state) in self.states.iter().enumerate() {
            let y = top + CELL * (row as f64 + 0.5) + 4.0;
            let start = if state == self.constraint.start() { "→ " } else { "" };
            let end = if self.constraint.is_accepting(state) { "◎" } else { "○" };
            let _never =
                writeln!(body, r#"<text text-anchor="end" x="-8" y="{y:.1}">{start}{state} {end}</text>"#);
        }
    }

    /// Writes a column: its label, and a cell for each state.
    fn write_column(&self, body: &mut String, class: &Class, (left, top): (f64, f64), width: f64) {
        let (name, short) = (self.label(class, usize::MAX), self.label(class, LONGEST));
        let (name, short) = (escape(&name), escape(&short));
        let title = if name == short { String::new() } else { format!("<title>{name}</title>") };
        let (middle, above) = (left + width / 2.0, top - 8.0);
        let _never = writeln!(
            body,
            r#"<text text-anchor="start" transform="translate({middle:.1},{above:.1}) rotate(-60)">{title}{short}</text>"#
        );
        for (row, (state, &next)) in self.states.iter().zip(&class.next).enumerate() {
            let top = top + CELL * row as f64;
            let _never = writeln!(
                body,
                r##"<rect x="{left:.1}" y="{top:.0}" width="{width:.1}" height="{CELL}" fill="{}" stroke="#d0d7de" stroke-width="0.6"><title>{state} on {name}: {}</title></rect>"##,
                self.color(next),
                said(next)
            );
            if next != StateId::DEAD {
                let y = top + CELL / 2.0 + 4.0;
                let number = if next == StateId::DONE { "end".to_owned() } else { next.to_string() };
                let _never = writeln!(body, r#"<text x="{middle:.1}" y="{y:.0}">{number}</text>"#);
            }
        }
    }

    /// A color for each next state, around the color wheel.
    fn color(&self, next: StateId) -> String {
        match next {
            StateId::DEAD => "#fff".to_owned(),
            StateId::DONE => "#ddf4e4".to_owned(),
            _ => {
                let states = self.constraint.state_count().saturating_sub(StateId::RESERVED as usize).max(1);
                let hue = 360.0 * f64::from(next.0.saturating_sub(StateId::RESERVED)) / states as f64;
                format!("hsl({hue:.0} 70% 88%)")
            }
        }
    }
}

fn said(next: StateId) -> String {
    match next {
        StateId::DEAD => "not allowed".to_owned(),
        StateId::DONE => "done".to_owned(),
        _ => format!("to {next}"),
    }
}
