//! The legal tokens of a tile of a row, as bits in shared memory.
//!
//! Each unit finds the bits of one word. A hit reads them from the pool, and follows only the tokens
//! that depend on the stack; a walk, and a hit of a word that the budget does not reach, follows
//! all 32 tokens. No two units write the same word, so this takes no atomics and one barrier.

use cubecl::prelude::*;

use super::lookup::Lookup;
use super::rows::{FILL, HIT, LIMITED, Plan, Rows};
use super::stack::{self, NONE};
use crate::tensor::arrays::{TILE, TILE_WORDS};

/// Units of a cube: one for each word of a tile.
pub(super) const UNITS: u32 = TILE_WORDS as u32;
/// The vectors of logits that a unit of few cubes loads before it uses the first one, so that it
/// waits for memory once. A unit has at least as many in a tile: 8 logits are the most of a vector.
pub(super) const AT_ONCE: u32 = 4;
const _: () = assert!(TILE == UNITS * 8 * AT_ONCE);

/// The bits of the legal tokens of a tile, in shared memory.
#[derive(CubeType)]
pub(super) struct TileMask {
    words: Shared<[u32]>,
}

#[cube]
impl TileMask {
    /// The bits from the token at `offset` in the tile to the end of its word.
    pub(super) fn bits(&self, offset: u32) -> u32 {
        self.words[(offset / 32) as usize] >> (offset % 32)
    }
}

/// The bits of the tokens of one vector of `size` logits.
#[cube]
pub(super) fn lanes(#[comptime] size: usize) -> u32 {
    comptime!(if size == 32 { u32::MAX } else { (1u32 << size as u32) - 1 })
}

/// The vector of logits that a unit loads, in its row: `vector`, or the first one if no logit of
/// `vector` is needed. The first one is in a cache, and a load without a condition does not wait
/// for the loads before it.
#[cube]
pub(super) fn read_at(vector: usize, is_needed: bool) -> usize {
    select(is_needed, vector, 0usize)
}

/// Reads the bits of a tile from the pool, or walks over its tokens. A plan of the kind `FILL` also
/// writes the bits into the pool. All units of the cube take part. The position begins at `base`.
#[cube]
pub(super) fn legal(
    lookup: &Lookup,
    rows: &Rows,
    position: &Tensor<i32>,
    plan: &Plan,
    pool: &mut [i32],
    base: usize,
    tile: u32,
) -> TileMask {
    let mut words = Shared::<[u32]>::new_slice(TILE_WORDS);
    // What a pool needs of each unit; shared memory spares registers.
    // The tokens that are legal with any budget.
    let mut always = Shared::<[u32]>::new_slice(comptime!(if rows.keeps { TILE_WORDS } else { 1 }));
    // The tokens that depend on frames below the top procedure.
    let mut dependent =
        Shared::<[u32]>::new_slice(comptime!(if rows.keeps && lookup.has_stack { TILE_WORDS } else { 1 }));
    // The greatest number of tokens to the end after a legal token.
    let mut greatest_of_units =
        Shared::<[i32]>::new_slice(comptime!(if rows.keeps { TILE_WORDS } else { 1 }));
    let word = UNIT_POS as usize;
    let first = tile * TILE + 32 * UNIT_POS;

    let mut kind = 0i32;
    let mut at = 0usize;
    let mut bits = 0u32;
    let mut unknown = in_vocabulary(lookup, first);
    if comptime!(rows.keeps) {
        kind = plan.kind;
        at = rows.tile_of(plan.slot, tile);
        if kind == HIT {
            // Read before the comparison, so that no load waits for another one.
            let known = u32::cast_from(pool[at + 1 + word]);
            let mut on_stack = 0u32;
            if comptime!(lookup.has_stack) {
                on_stack = u32::cast_from(pool[at + rows.dependent() + word]);
            }
            if pool[at] <= plan.left {
                bits = known;
                unknown = on_stack;
            }
        }
        if kind == FILL {
            always[word] = 0u32;
            greatest_of_units[word] = 0i32;
            if comptime!(lookup.has_stack) {
                dependent[word] = 0u32;
            }
        }
    }
    if unknown != 0 {
        let mut own = stack::frame_buffer(lookup);
        let state = stack::state_of(lookup, position, base);
        let owner = lookup.owner_of(state);
        let left = max(position[base + 1] - 1, 0);
        // Whether the depth decided about a token.
        let mut limited = false;
        while unknown != 0 {
            let offset = unknown.trailing_zeros();
            let bit = 1u32 << offset;
            unknown ^= bit;
            let token = first + offset;
            let mut pops = false.runtime();
            let mut far = false.runtime();
            let distance = if comptime!(lookup.has_stack) {
                let (distance, after) = stack::distance(lookup, position, base, &mut own, token);
                pops = after.pops;
                far = after.far;
                if after.limited && !pops {
                    limited = true;
                }
                distance
            } else {
                lookup.distance(state, owner, token)
            };
            if distance <= left {
                bits |= bit;
            }
            if kind == FILL {
                if pops {
                    dependent[word] |= bit;
                } else if distance != NONE {
                    always[word] |= bit;
                    greatest_of_units[word] = max(greatest_of_units[word], distance);
                }
                if far && !pops {
                    greatest_of_units[word] = NONE;
                }
            }
        }
        if comptime!(rows.keeps && lookup.has_stack) {
            // Every unit of every cube writes the same number.
            if limited && kind == FILL {
                pool[rows.tag(plan.slot) + LIMITED] = 1i32;
            }
        }
    }
    words[word] = bits;
    if kind == FILL {
        pool[at + 1 + word] = i32::cast_from(always[word]);
        if comptime!(lookup.has_stack) {
            pool[at + rows.dependent() + word] = i32::cast_from(dependent[word]);
        }
    }
    sync_cube();
    if kind == FILL && word == 0 {
        let mut greatest = 0i32;
        for unit in 0..TILE_WORDS {
            greatest = max(greatest, greatest_of_units[unit]);
        }
        pool[at] = bound(lookup, position, base, greatest);
    }
    TileMask { words }
}

/// The bits of the tokens from `first` on that are in the vocabulary.
#[cube]
fn in_vocabulary(lookup: &Lookup, first: u32) -> u32 {
    let count = max(lookup.vocab_size, first) - first;
    select(count < 32, (1u32 << (count % 32)) - 1, u32::MAX)
}

/// With at least this many tokens left, plus the greatest distance from an exit of the top
/// procedure to the end, the bits are exact; [`NONE`] if a path was too long to count.
#[cube]
fn bound(lookup: &Lookup, position: &Tensor<i32>, base: usize, greatest: i32) -> i32 {
    let mut bound = greatest;
    if comptime!(lookup.has_stack) {
        let depth = stack::depth_of(lookup, position, base);
        let mut least = NONE.runtime();
        let mut exit = 0u32;
        while exit < lookup.exits {
            least = min(least, stack::beyond(lookup, position, base, depth, exit));
            exit += 1;
        }
        if bound != NONE && least < stack::FARTHEST {
            bound = max(bound - least, 0);
        }
    }
    bound
}
