//! Tables on the CPU backend, where they already are.

use std::sync::{Arc, OnceLock};

use super::placement::{Joined, Paged, Placement};
use crate::table::StateId;
use crate::table::{Parts, Reading, TokenTable};
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
    members: OnceLock<Arc<ClassTokens>>,
}

impl Entry {
    fn new(table: &TokenTable) -> Arc<Self> {
        Arc::new(Self { table: table.clone(), members: OnceLock::new() })
    }
}

/// A state of one of the tables.
#[derive(Clone, Copy)]
pub(crate) struct Located<'a> {
    pub(crate) table: &'a TokenTable,
    pub(crate) members: &'a ClassTokens,
    pub(crate) state: StateId,
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

    /// The table that a state belongs to, and its own number there; out of range is clamped.
    fn own(&self, state: i32) -> (usize, StateId) {
        let state = (state.max(0) as u32).min(self.placement.states() as u32 - 1);
        self.placement.own(StateId(state))
    }

    /// Where `state` is; the reserved states are in the first table.
    pub(crate) fn locate(&self, state: i32) -> Located<'_> {
        let (index, state) = self.own(state);
        let Entry { table, members } = &*self.tables[index];
        let members = members.get_or_init(|| self::members(table.parts()));
        Located { table, members, state }
    }

    /// The least number of tokens from `state` to the end; `u32::MAX` where there is no way.
    pub(crate) fn tokens_to_end(&self, state: i32) -> u32 {
        let (index, state) = self.own(state);
        self.tables[index].table.tokens_to_end(state)
    }

    /// The state after `token`; `no_token` leaves it as it is.
    pub(crate) fn advance(&self, state: i32, token: i32, no_token: usize) -> i32 {
        let (index, own) = self.own(state);
        match u32::try_from(token) {
            Ok(token) if token as usize == no_token => self.placement.state(index, own).0 as i32,
            Ok(token) => {
                self.placement.state(index, self.tables[index].table.next(own, TokenId(token))).0 as i32
            }
            Err(_) => StateId::DEAD.0 as i32,
        }
    }
}

/// The classes of walked text, which has none of its own: those of the reserved columns, what is not plain, what is;
/// then those of marks.
const MARKS: u32 = TokenTable::RESERVED_COLUMNS as u32 + 2;

/// The tokens of every class.
fn members(parts: &Parts) -> Arc<ClassTokens> {
    match &parts.reading {
        Reading::Classes(class) => ClassTokens::by_class(class, parts.columns).into(),
        Reading::Bytes { vocabulary, marks, .. } if marks.tokens().is_empty() => {
            Arc::clone(vocabulary.class_tokens())
        }
        Reading::Bytes { vocabulary, marks, .. } => {
            let mut class = vocabulary.class_tokens().classes();
            for &(token, mark) in marks.tokens() {
                class[token.index()] = MARKS + mark;
            }
            ClassTokens::by_class(&class, MARKS as usize + marks.columns()).into()
        }
    }
}
