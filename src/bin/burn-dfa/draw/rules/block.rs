//! The sizes of the parts of a syntax diagram. The line of every part enters on the left and leaves
//! on the right, at the same height.

use burn_dfa::cli::picture::shortened;
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
/// The width of a box without its letters.
const PADDING: f64 = 18.0;
/// The height of a label.
pub const LABEL: f64 = 14.0;
/// The width of the lines around the branches of a fork, or around a loop.
const AROUND: f64 = 4.0 * CORNER;
/// The width of the lines from row to row and of the exit line on the right, and of the entry lines
/// on the left.
const TURNS: f64 = 6.0 * CORNER;
/// In less width than this, an expression is one box.
const NARROWEST: f64 = 260.0;
/// Maximum number of letters in a box, and in its full text.
const LONGEST: (usize, usize) = (56, 1000);

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
    /// The diagram of an expression, of at most this width.
    pub fn of(shape: &Shape, max_width: f64) -> Self {
        let all = |parts: &[Shape], around: f64| {
            parts.iter().map(|part| Self::of(part, max_width - around)).collect::<Vec<_>>()
        };
        match shape {
            Shape::Name(name) => Self::boxed(name, true, max_width),
            Shape::Text(text) if text == "\"\"" => Self::line(),
            Shape::Text(text) => Self::boxed(text, false, max_width),
            _ if max_width < NARROWEST => Self::boxed(&in_words(shape), false, max_width),
            Shape::Sequence(parts) => Self::row(all(parts, TURNS), max_width),
            Shape::Choice(parts) => Self::fork(all(parts, AROUND)),
            Shape::Repeat { inner, min, max } => {
                Self::repeat(Self::of(inner, max_width - 2.0 * AROUND), *min, *max)
            }
            _ => Self::boxed("?", false, max_width),
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

    fn boxed(all: &str, is_name: bool, max_width: f64) -> Self {
        let (longest, longest_full) = LONGEST;
        let fitting = ((max_width - PADDING) / LETTER) as usize;
        let text = shortened(all, longest.min(fitting));
        let full = (text != all).then(|| shortened(all, longest_full));
        let width = LETTER * text.chars().count() as f64 + PADDING;
        Self { width, above: HALF, below: HALF, kind: Kind::Box { text, full, is_name } }
    }

    fn row(parts: Vec<Self>, max_width: f64) -> Self {
        let parts: Vec<Self> = parts.into_iter().filter(|part| !matches!(part.kind, Kind::Line)).collect();
        let whole: f64 = parts.iter().map(|part| part.width + GAP).sum();
        let longest = if whole <= max_width { max_width } else { max_width - TURNS };
        let mut rows: Vec<Vec<Self>> = Vec::new();
        let mut width = 0.0;
        for part in parts {
            match rows.last_mut() {
                Some(row) if width + GAP + part.width <= longest => {
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
                width: widest(&rows) + TURNS,
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
        let max = |of: fn(&Self) -> f64| parts.iter().map(of).fold(0.0, f64::max);
        Self { width, above: max(|part| part.above), below: max(|part| part.below), kind: Kind::Row(parts) }
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
            0 => Self::boxed("nothing", false, NARROWEST),
            1 => branches.remove(0),
            count => Self {
                width: widest(&branches) + AROUND,
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
            width: inner.width.max(written) + AROUND,
            above: inner.above,
            below: Self::turn(&inner) + if label.is_some() { LABEL } else { 2.0 },
            kind: Kind::Loop(inner.into(), label),
        }
    }
}

fn widest(parts: &[Block]) -> f64 {
    parts.iter().map(|part| part.width).fold(0.0, f64::max)
}

/// An expression as text in one line.
fn in_words(shape: &Shape) -> String {
    let joined = |parts: &[Shape], between: &str| {
        format!("({})", parts.iter().map(in_words).collect::<Vec<_>>().join(between))
    };
    match shape {
        Shape::Name(text) | Shape::Text(text) => text.clone(),
        Shape::Sequence(parts) => joined(parts, " "),
        Shape::Choice(parts) => joined(parts, " | "),
        Shape::Repeat { inner, min, max } => {
            let max = max.map(|max| max.to_string()).unwrap_or_default();
            format!("{}{{{min},{max}}}", in_words(inner))
        }
        _ => "?".to_owned(),
    }
}
