//! Removes the states on no accepting path.

use super::Rows;

/// Keeps the states reachable from `start` with a path to an accepting state, in their order.
/// Returns them and the new number of the start, 0 if the language is empty.
pub(super) fn trim(rows: Rows, start: u32) -> (Rows, u32) {
    let count = rows.state_count();
    let mut reached = vec![false; count];
    let mut stack = vec![start];
    reached[start as usize] = true;
    while let Some(state) = stack.pop() {
        for run in rows.row(state) {
            if !std::mem::replace(&mut reached[run.target as usize], true) {
                stack.push(run.target);
            }
        }
    }
    let distances = rows.distances();
    let is_kept = |state: usize| reached[state] && distances[state] != u32::MAX;
    if (1..count).all(is_kept) && start != 0 {
        return (rows, start);
    }
    let mut renumbered = vec![0; count];
    let mut kept = 0;
    for state in (1..count).filter(|&state| is_kept(state)) {
        kept += 1;
        renumbered[state] = kept;
    }
    let mut trimmed = Rows::new();
    for state in (1..count as u32).filter(|&state| is_kept(state as usize)) {
        let row = rows.row(state).iter();
        trimmed.push(
            rows.is_accepting(state),
            row.map(|run| (run.first, run.last, renumbered[run.target as usize])),
        );
    }
    (trimmed, renumbered[start as usize])
}
