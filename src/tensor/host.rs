//! Tables on the CPU backend, where they already are.

use std::sync::OnceLock;

use super::Joined;
use crate::automaton::StateId;
use crate::table::{Parts, Reading, TokenTable};
use crate::vocabulary::TokenId;

/// The tables of a batch with their states numbered one after the other.
#[derive(Debug)]
pub(crate) struct HostTable {
    tables: Vec<TokenTable>,
    joined: Joined,
    /// Of each table, made when first asked for.
    members: Vec<OnceLock<Members>>,
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
    pub(super) fn new(tables: &[&TokenTable]) -> Self {
        Self {
            tables: tables.iter().map(|&table| table.clone()).collect(),
            joined: Joined::new(tables),
            members: tables.iter().map(|_| OnceLock::new()).collect(),
        }
    }

    /// The table that a joined state belongs to, and its own number there; out of range is clamped.
    fn own(&self, state: i32) -> (usize, StateId) {
        let state = (state.max(0) as u32).min(self.joined.states as u32 - 1);
        self.joined.own(StateId(state))
    }

    /// Where `state` is; the reserved states are in the first table.
    pub(crate) fn locate(&self, state: i32) -> Located<'_> {
        let (index, state) = self.own(state);
        let table = &self.tables[index];
        let members = self.members[index].get_or_init(|| Members::new(table.parts()));
        Located { table, members, state }
    }

    /// The least number of tokens from `state` to the end; `u32::MAX` where there is no way.
    pub(crate) fn tokens_to_end(&self, state: i32) -> u32 {
        let (index, state) = self.own(state);
        self.tables[index].tokens_to_end(state)
    }

    /// The joined state after `token`; `no_token` leaves it as it is.
    pub(crate) fn advance(&self, state: i32, token: i32, no_token: usize) -> i32 {
        let (index, own) = self.own(state);
        match u32::try_from(token) {
            Ok(token) if token as usize == no_token => self.joined.state(index, own).0 as i32,
            Ok(token) => self.joined.state(index, self.tables[index].next(own, TokenId(token))).0 as i32,
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
