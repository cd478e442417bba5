//! Tables with calls: from a pushdown automaton to a walked table, and the tokens that follow in it.

use std::borrow::Cow;
use std::sync::Arc;

use super::build::RESERVED_TOKENS_TO_END;
use super::rows::SHIFT;
use super::special::spelled_classes;
use super::stack::Calls;
use super::whole::Groups;
use super::{StateId, TableParts, TokenTable};
use crate::automaton::{Jump, Pushdown, Way};
use crate::constraint::CalledText;
use crate::error::{Error, Limit, Result};
use crate::limits::Meter;
use crate::vocabulary::Vocabulary;

/// The table; `None` where the vocabulary does not [spell the ways](spelled_ways) to the end.
///
/// # Errors
/// Where a limit is breached.
pub(super) fn from_called(
    text: &CalledText,
    vocabulary: &Vocabulary,
    meter: &Meter,
) -> Result<Option<TokenTable>> {
    let Some(ways) = spelled_ways(text, vocabulary, meter)? else { return Ok(None) };
    let CalledText { automaton, free } = text;
    let ends = automaton.ends();
    let groups = Groups::new(free, vocabulary)?;
    let mut parts =
        TableParts::of_rows(automaton.shared_rows(), free.states, &groups, 2 + 3 * ends, vocabulary, meter)?;
    let calls = calls(automaton, &ways, meter);
    let needed = calls.frames[parts.start.index() * ends];
    if needed > calls.depth {
        return Err(Error::limit(Limit::Frames(calls.depth as usize)));
    }
    parts.set_calls(calls);
    parts.read_whole(&groups, None, vocabulary, meter)?;
    parts.find_rests();
    Ok(Some(TokenTable { parts: Arc::new(parts), unrolled: None }))
}

/// What the states do to the stack.
fn calls(automaton: &Pushdown, spelled: &[Way], meter: &Meter) -> Calls {
    let ends = automaton.ends();
    let mut jumps = vec![0; StateId::RESERVED as usize * (1 + ends)];
    let mut ways = reserved_ways(ends);
    let mut entered = [false; 256];
    let shifted = |state: u32| if state == 0 { 0 } else { (state + SHIFT) as i32 };
    for state in 1..automaton.state_count() as u32 {
        let from = jumps.len();
        match automaton.jump(state) {
            Jump::None => {}
            Jump::Call(call) => {
                jumps.push(shifted(call.enter));
                jumps.extend(call.returns.iter().map(|&to| shifted(to)));
            }
            Jump::Return(outcome) => jumps.push(-1 - *outcome as i32),
        }
        jumps.resize(from + 1 + ends, 0);
        ways.extend_from_slice(&spelled[state as usize * ends..][..ends]);
        for run in automaton.rows().row(state).iter().filter(|run| *automaton.jump(run.target) != Jump::None)
        {
            entered[run.first as usize..=run.last as usize].fill(true);
        }
    }
    Calls::new(meter.limits().frames, ends, jumps, &ways, &entered)
}

/// The ways of the reserved states.
pub(super) fn reserved_ways(ends: usize) -> Vec<Way> {
    let mut ways = vec![Way::NONE; StateId::RESERVED as usize * ends];
    for (state, bytes) in RESERVED_TOKENS_TO_END.into_iter().enumerate() {
        ways[state * ends] = Way { bytes, frames: 0 };
    }
    ways
}

/// The way from each state to each end in tokens of one byte, `[states, ends]`.
///
/// `None` where the vocabulary lacks some bytes and a state has no way without them: there a longer token may have them, so what is
/// alive would depend on the stack. Otherwise a state is alive in tokens as it is in bytes.
///
/// # Errors
/// Where a limit is breached.
fn spelled_ways<'t>(
    text: &'t CalledText,
    vocabulary: &Vocabulary,
    meter: &Meter,
) -> Result<Option<Cow<'t, [Way]>>> {
    let CalledText { automaton, free } = text;
    let rows = automaton.rows();
    let spelled = spelled_classes(rows.classes(), rows.class_count(), free, vocabulary);
    let mut row = vec![0; rows.class_count()];
    let spells = spelled.iter().all(|&spelled| spelled)
        || (1..rows.state_count() as u32).all(|state| {
            row.fill(0);
            rows.fill(state, &mut row, 0);
            row.iter().zip(&spelled).all(|(&to, &spelled)| spelled || to == 0)
        });
    match spells {
        true => Ok(Some(automaton.ways().into())),
        // The ways of free text are not those of its bytes.
        false if !free.is_empty() => Ok(None),
        false => Ok(automaton.ways_along(&spelled, meter)?.map(Cow::from)),
    }
}

impl TableParts {
    /// Gives the states what they do to the stack; the distances follow from it.
    pub(super) fn set_calls(&mut self, calls: Calls) {
        let least = |ways: &[u32]| ways.iter().copied().min().unwrap_or(u32::MAX);
        self.tokens_to_end = calls.ways.chunks_exact(calls.ends).map(least).collect();
        self.calls = Some(Arc::new(calls));
    }

    /// Whether a row rests in a state: whether it is no call and no RETURN.
    pub(super) fn rests(&self, state: StateId) -> bool {
        self.calls.as_ref().is_none_or(|calls| calls.is_plain(state))
    }
}
