//! Tables on the CPU backend, where they already are.

use std::sync::{Arc, OnceLock};

use super::placement::{Joined, Paged, Placement};
use crate::automaton::StateId;
use crate::table::{Parts, Reading, TokenTable};
use crate::vocabulary::TokenId;

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
    members: OnceLock<Members>,
}

impl Entry {
    fn new(table: &TokenTable) -> Arc<Self> {
        Arc::new(Self { table: table.clone(), members: OnceLock::new() })
    }
}

/// The tokens of every class, in order.
#[derive(Debug)]
pub(crate) struct Members {
    tokens: Vec<u32>,
    /// `[classes + 1]`
    offsets: Vec<u32>,
}

/// A state of one of the tables.
#[derive(Clone, Copy)]
pub(crate) struct Located<'a> {
    pub(crate) table: &'a TokenTable,
    pub(crate) members: &'a Members,
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
        Located { table, members: members.get_or_init(|| Members::new(table.parts())), state }
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

impl Members {
    /// The classes of walked text, which has none of its own: what is not plain, and what is; then those of marks.
    const TEXT: u32 = TokenTable::RESERVED_COLUMNS as u32;
    const PLAIN: u32 = Self::TEXT + 1;
    const MARKS: u32 = Self::PLAIN + 1;

    fn new(parts: &Parts) -> Self {
        match &parts.reading {
            Reading::Classes(class) => Self::by_class(class, parts.columns),
            Reading::Bytes { vocabulary, marks, .. } => {
                let tokens = (0..parts.vocabulary_len as u32).map(TokenId);
                let plain = vocabulary.plain_tokens();
                let text = |id: TokenId| if plain[id.index()] { Self::PLAIN } else { Self::TEXT };
                let class = tokens.map(|id| parts.reserved_column(id).unwrap_or_else(|| text(id)));
                let mut class: Vec<_> = class.collect();
                for &(token, mark) in marks.tokens() {
                    class[token.index()] = Self::MARKS + mark;
                }
                Self::by_class(&class, Self::MARKS as usize + marks.columns())
            }
        }
    }

    fn by_class(class: &[u32], classes: usize) -> Self {
        let mut offsets = vec![0; classes + 1];
        // Neighbours are often of one class: a run of them is counted and placed without going to memory.
        for run in class.chunk_by(|a, b| a == b) {
            offsets[run[0] as usize + 1] += run.len() as u32;
        }
        for class in 0..classes {
            offsets[class + 1] += offsets[class];
        }
        let mut fill = offsets.clone();
        let mut tokens = vec![0; class.len()];
        let mut token = 0;
        for run in class.chunk_by(|a, b| a == b) {
            let first = &mut fill[run[0] as usize];
            for place in &mut tokens[*first as usize..][..run.len()] {
                *place = token;
                token += 1;
            }
            *first += run.len() as u32;
        }
        Self { tokens, offsets }
    }

    /// The tokens of `class`, in order.
    pub(crate) fn of(&self, class: usize) -> &[u32] {
        &self.tokens[self.offsets[class] as usize..self.offsets[class + 1] as usize]
    }
}
