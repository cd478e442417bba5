//! From the blocks of equivalent states to the canonical automaton.

use std::collections::HashMap;

use super::raw::RawDfa;
use super::{ByteDfa, StateId};
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
    let merged = merge_symbols(raw, blocks, &representatives, meter)?;

    // Classes in order of their first byte.
    let mut numbers = [None; 256];
    let mut symbols = Vec::new(); // one symbol of each class
    let classes: [u8; 256] = std::array::from_fn(|byte| {
        let symbol = raw.symbols[byte];
        *numbers[merged[symbol as usize] as usize].get_or_insert_with(|| {
            symbols.push(symbol);
            (symbols.len() - 1) as u8
        })
    });
    let class_count = symbols.len();
    meter.bytes(count.saturating_mul(class_count).saturating_mul(4))?;

    let mut number_of = vec![0; count];
    let mut queue = vec![0, blocks[raw.start as usize]];
    number_of[queue[1] as usize] = 1;
    let mut transitions = vec![0; class_count];
    transitions.reserve_exact((count - 1) * class_count);
    let mut accepting = vec![false];
    let mut at = 1;
    while at < queue.len() {
        let state = representatives[queue[at] as usize];
        let targets = Targets::of(raw, state, blocks);
        for &symbol in &symbols {
            let block = targets.get(symbol);
            if block != 0 && number_of[block as usize] == 0 {
                number_of[block as usize] = queue.len() as u32;
                queue.push(block);
            }
            transitions.push(number_of[block as usize]);
        }
        accepting.push(raw.accepting[state as usize]);
        at += 1;
        if at % 4096 == 0 {
            meter.time()?;
        }
    }
    Ok(ByteDfa::from_parts(classes, class_count, transitions, accepting, StateId(1)))
}

/// The row of a state by symbol, as blocks.
struct Targets([u32; 256]);

impl Targets {
    fn of(raw: &RawDfa, state: u32, blocks: &[u32]) -> Self {
        let mut targets = [0; 256];
        for run in raw.row(state) {
            targets[run.first as usize..=run.last as usize].fill(blocks[run.target as usize]);
        }
        Self(targets)
    }

    fn get(&self, symbol: u8) -> u32 {
        self.0[symbol as usize]
    }
}

/// Numbers the symbols so that two have one number exactly if no state tells them apart.
fn merge_symbols(raw: &RawDfa, blocks: &[u32], representatives: &[u32], meter: &Meter) -> Result<[u8; 256]> {
    // Symbols of no byte would split nothing that a byte can see; they may share a number with any.
    let mut merged = [0u8; 256];
    let mut sizes = [0usize; 256];
    let mut first = [0usize; 256];
    sizes[0] = 256;
    let mut count = 1;
    for (at, &state) in representatives.iter().enumerate() {
        if at % 4096 == 0 {
            meter.time()?;
        }
        if count == 256 {
            break;
        }
        let alone = |symbol: u8| sizes[merged[symbol as usize] as usize] == 1;
        if raw.row(state).iter().all(|run| (run.first..=run.last).all(alone)) {
            continue;
        }
        let targets = Targets::of(raw, state, blocks).0;
        if (0..256).all(|symbol| targets[symbol] == targets[first[merged[symbol] as usize]]) {
            continue;
        }
        let mut refined: HashMap<(u8, u32), u8> = HashMap::new();
        sizes = [0; 256];
        for symbol in 0..256 {
            let new = refined.len() as u8;
            let number = *refined.entry((merged[symbol], targets[symbol])).or_insert_with(|| {
                first[new as usize] = symbol;
                new
            });
            merged[symbol] = number;
            sizes[number as usize] += 1;
        }
        count = refined.len();
    }
    Ok(merged)
}
