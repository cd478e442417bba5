//! The first kernel of a step: every row follows its last token, and gets a plan, which says where
//! its legal tokens are.
//!
//! One cube sees the whole batch, a unit per row: so rows share the slots of a pool without
//! atomics, and a slot that a row reads is never given to another state.

use cubecl::prelude::*;

use super::lookup::Lookup;
use super::noise::Keys;
use super::rows::{ARRIVED, FILL, HIT, KIND, LEFT, LIMITED, Rows, SLOT, WALK};
use super::stack::{self, FARTHEST};
use crate::tensor::arrays::Array as ImageArray;

/// The positions before the last token, if they are not in the buffer of the new ones.
#[derive(CubeLaunch, CubeType)]
#[allow(dead_code, reason = "only its launch arguments are ever made")]
pub(super) enum Source {
    /// In the same buffer.
    InPlace,
    /// In another buffer.
    Other(OwnedTensor<i32>),
}

#[cube]
impl Source {
    /// Writes the position of a row into the new buffer.
    fn copy(&self, lookup: &Lookup, position: &mut Tensor<i32>, row: usize) {
        #[comptime]
        match self {
            Source::InPlace => {}
            Source::Other(source) => {
                let (from, stride) = (row * source.stride(0), source.stride(1));
                let mut depth = 0i32;
                if comptime!(lookup.has_stack) {
                    depth = source[from + 2 * stride];
                }
                let numbers = stack::numbers(lookup, depth);
                let mut number = 0usize;
                while number < numbers {
                    let at = row * position.stride(0) + number;
                    position[at] = source[from + number * stride];
                    number += 1;
                }
            }
        }
    }
}

/// Advances the rows and plans their masks.
#[cube(launch, create_dummy_kernel)]
pub(super) fn advance_kernel(
    source: &Source,
    position: &mut Tensor<i32>,
    tokens: &Tensor<i32>,
    keys: &Keys,
    lookup: &Lookup,
    rows: &Rows,
    pool: &mut [i32],
    plan: &mut [i32],
    stride: u32,
) {
    let stride = stride as usize;
    let batch = position.shape(0);
    let mut now = 0i32;
    if comptime!(rows.keeps) {
        now = pool[0] + 1;
    }
    let mut row = UNIT_POS as usize;
    while row < batch {
        source.copy(lookup, position, row);
        let base = row * position.stride(0);
        let token = tokens[row * tokens.stride(0)];
        let mut own = stack::frame_buffer(lookup);
        stack::advance(lookup, position, base, &mut own, token);
        let at = row * stride;
        find(lookup, rows, &*position, base, pool, plan, at, now);
        keys.write(plan, row, at);
        if stride > ARRIVED {
            plan[at + ARRIVED] = 0i32;
        }
        row += CUBE_DIM as usize;
    }
    if comptime!(rows.keeps) {
        sync_storage();
        let mut row = UNIT_POS as usize;
        while row < batch {
            request(lookup, rows, &*position, row, pool, plan, row * stride, now);
            row += CUBE_DIM as usize;
        }
        sync_storage();
        let mut row = UNIT_POS as usize;
        while row < batch {
            grant(lookup, rows, &*position, row, pool, plan, stride, now);
            row += CUBE_DIM as usize;
        }
        if UNIT_POS == 0 {
            pool[0] = now;
        }
    }
}

/// What decides which bits a position needs.
#[derive(CubeType, Clone, Copy)]
struct Needed {
    state: i32,
    generation: i32,
    depth: i32,
    /// A bit for each exit of the top procedure from which the end is reachable.
    exits: i32,
    /// The greatest number of tokens from such an exit to the end.
    greatest: i32,
}

#[cube]
fn needed(lookup: &Lookup, position: &Tensor<i32>, base: usize) -> Needed {
    let state = stack::state_of(lookup, position, base);
    let mut depth = 0u32;
    let mut exits = 1i32;
    let mut greatest = 0i32;
    if comptime!(lookup.has_stack) {
        depth = stack::depth_of(lookup, position, base);
        exits = 0i32;
        let mut exit = 0u32;
        while exit < lookup.exits {
            let beyond = stack::beyond(lookup, position, base, depth, exit);
            if beyond < FARTHEST {
                exits |= 1i32 << i32::cast_from(exit);
                greatest = max(greatest, beyond);
            }
            exit += 1;
        }
    }
    let generation = lookup.entry(ImageArray::Generation, state);
    Needed { state: i32::cast_from(state), generation, depth: i32::cast_from(depth), exits, greatest }
}

/// Plans to read the slot that holds the bits of a row, or to walk.
#[cube]
fn find(
    lookup: &Lookup,
    rows: &Rows,
    position: &Tensor<i32>,
    base: usize,
    pool: &mut [i32],
    plan: &mut [i32],
    at: usize,
    now: i32,
) {
    plan[at + KIND] = WALK;
    plan[at + SLOT] = 0i32;
    if comptime!(rows.keeps) {
        let needed = needed(lookup, position, base);
        let first = rows.first(u32::cast_from(needed.state));
        for way in 0..rows.ways {
            let slot = first + way;
            let tag = rows.tag(slot);
            let depth = pool[tag + 2];
            let fits = needed.depth == depth || (needed.depth < depth && pool[tag + LIMITED] == 0);
            let is_same = pool[tag] == needed.state
                && pool[tag + 1] == needed.generation
                && pool[tag + 3] == needed.exits
                && fits;
            if is_same {
                pool[tag + 4] = now;
                plan[at + KIND] = HIT;
                plan[at + SLOT] = i32::cast_from(slot);
            }
        }
        let left = max(position[base + 1] - 1, 0);
        plan[at + LEFT] = min(left, FARTHEST - 1) - needed.greatest;
    }
}

/// If a row has no slot, asks for the slot of its set that was used least recently, if no row reads
/// it in this step.
#[cube]
fn request(
    lookup: &Lookup,
    rows: &Rows,
    position: &Tensor<i32>,
    row: usize,
    pool: &mut [i32],
    plan: &mut [i32],
    at: usize,
    now: i32,
) {
    if plan[at + KIND] == WALK {
        let state = stack::state_of(lookup, position, row * position.stride(0));
        let first = rows.first(state);
        let mut greatest_age = 0u32;
        for way in 0..rows.ways {
            let slot = first + way;
            let age = u32::cast_from(now - pool[rows.tag(slot) + 4]);
            if age > greatest_age {
                greatest_age = age;
                plan[at + KIND] = FILL;
                plan[at + SLOT] = i32::cast_from(slot);
            }
        }
    }
}

/// Gives a slot to the first row that asks for it; the other rows walk.
#[cube]
fn grant(
    lookup: &Lookup,
    rows: &Rows,
    position: &Tensor<i32>,
    row: usize,
    pool: &mut [i32],
    plan: &mut [i32],
    stride: usize,
    now: i32,
) {
    let at = row * stride;
    if plan[at + KIND] == FILL {
        let slot = plan[at + SLOT];
        let mut is_first = true;
        let mut other = 0usize;
        while is_first && other < row {
            // The first row that asks for a slot keeps its request, so the other rows see it.
            if plan[other * stride + KIND] == FILL && plan[other * stride + SLOT] == slot {
                is_first = false;
            }
            other += 1;
        }
        if is_first {
            let needed = needed(lookup, position, row * position.stride(0));
            let tag = rows.tag(u32::cast_from(slot));
            pool[tag] = needed.state;
            pool[tag + 1] = needed.generation;
            pool[tag + 2] = needed.depth;
            pool[tag + 3] = needed.exits;
            pool[tag + 4] = now;
            pool[tag + LIMITED] = 0i32;
        } else {
            plan[at + KIND] = WALK;
        }
    }
}
