//! Constraints with calls: from a pushdown automaton to a byte-level constraint, and its tokens.

use std::borrow::Cow;
use std::sync::Arc;

use super::build::RESERVED_TOKENS_TO_END;
use super::rows::SHIFT;
use super::special::spelled_classes;
use super::stack::{Calls, effect};
use super::whole::Groups;
use super::{CompiledConstraint, ConstraintParts, StateId};
use burn_dfa_automata::{Distance, Jump, Pushdown};
use burn_dfa_common::{Error, Limit, Result, limits::Meter};
use burn_dfa_constraints::CalledText;
use burn_dfa_vocabulary::Vocabulary;

/// The compiled constraint; `None` if the vocabulary does not [spell the shortest
/// paths](spelled_distances) to the end.
///
/// # Errors
/// If a limit is breached.
pub(super) fn from_called(
    text: &CalledText,
    vocabulary: &Vocabulary,
    meter: &Meter,
) -> Result<Option<CompiledConstraint>> {
    let Some(distances) = spelled_distances(text, vocabulary, meter)? else { return Ok(None) };
    let CalledText { automaton, free } = text;
    let exits = automaton.exits();
    let groups = Groups::new(free, vocabulary)?;
    let mut parts = ConstraintParts::of_rows(
        automaton.shared_rows(),
        free.states,
        &groups,
        2 + 4 * exits,
        vocabulary,
        meter,
    )?;
    let calls = calls(automaton, &distances, meter);
    let needed = calls.frames[parts.start.index() * exits];
    if needed > calls.depth {
        return Err(Error::limit(Limit::Frames(calls.depth as usize)));
    }
    parts.set_calls(calls);
    parts.read_whole(&groups, None, vocabulary, meter)?;
    parts.find_rests();
    Ok(Some(CompiledConstraint { parts: Arc::new(parts), unrolled: None }))
}

/// The effects of the states on the stack.
fn calls(automaton: &Pushdown, spelled: &[Distance], meter: &Meter) -> Calls {
    let exits = automaton.exits();
    let mut jumps = vec![0; StateId::RESERVED as usize * (1 + exits)];
    let mut distances = reserved_distances(exits);
    let mut entered = [0u32; 256];
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
        jumps.resize(from + 1 + exits, 0);
        distances.extend_from_slice(&spelled[state as usize * exits..][..exits]);
        for run in automaton.rows().row(state) {
            let effects = match automaton.jump(run.target) {
                Jump::None => continue,
                Jump::Call(_) => effect(1),
                Jump::Return(outcome) => effect(-1 - *outcome as i32),
            };
            for entered in &mut entered[run.first as usize..=run.last as usize] {
                *entered |= effects;
            }
        }
    }
    Calls::new(meter.limits().frames, exits, jumps, &distances, &entered)
}

/// The distances of the reserved states.
pub(super) fn reserved_distances(exits: usize) -> Vec<Distance> {
    let mut distances = vec![Distance::NONE; StateId::RESERVED as usize * exits];
    for (state, bytes) in RESERVED_TOKENS_TO_END.into_iter().enumerate() {
        distances[state * exits] = Distance { bytes, frames: 0 };
    }
    distances
}

/// The distance from each state to each exit in one-byte tokens, `[states, exits]`.
///
/// `None` if the vocabulary lacks some bytes and a state has no path without them: a longer token
/// may contain the bytes, and liveness would depend on the stack. Otherwise a state is alive in
/// tokens exactly if it is alive in bytes.
///
/// # Errors
/// If a limit is breached.
fn spelled_distances<'t>(
    text: &'t CalledText,
    vocabulary: &Vocabulary,
    meter: &Meter,
) -> Result<Option<Cow<'t, [Distance]>>> {
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
        true => Ok(Some(automaton.distances().into())),
        // Paths through free text are not paths of its bytes.
        false if !free.is_empty() => Ok(None),
        false => Ok(automaton.distances_along(&spelled, meter)?.map(Cow::from)),
    }
}

impl ConstraintParts {
    /// Sets the states' effects on the stack; the bounds on the distances follow from them.
    pub(super) fn set_calls(&mut self, calls: Calls) {
        let least = |distances: &[u32]| distances.iter().copied().min().unwrap_or(u32::MAX);
        self.bound_to_end = calls.bytes_to_exit.chunks_exact(calls.exits).map(least).collect();
        self.calls = Some(Arc::new(calls));
    }

    /// Whether a row rests in a state: whether it is neither a call nor a RETURN.
    pub(super) fn rests(&self, state: StateId) -> bool {
        self.calls.as_ref().is_none_or(|calls| calls.is_plain(state))
    }
}
