//! Finds the states of a trimmed automaton that accept the same language, by partition refinement.
//!
//! States are grouped in *blocks*, which are split until each holds only equivalent states. The
//! *signature* of a state is its row with every target replaced by the target's block, and a block
//! is split by the signatures of its states. The largest part keeps the block's number, so only the
//! predecessors of the smaller parts must be revisited: they are *dirty*, the other states *clean*.
//! A state changes its block at most log₂(states) times. This is Hopcroft's "process the smaller
//! half" with whole rows instead of single letters; rows are short because they consist of runs of
//! bytes.
//!
//! Reference: J. Jacobs, T. Wissmann, *Fast Coalgebraic Bisimilarity Minimization*, POPL 2023.

use super::rows::append;
use super::{Csr, Interner, Rows, Run};
use burn_dfa_common::{Result, limits::Meter};

/// The block of each state: equal for two states exactly if they accept the same language.
///
/// `rows` must be trimmed. Blocks are numbered without gaps; block 0 holds the dead state alone.
pub(super) fn equivalent(rows: &Rows, meter: &Meter) -> Result<Vec<u32>> {
    let predecessors = rows.backward();
    let mut partition = Partition::by_bytes(rows);
    let mut groups = Groups::new();
    let mut work = 0;
    while let Some(block) = partition.worklist.pop() {
        let Block { begin, end, dirty } = partition.blocks[block as usize];
        partition.blocks[block as usize].dirty = 0;
        if end - begin == 1 {
            continue;
        }
        work += dirty;
        if work > 1 << 12 {
            work = 0;
            meter.time()?;
        }
        groups.clear();
        if begin + dirty < end {
            // All clean states have one signature: group 0.
            let clean = partition.order[begin + dirty];
            groups.add(rows, clean, &partition.block_of);
            groups.counts[0] = end - begin - dirty;
        }
        for at in begin..begin + dirty {
            let group = groups.add(rows, partition.order[at], &partition.block_of);
            groups.dirty.push((group, partition.order[at]));
        }
        if groups.counts.len() > 1 {
            partition.split(block, dirty, &mut groups, &predecessors);
        }
    }
    Ok(partition.block_of)
}

/// The states `order[begin..end]`; the first `dirty` states must be revisited.
#[derive(Clone, Copy)]
struct Block {
    begin: usize,
    end: usize,
    dirty: usize,
}

struct Partition {
    /// All states, block by block.
    order: Vec<u32>,
    /// The index of each state in `order`.
    index_of: Vec<usize>,
    block_of: Vec<u32>,
    blocks: Vec<Block>,
    /// The blocks with dirty states.
    worklist: Vec<u32>,
}

impl Partition {
    /// The first partition: states that agree on acceptance and on their readable bytes, as
    /// equivalent states do.
    fn by_bytes(rows: &Rows) -> Self {
        let count = rows.state_count();
        let mut kinds = Interner::new();
        let mut kind_of: Vec<u32> = vec![0; count];
        let mut sizes = Vec::new();
        let mut kind: Vec<Run> = Vec::new();
        for state in 1..count as u32 {
            // The target tells whether the state accepts; a state without runs does.
            let target = 1 + u32::from(rows.is_accepting(state));
            kind.clear();
            rows.row(state).iter().for_each(|run| append(&mut kind, 0, Run { target, ..*run }));
            let (number, new) = kinds.intern(&kind);
            if new {
                sizes.push(0);
            }
            kind_of[state as usize] = number;
            sizes[number as usize] += 1;
        }
        // Block 0 belongs to the dead state; kind `k` is block `k + 1`.
        let mut blocks = vec![Block { begin: 0, end: 1, dirty: 0 }];
        let mut begin = 1;
        for &size in &sizes {
            blocks.push(Block { begin, end: begin + size, dirty: size });
            begin += size;
        }
        let mut fill: Vec<usize> = blocks.iter().map(|block| block.begin).collect();
        let mut order = vec![0; count];
        let mut index_of = vec![0; count];
        let mut block_of = vec![0; count];
        for state in 1..count {
            let block = kind_of[state] + 1;
            let at = &mut fill[block as usize];
            order[*at] = state as u32;
            index_of[state] = *at;
            block_of[state] = block;
            *at += 1;
        }
        let worklist = (1..blocks.len() as u32).rev().collect();
        Self { order, index_of, block_of, blocks, worklist }
    }

    /// Splits `block` by the groups of its dirty states; the largest group keeps the number.
    fn split(&mut self, block: u32, dirty: usize, groups: &mut Groups, predecessors: &Csr) {
        let Block { begin, end, .. } = self.blocks[block as usize];
        // Group 0 goes last, next to the clean states of the same group.
        let last = |group: u32| if group == 0 { u32::MAX } else { group };
        groups.dirty.sort_by_key(|&(group, _)| last(group));
        for (at, &(_, state)) in groups.dirty.iter().enumerate() {
            self.order[begin + at] = state;
            self.index_of[state as usize] = begin + at;
        }
        debug_assert_eq!(groups.dirty.len(), dirty);

        let largest = (0..groups.counts.len()).max_by_key(|&g| groups.counts[g]).unwrap_or(0);
        let mut at = begin;
        let first_new = self.blocks.len();
        for group in (1..groups.counts.len()).chain([0]) {
            let part = Block { begin: at, end: at + groups.counts[group], dirty: 0 };
            at = part.end;
            if group == largest {
                self.blocks[block as usize] = part;
                continue;
            }
            let new = self.blocks.len() as u32;
            for &state in &self.order[part.begin..part.end] {
                self.block_of[state as usize] = new;
            }
            self.blocks.push(part);
        }
        debug_assert_eq!(at, end);
        // A copy, since marking reorders the states of a block.
        let moved: Vec<u32> = (first_new..self.blocks.len())
            .flat_map(|new| self.order[self.blocks[new].begin..self.blocks[new].end].iter().copied())
            .collect();
        for state in moved {
            for &from in predecessors.of(state) {
                self.mark(from);
            }
        }
    }

    /// Moves `state` to the dirty states of its block.
    fn mark(&mut self, state: u32) {
        let id = self.block_of[state as usize];
        let block = &mut self.blocks[id as usize];
        let at = self.index_of[state as usize];
        let boundary = block.begin + block.dirty;
        if block.end - block.begin == 1 || at < boundary {
            return;
        }
        if block.dirty == 0 {
            self.worklist.push(id);
        }
        block.dirty += 1;
        let other = self.order[boundary];
        self.order.swap(at, boundary);
        self.index_of[state as usize] = boundary;
        self.index_of[other as usize] = at;
    }
}

/// The states of one block, grouped by signature.
struct Groups {
    /// `(group, state)` of the dirty states.
    dirty: Vec<(u32, u32)>,
    /// Number of states of each group.
    counts: Vec<usize>,
    signatures: Interner<Run>,
    signature: Vec<Run>,
}

impl Groups {
    fn new() -> Self {
        Self { dirty: Vec::new(), counts: Vec::new(), signatures: Interner::new(), signature: Vec::new() }
    }

    fn clear(&mut self) {
        self.dirty.clear();
        self.counts.clear();
        self.signatures.clear();
    }

    /// Counts `state` into its group and returns the group.
    fn add(&mut self, rows: &Rows, state: u32, block_of: &[u32]) -> u32 {
        self.signature.clear();
        for run in rows.row(state) {
            append(&mut self.signature, 0, Run { target: block_of[run.target as usize], ..*run });
        }
        let (group, new) = self.signatures.intern(&self.signature);
        if new {
            self.counts.push(0);
        }
        self.counts[group as usize] += 1;
        group
    }
}
