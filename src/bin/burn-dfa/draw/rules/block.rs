//! The sizes of the parts of a syntax diagram. The line of every part enters on the left and leaves
//! on the right, at the same height.

use burn_dfa::constraint::Shape;

/// Half the height of a box.
pub const HALF: f64 = 12.0;
/// The radius of the corners of lines.
pub const CORNER: f64 = 8.0;
/// The horizontal gap between parts.
pub const GAP: f64 = 14.0;
/// The vertical gap between parts.
pub const SPACE: f64 = 10.0;
/// The width of a letter in a box.
const LETTER: f64 = 7.3;
/// The height of a label.
pub const LABEL: f64 = 14.0;
/// Wider rows are broken.
const WIDEST: f64 = 860.0;
/// Maximum number of letters in a box.
const LONGEST: usize = 56;

/// A part of a diagram with its size: the heights `above` and `below` its line.
pub struct Block {
    pub width: f64,
    pub above: f64,
    pub below: f64,
    pub kind: Kind,
}

pub enum Kind {
    /// Nothing to read.
    Line,
    /// Text that is read, or a name; `full` if `text` is cut.
    Box { text: String, full: Option<String>, is_name: bool },
    /// Parts one after the other.
    Row(Vec<Block>),
    /// Rows one after the other.
    Rows(Vec<Block>),
    /// One of several branches.
    Fork(Vec<Block>),
    /// A repetition, with a label of its count.
    Loop(Box<Block>, Option<String>),
}

impl Block {
    /// The diagram of an expression.
    pub fn of(shape: &Shape) -> Self {
        match shape {
            Shape::Name(name) => Self::boxed(name, true),
            Shape::Text(text) if text == "\"\"" => Self::line(),
            Shape::Text(text) => Self::boxed(text, false),
            Shape::Sequence(parts) => Self::row(parts.iter().map(Self::of).collect()),
            Shape::Choice(parts) => Self::fork(parts.iter().map(Self::of).collect()),
            Shape::Repeat { inner, min, max } => Self::repeat(Self::of(inner), *min, *max),
            _ => Self::boxed("?", false),
        }
    }

    /// The number of boxes.
    pub fn boxes(&self) -> usize {
        match &self.kind {
            Kind::Line => 0,
            Kind::Box { .. } => 1,
            Kind::Row(parts) | Kind::Rows(parts) | Kind::Fork(parts) => parts.iter().map(Self::boxes).sum(),
            Kind::Loop(inner, _) => inner.boxes(),
        }
    }

    fn line() -> Self {
        Self { width: 0.0, above: 0.0, below: 0.0, kind: Kind::Line }
    }

    fn boxed(all: &str, is_name: bool) -> Self {
        let (text, full) = match all.char_indices().nth(LONGEST) {
            Some((at, _)) => (format!("{}…", &all[..at]), Some(all.to_owned())),
            None => (all.to_owned(), None),
        };
        let width = LETTER * text.chars().count() as f64 + 18.0;
        Self { width, above: HALF, below: HALF, kind: Kind::Box { text, full, is_name } }
    }

    fn row(parts: Vec<Self>) -> Self {
        let parts: Vec<Self> = parts.into_iter().filter(|part| !matches!(part.kind, Kind::Line)).collect();
        let mut rows: Vec<Vec<Self>> = Vec::new();
        let mut width = 0.0;
        for part in parts {
            match rows.last_mut() {
                Some(row) if width + GAP + part.width <= WIDEST => {
                    width += GAP + part.width;
                    row.push(part);
                }
                _ => {
                    width = part.width;
                    rows.push(vec![part]);
                }
            }
        }
        let mut rows: Vec<Self> = rows.into_iter().map(Self::unbroken).collect();
        match rows.len() {
            0 => Self::line(),
            1 => rows.remove(0),
            count => Self {
                // Space for the lines from row to row and the exit line on the right, and for the
                // entry lines on the left.
                width: widest(&rows) + 6.0 * CORNER,
                above: rows[0].above,
                below: (1..count).map(|row| Self::step(&rows, row)).sum::<f64>() + rows[count - 1].below,
                kind: Kind::Rows(rows),
            },
        }
    }

    /// The distance from the line of the previous row to the line of this row.
    pub fn step(rows: &[Self], row: usize) -> f64 {
        Self::turn(&rows[row - 1]) + (rows[row].above + SPACE).max(2.0 * CORNER)
    }

    /// The distance from the line of a row to the return line below it.
    pub fn turn(row: &Self) -> f64 {
        (row.below + SPACE).max(2.0 * CORNER)
    }

    fn unbroken(mut parts: Vec<Self>) -> Self {
        if parts.len() == 1 {
            return parts.remove(0);
        }
        let width = parts.iter().map(|part| part.width).sum::<f64>() + GAP * (parts.len() - 1) as f64;
        let most = |of: fn(&Self) -> f64| parts.iter().map(of).fold(0.0, f64::max);
        Self { width, above: most(|part| part.above), below: most(|part| part.below), kind: Kind::Row(parts) }
    }

    fn fork(parts: Vec<Self>) -> Self {
        let mut branches: Vec<Self> = Vec::new();
        for part in parts {
            match part.kind {
                Kind::Fork(inner) => branches.extend(inner),
                _ => branches.push(part),
            }
        }
        match branches.len() {
            0 => Self::boxed("nothing", false),
            1 => branches.remove(0),
            count => Self {
                width: widest(&branches) + 4.0 * CORNER,
                above: branches[0].above,
                below: (1..count).map(|at| Self::drop(&branches, at)).sum::<f64>()
                    + branches[count - 1].below,
                kind: Kind::Fork(branches),
            },
        }
    }

    /// The distance from the line of the previous branch to the line of this branch.
    pub fn drop(branches: &[Self], at: usize) -> f64 {
        (branches[at - 1].below + SPACE + branches[at].above).max(2.0 * CORNER)
    }

    fn repeat(inner: Self, min: usize, max: Option<usize>) -> Self {
        if matches!(inner.kind, Kind::Line) || max == Some(0) {
            return Self::line();
        }
        let label = match (min, max) {
            (_, Some(1)) => None,
            (0 | 1, None) => None,
            (min, None) => Some(format!("{min} times or more")),
            (0 | 1, Some(max)) => Some(format!("up to {max} times")),
            (min, Some(max)) if min == max => Some(format!("{max} times")),
            (min, Some(max)) => Some(format!("{min} to {max} times")),
        };
        let again = if max == Some(1) { inner } else { Self::again(inner, label) };
        if min == 0 { Self::fork(vec![Self::line(), again]) } else { again }
    }

    fn again(inner: Self, label: Option<String>) -> Self {
        let written = label.as_ref().map_or(0.0, |label| LETTER * label.chars().count() as f64);
        Self {
            width: inner.width.max(written) + 4.0 * CORNER,
            above: inner.above,
            below: Self::turn(&inner) + if label.is_some() { LABEL } else { 2.0 },
            kind: Kind::Loop(inner.into(), label),
        }
    }
}

fn widest(parts: &[Block]) -> f64 {
    parts.iter().map(|part| part.width).fold(0.0, f64::max)
}
