//! The stack of a row: what the states of a walked table do to it, and what is on it.
//!
//! A table with *calls* is a pushdown automaton; see [`automaton`](crate::automaton). Its states are of three kinds. A plain
//! state reads a byte. A *call state* is pushed on the stack as a *frame*, and the row goes on in the piece that it calls. A
//! RETURN state ends a piece with one of its *outcomes*: the call state on top is popped, and the row goes on where that
//! returns to. No row rests in a call or RETURN state.
//!
//! # The budget
//! Distances to the end are known within a piece only: `ways[s, o]` is the shortest way from state `s` to the outcome `o` of
//! its piece. A frame holds the *costs* of its piece: for each outcome the least number of tokens from there to the end of
//! the text, by all frames below. A token may follow where, for some outcome, the way to it and its cost are within what
//! remains.
//!
//! # The depth
//! The stack has a capacity. Each way goes with the number of frames that it adds to the stack, and counts only where these
//! fit. What leads to the end is therefore never blocked by the capacity: no row is ever without a legal token.

use std::rc::Rc;

use super::{RowPosition, StateId};
use crate::automaton::{FARTHEST, FastMap, Way};
use crate::vocabulary::Vocabulary;

/// No way, as a distance or a cost.
const NONE: u32 = u32::MAX;

/// What the states of a table do to the stack.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Calls {
    /// The most frames on the stack.
    pub(crate) depth: u32,
    /// The number of outcomes of a piece, at most; at least 1.
    pub(crate) ends: usize,
    /// `[states, 1 + ends]`: 0 for a plain state; of a call state where it enters, then where it returns to by outcome; of a
    /// RETURN state −1 minus its outcome.
    pub(crate) jumps: Vec<i32>,
    /// `[states, ends]`: the least number of tokens to each outcome, at most; of the outermost part the end of the text
    /// is outcome 0, and the end of the sequence counts. `u32::MAX` where there is no way.
    pub(crate) ways: Vec<u32>,
    /// `[states, ends]`: the frames that the way adds to the stack.
    pub(crate) frames: Vec<u32>,
    /// The most call and RETURN states that follow one another without a byte between them.
    pub(crate) chain: u32,
    /// The bytes that lead to a call or RETURN state from some state.
    entered: Box<[bool; 256]>,
}

impl Calls {
    /// Of jumps and ways, for a stack of `depth` frames; `entered` are the bytes that lead to a call or RETURN state from
    /// some state.
    pub(super) fn new(
        depth: usize,
        ends: usize,
        jumps: Vec<i32>,
        ways: &[Way],
        entered: &[bool; 256],
    ) -> Self {
        let mut calls = Self {
            depth: depth as u32,
            ends,
            jumps,
            ways: ways.iter().map(|way| if way.is_some() { way.bytes } else { NONE }).collect(),
            frames: ways.iter().map(|way| if way.is_some() { way.frames } else { 0 }).collect(),
            chain: 0,
            entered: Box::new(*entered),
        };
        calls.chain = calls.longest_chain();
        calls
    }

    /// The most frames that a token of the vocabulary adds to the stack at any time, at most.
    pub(crate) fn pushes(&self, vocabulary: &Vocabulary) -> u32 {
        vocabulary.most_bytes_of(&self.entered).max(1).saturating_mul(self.chain).min(self.depth)
    }

    /// The most call and RETURN states that follow one another without a byte between them.
    fn longest_chain(&self) -> u32 {
        // A call leads to a plain state. So a chain is of RETURNs, the last of which may lead to a call.
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
                // A circle of RETURNs: the stack alone bounds it.
                return self.depth + 2;
            }
        }
        rounds
    }

    /// Frame size: the call state, then its costs.
    pub(crate) fn frame(&self) -> usize {
        1 + self.ends
    }

    pub(crate) fn jump(&self, state: u32) -> &[i32] {
        &self.jumps[state as usize * self.frame()..][..self.frame()]
    }

    /// Whether a state is on neither side of a call.
    pub(crate) fn is_plain(&self, state: StateId) -> bool {
        self.jump(state.0)[0] == 0
    }

    pub(crate) fn ways_of(&self, state: StateId) -> &[u32] {
        &self.ways[state.index() * self.ends..][..self.ends]
    }

    pub(crate) fn frames_of(&self, state: StateId) -> &[u32] {
        &self.frames[state.index() * self.ends..][..self.ends]
    }

    fn ways(&self, state: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let state = StateId(state);
        self.ways_of(state).iter().copied().zip(self.frames_of(state).iter().copied())
    }

    /// The least number of tokens to the end of the text from a state that is no call or RETURN, with the frames of a [`RowPosition`] on the
    /// stack; `u32::MAX` where there is no way.
    pub(crate) fn to_end(&self, state: StateId, frames: &[u32]) -> u32 {
        let top = frames.rchunks_exact(self.frame()).next();
        let depth = (frames.len() / self.frame()) as u32;
        // With an empty stack, outcome 0 is the end of the text.
        self.cost(self.ways(state.0), top.map_or(&[0], |top| &top[1..]), depth)
    }

    /// The least cost of ways to each outcome, which add so many frames to a stack of `depth` frames.
    fn cost(&self, ways: impl Iterator<Item = (u32, u32)>, costs: &[u32], depth: u32) -> u32 {
        let fitting = ways.zip(costs).filter(|&((way, frames), &cost)| {
            way < FARTHEST && cost < FARTHEST && depth.saturating_add(frames) <= self.depth
        });
        fitting.map(|((way, _), cost)| way + cost).min().filter(|&cost| cost < FARTHEST).unwrap_or(NONE)
    }
}

/// Stacks that may have frames in common: a tree of frames, each above another.
pub(crate) struct Stacks<'a> {
    calls: &'a Calls,
    /// The call state, the depth and the frame below; the first stands for the empty stack.
    frames: Vec<(u32, u32, Top)>,
    /// `[frames, ends]`
    costs: Vec<u32>,
    /// The number of frames that are never forgotten.
    lasting: u32,
    /// The costs of frames that were pushed on one of these, by their call and that frame: where pieces have many outcomes, tokens with
    /// other beginnings push the same ones again and again.
    known: FastMap<(u32, u32), Rc<[u32]>>,
}

/// From so many outcomes on the costs of frames are kept.
const MANY_OUTCOMES: usize = 3;

/// The frame on top of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Top(u32);

impl Top {
    pub(super) const EMPTY: Self = Self(0);
}

impl<'a> Stacks<'a> {
    /// The stack of a position.
    pub(crate) fn of(calls: &'a Calls, position: &RowPosition) -> (Self, Top) {
        let mut stacks = Self {
            calls,
            frames: vec![(0, 0, Top::EMPTY)],
            costs: vec![NONE; calls.ends],
            lasting: 0,
            known: FastMap::default(),
        };
        stacks.costs[0] = 0;
        for (depth, frame) in position.frames.chunks_exact(calls.frame()).enumerate() {
            stacks.frames.push((frame[0], depth as u32 + 1, Top(depth as u32)));
            stacks.costs.extend_from_slice(&frame[1..]);
        }
        stacks.lasting = stacks.frames.len() as u32;
        let top = Top(stacks.lasting - 1);
        (stacks, top)
    }

    /// Whether two stacks differ in the call on top at most, and that returns to the same states.
    pub(super) fn are_alike(&self, a: Top, b: Top) -> bool {
        let [(call, _, below), (other, _, other_below)] = [a, b].map(|top| self.frames[top.0 as usize]);
        a == b
            || below == other_below
                && a != Top::EMPTY
                && b != Top::EMPTY
                && self.calls.jump(call)[1..] == self.calls.jump(other)[1..]
    }

    /// The frames of a stack from the bottom, as a [`RowPosition`] holds them.
    pub(crate) fn frames(&self, mut top: Top) -> Vec<u32> {
        let depth = self.frames[top.0 as usize].1 as usize;
        let frame = self.calls.frame();
        let mut frames = vec![0; depth * frame];
        for place in frames.chunks_exact_mut(frame).rev() {
            place[0] = self.frames[top.0 as usize].0;
            place[1..].copy_from_slice(self.costs(top));
            top = self.frames[top.0 as usize].2;
        }
        frames
    }

    fn costs(&self, top: Top) -> &[u32] {
        &self.costs[top.0 as usize * self.calls.ends..][..self.calls.ends]
    }

    /// The number of frames of all stacks, to be given to [`forget`](Self::forget).
    pub(crate) fn mark(&self) -> usize {
        self.frames.len()
    }

    /// Forgets the frames that were pushed since.
    pub(crate) fn forget(&mut self, mark: usize) {
        self.frames.truncate(mark);
        self.costs.truncate(mark * self.calls.ends);
    }

    /// Whether a row rests in a state that it enters.
    #[inline]
    pub(crate) fn is_plain(&self, state: StateId) -> bool {
        self.calls.is_plain(state)
    }

    /// The plain state, and the stack, at which a row comes to rest that entered `state`; `DEAD` where the stack has no
    /// room, or nothing to return to.
    pub(crate) fn settle(&mut self, mut state: StateId, mut top: Top) -> (StateId, Top) {
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
                    if top == Top::EMPTY {
                        return (StateId::DEAD, top);
                    }
                    // −1 is outcome 0, whose place is 1.
                    state = StateId(calls.jump(call)[outcome.unsigned_abs() as usize] as u32);
                    top = below;
                }
                [] => return (StateId::DEAD, top),
            }
        }
    }

    fn push(&mut self, call: u32, below: Top) -> Top {
        let depth = self.frames[below.0 as usize].1;
        let is_kept = self.calls.ends >= MANY_OUTCOMES && below.0 < self.lasting;
        let known = if is_kept { self.known.get(&(call, below.0)) } else { None };
        if let Some(known) = known {
            self.costs.extend_from_slice(known);
        } else {
            let from = self.costs.len();
            for &to in &self.calls.jump(call)[1..] {
                let cost = if to == 0 { NONE } else { self.cost(self.calls.ways(to as u32), below) };
                self.costs.push(cost);
            }
            if is_kept {
                self.known.insert((call, below.0), self.costs[from..].into());
            }
        }
        self.frames.push((call, depth + 1, below));
        Top(self.frames.len() as u32 - 1)
    }

    /// The least number of tokens from a state that is no call or RETURN to the end; `u32::MAX` where there is no way.
    pub(crate) fn to_end(&self, state: StateId, top: Top) -> u32 {
        self.cost(self.calls.ways(state.0), top)
    }

    /// The same from any of some states, at most, of which these are the longest ways to each outcome and the most frames that they add.
    pub(super) fn to_end_of_all(&self, farthest: &[(u32, u32)], top: Top) -> u32 {
        self.cost(farthest.iter().copied(), top)
    }

    fn cost(&self, ways: impl Iterator<Item = (u32, u32)>, top: Top) -> u32 {
        self.calls.cost(ways, self.costs(top), self.frames[top.0 as usize].1)
    }
}
