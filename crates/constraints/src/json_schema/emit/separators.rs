//! Separators: white space and punctuation between the parts of arrays and objects.

use super::Emitter;
use crate::json_schema::options::Whitespace;
use burn_dfa_automata::Run;

/// Reserved states after a comma, filled when the next part is known.
pub(super) struct Separator {
    /// The start of the white space.
    pub(super) head: u32,
    /// The starts of the next part, after fewer and fewer spaces.
    states: Vec<u32>,
}

impl Separator {
    /// The start of the next part.
    pub(super) fn part(&self) -> u32 {
        self.states[0]
    }
}

impl Emitter<'_, '_> {
    pub(super) fn is_pretty(&self) -> bool {
        matches!(self.planner.options().whitespace, Whitespace::Pretty(_))
    }

    /// Reserves the states after a comma on `level`.
    pub(super) fn separator(&mut self, level: usize) -> Separator {
        let spaces = match self.planner.options().whitespace {
            Whitespace::Flexible(max) => max,
            _ => 0,
        };
        let first = self.rows.reserve(spaces + 1);
        let states: Vec<u32> = (first..=first + spaces as u32).collect();
        let head = match self.planner.options().whitespace {
            Whitespace::Compact => first,
            Whitespace::Spaced => self.rows.byte(b' ', first),
            Whitespace::Pretty(_) => self.line(level, first),
            Whitespace::Flexible(_) => states[spaces],
        };
        Separator { head, states }
    }

    /// Fills the states after a comma with the transitions of `state`.
    pub(super) fn fill(&mut self, separator: &Separator, state: u32) {
        let row = self.rows.row(state).to_vec();
        let mut before = 0;
        for &at in &separator.states {
            let row = with_space(&row, before);
            self.rows.fill(at, false, &row);
            before = at;
        }
    }

    /// The state after a comma on `level`, before the part at `part`.
    pub(super) fn after_comma(&mut self, level: usize, part: u32) -> u32 {
        match self.planner.options().whitespace {
            _ if part == 0 => 0,
            Whitespace::Compact => part,
            Whitespace::Spaced => self.rows.byte(b' ', part),
            Whitespace::Pretty(_) => self.line(level, part),
            Whitespace::Flexible(_) => self.spaced(part),
        }
    }

    /// After an opening bracket: the first part on `level`, or the closing bracket and on to `end`.
    pub(super) fn opened(&mut self, level: usize, part: u32, close: u8, end: u32) -> u32 {
        let part = if self.is_pretty() && part != 0 { self.line(level, part) } else { part };
        let row = self.rows.joined(part, &[(close, close, end).into()]);
        let state = self.rows.state(false, &row);
        self.spaced(state)
    }

    /// After a part on `level`: a comma and on to `more`, or the closing bracket and on to `end`.
    pub(super) fn after_part(&mut self, level: usize, more: u32, close: u8, end: u32) -> u32 {
        let (&comma, rest) =
            self.planner.options().separators.item.as_bytes().split_first().unwrap_or((&b',', &[]));
        let more = if more == 0 { 0 } else { self.rows.word(rest, more) };
        let comma = Run::from((comma, comma, more));
        let row = if self.is_pretty() {
            let closing = self.rows.byte(close, end);
            let line = if closing == 0 { 0 } else { self.line(level - 1, closing) };
            let mut row = self.rows.row(line).to_vec();
            row.push(comma);
            row
        } else {
            let mut row = vec![comma, (close, close, end).into()];
            row.sort_unstable();
            row
        };
        let state = self.rows.state(false, &row);
        self.spaced(state)
    }

    /// After a name: the colon and on to the value.
    pub(super) fn colon(&mut self, value: u32) -> u32 {
        if value == 0 {
            return 0;
        }
        let options = self.planner.options();
        let value = match options.whitespace {
            Whitespace::Compact => value,
            Whitespace::Spaced | Whitespace::Pretty(_) => self.rows.byte(b' ', value),
            Whitespace::Flexible(_) => self.spaced(value),
        };
        let colon = self.rows.word(options.separators.key.as_bytes(), value);
        self.spaced(colon)
    }

    /// A line end and the indentation of `level`.
    fn line(&mut self, level: usize, to: u32) -> u32 {
        let Whitespace::Pretty(indent) = self.planner.options().whitespace else { return to };
        let start = std::iter::repeat_n(b' ', level * indent).fold(to, |to, byte| self.rows.byte(byte, to));
        self.rows.byte(b'\n', start)
    }

    /// Optional white space, as much as the options allow, and on to `state`.
    fn spaced(&mut self, state: u32) -> u32 {
        let Whitespace::Flexible(max) = self.planner.options().whitespace else { return state };
        if state == 0 {
            return 0;
        }
        let row = self.rows.row(state).to_vec();
        (0..max).fold(state, |before, _| {
            let row = with_space(&row, before);
            self.rows.state(false, &row)
        })
    }
}

/// `row` with white space leading to `to`.
fn with_space(row: &[Run], to: u32) -> Vec<Run> {
    if to == 0 {
        return row.to_vec();
    }
    let mut spaced = [(b'\t', b'\n', to), (b'\r', b'\r', to), (b' ', b' ', to)].map(Run::from).to_vec();
    spaced.extend_from_slice(row);
    spaced.sort_unstable();
    spaced
}
