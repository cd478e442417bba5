//! The table in a kernel. Imports nothing but CubeCL.

use cubecl::prelude::*;

/// One lookup a token.
pub(super) const DENSE: u32 = 0;
/// Through the token's class.
pub(super) const CLASSES: u32 = 1;
/// Symbol by symbol.
pub(super) const WALK: u32 = 2;

/// The arrays of a table, see `Tensors`; all row by row.
#[derive(CubeLaunch, CubeType)]
pub(super) struct Lookup {
    pub(super) next: Box<[i32]>,
    pub(super) class: Box<[i32]>,
    pub(super) owner: Box<[i32]>,
    pub(super) reading: Box<[i32]>,
    pub(super) offsets: Box<[i32]>,
    pub(super) symbols: Box<[i32]>,
    pub(super) column: Box<[i32]>,
    pub(super) tokens_to_end: Box<[i32]>,
    pub(super) states: u32,
    pub(super) columns: u32,
    pub(super) width: u32,
    pub(super) alphabet: u32,
    #[cube(comptime)]
    pub(super) layout: u32,
    #[cube(comptime)]
    pub(super) has_owner: bool,
}

#[cube]
impl Lookup {
    /// The state after one column.
    fn step(&self, state: u32, column: u32) -> u32 {
        u32::cast_from(self.next[(state * self.columns + column) as usize])
    }

    /// The table that a state belongs to.
    pub(super) fn owner_of(&self, state: u32) -> u32 {
        let mut table = 0u32;
        if comptime!(self.has_owner) {
            table = u32::cast_from(self.owner[state as usize]);
        }
        table
    }

    /// The state after a token in range, which belongs to table `table`; 0 where it is illegal.
    fn after(&self, state: u32, table: u32, token: u32) -> u32 {
        let mut next = state;
        if comptime!(self.layout == DENSE) {
            next = self.step(state, token);
        } else if comptime!(self.layout == CLASSES) {
            let class = u32::cast_from(self.class[(table * self.width + token) as usize]);
            next = self.step(state, class);
        } else {
            let reading = u32::cast_from(self.reading[table as usize]);
            let place = reading * (self.width + 1) + token;
            let mut at = u32::cast_from(self.offsets[place as usize]);
            let end = u32::cast_from(self.offsets[(place + 1) as usize]);
            while at < end && next != 0 {
                let symbol = u32::cast_from(self.symbols[at as usize]);
                let column = u32::cast_from(self.column[(table * self.alphabet + symbol) as usize]);
                next = self.step(next, column);
                at += 1;
            }
            // Alive as bytes is not enough: some token path must lead on.
            next = select(self.tokens_to_end[next as usize] == i32::MAX, 0u32, next);
        }
        next
    }

    /// The state after the last token of a row, which may be none, or no token at all.
    pub(super) fn moved(&self, state: i32, token: i32) -> u32 {
        let width = i32::cast_from(self.width);
        let mut next = 0u32;
        let mut now = 0u32;
        if state > 0 {
            now = min(u32::cast_from(state), self.states - 1);
        }
        if token == width {
            next = now;
        } else if token >= 0 && token < width {
            next = self.after(now, self.owner_of(now), u32::cast_from(token));
        }
        next
    }

    /// The tokens that remain after the last one.
    pub(super) fn left(&self, remaining: i32, token: i32) -> i32 {
        let mut left = remaining;
        if token != i32::cast_from(self.width) {
            left = max(remaining - 1, 0);
        }
        left
    }

    /// Whether a token in range may follow, where `left` tokens remain.
    pub(super) fn is_legal(&self, state: u32, table: u32, token: u32, left: i32) -> bool {
        let next = self.after(state, table, token);
        next != 0 && self.tokens_to_end[next as usize] <= max(left - 1, 0)
    }
}
