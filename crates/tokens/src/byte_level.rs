//! The byte-level form: the automaton over bytes, plus columns for non-text tokens.

use std::sync::Arc;

use super::build::{RESERVED_TOKENS_TO_END, no_token_path, with_the_end};
use super::distance::Distances;
use super::edges::token_edges;
use super::rows::{SHIFT, TransitionRows};
use super::token_slices::CharTransitionCache;
use super::whole::{Groups, TokenStates};
use super::{CompiledConstraint, ConstraintParts, Shortest, SpecialTokens, StateId, TokenReading};
use burn_dfa_automata::{Csr, SparseDfa, SparseRows};
use burn_dfa_common::{Result, limits::Meter};
use burn_dfa_vocabulary::{TokenId, TokenKind, Vocabulary};

/// The column of a non-text token in the byte-level form.
pub(crate) fn reserved_column(vocabulary: &Vocabulary, token: TokenId) -> u32 {
    if vocabulary.eos().contains(&token) {
        CompiledConstraint::EOS
    } else if vocabulary.kind(token) == TokenKind::Unused {
        CompiledConstraint::NEVER
    } else {
        CompiledConstraint::UNMATCHED
    }
}

pub(super) fn from_bytes(
    text: &TokenStates,
    vocabulary: &Vocabulary,
    meter: &Meter,
) -> Result<CompiledConstraint> {
    byte_level(&SparseDfa::from(&*text.dfa), Some(text), vocabulary, meter)
}

pub(super) fn from_rows(
    rows: &SparseDfa,
    vocabulary: &Vocabulary,
    meter: &Meter,
) -> Result<CompiledConstraint> {
    byte_level(rows, None, vocabulary, meter)
}

impl ConstraintParts {
    /// Rows after the reserved rows, written on demand; `beside` is the number of further values
    /// per state to budget for. The automaton's states 1 to `free` are free text. The distances to
    /// the end, the effects on the stack, and the transitions of tokens read whole are not known
    /// yet.
    ///
    /// # Errors
    /// If a limit is breached.
    pub(super) fn of_rows(
        rows: Arc<SparseRows>,
        free: u32,
        groups: &Groups,
        beside: usize,
        vocabulary: &Vocabulary,
        meter: &Meter,
    ) -> Result<Self> {
        let states = rows.state_count() + SHIFT as usize;
        let reserved = CompiledConstraint::RESERVED_COLUMNS;
        let (tokens, count) = groups.walked_tokens()?;
        let special = SpecialTokens::of_columns(rows.class_count() + reserved, count, tokens);
        let columns = rows.class_count() + reserved + special.columns();
        meter.states(states)?;
        let cells = states.saturating_mul(columns + beside).saturating_mul(4);
        meter.bytes(cells.saturating_add(rows.bytes()))?;
        meter.time()?;
        let column_of = rows.classes().map(|class| u32::from(class) + reserved as u32);
        Ok(Self {
            next: TransitionRows::on_demand(rows, free, columns),
            reading: TokenReading::Bytes {
                char_transitions: CharTransitionCache::new(&column_of).into(),
                column_of: Box::new(column_of),
                vocabulary: vocabulary.clone(),
                special,
            },
            bound_to_end: Vec::new(),
            distances: Distances::default(),
            calls: None,
            shortest: meter.limits().forced_text.into(),
            class_tokens: Default::default(),
            start: StateId(1 + SHIFT),
            vocabulary_len: vocabulary.len(),
            fingerprint: vocabulary.fingerprint(),
        })
    }
}

/// Compiles an automaton; `text` is its source if some tokens are read whole. The bound on the
/// distance to the end is counted in bytes if every byte taken by a state is a token, and in tokens
/// otherwise.
///
/// # Errors
/// If a limit is breached, if no tokens lead from the start to the end, or if a token would have to
/// be read in two ways.
fn byte_level(
    dfa: &SparseDfa,
    text: Option<&TokenStates>,
    vocabulary: &Vocabulary,
    meter: &Meter,
) -> Result<CompiledConstraint> {
    let none = Groups::default();
    let (free, groups) = text.map_or((0, &none), |text| (text.free, &text.groups));
    let mut parts = ConstraintParts::of_rows(dfa.shared_rows(), free, groups, 3, vocabulary, meter)?;
    parts.read_whole(groups, text, vocabulary, meter)?;
    let own = dfa.bytes_to_end()[1..].iter().map(|&bytes| bytes.saturating_add(1));
    parts.bound_to_end = RESERVED_TOKENS_TO_END.into_iter().chain(own).collect();
    if !parts.spells_every_byte(vocabulary) {
        let forced = std::mem::take(&mut parts.shortest);
        let states = StateId::RESERVED..parts.next.states() as u32;
        let edges = token_edges(&parts, states, vocabulary, meter)?;
        parts.bound_to_end = to_end(&parts, &edges);
        parts.keep_longest(forced, edges, vocabulary, meter)?;
        parts.distances = Distances::exact();
    } else if !groups.is_empty() {
        // Special-token edges also lead to the end.
        parts.bound_to_end = to_end(&parts, &byte_edges(&parts));
    }
    if !parts.has_end(parts.start) {
        return Err(no_token_path());
    }
    parts.seal_special_edges(meter.limits().threads);
    parts.find_rests();
    Ok(CompiledConstraint { parts: Arc::new(parts), unrolled: None })
}

impl ConstraintParts {
    /// Recomputes the distances under the rule of [`longest`](super::longest), given the edges
    /// without it. If the rule would cut a state off from the end, the constraint drops the rule.
    fn keep_longest(
        &mut self,
        forced: Shortest,
        mut edges: Vec<(u32, u32)>,
        vocabulary: &Vocabulary,
        meter: &Meter,
    ) -> Result<()> {
        self.shortest = forced;
        let shortest = self.all_shortest();
        let changed = |state: u32| shortest[state as usize] > 1;
        let states: Vec<u32> = (0..shortest.len() as u32).filter(|&state| changed(state)).collect();
        if states.is_empty() {
            return Ok(());
        }
        edges.retain(|&(from, _)| !changed(from));
        edges.extend(token_edges(self, states, vocabulary, meter)?);
        let to_end = to_end(self, &edges);
        if to_end
            .iter()
            .zip(&self.bound_to_end)
            .any(|(&with, &without)| with == u32::MAX && without != u32::MAX)
        {
            self.shortest = Shortest::Any;
        } else {
            self.bound_to_end = to_end;
        }
        Ok(())
    }
}

/// `(from, to)` for every byte taken by a live state.
fn byte_edges(parts: &ConstraintParts) -> Vec<(u32, u32)> {
    let all = parts.next.all();
    let rows = all.chunks_exact(parts.columns()).enumerate().skip(StateId::RESERVED as usize);
    let mut edges = Vec::new();
    let mut targets = Vec::new();
    for (state, row) in rows {
        targets.clear();
        targets
            .extend(row[CompiledConstraint::RESERVED_COLUMNS..].iter().filter(|&&to| to != StateId::DEAD.0));
        targets.sort_unstable();
        targets.dedup();
        edges.extend(targets.iter().map(|&to| (state as u32, to)));
    }
    edges
}

/// Steps along `edges` to the end, including one for the end of sequence; `u32::MAX` if no path
/// exists.
fn to_end(parts: &ConstraintParts, edges: &[(u32, u32)]) -> Vec<u32> {
    let states = parts.next.states();
    let backward = Csr::new(states, edges.iter().map(|&(from, to)| (to, from)));
    let own = StateId::RESERVED..states as u32;
    let is_accepting =
        |&s: &u32| parts.next.reserved(StateId(s))[CompiledConstraint::EOS as usize] == StateId::DONE.0;
    let mut to_end = with_the_end(backward.distances(own.filter(is_accepting)));
    to_end[..RESERVED_TOKENS_TO_END.len()].copy_from_slice(&RESERVED_TOKENS_TO_END);
    to_end
}

impl ConstraintParts {
    /// Whether every byte taken by a live state has a token with the same transition: a one-byte
    /// token or a token with its own column. A state alive in bytes is then alive in tokens.
    fn spells_every_byte(&self, vocabulary: &Vocabulary) -> bool {
        let TokenReading::Bytes { column_of, special, .. } = &self.reading else { return false };
        let bytes = CompiledConstraint::RESERVED_COLUMNS..self.columns() - special.columns();
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

    /// The column of a token read in a reserved or special column; `None` if the token is text.
    pub(crate) fn reserved_column(&self, token: TokenId) -> Option<u32> {
        match &self.reading {
            TokenReading::Classes(class) => {
                let class = class.of(token).unwrap_or(CompiledConstraint::NEVER);
                (class < CompiledConstraint::RESERVED_COLUMNS as u32).then_some(class)
            }
            TokenReading::Bytes { vocabulary, special, .. } => special
                .column(token)
                .or_else(|| vocabulary.bytes(token).is_none().then(|| reserved_column(vocabulary, token))),
        }
    }
}
