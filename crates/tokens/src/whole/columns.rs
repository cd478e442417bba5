//! The columns of tokens read whole in a byte-level constraint.

use super::groups::Groups;
use super::states::TokenStates;
use crate::rows::SHIFT;
use crate::{ConstraintParts, StateId, TokenReading};
use burn_dfa_common::{Error, Result, limits::Meter};
use burn_dfa_vocabulary::{TokenId, Vocabulary};

impl ConstraintParts {
    /// Writes the columns of tokens read whole, after the columns of bytes, which already exist. A
    /// constraint with calls has no joined states.
    ///
    /// # Errors
    /// If a token would have to be read in two ways that a byte-level constraint cannot follow, or
    /// if a limit is breached.
    pub(crate) fn read_whole(
        &mut self,
        groups: &Groups,
        joined: Option<&TokenStates>,
        vocabulary: &Vocabulary,
        meter: &Meter,
    ) -> Result<()> {
        let (_, owners) = groups.walked()?;
        let first = self.columns() - owners.len();
        let states = self.next.states() as u32;
        if !owners.is_empty() {
            self.next.all_mut(meter.limits().threads);
        }
        for (column, owner) in (first..).zip(owners) {
            meter.time()?;
            let group = &groups.groups[owner.group];
            let mut edges = group.edges.iter().map(|&(state, next)| (state + SHIFT, next + SHIFT)).peekable();
            for state in StateId::RESERVED..states {
                let whole = edges.next_if(|&(from, _)| from == state).map_or(0, |(_, next)| next);
                let next = match owner.text {
                    None => whole,
                    // No row rests in this state.
                    Some(_) if !self.rests(StateId(state)) => 0,
                    Some(token) => {
                        let bytes = vocabulary.bytes(token).unwrap_or_default();
                        self.either(state, whole, bytes, joined).ok_or_else(|| two_ways(token, vocabulary))?
                    }
                };
                self.next.row_mut(StateId(state))[column] = next;
            }
        }
        match groups.groups.iter().find(|group| group.is_open && group.is_text) {
            Some(group) => self.read_any(&group.edges),
            None => Ok(()),
        }
    }

    /// The state after a token from `state`, by an edge to `whole` or by its bytes; `None` if the
    /// token may lead to two states, or if a byte before its last changes the stack.
    fn either(&self, state: u32, whole: u32, bytes: &[u8], joined: Option<&TokenStates>) -> Option<u32> {
        match (self.read(state, bytes)?, whole) {
            (0, only) | (only, 0) => Some(only),
            (one, other) if one == other => Some(one),
            (one, other) => joined.map(|states| states.join(one - SHIFT, other - SHIFT) + SHIFT),
        }
    }

    /// The state after `bytes`; `None` if the stack changes before the last byte.
    fn read(&self, state: u32, bytes: &[u8]) -> Option<u32> {
        let TokenReading::Bytes { column_of, .. } = &self.reading else { return None };
        let (mut at, mut changed) = (state, false);
        for &byte in bytes {
            if let Some(calls) = &self.calls {
                match calls.jump(at)[0] {
                    0 => {}
                    enter if enter > 0 => (at, changed) = (enter as u32, true),
                    _ => return None,
                }
            }
            at = self.row(StateId(at))[column_of[byte as usize] as usize];
            if at == StateId::DEAD.0 {
                return Some(at);
            }
        }
        (!changed).then_some(at)
    }
}

fn two_ways(token: TokenId, vocabulary: &Vocabulary) -> Error {
    let text = String::from_utf8_lossy(vocabulary.content(token).unwrap_or_default()).into_owned();
    Error::grammar_as_a_whole(format!(
        "where it names the token {token} ({text:?}) this text may be read as well, and leads elsewhere or changes the stack: \
         name it where its text is not read, or write the grammar without recursion"
    ))
}
