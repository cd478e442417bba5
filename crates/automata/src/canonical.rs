//! The canonical form of an automaton: states numbered breadth first, classes by their first byte.

use super::{ByteDfa, ByteStateId, Rows, Run, SparseRows};
use burn_dfa_common::{Result, limits::Meter};

/// The states reachable from `start`, numbered breadth first from [`ByteStateId::START`] on.
/// `start` must not be 0.
///
/// States of one `block` become one state; they must be equivalent. The states of block 0 are left
/// out, like the dead state. A block number is less than the number of states.
pub(super) fn number(rows: &Rows, start: u32, block: impl Fn(u32) -> u32, meter: &Meter) -> Result<Rows> {
    let mut numbered = Rows::new();
    // The new number of each block, 0 for none yet. The first reached state of a block represents
    // all of them.
    let mut number_of = vec![0u32; rows.state_count()];
    let mut queue = vec![0, start];
    number_of[block(start) as usize] = 1;
    let mut at = 1;
    while at < queue.len() {
        let state = queue[at];
        let runs = rows.row(state).iter().filter_map(|run| {
            let to = block(run.target);
            if to == 0 {
                return None;
            }
            let number = &mut number_of[to as usize];
            if *number == 0 {
                *number = queue.len() as u32;
                queue.push(run.target);
            }
            Some(Run { target: *number, ..*run })
        });
        numbered.push(rows.is_accepting(state), runs);
        at += 1;
        if at % 4096 == 0 {
            meter.time()?;
        }
    }
    Ok(numbered)
}

/// An automaton without dead ends.
pub(super) struct Trimmed {
    pub(super) rows: Rows,
    pub(super) start: u32,
    /// The least number of bytes from each state to an accepting state.
    pub(super) distances: Vec<u32>,
}

/// Removes the states without a path to an accepting state. The remaining states are
/// [numbered](number) if there were such states; otherwise they keep their numbers. `None` if the
/// language from `start` on is empty.
///
/// # Errors
/// If a limit is breached.
pub(super) fn trim(rows: Rows, start: u32, meter: &Meter) -> Result<Option<Trimmed>> {
    let distances = rows.distances();
    if distances[start as usize] == u32::MAX {
        return Ok(None);
    }
    if !distances[1..].contains(&u32::MAX) {
        return Ok(Some(Trimmed { rows, start, distances }));
    }
    let live = |state: u32| if distances[state as usize] == u32::MAX { 0 } else { state };
    let rows = number(&rows, start, live, meter)?;
    let distances = rows.distances();
    Ok(Some(Trimmed { rows, start: ByteStateId::START.0, distances }))
}

/// Writes the dense form of an automaton with the start [`ByteStateId::START`].
///
/// # Errors
/// If a limit is breached.
pub(super) fn to_dense(rows: &SparseRows, meter: &Meter) -> Result<ByteDfa> {
    meter.bytes(rows.state_count().saturating_mul(rows.class_count()).saturating_mul(4))?;
    Ok(written(rows))
}

/// The dense form of numbered rows with a nonempty language.
impl From<Rows> for ByteDfa {
    fn from(rows: Rows) -> Self {
        written(&rows.into())
    }
}

fn written(rows: &SparseRows) -> ByteDfa {
    let (states, width) = (rows.state_count(), rows.class_count());
    let mut transitions = vec![0; states * width];
    let mut accepting = vec![false];
    for (state, row) in transitions.chunks_exact_mut(width).enumerate().skip(1) {
        rows.fill(state as u32, row, 0);
        accepting.push(rows.is_accepting(state as u32));
    }
    ByteDfa::from_parts(*rows.classes(), width, transitions, accepting, ByteStateId::START)
}
