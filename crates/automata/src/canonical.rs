//! The canonical form of an automaton: states numbered breadth first, classes by their first byte.

use super::classes::Distinctions;
use super::{ByteDfa, ByteStateId, Rows, SparseRows};
use burn_dfa_common::{Result, limits::Meter};

/// The states reachable from `start`, numbered breadth first from [`ByteStateId::START`] on, and
/// the classes of bytes with equal transitions. `start` must not be 0.
///
/// States of one `block` become one state; they must be equivalent. The states of block 0 are left
/// out, like the dead state. A block number is less than the number of states.
pub(super) fn number(
    rows: &Rows,
    start: u32,
    block: impl Fn(u32) -> u32,
    symbols: &[u8; 256],
    meter: &Meter,
) -> Result<SparseRows> {
    let mut numbered = Rows::new();
    let mut distinctions = Distinctions::new(rows.state_count());
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
            Some((run.first, run.last, *number))
        });
        numbered.push(rows.is_accepting(state), runs);
        distinctions.add(numbered.row(at as u32));
        at += 1;
        if at % 4096 == 0 {
            meter.time()?;
        }
    }
    Ok(SparseRows::new(numbered, distinctions.classes(symbols)))
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
