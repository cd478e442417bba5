//! The legal tokens of a tile of a row, as bits in shared memory.

use cubecl::prelude::*;

use super::lookup::Lookup;
use super::rows::{FILL, HIT, LIMITED, Plan, Rows};
use super::stack::{self, NONE};
use crate::tensor::arrays::{TILE, TILE_WORDS};

/// Units of a cube.
pub(super) const UNITS: u32 = 256;

/// The bits of the legal tokens of a tile, in shared memory.
#[derive(CubeType)]
pub(super) struct TileMask {
    /// The bits that were read; some devices load atomic numbers slowly.
    read: Shared<[u32]>,
    /// The bits that were found by a walk.
    walked: Shared<[Atomic<u32>]>,
    is_hit: bool,
}

#[cube]
impl TileMask {
    /// The bits from the token at `offset` in the tile to the end of its word.
    pub(super) fn bits(&self, offset: u32) -> u32 {
        let word = (offset / 32) as usize;
        let mut bits = self.read[word];
        if !self.is_hit {
            bits = self.walked[word].load();
        }
        bits >> (offset % 32)
    }
}

/// The bits of the tokens of one vector of `size` logits.
#[cube]
pub(super) fn lanes(#[comptime] size: usize) -> u32 {
    comptime!(if size == 32 { u32::MAX } else { (1u32 << size as u32) - 1 })
}

/// Reads the bits of a tile from the pool, or walks over its tokens. A plan of the kind `FILL` also
/// writes the bits into the pool. All units of the cube take part.
#[cube]
pub(super) fn legal(
    lookup: &Lookup,
    rows: &Rows,
    position: &Tensor<i32>,
    plan: &Plan,
    pool: &mut [i32],
    row: usize,
    tile: u32,
) -> TileMask {
    let mut read = Shared::<[u32]>::new_slice(TILE_WORDS);
    let walked = Shared::<[Atomic<u32>]>::new_slice(TILE_WORDS);
    let base = row * position.stride(0);
    let left = max(position[base + 1] - 1, 0);
    let first = tile * TILE;
    let word = UNIT_POS as usize;

    let mut kind = 0i32;
    let mut at = 0usize;
    let mut is_hit = false;
    if comptime!(rows.keeps) {
        kind = plan.kind;
        at = rows.tile_of(plan.slot, tile);
        if kind == HIT {
            is_hit = pool[at] <= plan.left;
        }
    }
    let mut dependent = 0u32;
    if word < TILE_WORDS {
        let mut bits = 0u32;
        if is_hit {
            bits = u32::cast_from(pool[at + 1 + word]);
            if comptime!(lookup.has_stack) {
                dependent = u32::cast_from(pool[at + rows.dependent() + word]);
            }
        }
        read[word] = bits;
        walked[word].store(0u32);
    }
    let filled = Filled::new(lookup, rows);
    sync_cube();
    if !is_hit || dependent != 0 {
        let mut own = stack::frame_buffer(lookup);
        if comptime!(lookup.has_stack) {
            let mut bits = 0u32;
            while dependent != 0 {
                let offset = dependent.trailing_zeros();
                let bit = 1u32 << offset;
                let token = first + 32 * UNIT_POS + offset;
                let (distance, _after) = stack::distance(lookup, position, base, &mut own, token);
                if distance <= left {
                    bits |= bit;
                }
                dependent ^= bit;
            }
            // This unit alone writes its word.
            if bits != 0 {
                read[word] |= bits;
            }
        }
        // Whether the depth decided about a token of this unit.
        let mut limited = false;
        let mut offset = select(is_hit, TILE, UNIT_POS);
        while offset < TILE && first + offset < lookup.vocab_size {
            let token = first + offset;
            let bit = 1u32 << (offset % 32);
            let word = (offset / 32) as usize;
            if comptime!(lookup.has_stack) {
                let (distance, after) = stack::distance(lookup, position, base, &mut own, token);
                if distance <= left {
                    walked[word].fetch_or(bit);
                }
                if kind == FILL {
                    filled.add(lookup, word, bit, distance, after.pops, after.far);
                    if after.limited && !after.pops {
                        limited = true;
                    }
                }
            } else {
                let state = stack::state_of(lookup, position, base);
                let distance = lookup.distance(state, lookup.owner_of(state), token);
                if distance <= left {
                    walked[word].fetch_or(bit);
                }
                if kind == FILL {
                    filled.add(lookup, word, bit, distance, false, false);
                }
            }
            offset += UNITS;
        }
        if comptime!(rows.keeps && lookup.has_stack) {
            let tag = rows.tag(plan.slot);
            // Every unit of every cube writes the same number.
            if limited {
                pool[tag + LIMITED] = 1i32;
            }
        }
    }
    sync_cube();
    if kind == FILL {
        filled.write(lookup, rows, position, base, pool, at);
    }
    TileMask { read, walked, is_hit }
}

/// The bits of a tile for the pool, in shared memory.
#[derive(CubeType)]
struct Filled {
    /// The tokens that are legal with any budget.
    words: Shared<[Atomic<u32>]>,
    /// The tokens that depend on frames below the top procedure.
    dependent: Shared<[Atomic<u32>]>,
    /// The greatest number of tokens to the end after a legal token.
    greatest: Shared<[Atomic<i32>]>,
}

#[cube]
impl Filled {
    fn new(lookup: &Lookup, rows: &Rows) -> Filled {
        let size = comptime!(if rows.keeps { TILE_WORDS } else { 1 });
        let words = Shared::<[Atomic<u32>]>::new_slice(size);
        let dependent_size = comptime!(if rows.keeps && lookup.has_stack { TILE_WORDS } else { 1 });
        let dependent = Shared::<[Atomic<u32>]>::new_slice(dependent_size);
        let greatest = Shared::<[Atomic<i32>]>::new_slice(1usize);
        let word = UNIT_POS as usize;
        if word < size {
            words[word].store(0u32);
        }
        if word < dependent_size {
            dependent[word].store(0u32);
        }
        if word == 0 {
            greatest[0].store(0i32);
        }
        Filled { words, dependent, greatest }
    }

    fn add(&self, lookup: &Lookup, word: usize, bit: u32, distance: i32, pops: bool, far: bool) {
        if comptime!(lookup.has_stack) {
            if pops {
                self.dependent[word].fetch_or(bit);
            } else {
                if far {
                    self.greatest[0].fetch_max(NONE);
                }
                if distance != NONE {
                    self.words[word].fetch_or(bit);
                    self.greatest[0].fetch_max(distance);
                }
            }
        } else if distance != NONE {
            self.words[word].fetch_or(bit);
            self.greatest[0].fetch_max(distance);
        }
    }

    /// Writes the tile.
    fn write(
        &self,
        lookup: &Lookup,
        rows: &Rows,
        position: &Tensor<i32>,
        base: usize,
        pool: &mut [i32],
        at: usize,
    ) {
        let word = UNIT_POS as usize;
        if comptime!(rows.keeps) {
            if word < TILE_WORDS {
                pool[at + 1 + word] = i32::cast_from(self.words[word].load());
                if comptime!(lookup.has_stack) {
                    pool[at + rows.dependent() + word] = i32::cast_from(self.dependent[word].load());
                }
            }
            if word == 0 {
                pool[at] = self.bound(lookup, position, base);
            }
        }
    }

    /// With at least this many tokens left, plus the greatest distance from an exit of the top
    /// procedure to the end, the bits are exact; [`NONE`] if a path was too long to count.
    fn bound(&self, lookup: &Lookup, position: &Tensor<i32>, base: usize) -> i32 {
        let mut bound = self.greatest[0].load();
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
}
