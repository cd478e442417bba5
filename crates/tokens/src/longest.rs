//! Forced text in its longest tokens, see [`ForcedText`].
//!
//! A byte is *forced* if no other byte may follow. A state may force several bytes in a row. Among
//! the tokens made only of forced bytes, only the longest is legal. Each of the tokens is a prefix
//! of the next longer one, so one number per state expresses the rule: a token with fewer bytes is
//! illegal.
//!
//! The rule keeps the language and the distances in bytes: a token legal without the rule leads to
//! a path to the end, and the longest token leads furthest along the same path. Distances in tokens
//! are counted with the rule. If some bytes are not tokens, the longest token may lead to a state
//! without a legal token, and a path through a shorter token would have skipped the state. If the
//! rule blocks any state in this way, the whole constraint drops the rule.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::build::tokens_to_end;
use super::columns::Columns;
use super::untrimmed::UntrimmedAutomaton;
use super::whole::{Groups, TokenStates};
use super::{ConstraintParts, StateId, TokenReading};
use burn_dfa_automata::{ByteDfa, ByteStateId, FastMap};
use burn_dfa_common::{ForcedText, Result, limits::Meter};
use burn_dfa_vocabulary::{TokenId, Vocabulary};

/// The fewest bytes of a legal token of text, by state of a byte-level constraint.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Shortest {
    /// Every token that fits is legal.
    #[default]
    Any,
    /// Computed on demand.
    Found,
    /// Copied from the constraint of a larger vocabulary.
    Known(Arc<[u32]>),
}

impl From<ForcedText> for Shortest {
    fn from(forced: ForcedText) -> Self {
        match forced {
            ForcedText::Longest => Self::Found,
            ForcedText::AnyToken => Self::Any,
        }
    }
}

/// Follows forced bytes from `start`. `only` returns the forced byte of a state, the state after
/// it, and whether to continue. Calls `token` with the state after each prefix that is a token, the
/// tokens, and their number of bytes.
fn follow<S>(
    vocabulary: &Vocabulary,
    start: S,
    mut only: impl FnMut(&S) -> Option<(u8, S, ControlFlow<()>)>,
    mut token: impl FnMut(&S, &[TokenId], usize),
) {
    let trie = vocabulary.trie();
    let (mut state, mut node, mut length) = (start, None, 0);
    while let Some((byte, next, goes_on)) = only(&state) {
        let mut children = trie.children(node);
        let Some((child, _)) = trie.next_child_within(&mut children, (byte, byte)) else { return };
        length += 1;
        token(&next, trie.tokens(child), length);
        if goes_on.is_break() {
            return;
        }
        (state, node) = (next, Some(child));
    }
}

impl ConstraintParts {
    /// The fewest bytes of a token of text that is legal in `state`.
    #[inline]
    pub fn shortest(&self, state: StateId) -> usize {
        match &self.shortest {
            Shortest::Any => 0,
            Shortest::Found => self.longest_forced(state),
            Shortest::Known(shortest) => shortest.get(state.index()).map_or(0, |&bytes| bytes as usize),
        }
    }

    /// Whether a token of text has too few bytes to be legal in `state`.
    #[inline]
    pub(super) fn is_too_short(&self, state: StateId, bytes: &[u8]) -> bool {
        bytes.len() < self.shortest(state)
    }

    /// The fewest bytes of a legal token by state; all 0 if every token that fits is legal.
    pub fn all_shortest(&self) -> Vec<u32> {
        (0..self.bound_to_end.len() as u32).map(|state| self.shortest(StateId(state)) as u32).collect()
    }

    /// The forced byte and the state after it, if any, and whether more forced bytes may follow.
    fn forced_byte(&self, state: StateId) -> Option<(u8, StateId, ControlFlow<()>)> {
        let (byte, next) = self.only_byte(state)?;
        Some((byte, next, if self.rests(next) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }))
    }

    /// The number of bytes of the longest token made only of forced bytes; 0 if none exists.
    fn longest_forced(&self, state: StateId) -> usize {
        let TokenReading::Bytes { vocabulary, special, .. } = &self.reading else { return 0 };
        let mut longest = 0;
        follow(
            vocabulary,
            state,
            |&state| self.forced_byte(state),
            |&next, tokens, length| {
                // With calls, each byte is a token.
                let lives = self.calls.is_some() || self.has_end(next);
                if lives && tokens.iter().any(|&token| special.column(token).is_none()) {
                    longest = length;
                }
            },
        );
        longest
    }

    /// The forced byte of a state, and the state after it. A state forces nothing if the output may
    /// end or a special token is legal.
    #[inline]
    fn only_byte(&self, state: StateId) -> Option<(u8, StateId)> {
        let TokenReading::Bytes { column_of, special, .. } = &self.reading else { return None };
        if state.0 < StateId::RESERVED {
            return None;
        }
        let only = match self.next.runs(state) {
            Some([run]) if run.first == run.last => (run.first, super::rows::entered(run)),
            Some(_) => return None,
            None => {
                let row = self.row(state);
                let mut legal =
                    (0..=u8::MAX).filter(|&byte| row[column_of[byte as usize] as usize] != StateId::DEAD.0);
                let byte = legal.next()?;
                if legal.next().is_some() {
                    return None;
                }
                (byte, StateId(row[column_of[byte as usize] as usize]))
            }
        };
        let is_text = self
            .next
            .reserved(state)
            .iter()
            .chain(special.of(&self.next, state))
            .all(|&to| to == StateId::DEAD.0);
        is_text.then_some(only)
    }
}

/// The states of an automaton over bytes, the source of a token-level constraint.
struct Forced<'a> {
    dfa: &'a ByteDfa,
    free: u32,
    /// The byte of each class with only one byte.
    bytes: Vec<Option<u8>>,
    /// States with a legal token that is read whole.
    whole: Vec<bool>,
}

impl<'a> Forced<'a> {
    fn new(text: &'a TokenStates, vocabulary: &Vocabulary, lives: impl Fn(u32) -> bool) -> Self {
        let dfa = &*text.dfa;
        let mut bytes = vec![None; dfa.class_count()];
        let mut counts = vec![0; dfa.class_count()];
        for (byte, &class) in (0..=u8::MAX).zip(dfa.classes()) {
            counts[class as usize] += 1;
            bytes[class as usize] = Some(byte).filter(|_| counts[class as usize] == 1);
        }
        let mut whole = vec![false; dfa.state_count()];
        for group in &text.groups.groups {
            group
                .edges
                .iter()
                .filter(|&&(_, to)| lives(to))
                .for_each(|&(from, _)| whole[from as usize] = true);
        }
        let named = named_text(&text.groups);
        for state in 1..dfa.state_count() as u32 {
            let reads = |token: &TokenId| {
                let bytes = vocabulary.bytes(*token).unwrap_or_default();
                let end = bytes.iter().fold(ByteStateId(state), |state, &byte| dfa.next(state, byte));
                end != ByteStateId::DEAD && lives(end.0)
            };
            whole[state as usize] |= named.iter().any(reads);
        }
        Self { dfa, free: text.free, bytes, whole }
    }

    fn only_byte(&self, state: u32) -> Option<(u8, u32, ControlFlow<()>)> {
        if state <= self.free || self.whole[state as usize] || self.dfa.is_accepting(ByteStateId(state)) {
            return None;
        }
        let row = self.dfa.row(ByteStateId(state));
        let mut legal = (0..row.len()).filter(|&class| row[class] != 0);
        let class = legal.next()?;
        if legal.next().is_some() {
            return None;
        }
        Some((self.bytes[class]?, row[class], ControlFlow::Continue(())))
    }
}

/// The tokens of text with their own column in a byte-level constraint.
fn named_text(groups: &Groups) -> Vec<TokenId> {
    let named = groups.groups.iter().filter(|group| group.is_text && !group.is_open);
    named.flat_map(|group| group.tokens.iter().copied()).collect()
}

impl UntrimmedAutomaton<'_> {
    /// Keeps only the longest among the tokens made only of forced bytes; `spells` means that every
    /// byte is a token.
    ///
    /// # Errors
    /// If a limit is breached.
    pub(super) fn keep_longest(
        &mut self,
        text: &TokenStates,
        spells: bool,
        vocabulary: &Vocabulary,
        meter: &Meter,
    ) -> Result<()> {
        if meter.limits().forced_text == ForcedText::AnyToken || text.counts() {
            return Ok(());
        }
        let to_end = if spells { None } else { Some(tokens_to_end(self)) };
        let lives = |state: u32| to_end.as_ref().is_none_or(|to_end| to_end[state as usize] != u32::MAX);
        let forced = Forced::new(text, vocabulary, lives);
        let is_named = {
            let named = named_text(&text.groups);
            move |token: &TokenId| named.contains(token)
        };
        // By state the states that shorter tokens lead to.
        let mut shorter: Vec<Vec<u32>> = vec![Vec::new(); self.states];
        let mut any = false;
        for state in 1..self.states as u32 {
            let landings = &mut shorter[state as usize];
            follow(
                vocabulary,
                state,
                |&state| forced.only_byte(state),
                |&next, tokens, _| {
                    if lives(next) && !tokens.iter().all(&is_named) {
                        landings.push(next);
                    }
                },
            );
            landings.pop();
            any |= !landings.is_empty();
        }
        meter.time()?;
        if !any {
            return Ok(());
        }
        let mut kept: FastMap<u32, u32> = FastMap::default();
        let (mut pairs, before) = (Vec::new(), self.runs.clone());
        let is_shorter = |&(state, to): &(u32, u32)| shorter[state as usize].contains(&to);
        for run in &mut self.runs {
            if let Some(&column) = kept.get(&run.column) {
                run.column = column;
                continue;
            }
            let old = run.column;
            if self.columns.get(old).iter().any(is_shorter) {
                pairs.clear();
                pairs.extend(self.columns.get(old).iter().filter(|pair| !is_shorter(pair)));
                run.column = self.columns.intern(&pairs);
                meter.bytes(self.columns.bytes())?;
            }
            kept.insert(old, run.column);
        }
        self.runs.retain(|run| run.column != Columns::NOWHERE);
        if let Some(to_end) = to_end {
            let with = tokens_to_end(self);
            if to_end.iter().zip(with).any(|(&without, with)| without != u32::MAX && with == u32::MAX) {
                self.runs = before;
            }
        }
        Ok(())
    }
}
