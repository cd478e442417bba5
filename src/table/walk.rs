//! The walked form: the automaton over bytes as it is, with columns for what is not text.

use std::sync::Arc;

use super::build::{RESERVED_TOKENS_TO_END, no_token_path, with_the_end};
use super::compile::Rests;
use super::rows::{SHIFT, TableRows};
use super::runs::Alphabet;
use super::whole::{Groups, TokenStates};
use super::{SpecialTokens, StateId, TableParts, TokenReading, TokenTable};
use crate::automaton::{ByteRows, Csr, RowDfa};
use crate::error::Result;
use crate::limits::Meter;
use crate::vocabulary::{TokenId, TokenKind, Vocabulary};

/// The column of a token that is not text, in the walked form.
pub(crate) fn reserved_column(vocabulary: &Vocabulary, token: TokenId) -> u32 {
    if vocabulary.eos().contains(&token) {
        TokenTable::EOS
    } else if vocabulary.kind(token) == TokenKind::Unused {
        TokenTable::NEVER
    } else {
        TokenTable::UNMATCHED
    }
}

pub(super) fn from_bytes(text: &TokenStates, vocabulary: &Vocabulary, meter: &Meter) -> Result<TokenTable> {
    walked(&RowDfa::from(&*text.dfa), Some(text), vocabulary, meter)
}

pub(super) fn from_rows(rows: &RowDfa, vocabulary: &Vocabulary, meter: &Meter) -> Result<TokenTable> {
    walked(rows, None, vocabulary, meter)
}

impl TableParts {
    /// The rows behind the reserved ones, to be written on demand, with `beside` further numbers a state to come; of the automaton's states 1
    /// to `free` are free text. How far the end is, what the states do to the stack, and where tokens lead that are read whole is
    /// not known yet.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(super) fn of_rows(
        rows: Arc<ByteRows>,
        free: u32,
        groups: &Groups,
        beside: usize,
        vocabulary: &Vocabulary,
        meter: &Meter,
    ) -> Result<Self> {
        let states = rows.state_count() + SHIFT as usize;
        let reserved = TokenTable::RESERVED_COLUMNS;
        let (tokens, count) = groups.walked_tokens()?;
        let special = SpecialTokens::of_columns(rows.class_count() + reserved, count, tokens);
        let columns = rows.class_count() + reserved + special.columns();
        meter.states(states)?;
        let cells = states.saturating_mul(columns + beside).saturating_mul(4);
        meter.bytes(cells.saturating_add(rows.bytes()))?;
        meter.time()?;
        let column_of = rows.classes().map(|class| u32::from(class) + reserved as u32);
        Ok(Self {
            next: TableRows::on_demand(rows, free, columns),
            reading: TokenReading::Bytes {
                alphabet: Alphabet::new(&column_of).into(),
                column_of: Box::new(column_of),
                vocabulary: vocabulary.clone(),
                special,
            },
            tokens_to_end: Vec::new(),
            calls: None,
            landings: None,
            class_tokens: Default::default(),
            start: StateId(1 + SHIFT),
            vocabulary_len: vocabulary.len(),
            fingerprint: vocabulary.fingerprint(),
        })
    }
}

/// The table of an automaton, which is that of `text` if some tokens are read whole. The distance to the end is counted in bytes
/// where every byte that a state takes is a token, and in tokens otherwise.
///
/// # Errors
/// Where a limit is breached, no tokens lead from the start to the end, or a token would have to be read in two ways.
fn walked(
    dfa: &RowDfa,
    text: Option<&TokenStates>,
    vocabulary: &Vocabulary,
    meter: &Meter,
) -> Result<TokenTable> {
    let none = Groups::default();
    let (free, groups) = text.map_or((0, &none), |text| (text.free, &text.groups));
    let mut parts = TableParts::of_rows(dfa.shared_rows(), free, groups, 2, vocabulary, meter)?;
    parts.read_whole(groups, text, vocabulary, meter)?;
    let own = dfa.bytes_to_end()[1..].iter().map(|&bytes| bytes.saturating_add(1));
    parts.tokens_to_end = RESERVED_TOKENS_TO_END.into_iter().chain(own).collect();
    if !parts.spells_every_byte(vocabulary) {
        let edges = token_edges(&parts, vocabulary, meter)?;
        parts.tokens_to_end = to_end(&parts, edges);
    } else if !groups.is_empty() {
        // Special-token edges are ways on as well.
        parts.tokens_to_end = to_end(&parts, byte_edges(&parts));
    }
    if !parts.has_end(parts.start) {
        return Err(no_token_path());
    }
    parts.seal_special_edges(meter.limits().threads);
    parts.find_rests();
    Ok(TokenTable { parts: Arc::new(parts), unrolled: None })
}

/// `(from, to)` for every byte that a live state takes.
fn byte_edges(parts: &TableParts) -> Vec<(u32, u32)> {
    let all = parts.next.all();
    let rows = all.chunks_exact(parts.columns()).enumerate().skip(StateId::RESERVED as usize);
    let mut edges = Vec::new();
    let mut targets = Vec::new();
    for (state, row) in rows {
        targets.clear();
        targets.extend(row[TokenTable::RESERVED_COLUMNS..].iter().filter(|&&to| to != StateId::DEAD.0));
        targets.sort_unstable();
        targets.dedup();
        edges.extend(targets.iter().map(|&to| (state as u32, to)));
    }
    edges
}

/// `(from, to)` for every token of text that a live state takes.
fn token_edges(parts: &TableParts, vocabulary: &Vocabulary, meter: &Meter) -> Result<Vec<(u32, u32)>> {
    let TokenReading::Bytes { column_of, special, .. } = &parts.reading else {
        return Ok(Vec::new());
    };
    let (trie, states) = (vocabulary.trie(), parts.next.states());
    let read = |from: u32, byte: u8| parts.row(StateId(from))[column_of[byte as usize] as usize];
    let is_text = |tokens: &[TokenId]| tokens.iter().any(|&id| special.column(id).is_none());
    let mut edges = Vec::new();
    let mut rests = vec![Rests::default(); states];
    // For each state the last one of which an edge leads there.
    let mut met = vec![0; states];
    let mut path = vec![0; trie.max_depth() + 1];
    for state in StateId::RESERVED..states as u32 {
        meter.time()?;
        meter.bytes(edges.len().saturating_mul(size_of::<(u32, u32)>()))?;
        let mut add = |to: u32| {
            if std::mem::replace(&mut met[to as usize], state) != state {
                edges.push((state, to));
            }
        };
        path[0] = state;
        let mut node = 0;
        while node < trie.len() {
            let depth = trie.depth(node);
            let to = read(path[depth - 1], trie.byte(node));
            let end = trie.end(node) as usize;
            if to == StateId::DEAD.0 {
                node = end;
            } else if rests[to as usize].all(trie.below(node), |byte| read(to, byte) == to) {
                // Whatever comes below leads to this state as well.
                if is_text(&trie.all_tokens()[trie.subtree(node)]) {
                    add(to);
                }
                node = end;
            } else {
                if is_text(trie.tokens(node)) {
                    add(to);
                }
                path[depth] = to;
                node += 1;
            }
        }
        let marked = special.of(&parts.next, StateId(state));
        marked.iter().filter(|&&to| to != StateId::DEAD.0).for_each(|&to| add(to));
    }
    Ok(edges)
}

/// Steps along `edges` to the end, one for the end of sequence included; `u32::MAX` where there is no way.
fn to_end(parts: &TableParts, edges: Vec<(u32, u32)>) -> Vec<u32> {
    let states = parts.next.states();
    let backward = Csr::new(states, edges.into_iter().map(|(from, to)| (to, from)));
    let own = StateId::RESERVED..states as u32;
    let is_accepting =
        |&s: &u32| parts.next.reserved(StateId(s))[TokenTable::EOS as usize] == StateId::DONE.0;
    let mut to_end = with_the_end(backward.distances(own.filter(is_accepting)));
    to_end[..RESERVED_TOKENS_TO_END.len()].copy_from_slice(&RESERVED_TOKENS_TO_END);
    to_end
}

impl TableParts {
    /// Whether for every byte that a live state takes there is a token that acts like it there, one of one byte or one that has a
    /// column, so that being alive in bytes is being alive in tokens.
    fn spells_every_byte(&self, vocabulary: &Vocabulary) -> bool {
        let TokenReading::Bytes { column_of, special, .. } = &self.reading else { return false };
        let bytes = TokenTable::RESERVED_COLUMNS..self.columns() - special.columns();
        let mut usable = vec![false; self.columns()];
        usable[bytes.end..].fill(true);
        if special.columns() == 0 {
            let spelled = column_of.iter().zip(vocabulary.spelled_bytes());
            spelled.for_each(|(&column, &spelled)| usable[column as usize] |= spelled);
        } else {
            for (id, text) in vocabulary.iter() {
                if let [byte] = text
                    && special.column(id).is_none()
                {
                    usable[column_of[*byte as usize] as usize] = true;
                }
            }
        }
        let (usable, open): (Vec<usize>, Vec<usize>) =
            (bytes.start..self.columns()).partition(|&column| usable[column]);
        open.is_empty()
            || self.next.all().chunks_exact(self.columns()).skip(StateId::RESERVED as usize).all(|row| {
                let mut taken = open.iter().map(|&column| row[column]).filter(|&to| to != StateId::DEAD.0);
                taken.all(|to| usable.iter().any(|&column| row[column] == to))
            })
    }

    /// The column of a token that is read in one of the reserved columns; `None` where it is text.
    pub(crate) fn reserved_column(&self, token: TokenId) -> Option<u32> {
        match &self.reading {
            TokenReading::Classes(class) => {
                let class = class.of(token).unwrap_or(TokenTable::NEVER);
                (class < TokenTable::RESERVED_COLUMNS as u32).then_some(class)
            }
            TokenReading::Bytes { vocabulary, special, .. } => special
                .column(token)
                .or_else(|| vocabulary.bytes(token).is_none().then(|| reserved_column(vocabulary, token))),
        }
    }
}
