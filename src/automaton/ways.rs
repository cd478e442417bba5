//! The shortest ways to the ends of pieces, in automata with calls.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::{Call, Csr, FastMap};
use crate::error::Result;
use crate::limits::Meter;

/// From this on a distance counts as infinite, so that two that are less can be added in 31 bits.
pub(crate) const FARTHEST: u32 = 1 << 30;

/// The way from a state to an end: the shortest one, and of these one that needs the fewest frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Bytes, and one for the end of the text; [`FARTHEST`] or more where there is no way.
    pub(crate) bytes: u32,
    /// The most frames that it adds to the stack at any time.
    pub(crate) frames: u32,
}

impl Way {
    pub(crate) const NONE: Self = Self { bytes: u32::MAX, frames: u32::MAX };

    pub(crate) fn is_some(self) -> bool {
        self.bytes < FARTHEST
    }
}

impl Ord for Way {
    fn cmp(&self, other: &Self) -> Ordering {
        let [own, other] = [self, other].map(|way| u64::from(way.bytes) << 32 | u64::from(way.frames));
        own.cmp(&other)
    }
}

impl PartialOrd for Way {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The edges of an automaton with calls.
pub(crate) struct Graph<'a> {
    pub(crate) states: usize,
    /// The number of ends of a state, at most.
    pub(crate) ends: usize,
    /// For each state the states that a byte leads from to it.
    pub(crate) backward: Csr,
    pub(crate) accepting: Vec<u32>,
    /// The RETURN states with their outcomes.
    pub(crate) returning: Vec<(u32, u32)>,
    /// By call state.
    pub(crate) calls: &'a FastMap<u32, Call>,
}

impl Graph<'_> {
    /// The way from each state to each end, `[states, ends]`.
    ///
    /// Reference: D. E. Knuth, *A Generalization of Dijkstra's Algorithm*, Information Processing Letters 6(1), 1977.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(crate) fn ways(&self, meter: &Meter) -> Result<Vec<Way>> {
        let Self { states, ends, ref backward, .. } = *self;
        let callers = Csr::new(states, self.calls.iter().map(|(&state, call)| (call.enter, state)));
        // For each state the calls that go on there, times the number of ends, plus the outcome.
        let returned = self.calls.iter().flat_map(|(&state, call)| {
            let outcomes = call.returns.iter().enumerate();
            outcomes.map(move |(outcome, &to)| (to, state * ends as u32 + outcome as u32))
        });
        let returned = Csr::new(states, returned);
        let mut found = Found {
            ways: vec![Way::NONE; states * ends],
            last: vec![false; states * ends],
            ends,
            queue: Queue::default(),
        };
        let none = Way { bytes: 0, frames: 0 };
        self.accepting.iter().for_each(|&state| found.push(Way { bytes: 1, ..none }, state, 0));
        self.returning.iter().for_each(|&(state, outcome)| found.push(none, state, outcome));
        let mut count = 0;
        while let Some((way, state, end)) = found.pop() {
            count += 1;
            if count % 4096 == 0 {
                meter.time()?;
            }
            let longer = Way { bytes: way.bytes + 1, ..way };
            backward.of(state).iter().for_each(|&before| found.push(longer, before, end));
            // The way through a piece, and on from where it returns to.
            let through = |piece: Way, rest: Way| Way {
                bytes: piece.bytes + rest.bytes,
                frames: (piece.frames + 1).max(rest.frames),
            };
            for &caller in callers.of(state) {
                let Some(&to) = self.calls[&caller].returns.get(end as usize) else { continue };
                for after in 0..ends as u32 {
                    if to != 0
                        && let Some(rest) = found.shortest(to, after)
                    {
                        found.push(through(way, rest), caller, after);
                    }
                }
            }
            for &place in returned.of(state) {
                let (caller, outcome) = (place / ends as u32, place % ends as u32);
                if let Some(piece) = found.shortest(self.calls[&caller].enter, outcome) {
                    found.push(through(piece, way), caller, end);
                }
            }
        }
        Ok(found.ways)
    }
}

/// The ways that were found so far.
struct Found {
    /// The shortest of each state to each end, `[states, ends]`.
    ways: Vec<Way>,
    /// Whether there is none shorter.
    last: Vec<bool>,
    ends: usize,
    /// Those from which no others were found yet.
    queue: Queue,
}

impl Found {
    fn place(&self, state: u32, end: u32) -> usize {
        state as usize * self.ends + end as usize
    }

    /// Adds a way, where none was found that is as short.
    #[inline(always)]
    fn push(&mut self, way: Way, state: u32, end: u32) {
        let place = self.place(state, end);
        if way.is_some() && way < self.ways[place] {
            self.ways[place] = way;
            self.queue.push(way, state, end);
        }
    }

    /// The shortest way that was not taken out before.
    fn pop(&mut self) -> Option<(Way, u32, u32)> {
        loop {
            let (way, state, end) = self.queue.pop()?;
            let place = self.place(state, end);
            if self.ways[place] == way {
                self.last[place] = true;
                return Some((way, state, end));
            }
        }
    }

    /// The way from a state to an end, where none can be shorter.
    fn shortest(&self, state: u32, end: u32) -> Option<Way> {
        let place = self.place(state, end);
        self.last[place].then(|| self.ways[place])
    }
}

/// Ways that were found, the shortest first, with the state and the end of each. No way is shorter than those that were taken
/// out before, and most are longer by one byte, so the queue holds these apart.
#[derive(Default)]
struct Queue {
    /// The bytes of the ways that come first.
    bytes: u32,
    /// The frames, the states and the ends of these; the fewest frames come last.
    now: Vec<(u32, u32, u32)>,
    /// Further ones, which were found since they are taken out.
    more: BinaryHeap<Reverse<(u32, u32, u32)>>,
    /// Of those that are one byte longer.
    next: Vec<(u32, u32, u32)>,
    later: BinaryHeap<Reverse<(Way, u32, u32)>>,
}

impl Queue {
    fn push(&mut self, way: Way, state: u32, end: u32) {
        match way.bytes - self.bytes {
            0 => self.more.push(Reverse((way.frames, state, end))),
            1 => self.next.push((way.frames, state, end)),
            _ => self.later.push(Reverse((way, state, end))),
        }
    }

    fn pop(&mut self) -> Option<(Way, u32, u32)> {
        while self.now.is_empty() && self.more.is_empty() {
            let later = self.later.peek().map(|Reverse((way, ..))| way.bytes);
            let next = (!self.next.is_empty()).then_some(self.bytes + 1);
            self.bytes = next.into_iter().chain(later).min()?;
            if next == Some(self.bytes) {
                std::mem::swap(&mut self.now, &mut self.next);
                self.now.sort_unstable_by_key(|&(frames, ..)| Reverse(frames));
            }
            while let Some(Reverse((way, state, end))) = self.later.peek().copied()
                && way.bytes <= self.bytes + 1
            {
                self.later.pop();
                self.push(way, state, end);
            }
        }
        let frames = |&(frames, ..): &(u32, u32, u32)| frames;
        let more = self.more.peek().map(|Reverse(more)| frames(more));
        let is_more = more.is_some_and(|more| self.now.last().is_none_or(|now| more < frames(now)));
        let found = if is_more { self.more.pop().map(|Reverse(more)| more) } else { self.now.pop() };
        found.map(|(frames, state, end)| (Way { bytes: self.bytes, frames }, state, end))
    }
}
