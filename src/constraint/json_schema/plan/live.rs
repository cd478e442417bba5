//! Finds the states of a plan that lie on a path to an end.

/// Which states lead to an end.
pub(super) fn live(ends: impl Iterator<Item = bool>, nexts: impl Iterator<Item = Vec<u32>>) -> Vec<bool> {
    let mut live: Vec<bool> = ends.collect();
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); live.len()];
    for (from, nexts) in nexts.enumerate() {
        for to in nexts {
            before[to as usize].push(from as u32);
        }
    }
    let mut rest: Vec<u32> = (0..live.len() as u32).filter(|&state| live[state as usize]).collect();
    while let Some(state) = rest.pop() {
        for &from in &before[state as usize] {
            if !std::mem::replace(&mut live[from as usize], true) {
                rest.push(from);
            }
        }
    }
    live
}
