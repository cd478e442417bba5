//! Mask rows on the device, in a kernel: where the pool keeps the bits of a state.
//!
//! The pool is one buffer of integers: a clock, a tag for each slot, and for each slot the tiles of
//! its row. A tile holds the bits of [`TILE`](crate::tensor::arrays::TILE) tokens: a number that
//! says while which budgets the bits are exact, a word for every 32 tokens and, with a stack,
//! another word for every 32 tokens with the tokens that depend on frames below the top procedure.

use cubecl::prelude::*;

use crate::tensor::arrays::{CLOCK, TAG, TILE_WORDS};

/// No bits, but a walk over all tokens.
pub(super) const WALK: i32 = 0;
/// The slot holds the bits.
pub(super) const HIT: i32 = 1;
/// A walk that writes the bits into the slot.
pub(super) const FILL: i32 = 2;

/// The numbers of a row's plan: the kind, the slot, and the greatest bound of a tile whose bits are
/// exact.
pub(super) const KIND: usize = 0;
pub(super) const SLOT: usize = 1;
pub(super) const LEFT: usize = 2;
/// For a choice: the key of the noise, the bits of the factor of the logits, the number of arrived
/// cubes, and the key and the id of the best token of each tile.
pub(super) const KEY: usize = 3;
pub(super) const FACTOR: usize = 4;
pub(super) const ARRIVED: usize = 5;
pub(super) const BEST: usize = 6;

/// In a tag, whether the depth of the stack decided about a token: the bits then hold
/// for this depth alone.
pub(super) const LIMITED: usize = 5;

/// How a step finds the legal tokens of a row.
#[derive(CubeType, Clone, Copy)]
pub(super) struct Plan {
    pub(super) kind: i32,
    pub(super) slot: u32,
    pub(super) left: i32,
}

/// The sizes of a pool.
#[derive(CubeLaunch, CubeType)]
pub(super) struct Rows {
    /// The number of sets; a state belongs to one of them.
    pub(super) sets: u32,
    /// The number of slots of a set.
    pub(super) ways: u32,
    /// The size of a row.
    pub(super) size: u32,
    /// The size of a tile.
    pub(super) tile: u32,
    /// Whether there is a pool.
    #[cube(comptime)]
    pub(super) keeps: bool,
}

#[cube]
impl Rows {
    /// The first slot of the set of a state.
    pub(super) fn first(&self, state: u32) -> u32 {
        (state % self.sets) * self.ways
    }

    /// The index of the tag of a slot: a state, its generation, the depth and the exits for which
    /// the bits were found, the time of the last use, and [`LIMITED`].
    pub(super) fn tag(&self, slot: u32) -> usize {
        CLOCK + slot as usize * TAG
    }

    /// The index of a tile.
    pub(super) fn tile_of(&self, slot: u32, tile: u32) -> usize {
        CLOCK
            + (self.sets * self.ways) as usize * TAG
            + slot as usize * self.size as usize
            + (tile * self.tile) as usize
    }

    /// The offset of the words of dependent tokens in a tile.
    pub(super) fn dependent(&self) -> usize {
        1 + TILE_WORDS
    }
}
