//! What must hold of the arrays of an artefact, whoever wrote them and whatever the vocabulary.

use super::arrays::{Declared, Form, NO_WAY, StoredArray};
use super::broken;
use super::stored::StoredTable;
use crate::error::Result;
use crate::table::build::{RESERVED_TOKENS_TO_END, reserved_rows};
use crate::table::position::can_end;
use crate::table::special::MOST_COLUMNS;
use crate::table::symbols::{FIRST_SPECIAL, RESERVED_SYMBOL};
use crate::table::{RowPosition, StateId, TokenTable};
use crate::vocabulary::TokenId;

const RESERVED_STATES: usize = StateId::RESERVED as usize;
const RESERVED_COLUMNS: usize = TokenTable::RESERVED_COLUMNS;

impl StoredTable<'_> {
    /// Checks shapes, indices, reserved states and columns and, where columns are enough to count them, the
    /// distances to the end; says whether they were.
    pub(super) fn check(&self) -> Result<bool> {
        self.check_sizes()?;
        StoredArray::of(self.form).try_for_each(|array| self.check_entries(array))?;
        let usable = match self.form {
            Form::Tabulated => self.columns_of_classes(),
            Form::Walked | Form::Called => self.check_symbols()?,
        };
        self.check_reserved()?;
        if self.form == Form::Called {
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
            self.check_distance(StateId(state as u32), nearest.unwrap_or(NO_WAY))?;
        }
        Ok(true)
    }

    /// Checks that every lookup stays in bounds, and nothing else.
    #[cfg(all(feature = "remote-server", feature = "flex"))]
    pub(super) fn check_bounds(&self) -> Result<()> {
        self.check_sizes()?;
        StoredArray::of(self.form).try_for_each(|array| self.check_entries(array))?;
        if self.form != Form::Tabulated {
            self.check_symbols()?;
        }
        self.check_reserved()?;
        if self.form == Form::Called { self.check_jumps() } else { self.check_start() }
    }

    /// Checks that `state` is as far from the end as it says, `nearest` being the distance of the nearest state that
    /// it leads to. If all states pass, the distances are right: they fall by one along some way, down to one.
    pub(super) fn check_distance(&self, state: StateId, nearest: u32) -> Result<()> {
        let accepting = self[StoredArray::Next][state.index() * self.columns() + TokenTable::EOS as usize]
            == StateId::DONE.0;
        // One more than no way is no way.
        let expected = if accepting { 1 } else { nearest.saturating_add(1).min(NO_WAY) };
        let found = self.distance(state);
        if found != expected {
            let [found, expected] = [found, expected].map(|tokens| match tokens {
                NO_WAY => "no way to the end".to_owned(),
                _ => format!("{tokens} tokens to the end"),
            });
            return Err(broken("tokens_to_end", format!("state {state}: {found} instead of {expected}")));
        }
        if self.form == Form::Tabulated && !self.has_end(state) {
            return Err(broken("tokens_to_end", format!("state {state} is a dead end")));
        }
        Ok(())
    }

    pub(super) fn distance(&self, state: StateId) -> u32 {
        self[StoredArray::TokensToEnd][state.index()]
    }

    /// Whether there is a way to the end.
    fn has_end(&self, state: StateId) -> bool {
        can_end(&self[StoredArray::TokensToEnd], state, RowPosition::UNLIMITED)
    }

    fn check_sizes(&self) -> Result<()> {
        let (states, columns) = (self.states(), self.columns());
        if states < RESERVED_STATES || columns < RESERVED_COLUMNS || states > i32::MAX as usize {
            let what = format!(
                "{states} states and {columns} columns, at least {RESERVED_STATES} of each are reserved"
            );
            return Err(broken("next", what));
        }
        for array in StoredArray::of(self.form) {
            let (len, shape) = (self[array].len(), self.sizes.shape(array));
            if shape.iter().try_fold(1usize, |all, &size| all.checked_mul(size)) != Some(len) {
                return Err(broken(array.declare().name, format!("{len} entries for the shape {shape:?}")));
            }
        }
        Ok(())
    }

    /// Checks that every entry numbers something that there is.
    fn check_entries(&self, array: StoredArray) -> Result<()> {
        let Declared { name, shape, entries: Some(entries), .. } = array.declare() else { return Ok(()) };
        let size = self.sizes.of(entries);
        let Some(mut at) = first(&self[array], |entry| entry as usize >= size) else { return Ok(()) };
        let entry = self[array][at].cast_signed();
        let mut place = Vec::new();
        for &dimension in shape.iter().rev() {
            let size = self.sizes.of(dimension);
            place.push(format!("{} {}", dimension.names()[0], at % size));
            at /= size;
        }
        place.reverse();
        Err(broken(name, format!("{}: {entry} of {size} {}", place.join(", "), entries.names()[1])))
    }

    /// Gives the columns that tokens have.
    fn columns_of_classes(&self) -> Vec<bool> {
        let mut usable = self.reserved_columns();
        self[StoredArray::Class].iter().for_each(|&class| usable[class as usize] = true);
        usable
    }

    fn reserved_columns(&self) -> Vec<bool> {
        (0..self.columns()).map(|column| column < RESERVED_COLUMNS).collect()
    }

    /// Checks what the symbols of tokens are; gives the columns that tokens of one symbol have.
    pub(super) fn check_symbols(&self) -> Result<Vec<bool>> {
        let (columns, column) = (self.columns(), &self[StoredArray::Column]);
        let bytes = RESERVED_SYMBOL as usize;
        let first_special = FIRST_SPECIAL as usize;
        let own = self.byte_columns();
        if !(first_special..=first_special + MOST_COLUMNS).contains(&column.len()) || own.is_empty() {
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

    /// Checks the reserved states, and that others lead to them only as they may.
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
            // Free text lets pass what is not text.
            let lawful =
                *never == 0 && *eos <= StateId::DONE.0 && (*unmatched == 0 || *unmatched as usize == state);
            if !lawful || text.iter().any(|next| (StateId::DONE.0..StateId::RESERVED).contains(next)) {
                let what = format!("state {state}: it leads to a reserved state, which only the end does");
                return Err(broken("next", what));
            }
        }
        if self.form == Form::Called {
            return Ok(());
        }
        let (reserved, own) = self[StoredArray::TokensToEnd].split_at(RESERVED_STATES);
        if *reserved != RESERVED_TOKENS_TO_END.map(|tokens| tokens.min(NO_WAY)) {
            return Err(broken("tokens_to_end", "the reserved states are as far as no end, 0 and 0"));
        }
        match first(own, |tokens| tokens == 0 || tokens > NO_WAY) {
            Some(at) => {
                Err(broken("tokens_to_end", format!("state {}: not a distance", at + RESERVED_STATES)))
            }
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
        let what = format!("{start} of {states} states, from which there is no way to the end");
        Err(broken("start", what))
    }

    /// Checks the columns that are not those of bytes: such a one is a token's, or leads nowhere.
    fn check_columns(&self, usable: &[bool]) -> Result<()> {
        let bytes = self.byte_columns();
        let rows = || self.rows().skip(RESERVED_STATES);
        let mut open = open(usable).filter(|column| !bytes.contains(column));
        if open.any(|column| rows().any(|row| row[column] != StateId::DEAD.0)) {
            return Err(broken("next", "a column without tokens leads somewhere"));
        }
        let lost = |&to: &u32| to != StateId::DEAD.0 && !self.has_end(StateId(to));
        if self.form == Form::Walked && rows().any(|row| row[bytes.end..].iter().any(lost)) {
            return Err(broken("next", "a marker leads to where there is no way to the end"));
        }
        Ok(())
    }

    /// Whether of each byte that a state takes some token acts like it there; otherwise tokens have to be followed.
    pub(super) fn spells(&self, usable: &[bool]) -> bool {
        let open: Vec<_> = open(usable).collect();
        let spelled = |row: &[u32]| {
            let like = |to| (RESERVED_COLUMNS..row.len()).any(|column| usable[column] && row[column] == to);
            open.iter().all(|&column| row[column] == StateId::DEAD.0 || like(row[column]))
        };
        self.rows().skip(RESERVED_STATES).all(spelled)
    }
}

/// The columns that no token has.
fn open(usable: &[bool]) -> impl Iterator<Item = usize> {
    usable.iter().enumerate().filter(|&(_, usable)| !usable).map(|(column, _)| column)
}

/// Where the first number is that `breaks` the rule; quick where none does.
fn first(numbers: &[u32], breaks: impl Fn(u32) -> bool) -> Option<usize> {
    let any = numbers.iter().fold(false, |any, &number| any | breaks(number));
    if any { numbers.iter().position(|&number| breaks(number)) } else { None }
}
