//! The stack of a row: the effect of byte-level states on it, and its contents.
//!
//! A constraint with *calls* is a pushdown automaton; see [`automaton`](burn_dfa_automata). Its
//! states are of three kinds. A plain state reads a byte. A *call state* is pushed on the stack as
//! a *frame*, and the row continues in the called procedure. A RETURN state ends a procedure with
//! one of its *exits*: the call state on top is popped, and the row continues in the call state's
//! return state for the exit. No row rests in a call or RETURN state.
//!
//! # The budget
//! Distances to the end are known only within a procedure: `bytes_to_exit[s, o]` is the number of
//! bytes of the shortest path from state `s` to the exit `o` of its procedure, an upper bound on
//! its number of [tokens](super::distance). A frame holds the *costs* of its procedure: for each
//! exit the number of tokens from the exit to the end of the text, through all frames below. A
//! token may follow if, for some exit, the tokens to the exit plus the exit's cost fit in the
//! remaining budget.
//!
//! # The depth
//! The stack has a capacity. Each shortest path carries the number of frames that it adds to the
//! stack, and counts only if the frames fit. The capacity therefore never blocks the path to the
//! end: every row always has a legal token.

use super::{BudgetInterval, ConstraintParts, RowPosition, StateId};
use burn_dfa_automata::{Distance, FARTHEST, FastMap};
use burn_dfa_vocabulary::Vocabulary;

/// No path, as a distance or a cost.
const NONE: u32 = u32::MAX;

/// The effects of a constraint's states on the stack.
#[derive(Debug, PartialEq, Eq)]
pub struct Calls {
    /// The most frames on the stack.
    pub depth: u32,
    /// The maximum number of exits of a procedure; at least 1.
    pub exits: usize,
    /// `[states, 1 + exits]`: 0 for a plain state; for a call state the entered state, then the
    /// return state of each exit; for a RETURN state −1 minus its exit.
    pub jumps: Vec<i32>,
    /// `[states, exits]`: the least number of bytes to each exit; in the outermost part, exit 0 is
    /// the end of the text, and the end of the sequence counts. `u32::MAX` if no path exists.
    pub bytes_to_exit: Vec<u32>,
    /// `[states, exits]`: the number of frames added by the path.
    pub frames: Vec<u32>,
    /// The longest sequence of call and RETURN states without a byte between them.
    pub chain: u32,
    /// The bytes that may push a frame.
    pushing: Box<[bool; 256]>,
}

/// The effect of a state on the stack, as a bit: bit 0 of a call, bit `o + 1` of a RETURN with exit
/// `o`, no bit of a plain state. `jump` is the first number of the state in [`Calls::jumps`].
pub(super) fn effect(jump: i32) -> u32 {
    match jump {
        0 => 0,
        1.. => 1,
        _ => 1u32 << jump.unsigned_abs(),
    }
}

impl Calls {
    /// Combines jumps and distances for a stack of `depth` frames; `entered` has, for each byte,
    /// the [effects](effect) of the states to which the byte leads.
    pub(super) fn new(
        depth: usize,
        exits: usize,
        jumps: Vec<i32>,
        distances: &[Distance],
        entered: &[u32; 256],
    ) -> Self {
        let mut calls = Self {
            depth: depth as u32,
            exits,
            jumps,
            bytes_to_exit: distances
                .iter()
                .map(|path| if path.is_some() { path.bytes } else { NONE })
                .collect(),
            frames: distances.iter().map(|path| if path.is_some() { path.frames } else { 0 }).collect(),
            chain: 0,
            pushing: Box::new([false; 256]),
        };
        calls.chain = calls.longest_chain();
        let pushing = calls.pushing_effects();
        *calls.pushing = entered.map(|effects| effects & pushing != 0);
        calls
    }

    /// An upper bound on the frames that a token of the vocabulary adds to the stack at any time. A
    /// byte pushes at most one frame, because a call enters a plain state; a special token counts
    /// as one byte.
    pub fn pushes(&self, vocabulary: &Vocabulary) -> u32 {
        vocabulary.max_bytes_of(&self.pushing).max(1).min(self.depth)
    }

    /// The [effects](effect) after which a frame may be pushed: calls, and RETURNs whose exit leads
    /// to a call, possibly by further RETURNs.
    fn pushing_effects(&self) -> u32 {
        // By exit: the effects of the return states of all calls.
        let mut after = vec![0u32; self.exits];
        for jump in self.jumps.chunks_exact(self.frame()).filter(|jump| jump[0] > 0) {
            for (after, &to) in after.iter_mut().zip(&jump[1..]) {
                *after |= effect(self.jump(to as u32)[0]);
            }
        }
        let mut pushing = effect(1);
        loop {
            let exits = after.iter().enumerate().filter(|&(_, effects)| effects & pushing != 0);
            let all = exits.fold(pushing, |all, (exit, _)| all | (2u32 << exit));
            if all == pushing {
                return pushing;
            }
            pushing = all;
        }
    }

    /// The longest sequence of call and RETURN states without a byte between them.
    fn longest_chain(&self) -> u32 {
        // A call enters a plain state. A chain therefore consists of RETURNs, optionally followed
        // by a call.
        let mut after: FastMap<u32, Vec<u32>> = FastMap::default();
        for jump in self.jumps.chunks_exact(self.frame()).filter(|jump| jump[0] > 0) {
            for (outcome, &to) in jump[1..].iter().enumerate() {
                match self.jump(to as u32)[0] {
                    0 => {}
                    // 0 stands for a call.
                    next => after.entry(outcome as u32 + 1).or_default().push((-next).max(0) as u32),
                }
            }
        }
        let mut rounds = 1;
        while !after.is_empty() {
            rounds += 1;
            let open: Vec<u32> = after.keys().copied().collect();
            after.retain(|_, next| next.iter().any(|next| open.contains(next)));
            if after.len() == open.len() {
                // A cycle of RETURNs: only the stack bounds it.
                return self.depth + 2;
            }
        }
        rounds
    }

    /// Frame size: the call state, then its costs.
    pub fn frame(&self) -> usize {
        1 + self.exits
    }

    pub fn jump(&self, state: u32) -> &[i32] {
        &self.jumps[state as usize * self.frame()..][..self.frame()]
    }

    /// Whether a state is neither a call nor a RETURN.
    pub fn is_plain(&self, state: StateId) -> bool {
        self.jump(state.0)[0] == 0
    }

    pub fn bytes_of(&self, state: StateId) -> &[u32] {
        &self.bytes_to_exit[state.index() * self.exits..][..self.exits]
    }

    pub fn frames_of(&self, state: StateId) -> &[u32] {
        &self.frames[state.index() * self.exits..][..self.exits]
    }

    fn paths(&self, state: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let state = StateId(state);
        self.bytes_of(state).iter().copied().zip(self.frames_of(state).iter().copied())
    }

    /// The costs of the procedure of a position with these frames, and the number of frames.
    fn costs<'f>(&self, frames: &'f [u32]) -> (&'f [u32], u32) {
        let top = frames.rchunks_exact(self.frame()).next();
        // With an empty stack, exit 0 is the end of the text.
        (top.map_or(&[0], |top| &top[1..]), (frames.len() / self.frame()) as u32)
    }

    /// The number of tokens to the end of the text from a plain state, with the frames of a
    /// [`RowPosition`] on the stack; `u32::MAX` if no path exists.
    pub(super) fn to_end(&self, parts: &ConstraintParts, state: StateId, frames: &[u32]) -> u32 {
        let (costs, depth) = self.costs(frames);
        self.tokens(parts, state, costs, depth)
    }

    /// An upper bound on [`to_end`](Self::to_end): bytes to the exits of the procedure.
    pub(super) fn bound(&self, state: StateId, frames: &[u32]) -> u32 {
        let (costs, depth) = self.costs(frames);
        self.cost(self.paths(state.0), costs, depth)
    }

    /// The least number of tokens over all exits, on a stack of `depth` frames.
    fn tokens(&self, parts: &ConstraintParts, state: StateId, costs: &[u32], depth: u32) -> u32 {
        let mut least = NONE;
        for (exit, ((bytes, frames), &cost)) in self.paths(state.0).zip(costs).enumerate() {
            let is_fitting = bytes < FARTHEST && depth.saturating_add(frames) <= self.depth;
            if is_fitting && cost < least.min(FARTHEST) {
                least = least.min(parts.distance(state, exit).saturating_add(cost));
            }
        }
        if least < FARTHEST { least } else { NONE }
    }

    /// The least cost over `paths`, the bytes and the added frames to each exit, on a stack of
    /// `depth` frames.
    fn cost(&self, paths: impl Iterator<Item = (u32, u32)>, costs: &[u32], depth: u32) -> u32 {
        let fitting = paths.zip(costs).filter(|&((bytes, frames), &cost)| {
            bytes < FARTHEST && cost < FARTHEST && depth.saturating_add(frames) <= self.depth
        });
        fitting.map(|((bytes, _), cost)| bytes + cost).min().filter(|&cost| cost < FARTHEST).unwrap_or(NONE)
    }
}

/// Stacks with shared frames: a tree of frames, each linked to the frame below.
pub struct StackGraph<'a> {
    parts: &'a ConstraintParts,
    calls: &'a Calls,
    /// The call state, the depth and the frame below; the first entry is the empty stack.
    frames: Vec<(u32, u32, StackTop)>,
    /// `[frames, exits]`
    costs: Vec<u32>,
}

/// The frame on top of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackTop(u32);

impl StackTop {
    pub(super) const EMPTY: Self = Self(0);
}

impl<'a> StackGraph<'a> {
    /// The stack of a position.
    pub fn of(parts: &'a ConstraintParts, calls: &'a Calls, position: &RowPosition) -> (Self, StackTop) {
        let mut stacks =
            Self { parts, calls, frames: vec![(0, 0, StackTop::EMPTY)], costs: vec![NONE; calls.exits] };
        stacks.costs[0] = 0;
        for (depth, frame) in position.frames.chunks_exact(calls.frame()).enumerate() {
            stacks.frames.push((frame[0], depth as u32 + 1, StackTop(depth as u32)));
            stacks.costs.extend_from_slice(&frame[1..]);
        }
        let top = StackTop(stacks.frames.len() as u32 - 1);
        (stacks, top)
    }

    /// Whether two stacks differ at most in the call on top, and both calls return to the same
    /// states.
    pub(super) fn are_alike(&self, a: StackTop, b: StackTop) -> bool {
        let [(call, _, below), (other, _, other_below)] = [a, b].map(|top| self.frames[top.0 as usize]);
        a == b
            || below == other_below
                && a != StackTop::EMPTY
                && b != StackTop::EMPTY
                && self.calls.jump(call)[1..] == self.calls.jump(other)[1..]
    }

    /// The frames of a stack from the bottom, as a [`RowPosition`] holds them.
    pub fn frames(&self, mut top: StackTop) -> Vec<u32> {
        let depth = self.frames[top.0 as usize].1 as usize;
        let frame = self.calls.frame();
        let mut frames = vec![0; depth * frame];
        for out in frames.chunks_exact_mut(frame).rev() {
            out[0] = self.frames[top.0 as usize].0;
            out[1..].copy_from_slice(self.costs(top));
            top = self.frames[top.0 as usize].2;
        }
        frames
    }

    fn costs(&self, top: StackTop) -> &[u32] {
        &self.costs[top.0 as usize * self.calls.exits..][..self.calls.exits]
    }

    /// The number of frames of all stacks, as an argument for [`forget`](Self::forget).
    pub fn mark(&self) -> usize {
        self.frames.len()
    }

    /// Forgets the frames pushed since `mark`.
    pub fn forget(&mut self, mark: usize) {
        self.frames.truncate(mark);
        self.costs.truncate(mark * self.calls.exits);
    }

    /// Whether a row rests in `state` after entering it.
    #[inline]
    pub fn is_plain(&self, state: StateId) -> bool {
        self.calls.is_plain(state)
    }

    /// The plain state and the stack of a row after it entered `state`; `DEAD` if the stack is
    /// full, or empty at a RETURN.
    pub fn epsilon_closure(&mut self, mut state: StateId, mut top: StackTop) -> (StateId, StackTop) {
        let calls = self.calls;
        loop {
            match calls.jump(state.0) {
                [0, ..] => return (state, top),
                [enter, ..] if *enter > 0 => {
                    if self.frames[top.0 as usize].1 >= calls.depth {
                        return (StateId::DEAD, top);
                    }
                    top = self.push(state.0, top);
                    state = StateId(*enter as u32);
                }
                [outcome, ..] => {
                    let (call, _, below) = self.frames[top.0 as usize];
                    if top == StackTop::EMPTY {
                        return (StateId::DEAD, top);
                    }
                    // −1 is exit 0, at index 1.
                    state = StateId(calls.jump(call)[outcome.unsigned_abs() as usize] as u32);
                    top = below;
                }
                [] => return (StateId::DEAD, top),
            }
        }
    }

    fn push(&mut self, call: u32, below: StackTop) -> StackTop {
        let depth = self.frames[below.0 as usize].1;
        for &to in &self.calls.jump(call)[1..] {
            let cost = if to == 0 { NONE } else { self.to_end(StateId(to as u32), below) };
            self.costs.push(cost);
        }
        self.frames.push((call, depth + 1, below));
        StackTop(self.frames.len() as u32 - 1)
    }

    /// The number of tokens from a state to the end; `u32::MAX` if no path exists.
    pub fn to_end(&self, state: StateId, top: StackTop) -> u32 {
        self.calls.tokens(self.parts, state, self.costs(top), self.frames[top.0 as usize].1)
    }

    /// Whether the end is reachable from a state in the tokens left.
    #[inline]
    pub(super) fn reach(&self, state: StateId, top: StackTop, left: &mut BudgetInterval) -> bool {
        left.reach_within(self.cost(self.calls.paths(state.0), top), || self.to_end(state, top))
    }

    /// An upper bound on the distance from any of a set of states, given their longest path to each
    /// exit and the most frames added.
    pub(super) fn to_end_of_all(&self, farthest: &[(u32, u32)], top: StackTop) -> u32 {
        self.cost(farthest.iter().copied(), top)
    }

    fn cost(&self, paths: impl Iterator<Item = (u32, u32)>, top: StackTop) -> u32 {
        self.calls.cost(paths, self.costs(top), self.frames[top.0 as usize].1)
    }
}
