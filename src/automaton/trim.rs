//! Removal of the states that no member of the language passes through.

use super::raw::RawDfa;

/// Keeps the states that can be reached from the start and can reach an accepting one.
///
/// Where the language is empty the start is 0.
pub(super) fn trim(raw: RawDfa) -> RawDfa {
    let count = raw.state_count();
    let mut reached = vec![false; count];
    let mut stack = vec![raw.start];
    reached[raw.start as usize] = true;
    while let Some(state) = stack.pop() {
        for run in raw.row(state) {
            if !std::mem::replace(&mut reached[run.target as usize], true) {
                stack.push(run.target);
            }
        }
    }

    let predecessors = raw.predecessors();
    let mut live = vec![false; count];
    stack.extend((1..count as u32).filter(|&s| reached[s as usize] && raw.accepting[s as usize]));
    for &state in &stack {
        live[state as usize] = true;
    }
    while let Some(state) = stack.pop() {
        for &from in predecessors.of(state) {
            if reached[from as usize] && !std::mem::replace(&mut live[from as usize], true) {
                stack.push(from);
            }
        }
    }
    if live.iter().skip(1).all(|&live| live) && raw.start != 0 {
        return raw;
    }

    let mut renumbered = vec![0; count];
    let mut kept = 0;
    for state in 1..count {
        if live[state] {
            kept += 1;
            renumbered[state] = kept;
        }
    }
    let mut trimmed = RawDfa::new(raw.symbols);
    for state in (1..count as u32).filter(|&state| live[state as usize]) {
        let row = raw.row(state).iter();
        trimmed.push(
            raw.accepting[state as usize],
            row.map(|run| (run.first, run.last, renumbered[run.target as usize])),
        );
    }
    trimmed.set_start(renumbered[raw.start as usize]);
    trimmed
}
