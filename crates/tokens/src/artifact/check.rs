//! Checks on the arrays of an artifact, independent of its writer and of the vocabulary.

use super::arrays::{Declared, Form, NO_PATH, StoredArray};
use super::error::broken;
use super::stored::StoredTable;
use crate::build::{RESERVED_TOKENS_TO_END, reserved_rows};
use crate::position::can_end;
use crate::special::MAX_COLUMNS;
use crate::symbols::{FIRST_SPECIAL, RESERVED_SYMBOL};
use crate::{CompiledConstraint, RowPosition, StateId};
use burn_dfa_common::Result;
use burn_dfa_vocabulary::TokenId;

const RESERVED_STATES: usize = StateId::RESERVED as usize;
const RESERVED_COLUMNS: usize = CompiledConstraint::RESERVED_COLUMNS;

impl StoredTable<'_> {
    /// Checks shapes, indices, reserved states and columns and, if columns suffice to count them,
    /// the distances to the end; returns whether the distances were checked.
    pub(super) fn check(&self) -> Result<bool> {
        self.check_sizes()?;
        self.arrays().try_for_each(|array| self.check_entries(array))?;
        let usable = match self.form {
            Form::TokenLevel => self.columns_of_classes(),
            Form::ByteLevel | Form::Pushdown => self.check_symbols()?,
        };
        self.check_reserved()?;
        if self.form == Form::Pushdown {
            self.check_jumps()?;
            return Ok(true);
        }
        self.check_start()?;
        self.check_columns(&usable)?;
        if !self.spells(&usable) {
            return Ok(false);
        }
        for (state, row) in self.rows().enumerate().skip(RESERVED_STATES) {
            let nearest = row[RESERVED_COLUMNS..].iter().map(|&next| self.distance(StateId(next))).min();
            self.check_distance(StateId(state as u32), nearest.unwrap_or(NO_PATH))?;
        }
        Ok(true)
    }

    /// Checks only that every lookup stays in bounds.
    pub(super) fn check_bounds(&self) -> Result<()> {
        self.check_sizes()?;
        self.arrays().try_for_each(|array| self.check_entries(array))?;
        if self.form != Form::TokenLevel {
            self.check_symbols()?;
        }
        self.check_reserved()?;
        if self.form == Form::Pushdown { self.check_jumps() } else { self.check_start() }
    }

    /// Checks the stored distance of `state`, given `nearest`, the least distance among its next
    /// states. If all states pass, the distances are right: they fall by one along some path, down
    /// to one.
    pub(super) fn check_distance(&self, state: StateId, nearest: u32) -> Result<()> {
        let accepting = self[StoredArray::Next]
            [state.index() * self.columns() + CompiledConstraint::EOS as usize]
            == StateId::DONE.0;
        // No path plus one is no path.
        let expected = if accepting { 1 } else { nearest.saturating_add(1).min(NO_PATH) };
        let found = self.distance(state);
        if found != expected {
            let [found, expected] = [found, expected].map(|tokens| match tokens {
                NO_PATH => "no path to the end".to_owned(),
                _ => format!("{tokens} tokens to the end"),
            });
            let name = self.bounds().declare().name;
            return Err(broken(name, format!("state {state}: {found} instead of {expected}")));
        }
        if self.form == Form::TokenLevel && !self.has_end(state) {
            return Err(broken("tokens_to_end", format!("state {state} is a dead end")));
        }
        Ok(())
    }

    pub(super) fn distance(&self, state: StateId) -> u32 {
        self[self.bounds()][state.index()]
    }

    /// Whether a path to the end exists.
    fn has_end(&self, state: StateId) -> bool {
        can_end(&self[self.bounds()], state, RowPosition::UNLIMITED)
    }

    fn check_sizes(&self) -> Result<()> {
        let (states, columns) = (self.states(), self.columns());
        if states < RESERVED_STATES || columns < RESERVED_COLUMNS || states > i32::MAX as usize {
            let what = format!(
                "{states} states and {columns} columns, at least {RESERVED_STATES} of each are reserved"
            );
            return Err(broken("next", what));
        }
        for array in self.arrays() {
            let (len, shape) = (self[array].len(), self.sizes.shape(array));
            if shape.iter().try_fold(1usize, |all, &size| all.checked_mul(size)) != Some(len) {
                return Err(broken(array.declare().name, format!("{len} entries for the shape {shape:?}")));
            }
        }
        Ok(())
    }

    /// Checks that every entry is within its dimension.
    fn check_entries(&self, array: StoredArray) -> Result<()> {
        let Declared { name, shape, entries: Some(entries), .. } = array.declare() else { return Ok(()) };
        let size = self.sizes.of(entries);
        let Some(mut at) = first(&self[array], |entry| entry as usize >= size) else { return Ok(()) };
        let entry = self[array][at].cast_signed();
        let mut location = Vec::new();
        for &dimension in shape.iter().rev() {
            let size = self.sizes.of(dimension);
            location.push(format!("{} {}", dimension.names()[0], at % size));
            at /= size;
        }
        location.reverse();
        Err(broken(name, format!("{}: {entry} of {size} {}", location.join(", "), entries.names()[1])))
    }

    /// Marks the columns with tokens.
    fn columns_of_classes(&self) -> Vec<bool> {
        let mut usable = self.reserved_columns();
        self[StoredArray::Class].iter().for_each(|&class| usable[class as usize] = true);
        usable
    }

    fn reserved_columns(&self) -> Vec<bool> {
        (0..self.columns()).map(|column| column < RESERVED_COLUMNS).collect()
    }

    /// Checks the symbols of tokens; marks the columns of one-symbol tokens.
    pub(super) fn check_symbols(&self) -> Result<Vec<bool>> {
        let (columns, column) = (self.columns(), &self[StoredArray::Column]);
        let bytes = RESERVED_SYMBOL as usize;
        let first_special = FIRST_SPECIAL as usize;
        let own = self.byte_columns();
        if !(first_special..=first_special + MAX_COLUMNS).contains(&column.len()) || own.is_empty() {
            return Err(broken("column", format!("{} symbols for {columns} columns", column.len())));
        }
        let expected = |symbol: usize| match symbol {
            _ if symbol < bytes => own.clone(),
            _ if symbol < first_special => symbol - bytes..symbol - bytes + 1,
            _ => own.end + symbol - first_special..own.end + symbol - first_special + 1,
        };
        if let Some(at) = (0..column.len()).find(|&at| !expected(at).contains(&(column[at] as usize))) {
            return Err(broken("column", format!("symbol {at}: {} of {columns} columns", column[at])));
        }
        let (offsets, symbols) = (&self[StoredArray::Offsets], self[StoredArray::Symbols].len());
        if offsets.first() != Some(&0) || offsets.last().map(|&end| end as usize) != Some(symbols) {
            return Err(broken("offsets", format!("they do not go from 0 to the {symbols} symbols")));
        }
        if let Some(token) = offsets.windows(2).position(|ends| ends[0] >= ends[1]) {
            return Err(broken("offsets", format!("token {token}: it has no symbol")));
        }
        let mut usable = self.reserved_columns();
        for token in (0..self.tokens() as u32).map(TokenId) {
            match self.symbols_of(token) {
                [only] => usable[column[*only as usize] as usize] = true,
                own if own.iter().all(|&symbol| symbol < RESERVED_SYMBOL) => {}
                own => {
                    let what = format!("token {token}: {own:?} are neither bytes nor one reserved column");
                    return Err(broken("symbols", what));
                }
            }
        }
        Ok(usable)
    }

    /// Checks the reserved states, and the transitions to them from other states.
    fn check_reserved(&self) -> Result<()> {
        let columns = self.columns();
        let reserved = reserved_rows(RESERVED_STATES, columns);
        if let Some(at) = reserved.iter().zip(&self[StoredArray::Next]).position(|(one, other)| one != other)
        {
            let found = self[StoredArray::Next][at];
            let (state, column) = (at / columns, at % columns);
            let what = format!(
                "state {state}, column {column}: {found} in a reserved state, instead of {}",
                reserved[at]
            );
            return Err(broken("next", what));
        }
        for (state, row) in self.rows().enumerate().skip(RESERVED_STATES) {
            let [never, eos, unmatched, text @ ..] = row else { continue };
            // Free text allows non-text tokens.
            let lawful =
                *never == 0 && *eos <= StateId::DONE.0 && (*unmatched == 0 || *unmatched as usize == state);
            if !lawful || text.iter().any(|next| (StateId::DONE.0..StateId::RESERVED).contains(next)) {
                let what = format!("state {state}: it leads to a reserved state, which only the end does");
                return Err(broken("next", what));
            }
        }
        if let Some(array) = self.token_distances()
            && let Some(at) = self[array].iter().position(|&distance| distance > NO_PATH)
        {
            return Err(broken(array.declare().name, format!("entry {at}: not a distance")));
        }
        if self.form == Form::Pushdown {
            return Ok(());
        }
        let name = self.bounds().declare().name;
        let (reserved, own) = self[self.bounds()].split_at(RESERVED_STATES);
        if *reserved != RESERVED_TOKENS_TO_END.map(|tokens| tokens.min(NO_PATH)) {
            return Err(broken(name, "the reserved states are as far as no end, 0 and 0"));
        }
        match first(own, |tokens| tokens == 0 || tokens > NO_PATH) {
            Some(at) => Err(broken(name, format!("state {}: not a distance", at + RESERVED_STATES))),
            None => Ok(()),
        }
    }

    fn check_start(&self) -> Result<()> {
        let (start, states) = (self.start, self.states());
        let alone = states == RESERVED_STATES && start == StateId::UNCONSTRAINED;
        let own = (RESERVED_STATES..states).contains(&start.index());
        if alone || own && self.has_end(start) {
            return Ok(());
        }
        let what = format!("{start} of {states} states, from which there is no path to the end");
        Err(broken("start", what))
    }

    /// Checks the columns other than byte columns: each has a token or no transitions.
    fn check_columns(&self, usable: &[bool]) -> Result<()> {
        let bytes = self.byte_columns();
        let rows = || self.rows().skip(RESERVED_STATES);
        let mut open = open(usable).filter(|column| !bytes.contains(column));
        if open.any(|column| rows().any(|row| row[column] != StateId::DEAD.0)) {
            return Err(broken("next", "a column without tokens leads somewhere"));
        }
        let lost = |&to: &u32| to != StateId::DEAD.0 && !self.has_end(StateId(to));
        if self.form == Form::ByteLevel && rows().any(|row| row[bytes.end..].iter().any(lost)) {
            return Err(broken("next", "a marker leads to where there is no path to the end"));
        }
        Ok(())
    }

    /// Whether each byte taken by a state has a token with the same transition; otherwise tokens
    /// must be followed.
    pub(super) fn spells(&self, usable: &[bool]) -> bool {
        let open: Vec<_> = open(usable).collect();
        let spelled = |row: &[u32]| {
            let like = |to| (RESERVED_COLUMNS..row.len()).any(|column| usable[column] && row[column] == to);
            open.iter().all(|&column| row[column] == StateId::DEAD.0 || like(row[column]))
        };
        self.rows().skip(RESERVED_STATES).all(spelled)
    }
}

/// The columns without tokens.
fn open(usable: &[bool]) -> impl Iterator<Item = usize> {
    usable.iter().enumerate().filter(|&(_, usable)| !usable).map(|(column, _)| column)
}

/// The index of the first number that `breaks` the rule; fast if none does.
fn first(numbers: &[u32], breaks: impl Fn(u32) -> bool) -> Option<usize> {
    let any = numbers.iter().fold(false, |any, &number| any | breaks(number));
    if any { numbers.iter().position(|&number| breaks(number)) } else { None }
}
