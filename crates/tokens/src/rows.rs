//! The next state by state and column: the array `D` of a compiled constraint.
//!
//! A byte-level constraint has a row for every state of its automaton, and a text passes through
//! few of the states. A row is therefore written when first read, from the automaton's runs of
//! bytes. Bytes are followed by the runs, which writes no row. Token-level constraints, constraints
//! from a file and those with tokens that are read whole store all rows contiguously.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use super::build::reserved_rows;
use super::{CompiledConstraint, StateId};
use burn_dfa_automata::{Run, SparseRows};
use burn_dfa_common::threads;
use burn_dfa_vocabulary::{Symbols, symbol};

/// Added to a live state of the automaton: the dead state stays 0, and the reserved states come
/// first.
pub(super) const SHIFT: u32 = StateId::RESERVED - 1;

/// The least number of rows per thread.
const SHARED_ROWS: usize = 8_192;

/// The number of words of the bits of resting symbols.
const REST_WORDS: usize = size_of::<Symbols>() / size_of::<u32>();

/// `D`, `[states, columns]`.
#[derive(Clone)]
pub struct TransitionRows {
    columns: usize,
    storage: RowStorage,
}

#[derive(Clone)]
enum RowStorage {
    /// All rows, contiguous.
    Whole {
        next: Vec<u32>,
        /// `[states]`, see [`TransitionRows::rests_on`]; empty until computed.
        rests: Vec<Symbols>,
    },
    OnDemand(Arc<OnDemand>),
}

/// Rows written on first read.
struct OnDemand {
    rows: Arc<SparseRows>,
    free: u32,
    /// The symbols of the bytes of each column.
    symbols: Vec<Symbols>,
    /// `[states, columns + 4]`: after the columns of a state, the bits of its resting symbols.
    written: Box<[OnceLock<Box<[u32]>>]>,
}

/// The transitions by bytes from a state of a byte-level constraint.
#[derive(Clone, Copy)]
pub(super) enum TransitionView<'a> {
    /// By its row, and the column of each byte.
    Row(&'a [u32], &'a [u32; 256]),
    /// By runs of bytes, in order; bytes outside of the runs have no transition.
    Runs(&'a [Run]),
}

impl TransitionView<'_> {
    /// The next state after a byte; `DEAD` if the byte is illegal.
    #[inline]
    pub(super) fn after(&self, byte: u8) -> StateId {
        match self {
            Self::Row(row, column_of) => StateId(row[column_of[byte as usize] as usize]),
            Self::Runs(runs) => {
                let run = runs.get(runs.partition_point(|run| run.last < byte));
                run.filter(|run| run.first <= byte).map_or(StateId::DEAD, entered)
            }
        }
    }
}

/// The number of a state in the automaton; `None` for a reserved state.
fn own_state(state: StateId) -> Option<u32> {
    state.0.checked_sub(SHIFT).filter(|&own| own > 0)
}

/// The state entered by a run of an automaton's row.
pub(super) fn entered(run: &Run) -> StateId {
    StateId(run.target + SHIFT)
}

impl TransitionRows {
    /// All rows, contiguous.
    pub(super) fn whole(next: Vec<u32>, columns: usize) -> Self {
        Self { columns, storage: RowStorage::Whole { next, rests: Vec::new() } }
    }

    /// The rows of an automaton after the reserved rows; its states 1 to `free` are free text. The
    /// columns of bytes follow the reserved columns, and later columns have no transitions yet.
    pub(super) fn on_demand(rows: Arc<SparseRows>, free: u32, columns: usize) -> Self {
        let mut symbols = vec![0; columns];
        for (byte, &class) in (0..=u8::MAX).zip(rows.classes()) {
            symbols[CompiledConstraint::RESERVED_COLUMNS + class as usize] |= 1 << symbol(byte);
        }
        let states = rows.state_count() + SHIFT as usize;
        let written = std::iter::repeat_with(OnceLock::new).take(states).collect();
        let storage = RowStorage::OnDemand(Arc::new(OnDemand { rows, free, symbols, written }));
        Self { columns, storage }
    }

    /// The same rows, all unwritten.
    #[cfg(test)]
    pub(super) fn unwritten(&self) -> Self {
        match &self.storage {
            RowStorage::Whole { .. } => self.clone(),
            RowStorage::OnDemand(rows) => Self::on_demand(Arc::clone(&rows.rows), rows.free, self.columns),
        }
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    pub fn states(&self) -> usize {
        match &self.storage {
            RowStorage::Whole { next, .. } => next.len() / self.columns.max(1),
            RowStorage::OnDemand(rows) => rows.written.len(),
        }
    }

    /// The row of a state, `[columns]`.
    ///
    /// # Panics
    /// If the state does not exist.
    #[inline]
    pub fn row(&self, state: StateId) -> &[u32] {
        match &self.storage {
            RowStorage::Whole { next, .. } => &next[state.index() * self.columns..][..self.columns],
            RowStorage::OnDemand(rows) => &rows.row(state)[..self.columns],
        }
    }

    /// The transitions by bytes from a state of a byte-level constraint; `column_of` has the column
    /// of each byte. No row is written.
    #[inline]
    pub(super) fn transitions<'a>(&'a self, state: StateId, column_of: &'a [u32; 256]) -> TransitionView<'a> {
        match &self.storage {
            RowStorage::OnDemand(rows) if let Some(runs) = rows.runs(state) => TransitionView::Runs(runs),
            _ => TransitionView::Row(self.row(state), column_of),
        }
    }

    /// The runs of bytes with transitions from a state, if its row is written on demand.
    #[inline]
    pub(super) fn runs(&self, state: StateId) -> Option<&[Run]> {
        let RowStorage::OnDemand(rows) = &self.storage else { return None };
        rows.runs(state)
    }

    /// The symbols of bytes that lead from `state` to itself and keep the stack. A row that reads
    /// such a byte makes no call and does not return, because `state` is neither a call nor a
    /// RETURN. Known for byte-level constraints only.
    #[inline]
    pub(super) fn rests_on(&self, state: StateId) -> Symbols {
        match &self.storage {
            RowStorage::Whole { rests, .. } => rests.get(state.index()).copied().unwrap_or(0),
            RowStorage::OnDemand(rows) => match rows.written[state.index()].get() {
                Some(row) => rests_of(&row[self.columns..]),
                None if rows.leaves(state) => 0,
                None => rests_of(&rows.row(state)[self.columns..]),
            },
        }
    }

    /// The next states of a state by the reserved columns.
    pub fn reserved(&self, state: StateId) -> [u32; CompiledConstraint::RESERVED_COLUMNS] {
        let mut entries = [StateId::DEAD.0; CompiledConstraint::RESERVED_COLUMNS];
        match (&self.storage, own_state(state)) {
            (RowStorage::OnDemand(rows), Some(own)) => rows.fill_reserved(own, &mut entries),
            _ => entries.copy_from_slice(&self.row(state)[..CompiledConstraint::RESERVED_COLUMNS]),
        }
        entries
    }

    /// The next states of a state by the columns from `first` on, past the columns of bytes.
    pub fn last_columns(&self, state: StateId, first: usize) -> &[u32] {
        if first == self.columns {
            return &[];
        }
        // Rows written on demand have no transitions in these columns.
        let state = if self.runs(state).is_some() { StateId::DEAD } else { state };
        &self.row(state)[first..]
    }

    /// All rows, contiguous.
    pub fn all(&self) -> Cow<'_, [u32]> {
        match &self.storage {
            RowStorage::Whole { next, .. } => next.into(),
            RowStorage::OnDemand(rows) => rows.all(self.columns, 1).into(),
        }
    }

    /// All rows, mutable: writes them first, on at most `threads` threads.
    pub(super) fn all_mut(&mut self, threads: usize) -> &mut [u32] {
        if let RowStorage::OnDemand(rows) = &self.storage {
            *self = Self::whole(rows.all(self.columns, threads), self.columns);
        }
        match &mut self.storage {
            RowStorage::Whole { next, .. } => next,
            RowStorage::OnDemand(_) => unreachable!("all rows are written"),
        }
    }

    /// The row of a state, mutable; all rows are written first.
    pub(super) fn row_mut(&mut self, state: StateId) -> &mut [u32] {
        let columns = self.columns;
        &mut self.all_mut(1)[state.index() * columns..][..columns]
    }

    /// Computes the resting symbols of all states; `column_of` has the column of each byte.
    pub(super) fn find_rests(&mut self, column_of: &[u32; 256]) {
        let RowStorage::Whole { next, rests } = &mut self.storage else { return };
        let mut symbols = vec![0; self.columns];
        for (byte, &column) in (0..=u8::MAX).zip(column_of) {
            symbols[column as usize] |= 1 << symbol(byte);
        }
        *rests = (0..)
            .zip(next.chunks_exact(self.columns))
            .map(|(state, row)| resting(state, row, &symbols))
            .collect();
    }

    /// The first entry that is not a state: its index among all rows, and the entry.
    pub(super) fn first_beyond(&self) -> Option<(usize, u32)> {
        let states = self.states();
        match &self.storage {
            RowStorage::Whole { next, .. } => {
                // One pass without an early exit, which the compiler vectorizes.
                let greatest = next.iter().fold(0, |greatest, &next| greatest.max(next));
                if (greatest as usize) < states {
                    return None;
                }
                (0..).zip(next.iter().copied()).find(|&(_, next)| next as usize >= states)
            }
            // The targets of an automaton are valid states.
            RowStorage::OnDemand(_) => None,
        }
    }
}

/// The resting symbols of a state, from the words after its row.
#[inline]
fn rests_of(words: &[u32]) -> Symbols {
    words.iter().rev().fold(0, |all, &word| all << 32 | Symbols::from(word))
}

/// The symbols with bytes that lead from a state with this row to itself.
fn resting(state: u32, row: &[u32], symbols: &[Symbols]) -> Symbols {
    if !row.contains(&state) {
        return 0;
    }
    let changing = row.iter().zip(symbols).filter(|&(&to, _)| to != state);
    !changing.fold(0, |all, (_, symbols)| all | symbols)
}

impl OnDemand {
    /// The runs of bytes with transitions from a state of the automaton.
    #[inline]
    fn runs(&self, state: StateId) -> Option<&[Run]> {
        own_state(state).map(|own| self.rows.row(own))
    }

    /// Whether all transitions of a state lead to other states.
    fn leaves(&self, state: StateId) -> bool {
        self.runs(state).is_some_and(|runs| runs.iter().all(|run| entered(run) != state))
    }

    /// The row of a state, followed by its resting symbols.
    #[inline]
    fn row(&self, state: StateId) -> &[u32] {
        self.written[state.index()].get_or_init(|| self.write(state))
    }

    #[cold]
    fn write(&self, state: StateId) -> Box<[u32]> {
        let columns = self.symbols.len();
        let mut row = Vec::with_capacity(columns + REST_WORDS);
        match own_state(state) {
            None => row.extend_from_slice(
                &reserved_rows(StateId::RESERVED as usize, columns)[state.index() * columns..][..columns],
            ),
            Some(own) => {
                row.resize(columns, StateId::DEAD.0);
                self.fill(own, &mut row);
            }
        }
        let rests = resting(state.0, &row, &self.symbols);
        row.extend((0..REST_WORDS).map(|word| (rests >> (32 * word)) as u32));
        row.into()
    }

    /// All rows, contiguous.
    fn all(&self, columns: usize, threads: usize) -> Vec<u32> {
        let mut next = reserved_rows(self.written.len(), columns);
        let own = &mut next[StateId::RESERVED as usize * columns..];
        threads::rows(own, columns, threads, SHARED_ROWS, |first, own| {
            for (state, row) in (1 + first as u32..).zip(own.chunks_exact_mut(columns)) {
                self.fill(state, row);
            }
        });
        next
    }

    /// Writes the row of a state of the automaton, with all entries dead so far.
    fn fill(&self, state: u32, row: &mut [u32]) {
        self.fill_reserved(state, row);
        self.rows.fill(state, &mut row[CompiledConstraint::RESERVED_COLUMNS..], SHIFT);
    }

    /// Writes the reserved columns of the row.
    fn fill_reserved(&self, state: u32, row: &mut [u32]) {
        if self.rows.is_accepting(state) {
            row[CompiledConstraint::EOS as usize] = StateId::DONE.0;
        }
        if state <= self.free {
            // Tokens without bytes keep the state of free text.
            row[CompiledConstraint::UNMATCHED as usize] = state + SHIFT;
        }
    }
}

impl PartialEq for TransitionRows {
    /// Whether both lead to the same states, written or not.
    fn eq(&self, other: &Self) -> bool {
        self.columns == other.columns && self.states() == other.states() && self.all() == other.all()
    }
}

impl Eq for TransitionRows {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Constraint, Limits, TokenId, TokenReading, Vocabulary};
    use burn_dfa_constraints::StructuralTag;

    /// For byte-level constraints with calls, without calls, and with free text.
    #[test]
    fn rows_on_demand_are_those_that_are_written_together() {
        let words = (0..=u8::MAX).map(|byte| Some(vec![byte])).chain([None]);
        let vocabulary = Vocabulary::from_bytes(words).unwrap().with_eos([TokenId(256)]).unwrap();
        let called = json!({"type": "json_schema", "json_schema": {"type": "array", "items": {"$ref": "#"}}});
        let tag = json!({"begin": "<f>", "content": called, "end": "</f>"});
        let tag = json!({"type": "structural_tag", "format": {
            "type": "triggered_tags", "triggers": ["<f"], "tags": [tag]}});
        let nested = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}});
        let constraints = [
            Constraint::regex("[a-z]+(-[0-9]{2,4})?").unwrap(),
            Constraint::json_schema(nested).unwrap(),
            Constraint::structural_tag(&StructuralTag::try_from(&tag).unwrap()).unwrap(),
        ];
        for constraint in constraints {
            let compiled =
                CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &Limits::default()).unwrap();
            let rows = &compiled.parts().next;
            let TokenReading::Bytes { column_of, .. } = &compiled.parts().reading else {
                panic!("a byte-level constraint")
            };
            assert!(matches!(rows.storage, RowStorage::OnDemand(_)), "{constraint:?}");
            let mut whole = TransitionRows::whole(rows.all().into_owned(), rows.columns());
            whole.find_rests(column_of);
            assert_eq!(rows.states(), compiled.state_count());
            assert!(*rows == whole);
            let states = || (0..rows.states() as u32).map(StateId);
            assert!(states().all(|state| rows.row(state) == whole.row(state)));
            assert!(states().all(|state| rows.rests_on(state) == whole.rests_on(state)));
            assert!(states().any(|state| rows.rests_on(state) != 0));
            let fresh =
                CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &Limits::default()).unwrap();
            let fresh = &fresh.parts().next;
            for state in states() {
                let transitions = fresh.transitions(state, column_of);
                assert_eq!(matches!(transitions, TransitionView::Runs(_)), own_state(state).is_some());
                let row = whole.row(state);
                let after = (0..=u8::MAX).map(|byte| transitions.after(byte).0);
                assert!(after.eq(column_of.iter().map(|&column| row[column as usize])), "{state}");
                assert_eq!(fresh.reserved(state), row[..CompiledConstraint::RESERVED_COLUMNS]);
                let bytes = *column_of.iter().max().unwrap() as usize;
                assert_eq!(fresh.last_columns(state, bytes + 1), &row[bytes + 1..]);
            }
            assert!(whole.first_beyond().is_none());
            let mut changed = rows.clone();
            changed.row_mut(compiled.start())[CompiledConstraint::EOS as usize] = rows.states() as u32;
            let at = compiled.start().index() * rows.columns() + CompiledConstraint::EOS as usize;
            assert_eq!(changed.first_beyond(), Some((at, rows.states() as u32)));
            assert!(changed != *rows);
        }
    }
}
