//! From the blocks of equivalent states to the canonical automaton.

use super::raw::RawDfa;
use super::{ByteDfa, ByteStateId, FastMap};
use crate::error::Result;
use crate::limits::Meter;

/// The automaton of `blocks`, its byte classes merged, classes and states in canonical order.
///
/// States are numbered breadth first from the start, by class; classes by their first byte.
pub(super) fn canonical(raw: &RawDfa, blocks: &[u32], meter: &Meter) -> Result<ByteDfa> {
    let count = blocks.iter().max().map_or(0, |&last| last as usize + 1);
    let mut representatives = vec![0; count];
    for (state, &block) in blocks.iter().enumerate() {
        representatives[block as usize] = state as u32;
    }
    let intervals = Intervals::of(raw);
    let merged = merge(raw, &intervals, blocks, &representatives, meter)?;

    // Classes in order of their first byte.
    let mut numbers = [None; 256];
    let mut class_count = 0;
    let classes: [u8; 256] = std::array::from_fn(|byte| {
        let interval = intervals.of[raw.symbols[byte] as usize];
        *numbers[merged[interval as usize] as usize].get_or_insert_with(|| {
            class_count += 1;
            (class_count - 1) as u8
        })
    });
    meter.bytes(count.saturating_mul(class_count).saturating_mul(4))?;

    let mut number_of = vec![0; count];
    let mut queue = vec![0, blocks[raw.start as usize]];
    number_of[queue[1] as usize] = 1;
    let mut transitions = vec![0; class_count];
    transitions.reserve_exact((count - 1) * class_count);
    let mut accepting = vec![false];
    // The class of each interval; runs in order meet classes in order.
    let class_of: Vec<u8> =
        merged.iter().map(|&merged| numbers[merged as usize].unwrap_or_default()).collect();
    let mut at = 1;
    while at < queue.len() {
        let state = representatives[queue[at] as usize];
        let row = transitions.len();
        transitions.resize(row + class_count, 0);
        for run in raw.row(state) {
            let block = blocks[run.target as usize];
            if block == 0 {
                continue;
            }
            let number = &mut number_of[block as usize];
            if *number == 0 {
                *number = queue.len() as u32;
                queue.push(block);
            }
            let (first, last) = (intervals.of[run.first as usize], intervals.of[run.last as usize]);
            for &class in &class_of[first as usize..=last as usize] {
                transitions[row + class as usize] = *number;
            }
        }
        accepting.push(raw.accepting[state as usize]);
        at += 1;
        if at % 4096 == 0 {
            meter.time()?;
        }
    }
    Ok(ByteDfa::from_parts(classes, class_count, transitions, accepting, ByteStateId::START))
}

/// The symbols in intervals that no run begins or ends within.
struct Intervals {
    /// The interval of each symbol.
    of: [u8; 256],
    count: usize,
}

impl Intervals {
    fn of(raw: &RawDfa) -> Self {
        let mut cuts = [false; 257];
        for run in &raw.runs {
            cuts[run.first as usize] = true;
            cuts[run.last as usize + 1] = true;
        }
        let mut count = 1;
        let of = std::array::from_fn(|symbol| {
            count += usize::from(symbol > 0 && cuts[symbol]);
            (count - 1) as u8
        });
        Self { of, count }
    }

    /// The row of a state by interval, as blocks.
    fn targets(&self, raw: &RawDfa, state: u32, blocks: &[u32], targets: &mut [u32]) {
        targets.fill(0);
        for run in raw.row(state) {
            let (first, last) = (self.of[run.first as usize], self.of[run.last as usize]);
            targets[first as usize..=last as usize].fill(blocks[run.target as usize]);
        }
    }
}

/// Numbers the intervals so that two have one number exactly if no state tells them apart.
fn merge(
    raw: &RawDfa,
    intervals: &Intervals,
    blocks: &[u32],
    representatives: &[u32],
    meter: &Meter,
) -> Result<Vec<u8>> {
    let all = intervals.count;
    let mut merged = vec![0u8; all];
    let mut sizes = vec![0usize; all];
    let mut first = vec![0usize; all];
    let mut targets = vec![0; all];
    sizes[0] = all;
    let mut count = 1;
    for (at, &state) in representatives.iter().enumerate() {
        if at % 4096 == 0 {
            meter.time()?;
        }
        if count == all {
            break;
        }
        let alone = |interval: u8| sizes[merged[interval as usize] as usize] == 1;
        let interval = |symbol: u8| intervals.of[symbol as usize];
        if raw.row(state).iter().all(|run| (interval(run.first)..=interval(run.last)).all(alone)) {
            continue;
        }
        intervals.targets(raw, state, blocks, &mut targets);
        if (0..all).all(|at| targets[at] == targets[first[merged[at] as usize]]) {
            continue;
        }
        let mut refined: FastMap<(u8, u32), u8> = FastMap::default();
        sizes.fill(0);
        for at in 0..all {
            let new = refined.len() as u8;
            let number = *refined.entry((merged[at], targets[at])).or_insert_with(|| {
                first[new as usize] = at;
                new
            });
            merged[at] = number;
            sizes[number as usize] += 1;
        }
        count = refined.len();
    }
    Ok(merged)
}
