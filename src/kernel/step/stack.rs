//! The stack of a row in a kernel; see `table::Stacks`. Imports only constants of this crate.
//!
//! The shared memory of a cube holds the numbers of a row's position, its *base*. One unit follows
//! a token: it reads the base, counts the remaining frames of the base, and holds the frames pushed
//! by the token.

use cubecl::prelude::*;

use super::lookup::Lookup;
use crate::tensor::{Array as Place, FOLLOWED};

/// An infinite distance or cost.
const NONE: i32 = i32::MAX;
/// Distances and costs from this value on count as infinite.
const FARTHEST: i32 = burn_dfa_tokens::FARTHEST as i32;

/// A row in the middle of a token.
#[derive(CubeType, Clone, Copy)]
pub(super) struct At {
    state: u32,
    /// The number of remaining frames of the base.
    kept: u32,
    /// The number of frames pushed on top of the base.
    pushed: u32,
}

/// A number of the top frame; arbitrary on an empty stack.
#[cube]
fn top(
    table: &Lookup,
    base: &Shared<[i32]>,
    own: &mut Array<i32>,
    kept: u32,
    pushed: u32,
    place: u32,
) -> i32 {
    let frame = table.ends + 1;
    let mut number = 0i32;
    if pushed > 0 {
        number = own[((pushed - 1) * frame + place) as usize];
    } else if kept > 0 {
        number = base[(3 + (kept - 1) * frame + place) as usize];
    }
    number
}

/// The least number of tokens from `state` to the end; [`NONE`] if it is unreachable.
#[cube]
fn cost(
    table: &Lookup,
    base: &Shared<[i32]>,
    own: &mut Array<i32>,
    kept: u32,
    pushed: u32,
    state: u32,
) -> i32 {
    let depth = kept + pushed;
    let mut least = NONE.runtime();
    #[unroll]
    for end in 0..table.ends {
        let way = table.entry(Place::TokensToEnd, state * table.ends + end);
        let frames = u32::cast_from(table.entry(Place::Frames, state * table.ends + end));
        let mut cost = NONE.runtime();
        if depth > 0 {
            cost = top(table, base, own, kept, pushed, 1 + end);
        } else if end == 0 {
            cost = 0i32;
        }
        if way < FARTHEST && cost < FARTHEST && depth + frames <= table.depth {
            let sum = way + cost;
            if sum < FARTHEST {
                least = min(least, sum);
            }
        }
    }
    least
}

/// Computes the epsilon closure: pushes a frame in call states and pops a frame in RETURN states,
/// until the state reads a byte.
#[cube]
fn settle(table: &Lookup, base: &Shared<[i32]>, own: &mut Array<i32>, at: &mut At) {
    let frame = table.ends + 1;
    let mut jump = table.entry(Place::Jumps, at.state * frame);
    while jump != 0 {
        let mut next = 0u32;
        let mut kept = at.kept;
        let mut pushed = at.pushed;
        if jump > 0 {
            if at.kept + at.pushed < table.depth && at.pushed < table.pushes {
                let place = at.pushed * frame;
                own[place as usize] = i32::cast_from(at.state);
                #[unroll]
                for end in 0..table.ends {
                    let to = table.entry(Place::Jumps, at.state * frame + 1 + end);
                    let mut found = NONE.runtime();
                    if to > 0 {
                        found = cost(table, base, own, at.kept, at.pushed, u32::cast_from(to));
                    }
                    own[(place + 1 + end) as usize] = found;
                }
                pushed += 1;
                next = u32::cast_from(jump);
            }
        } else if at.kept + at.pushed > 0 {
            let call = u32::cast_from(max(top(table, base, own, at.kept, at.pushed, 0u32), 0));
            let outcome = u32::cast_from(-jump);
            next = u32::cast_from(table.entry(Place::Jumps, min(call, table.states - 1) * frame + outcome));
            if at.pushed > 0 {
                pushed -= 1;
            } else {
                kept -= 1;
            }
        }
        at.state = next;
        at.kept = kept;
        at.pushed = pushed;
        jump = table.entry(Place::Jumps, at.state * frame);
    }
}

/// The state and stack of a row after a token in range.
#[cube]
fn walk(table: &Lookup, base: &Shared<[i32]>, own: &mut Array<i32>, token: u32) -> At {
    let state = u32::cast_from(base[0]);
    let owner = table.owner_of(state);
    let mut at = At { state, kept: u32::cast_from(base[2]), pushed: 0u32.runtime() };
    let text = table.entry(Place::Text, owner);
    let mut landing = FOLLOWED.runtime();
    if text < 0 {
        landing = i32::cast_from(table.step(state, table.class_of(owner, token)));
    } else if comptime!(table.has_landings) {
        landing = table.entry(Place::TokenTransitions, state * table.landings + table.class_of(owner, token));
    }
    if landing >= 0 {
        at.state = u32::cast_from(landing);
        settle(table, base, own, &mut at);
    } else {
        let place = u32::cast_from(text) * (table.vocab_size + 1) + token;
        let mut symbol = u32::cast_from(table.entry(Place::Offsets, place));
        let end = u32::cast_from(table.entry(Place::Offsets, place + 1));
        // In forced text only the longest token is legal.
        if end - symbol < u32::cast_from(table.entry(Place::Shortest, state)) {
            at.state = 0u32.runtime();
        }
        while symbol < end && at.state != 0 {
            let column = table.column_of(owner, symbol);
            at.state = table.step(at.state, column);
            settle(table, base, own, &mut at);
            symbol += 1;
        }
    }
    at
}

/// An array for the frames pushed by a token.
#[cube]
pub(super) fn room(table: &Lookup) -> Array<i32> {
    Array::<i32>::new(comptime!((table.pushes.max(1) * (table.ends + 1)) as usize))
}

/// The base of a row, at its position after its last token, which may be `no_token` or invalid;
/// arbitrary without a stack.
#[cube]
pub(super) fn begin(
    table: &Lookup,
    position: &Tensor<i32>,
    row: usize,
    token: i32,
    own: &mut Array<i32>,
) -> Shared<[i32]> {
    let numbers = comptime!(3 + table.depth * (table.ends + 1));
    let mut base = Shared::<[i32]>::new_slice(comptime!(numbers as usize));
    if comptime!(table.ends > 0) {
        load(table, &mut base, position, row, token, own);
    }
    base
}

#[cube]
fn load(
    table: &Lookup,
    base: &mut Shared<[i32]>,
    position: &Tensor<i32>,
    row: usize,
    token: i32,
    own: &mut Array<i32>,
) {
    let numbers = comptime!(3 + table.depth * (table.ends + 1));
    let from = row * position.stride(0);
    let mut place = UNIT_POS;
    while place < numbers {
        base[place as usize] = position[from + place as usize * position.stride(1)];
        place += CUBE_DIM;
    }
    sync_cube();
    if UNIT_POS == 0 {
        let vocab_size = i32::cast_from(table.vocab_size);
        let last = i32::cast_from(table.states) - 1;
        base[0] = min(max(base[0], 0), last);
        base[2] = min(max(base[2], 0), i32::cast_from(table.depth));
        if token != vocab_size {
            let mut state = 0u32.runtime();
            let mut kept = 0u32.runtime();
            let mut pushed = 0u32.runtime();
            if token >= 0 && token < vocab_size {
                let at = walk(table, &*base, own, u32::cast_from(token));
                state = at.state;
                kept = at.kept;
                pushed = at.pushed;
            }
            let frame = table.ends + 1;
            let mut number = 0u32;
            while number < pushed * frame {
                base[(3 + kept * frame + number) as usize] = own[number as usize];
                number += 1;
            }
            base[0] = i32::cast_from(state);
            let left = max(base[1] - 1, 0);
            base[1] = left;
            base[2] = i32::cast_from(kept + pushed);
        }
    }
    sync_cube();
}

/// Whether a token in range may follow.
#[cube]
pub(super) fn may_follow(table: &Lookup, base: &Shared<[i32]>, own: &mut Array<i32>, token: u32) -> bool {
    let at = walk(table, base, own, token);
    cost(table, base, own, at.kept, at.pushed, at.state) <= max(base[1] - 1, 0)
}

/// Writes the position of a row, with all units of a cube.
#[cube]
pub(super) fn write(table: &Lookup, base: &Shared<[i32]>, position: &mut Tensor<i32>, row: usize) {
    let numbers = comptime!(3 + table.depth * (table.ends + 1));
    let (from, step) = (row * position.stride(0), position.stride(1));
    let mut place = UNIT_POS;
    while place < numbers {
        position[from + place as usize * step] = base[place as usize];
        place += CUBE_DIM;
    }
}
