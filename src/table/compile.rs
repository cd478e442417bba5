//! From an automaton to a token table: what each token does to each state.

use super::TokenTable;
use super::build::build;
use super::columns::{ColumnId, Columns};
use crate::automaton::{ByteDfa, StateId};
use crate::constraint::TokenAutomaton;
use crate::error::{Error, Result};
use crate::limits::Meter;
use crate::vocabulary::{TokenId, TokenKind, Vocabulary};

/// A token automaton before trimming: columns over source states, and the column of each token.
pub(super) struct Source {
    pub(super) states: usize,
    pub(super) start: u32,
    pub(super) accepting: Vec<bool>,
    pub(super) columns: Columns,
    /// `[vocabulary]`.
    pub(super) column_of: Vec<ColumnId>,
}

/// Follows every token's bytes through `dfa`, sharing the work of common prefixes.
pub(super) fn from_bytes(dfa: &ByteDfa, vocabulary: &Vocabulary, meter: &Meter) -> Result<TokenTable> {
    let mut walk = Walk::new(dfa);
    let trie = vocabulary.trie();
    let mut column_of = vec![Columns::NOWHERE; vocabulary.len()];
    // `path[d]` is the column after the first `d` bytes of the node at hand.
    let mut path = vec![walk.identity; trie.max_depth() + 1];
    let mut node = 0;
    let mut visited = 0;
    while node < trie.len() {
        if visited % 64 == 0 {
            meter.time()?;
            meter.bytes(walk.bytes())?;
        }
        visited += 1;
        let depth = trie.depth(node);
        let column = walk.step(path[depth - 1], trie.byte(node));
        if column == Columns::NOWHERE {
            node = trie.end(node) as usize;
            continue;
        }
        path[depth] = column;
        for &id in trie.tokens(node) {
            column_of[id.index()] = column;
        }
        node += 1;
    }
    let states = dfa.state_count();
    let accepting = (0..states as u32).map(|s| dfa.is_accepting(StateId(s))).collect();
    let source = Source { states, start: dfa.start().0, accepting, columns: walk.columns, column_of };
    build(source, vocabulary, meter)
}

/// Takes the transitions as they are.
pub(super) fn from_tokens(
    automaton: &TokenAutomaton,
    vocabulary: &Vocabulary,
    meter: &Meter,
) -> Result<TokenTable> {
    let mut by_token = automaton.transitions.clone();
    by_token.sort_unstable_by_key(|&(state, token, _)| (token, state));
    let mut columns = Columns::new();
    let mut column_of = vec![Columns::NOWHERE; vocabulary.len()];
    for group in by_token.chunk_by(|a, b| a.1 == b.1) {
        meter.time()?;
        let token = group[0].1;
        check_token(token, vocabulary)?;
        let pairs: Vec<_> = group.iter().map(|&(state, _, next)| (state, next)).collect();
        column_of[token.index()] = columns.intern(&pairs);
    }
    let source = Source {
        states: automaton.accepting.len(),
        start: automaton.start,
        accepting: automaton.accepting.clone(),
        columns,
        column_of,
    };
    build(source, vocabulary, meter)
}

fn check_token(token: TokenId, vocabulary: &Vocabulary) -> Result<()> {
    if token.index() >= vocabulary.len() {
        return Err(Error::incompatible_vocabulary(format!(
            "the constraint names token {token}, the vocabulary ends at {}",
            vocabulary.len()
        )));
    }
    if vocabulary.kind(token) == TokenKind::Unused && !vocabulary.eos().contains(&token) {
        return Err(Error::incompatible_vocabulary(format!(
            "the constraint names token {token}, which the vocabulary does not use"
        )));
    }
    if vocabulary.eos().contains(&token) {
        return Err(Error::incompatible_vocabulary(format!(
            "the constraint has a transition on token {token}, which ends the sequence: leave it out, accepting states allow it by themselves"
        )));
    }
    Ok(())
}

/// The memoised walk over columns.
struct Walk<'a> {
    dfa: &'a ByteDfa,
    columns: Columns,
    identity: ColumnId,
    /// `[columns, byte classes]`; `UNKNOWN` where not yet computed.
    memo: Vec<ColumnId>,
    scratch: Vec<(u32, u32)>,
}

const UNKNOWN: ColumnId = ColumnId::MAX;

impl<'a> Walk<'a> {
    fn new(dfa: &'a ByteDfa) -> Self {
        let mut columns = Columns::new();
        let live: Vec<_> = (1..dfa.state_count() as u32).map(|s| (s, s)).collect();
        let identity = columns.intern(&live);
        let memo = vec![UNKNOWN; columns.len() * dfa.class_count()];
        Self { dfa, columns, identity, memo, scratch: Vec::new() }
    }

    /// The column after `column` and one more byte.
    fn step(&mut self, column: ColumnId, byte: u8) -> ColumnId {
        let class = self.dfa.classes()[byte as usize] as usize;
        let at = column as usize * self.dfa.class_count() + class;
        if self.memo[at] != UNKNOWN {
            return self.memo[at];
        }
        self.scratch.clear();
        for &(state, now) in self.columns.get(column) {
            let next = self.dfa.next_by_class(StateId(now), class);
            if next != StateId::DEAD {
                self.scratch.push((state, next.0));
            }
        }
        let next = self.columns.intern(&self.scratch);
        self.memo[at] = next;
        self.memo.resize(self.columns.len() * self.dfa.class_count(), UNKNOWN);
        next
    }

    fn bytes(&self) -> usize {
        self.columns.bytes() + self.memo.len() * size_of::<ColumnId>()
    }
}
