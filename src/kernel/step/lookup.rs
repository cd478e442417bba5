//! The lookups of a step in a kernel. Imports only constants of this crate.

use cubecl::prelude::*;

use crate::tensor::arrays::Array;

/// The image of a device constraint, see `tensor::Image`.
#[derive(CubeLaunch, CubeType)]
pub(super) struct Lookup {
    pub(super) image: Box<[i32]>,
    /// The offset of each array.
    pub(super) offsets: Sequence<u32>,
    pub(super) states: u32,
    pub(super) columns: u32,
    pub(super) vocab_size: u32,
    pub(super) alphabet: u32,
    /// Whether a constraint may be byte-level.
    #[cube(comptime)]
    pub(super) is_byte_level: bool,
    #[cube(comptime)]
    pub(super) has_owner: bool,
    /// For constraints with calls, see `tensor::Sizes`; else 0.
    pub(super) exits: u32,
    pub(super) depth: u32,
    pub(super) pushes: u32,
    #[cube(comptime)]
    pub(super) has_stack: bool,
    /// The size of the array for the frames pushed by a token.
    #[cube(comptime)]
    pub(super) frame_buffer_len: u32,
}

#[cube]
impl Lookup {
    /// An entry of an array.
    pub(super) fn entry(&self, #[comptime] array: Array, index: u32) -> i32 {
        let from = self.offsets[comptime!(array as usize)];
        self.image[(from + index) as usize]
    }

    /// The state after one column.
    pub(super) fn step(&self, state: u32, column: u32) -> u32 {
        u32::cast_from(self.entry(Array::Next, state * self.columns + column))
    }

    /// The constraint of a state.
    pub(super) fn owner_of(&self, state: u32) -> u32 {
        let mut owner = 0u32;
        if comptime!(self.has_owner) {
            owner = u32::cast_from(self.entry(Array::Owner, state));
        }
        owner
    }

    /// The state after a token in range, read as constraint `owner` reads it; 0 if it is illegal.
    pub(super) fn next(&self, state: u32, owner: u32, token: u32) -> u32 {
        if comptime!(self.is_byte_level) {
            let text = self.entry(Array::Text, owner);
            if text < 0 {
                self.step(state, self.class_of(owner, token))
            } else {
                self.walk(state, owner, u32::cast_from(text), token)
            }
        } else {
            self.step(state, self.class_of(owner, token))
        }
    }

    pub(super) fn class_of(&self, owner: u32, token: u32) -> u32 {
        u32::cast_from(self.entry(Array::Class, owner * self.vocab_size + token))
    }

    /// The column of the symbol at an index.
    pub(super) fn column_of(&self, owner: u32, at: u32) -> u32 {
        let symbol = u32::cast_from(self.entry(Array::Symbols, at));
        u32::cast_from(self.entry(Array::Column, owner * self.alphabet + symbol))
    }

    /// The state after the symbols of a token.
    fn walk(&self, state: u32, owner: u32, text: u32, token: u32) -> u32 {
        let mut next = state;
        let offset = text * (self.vocab_size + 1) + token;
        let mut at = u32::cast_from(self.entry(Array::Offsets, offset));
        let end = u32::cast_from(self.entry(Array::Offsets, offset + 1));
        // In forced text only the longest token is legal.
        if end - at < u32::cast_from(self.entry(Array::Shortest, state)) {
            next = 0u32.runtime();
        }
        while at < end && next != 0 {
            next = self.step(next, self.column_of(owner, at));
            at += 1;
        }
        // A state with live byte transitions is dead if no sequence of tokens reaches the end.
        select(self.entry(Array::TokensToEnd, next) == i32::MAX, 0u32, next)
    }

    /// The number of tokens to the end after a token in range, `i32::MAX` if it is unreachable, in
    /// a state of constraint `owner`.
    pub(super) fn distance(&self, state: u32, owner: u32, token: u32) -> i32 {
        self.entry(Array::TokensToEnd, self.next(state, owner, token))
    }
}
