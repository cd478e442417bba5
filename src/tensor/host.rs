//! Tables on the CPU backend, where they already are.

use std::sync::{Arc, OnceLock};

use super::NUMBERS;
use super::placement::{Joined, Paged, Placement};
use crate::table::{RowPosition, StateId, TableParts, TokenReading, TokenTable};
use crate::vocabulary::{ClassTokens, TokenId};

/// The tables of a batch, and where their states lie among those of all.
#[derive(Clone, Debug)]
pub(crate) struct HostTable {
    tables: Vec<Arc<Entry>>,
    placement: Placement,
}

#[derive(Debug)]
struct Entry {
    table: TokenTable,
    /// Made when first asked for.
    class_tokens: OnceLock<Arc<ClassTokens>>,
}

impl Entry {
    fn new(table: &TokenTable) -> Arc<Self> {
        Arc::new(Self { table: table.clone(), class_tokens: OnceLock::new() })
    }
}

/// A row of a batch, in its own table.
#[derive(Clone, Copy)]
pub(crate) struct HostRow<'a> {
    pub(crate) table: &'a TokenTable,
    /// The tokens of every class.
    pub(crate) class_tokens: &'a ClassTokens,
    pub(crate) position: RowPosition,
}

impl HostTable {
    pub(super) fn joined(tables: &[&TokenTable]) -> Self {
        let placement = Placement::Joined(Joined::new(tables));
        Self { tables: tables.iter().map(|&table| Entry::new(table)).collect(), placement }
    }

    /// An arena of `tables` tables on pages, of which there is only the first, `free`.
    pub(super) fn paged(free: &TokenTable, tables: usize, pages: usize) -> Self {
        Self {
            tables: vec![Entry::new(free); tables],
            placement: Placement::Paged(Paged::new(tables, pages)),
        }
    }

    /// Puts a table on pages.
    pub(super) fn put(&mut self, index: usize, table: &TokenTable, pages: &[u32]) {
        self.place(index, Entry::new(table), pages);
    }

    /// Forgets a table.
    pub(super) fn take_out(&mut self, index: usize) {
        self.place(index, self.tables[0].clone(), &[]);
    }

    fn place(&mut self, index: usize, entry: Arc<Entry>, pages: &[u32]) {
        if let Placement::Paged(paged) = &mut self.placement {
            paged.set(index, pages);
            self.tables[index] = entry;
        }
    }

    /// The table that a row follows, and its position there; what is out of range is clamped.
    fn own(&self, [state, remaining]: [i32; NUMBERS]) -> (usize, RowPosition) {
        let state = (state.max(0) as u32).min(self.placement.states() as u32 - 1);
        let (index, state) = self.placement.own(StateId(state));
        (index, RowPosition { state, remaining: remaining.max(0) as u32 })
    }

    /// The row of a position; in a reserved state it follows the first table.
    pub(crate) fn row(&self, position: [i32; NUMBERS]) -> HostRow<'_> {
        let (index, position) = self.own(position);
        let Entry { table, class_tokens } = &*self.tables[index];
        let class_tokens = class_tokens.get_or_init(|| self::class_tokens(table.parts()));
        HostRow { table, class_tokens, position }
    }

    /// See [`TokenTable::can_end`].
    pub(crate) fn can_end(&self, position: [i32; NUMBERS]) -> bool {
        let (index, position) = self.own(position);
        self.tables[index].table.can_end(position)
    }

    /// See [`TokenTable::after`]; `no_token` leaves the position as it is.
    pub(crate) fn after(&self, position: [i32; NUMBERS], token: i32, no_token: usize) -> [i32; NUMBERS] {
        let (index, position) = self.own(position);
        let after = match u32::try_from(token) {
            Ok(token) if token as usize == no_token => position,
            token => self.tables[index].table.after(position, TokenId(token.unwrap_or(u32::MAX))),
        };
        [self.placement.state(index, after.state).0 as i32, after.remaining as i32]
    }
}

/// The classes of walked text, which has none of its own: those of the reserved columns, what is not plain, what is;
/// then those of special tokens.
const FIRST_SPECIAL: u32 = TokenTable::RESERVED_COLUMNS as u32 + 2;

/// The tokens of every class.
fn class_tokens(parts: &TableParts) -> Arc<ClassTokens> {
    match &parts.reading {
        TokenReading::Classes(class) => ClassTokens::by_class(class, parts.columns).into(),
        TokenReading::Bytes { vocabulary, special, .. } if special.tokens().is_empty() => {
            Arc::clone(vocabulary.class_tokens())
        }
        TokenReading::Bytes { vocabulary, special, .. } => {
            let mut class = vocabulary.class_tokens().classes();
            for &(token, number) in special.tokens() {
                class[token.index()] = FIRST_SPECIAL + number;
            }
            ClassTokens::by_class(&class, FIRST_SPECIAL as usize + special.columns()).into()
        }
    }
}
