//! The position of a row in a kernel, and its stack; `stack.rs` of `burn-dfa-tokens` explains the
//! stack. Imports only constants of this crate.
//!
//! The frames of a row's position are its *base*. One unit follows a token: it reads the base from
//! the position, counts the remaining frames of the base, and holds the frames pushed by the token.

use cubecl::prelude::*;

use super::lookup::Lookup;
use crate::tensor::arrays::Array as ImageArray;

/// An infinite distance or cost.
pub(super) const NONE: i32 = i32::MAX;
/// Distances and costs from this value on count as infinite.
pub(super) const FARTHEST: i32 = burn_dfa_tokens::FARTHEST as i32;
/// The numbers of a position before its frames: the state, the remaining tokens, the depth.
const HEAD: usize = 3;

/// A row in the middle of a token.
#[derive(CubeType, Clone, Copy)]
pub(super) struct At {
    pub(super) state: u32,
    /// The number of remaining frames of the base.
    pub(super) kept: u32,
    /// The number of frames pushed on top of the base.
    pub(super) pushed: u32,
    /// Whether the token returned from the frame in which it began.
    pub(super) pops: bool,
    /// Whether the depth of the stack cut off a path to the end.
    pub(super) limited: bool,
    /// Whether a path to the end was too long to count.
    pub(super) far: bool,
}

/// A number of the top frame; arbitrary on an empty stack.
#[cube]
fn top(
    lookup: &Lookup,
    position: &Tensor<i32>,
    base: usize,
    own: &Array<i32>,
    kept: u32,
    pushed: u32,
    index: u32,
) -> i32 {
    let frame = lookup.exits + 1;
    let mut number = 0i32;
    if pushed > 0 {
        number = own[((pushed - 1) * frame + index) as usize];
    } else if kept > 0 {
        number = position[base + HEAD + ((kept - 1) * frame + index) as usize];
    }
    number
}

/// The least number of tokens from `state`, on the stack of `at`, to the end; [`NONE`] if it is
/// unreachable.
#[cube]
fn cost(
    lookup: &Lookup,
    position: &Tensor<i32>,
    base: usize,
    own: &Array<i32>,
    at: &mut At,
    state: u32,
) -> i32 {
    let depth = at.kept + at.pushed;
    let mut least = NONE.runtime();
    let mut exit = 0u32;
    while exit < lookup.exits {
        let tokens = lookup.entry(ImageArray::TokensToEnd, state * lookup.exits + exit);
        let frames = u32::cast_from(lookup.entry(ImageArray::Frames, state * lookup.exits + exit));
        let mut cost = NONE.runtime();
        if depth > 0 {
            cost = top(lookup, position, base, own, at.kept, at.pushed, 1 + exit);
        } else if exit == 0 {
            cost = 0i32;
        }
        if tokens < FARTHEST && cost < FARTHEST {
            let sum = tokens + cost;
            if depth + frames > lookup.depth {
                at.limited = true;
            } else if sum < FARTHEST {
                least = min(least, sum);
            } else {
                at.far = true;
            }
        }
        exit += 1;
    }
    least
}

/// Computes the epsilon closure: pushes a frame in call states and pops a frame in RETURN states,
/// until the state reads a byte.
#[cube]
fn epsilon_closure(lookup: &Lookup, position: &Tensor<i32>, base: usize, own: &mut Array<i32>, at: &mut At) {
    let frame = lookup.exits + 1;
    let mut jump = lookup.entry(ImageArray::Jumps, at.state * frame);
    while jump != 0 {
        let mut next = 0u32;
        let mut kept = at.kept;
        let mut pushed = at.pushed;
        if jump > 0 {
            if kept + pushed < lookup.depth && pushed < lookup.pushes {
                let from = pushed * frame;
                own[from as usize] = i32::cast_from(at.state);
                let mut exit = 0u32;
                while exit < lookup.exits {
                    let to = lookup.entry(ImageArray::Jumps, at.state * frame + 1 + exit);
                    let mut found = NONE.runtime();
                    if to > 0 {
                        found = cost(lookup, position, base, &*own, at, u32::cast_from(to));
                    }
                    own[(from + 1 + exit) as usize] = found;
                    exit += 1;
                }
                pushed += 1;
                next = u32::cast_from(jump);
            } else {
                at.limited = true;
            }
        } else {
            if pushed == 0 {
                at.pops = true;
            }
            if kept + pushed > 0 {
                let call = u32::cast_from(max(top(lookup, position, base, &*own, kept, pushed, 0u32), 0));
                let outcome = u32::cast_from(-jump);
                next = u32::cast_from(
                    lookup.entry(ImageArray::Jumps, min(call, lookup.states - 1) * frame + outcome),
                );
                if pushed > 0 {
                    pushed -= 1;
                } else {
                    kept -= 1;
                }
            }
        }
        at.state = next;
        at.kept = kept;
        at.pushed = pushed;
        jump = lookup.entry(ImageArray::Jumps, at.state * frame);
    }
}

/// The state and the stack of a row after a token in range.
#[cube]
fn follow(lookup: &Lookup, position: &Tensor<i32>, base: usize, own: &mut Array<i32>, token: u32) -> At {
    let state = state_of(lookup, position, base);
    let owner = lookup.owner_of(state);
    let mut at = At {
        state,
        kept: depth_of(lookup, position, base),
        pushed: 0u32.runtime(),
        pops: false.runtime(),
        limited: false.runtime(),
        far: false.runtime(),
    };
    let text = lookup.entry(ImageArray::Text, owner);
    if text < 0 {
        at.state = lookup.step(state, lookup.class_of(owner, token));
        epsilon_closure(lookup, position, base, own, &mut at);
    } else {
        let offset = u32::cast_from(text) * (lookup.vocab_size + 1) + token;
        let mut symbol = u32::cast_from(lookup.entry(ImageArray::Offsets, offset));
        let end = u32::cast_from(lookup.entry(ImageArray::Offsets, offset + 1));
        // In forced text only the longest token is legal.
        if end - symbol < u32::cast_from(lookup.entry(ImageArray::Shortest, state)) {
            at.state = 0u32.runtime();
        }
        while symbol < end && at.state != 0 {
            let column = lookup.column_of(owner, symbol);
            at.state = lookup.step(at.state, column);
            epsilon_closure(lookup, position, base, own, &mut at);
            symbol += 1;
        }
    }
    at
}

/// The state of a position, in range.
#[cube]
pub(super) fn state_of(lookup: &Lookup, position: &Tensor<i32>, base: usize) -> u32 {
    min(u32::cast_from(max(position[base], 0)), lookup.states - 1)
}

/// The depth of a position with a stack, in range.
#[cube]
pub(super) fn depth_of(lookup: &Lookup, position: &Tensor<i32>, base: usize) -> u32 {
    min(u32::cast_from(max(position[base + 2], 0)), lookup.depth)
}

/// The count of numbers in use of a position with a stack of this depth. The numbers after them are
/// arbitrary.
#[cube]
pub(super) fn numbers(lookup: &Lookup, depth: i32) -> usize {
    let mut numbers = 2usize.runtime();
    if comptime!(lookup.has_stack) {
        let depth = min(u32::cast_from(max(depth, 0)), lookup.depth);
        numbers = HEAD + (depth * (lookup.exits + 1)) as usize;
    }
    numbers
}

/// The number of tokens from an exit of the top procedure of a position to the end; [`NONE`] if it
/// is unreachable.
#[cube]
pub(super) fn beyond(lookup: &Lookup, position: &Tensor<i32>, base: usize, depth: u32, exit: u32) -> i32 {
    let mut cost = NONE.runtime();
    if depth > 0 {
        cost = position[base + HEAD + ((depth - 1) * (lookup.exits + 1) + 1 + exit) as usize];
    } else if exit == 0 {
        cost = 0i32;
    }
    cost
}

/// An array for the frames pushed by a token. It is set to zero, so make it where a token is
/// followed: a hit must not wait for that.
#[cube]
pub(super) fn frame_buffer(lookup: &Lookup) -> Array<i32> {
    Array::<i32>::new(comptime!(lookup.frame_buffer_len as usize))
}

/// Advances a position by a token, which may be `no_token` or invalid.
#[cube]
pub(super) fn advance(
    lookup: &Lookup,
    position: &mut Tensor<i32>,
    base: usize,
    own: &mut Array<i32>,
    token: i32,
) {
    let vocab_size = i32::cast_from(lookup.vocab_size);
    if token != vocab_size {
        if comptime!(lookup.has_stack) {
            advance_on_stack(lookup, position, base, own, token);
        } else {
            let mut next = 0u32.runtime();
            if token >= 0 && token < vocab_size {
                let state = state_of(lookup, &*position, base);
                next = lookup.next(state, lookup.owner_of(state), u32::cast_from(token));
            }
            position[base] = i32::cast_from(next);
            position[base + 1] = max(position[base + 1] - 1, 0);
        }
    }
}

/// Advances a position with a stack by a token that is not `no_token`, and may be invalid.
#[cube]
fn advance_on_stack(
    lookup: &Lookup,
    position: &mut Tensor<i32>,
    base: usize,
    own: &mut Array<i32>,
    token: i32,
) {
    let mut state = 0u32.runtime();
    let mut kept = 0u32.runtime();
    let mut pushed = 0u32.runtime();
    if token >= 0 && token < i32::cast_from(lookup.vocab_size) {
        let at = follow(lookup, &*position, base, own, u32::cast_from(token));
        state = at.state;
        kept = at.kept;
        pushed = at.pushed;
    }
    let frame = lookup.exits + 1;
    let mut number = 0u32;
    while number < pushed * frame {
        position[base + HEAD + (kept * frame + number) as usize] = own[number as usize];
        number += 1;
    }
    position[base] = i32::cast_from(state);
    position[base + 1] = max(position[base + 1] - 1, 0);
    position[base + 2] = i32::cast_from(kept + pushed);
}

/// The number of tokens from a position to the end; [`NONE`] if it is unreachable.
#[cube]
pub(super) fn to_end(lookup: &Lookup, position: &Tensor<i32>, base: usize, own: &Array<i32>) -> i32 {
    let state = state_of(lookup, position, base);
    if comptime!(lookup.has_stack) {
        let mut at = At {
            state,
            kept: depth_of(lookup, position, base),
            pushed: 0u32.runtime(),
            pops: false.runtime(),
            limited: false.runtime(),
            far: false.runtime(),
        };
        cost(lookup, position, base, own, &mut at, state)
    } else {
        lookup.entry(ImageArray::TokensToEnd, state)
    }
}

/// The number of tokens to the end after a token in range, [`NONE`] if it is unreachable, and the
/// row after the token.
#[cube]
pub(super) fn distance(
    lookup: &Lookup,
    position: &Tensor<i32>,
    base: usize,
    own: &mut Array<i32>,
    token: u32,
) -> (i32, At) {
    let mut at = follow(lookup, position, base, own, token);
    let state = at.state;
    let distance = cost(lookup, position, base, &*own, &mut at, state);
    (distance, at)
}
