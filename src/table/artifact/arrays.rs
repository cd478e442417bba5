//! The tensors of an artefact as arrays, and what must hold of them whoever wrote them.

use std::borrow::Cow;
use std::ops::Range;

use super::broken;
use crate::error::Result;
use crate::table::StateId;
use crate::table::TokenTable;
use crate::table::build::reserved_rows;

/// What is read in place of a distance where there is no way to the end.
pub(super) const NO_WAY: u32 = u32::MAX;

/// The first symbol that is no byte: one for each reserved column, and then one for each marker.
pub(super) const RESERVED_SYMBOL: u16 = 256;
/// The first symbol of a marker.
pub(super) const FIRST_SPECIAL: u16 = RESERVED_SYMBOL + TokenTable::RESERVED_COLUMNS as u16;
/// Most markers; they are looked for one by one.
const MOST_SPECIAL: usize = 1024;

const RESERVED_STATES: usize = StateId::RESERVED as usize;
const RESERVED_COLUMNS: usize = TokenTable::RESERVED_COLUMNS;

/// A table, whatever its form.
pub(super) struct StoredArrays<'a> {
    /// `[states, columns]`
    pub(super) next: Cow<'a, [u32]>,
    pub(super) columns: usize,
    /// `[states]`
    pub(super) tokens_to_end: Cow<'a, [u32]>,
    pub(super) start: StateId,
    pub(super) reading: StoredReading<'a>,
}

/// The columns that a token passes.
pub(super) enum StoredReading<'a> {
    /// One each, `[vocabulary]`.
    Classes(Cow<'a, [u32]>),
    /// Those of its symbols.
    Symbols {
        /// `[256 + reserved columns + markers]`: the column of every symbol; those of markers are the last columns.
        column: Vec<u32>,
        /// `[vocabulary + 1]`: where the symbols of every token begin.
        offsets: Vec<u32>,
        symbols: Vec<u16>,
    },
}

impl StoredArrays<'_> {
    /// Checks shapes, indices, reserved states and columns and, where columns are enough to count them, the
    /// distances to the end; says whether they were.
    pub(super) fn check(&self) -> Result<bool> {
        self.check_sizes()?;
        let (states, columns) = (self.tokens_to_end.len(), self.columns);
        if let Some(at) = first(&self.next, |next| next as usize >= states) {
            let next = self.next[at].cast_signed();
            return Err(broken("next", format!("{}: {next} of {states} states", self.place(at))));
        }
        let usable = match &self.reading {
            StoredReading::Classes(class) => self.check_classes(class)?,
            StoredReading::Symbols { column, offsets, symbols } => {
                self.check_symbols(column, offsets, symbols)?
            }
        };
        let reserved = reserved_rows(RESERVED_STATES, columns);
        if let Some(at) = (0..reserved.len()).find(|&at| self.next[at] != reserved[at]) {
            let what = format!(
                "{}: {} in a reserved state, instead of {}",
                self.place(at),
                self.next[at],
                reserved[at]
            );
            return Err(broken("next", what));
        }
        for (state, row) in self.next.chunks_exact(columns).enumerate().skip(RESERVED_STATES) {
            let [never, eos, unmatched, text @ ..] = row else { continue };
            // Free text lets pass what is not text.
            let lawful =
                *never == 0 && *eos <= StateId::DONE.0 && (*unmatched == 0 || *unmatched as usize == state);
            if !lawful || text.iter().any(|next| (StateId::DONE.0..StateId::RESERVED).contains(next)) {
                return Err(broken(
                    "next",
                    format!("state {state}: it leads to a reserved state, which only the end does"),
                ));
            }
        }
        self.check_start()?;
        // What is not a byte is a token or leads nowhere.
        let bytes = self.byte_columns();
        let rows = || self.next.chunks_exact(columns).skip(RESERVED_STATES);
        let open: Vec<usize> = (RESERVED_COLUMNS..columns).filter(|&column| !usable[column]).collect();
        if open.iter().any(|&column| !bytes.contains(&column) && rows().any(|row| row[column] != 0)) {
            return Err(broken("next", "a column without tokens leads somewhere"));
        }
        let special = bytes.end..columns;
        if matches!(self.reading, StoredReading::Symbols { .. })
            && rows().any(|row| {
                row[special.clone()].iter().any(|&to| to != 0 && self.tokens_to_end[to as usize] == NO_WAY)
            })
        {
            return Err(broken("next", "a marker leads to where there is no way to the end"));
        }
        // Of each byte that a state takes, some token acts like it there, or tokens have to be followed.
        let spelled = |row: &[u32]| {
            let like = |to| bytes.clone().any(|column| usable[column] && row[column] == to);
            open.iter().all(|&column| row[column] == 0 || like(row[column]))
        };
        if !rows().all(spelled) {
            return Ok(false);
        }
        for (state, row) in self.next.chunks_exact(columns).enumerate().skip(RESERVED_STATES) {
            let nearest = row[RESERVED_COLUMNS..].iter().map(|&next| self.tokens_to_end[next as usize]).min();
            self.check_distance(state, nearest.unwrap_or(NO_WAY))?;
        }
        Ok(true)
    }

    /// Checks that `state` is as far from the end as it says, `nearest` being the distance of the nearest state that
    /// it leads to. If all states pass, the distances are right: they fall by one along some way, down to one.
    pub(super) fn check_distance(&self, state: usize, nearest: u32) -> Result<()> {
        let accepting = self.next[state * self.columns + TokenTable::EOS as usize] == StateId::DONE.0;
        let expected = match nearest {
            _ if accepting => 1,
            NO_WAY => NO_WAY,
            nearest => nearest.saturating_add(1),
        };
        let found = self.tokens_to_end[state];
        if found != expected {
            return Err(broken(
                "tokens_to_end",
                format!("state {state}: {} instead of {}", distance(found), distance(expected)),
            ));
        }
        if expected == NO_WAY && matches!(self.reading, StoredReading::Classes(_)) {
            return Err(broken("tokens_to_end", format!("state {state} is a dead end")));
        }
        Ok(())
    }

    /// The columns of bytes; none where the table is tabulated.
    pub(super) fn byte_columns(&self) -> Range<usize> {
        match &self.reading {
            StoredReading::Classes(_) => RESERVED_COLUMNS..RESERVED_COLUMNS,
            StoredReading::Symbols { column, .. } => {
                RESERVED_COLUMNS
                    ..self.columns.saturating_sub(column.len().saturating_sub(FIRST_SPECIAL.into()))
            }
        }
    }

    fn check_sizes(&self) -> Result<()> {
        let (states, columns) = (self.tokens_to_end.len(), self.columns);
        if states < RESERVED_STATES || columns < RESERVED_COLUMNS || states > i32::MAX as usize {
            return Err(broken(
                "next",
                format!(
                    "{states} states and {columns} columns, at least {RESERVED_STATES} of each are reserved"
                ),
            ));
        }
        if states.checked_mul(columns) != Some(self.next.len()) {
            return Err(broken(
                "next",
                format!("{} transitions for {states} states and {columns} columns", self.next.len()),
            ));
        }
        let reserved = super::super::build::RESERVED_TOKENS_TO_END;
        if self.tokens_to_end[..RESERVED_STATES] != reserved {
            return Err(broken("tokens_to_end", "the reserved states are as far as no end, 0 and 0"));
        }
        match first(&self.tokens_to_end[RESERVED_STATES..], |tokens| {
            tokens == 0 || tokens > i32::MAX as u32 && tokens != NO_WAY
        }) {
            Some(at) => {
                Err(broken("tokens_to_end", format!("state {}: not a distance", at + RESERVED_STATES)))
            }
            None => Ok(()),
        }
    }

    fn check_start(&self) -> Result<()> {
        let Self { start, .. } = self;
        let states = self.tokens_to_end.len();
        let alone = states == RESERVED_STATES && *start == StateId::UNCONSTRAINED;
        let own = (RESERVED_STATES..states).contains(&start.index());
        if alone || own && self.tokens_to_end[start.index()] != NO_WAY {
            return Ok(());
        }
        Err(broken("start", format!("{start} of {states} states, from which there is no way to the end")))
    }

    /// Gives the columns that tokens have.
    fn check_classes(&self, class: &[u32]) -> Result<Vec<bool>> {
        let columns = self.columns;
        if let Some(token) = first(class, |class| class as usize >= columns) {
            return Err(broken(
                "class",
                format!("token {token}: {} of {columns} classes", class[token].cast_signed()),
            ));
        }
        let mut usable = vec![false; columns];
        usable[..RESERVED_COLUMNS].fill(true);
        class.iter().for_each(|&class| usable[class as usize] = true);
        Ok(usable)
    }

    /// Gives the columns that tokens of one byte have.
    fn check_symbols(&self, column: &[u32], offsets: &[u32], symbols: &[u16]) -> Result<Vec<bool>> {
        let columns = self.columns;
        let bytes = usize::from(RESERVED_SYMBOL);
        let first_mark = usize::from(FIRST_SPECIAL);
        let own = self.byte_columns();
        if !(first_mark..=first_mark + MOST_SPECIAL).contains(&column.len()) || own.is_empty() {
            return Err(broken("column", format!("{} symbols for {columns} columns", column.len())));
        }
        let expected = |symbol: usize| match symbol {
            _ if symbol < bytes => own.clone(),
            _ if symbol < first_mark => symbol - bytes..symbol - bytes + 1,
            _ => own.end + symbol - first_mark..own.end + symbol - first_mark + 1,
        };
        if let Some(at) = (0..column.len()).find(|&at| !expected(at).contains(&(column[at] as usize))) {
            return Err(broken(
                "column",
                format!("symbol {at}: {} of {columns} columns", column[at].cast_signed()),
            ));
        }
        if offsets.first() != Some(&0) || offsets.last().map(|&end| end as usize) != Some(symbols.len()) {
            return Err(broken("offsets", format!("they do not go from 0 to the {} symbols", symbols.len())));
        }
        if let Some(token) = offsets.windows(2).position(|ends| ends[0] >= ends[1]) {
            return Err(broken("offsets", format!("token {token}: it has no symbol")));
        }
        let mut usable = vec![false; columns];
        usable[..RESERVED_COLUMNS].fill(true);
        for (token, ends) in offsets.windows(2).enumerate() {
            // Rising to the last, which was checked.
            let own = &symbols[ends[0] as usize..ends[1] as usize];
            match own {
                [only] if usize::from(*only) < column.len() => {
                    usable[column[usize::from(*only)] as usize] = true
                }
                [_, _, ..] if own.iter().all(|&symbol| symbol < RESERVED_SYMBOL) => {}
                _ => {
                    return Err(broken(
                        "symbols",
                        format!("token {token}: {own:?} are neither bytes nor one reserved column"),
                    ));
                }
            }
        }
        Ok(usable)
    }

    /// The state and the column of an entry of `next`.
    fn place(&self, at: usize) -> String {
        format!("state {}, column {}", at / self.columns, at % self.columns)
    }
}

/// Where the first number is that `breaks` the rule; quick where none does.
fn first(numbers: &[u32], breaks: impl Fn(u32) -> bool) -> Option<usize> {
    let any = numbers.iter().fold(false, |any, &number| any | breaks(number));
    if any { numbers.iter().position(|&number| breaks(number)) } else { None }
}

fn distance(tokens: u32) -> String {
    if tokens == NO_WAY { "no way to the end".to_owned() } else { format!("{tokens} tokens to the end") }
}
