//! The shortest paths to the exits of procedures, in automata with calls.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::{Call, Csr, FastMap};
use burn_dfa_common::{Result, limits::Meter};

/// Distances from this on count as infinite; two smaller distances add up without overflow in 31
/// bits.
pub const FARTHEST: u32 = 1 << 30;

/// The shortest path from a state to an exit; among equally short paths, one with the fewest
/// frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance {
    /// Bytes, and one for the end of the text; [`FARTHEST`] or more if no path exists.
    pub bytes: u32,
    /// The maximum number of frames that the path adds to the stack at any time.
    pub frames: u32,
}

impl Distance {
    /// No path to the exit.
    pub const NONE: Self = Self { bytes: u32::MAX, frames: u32::MAX };

    /// Whether there is a path to the exit.
    pub fn is_some(self) -> bool {
        self.bytes < FARTHEST
    }
}

impl Ord for Distance {
    fn cmp(&self, other: &Self) -> Ordering {
        let [own, other] =
            [self, other].map(|distance| u64::from(distance.bytes) << 32 | u64::from(distance.frames));
        own.cmp(&other)
    }
}

impl PartialOrd for Distance {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The edges of an automaton with calls.
pub struct Graph<'a> {
    /// The number of states.
    pub states: usize,
    /// Maximum number of exits of a state.
    pub exits: usize,
    /// For each state, its predecessors by a byte.
    pub backward: Csr,
    /// The states in which a text may end.
    pub accepting: Vec<u32>,
    /// The RETURN states with their exits.
    pub returning: Vec<(u32, u32)>,
    /// By call state.
    pub calls: &'a FastMap<u32, Call>,
}

impl Graph<'_> {
    /// The distance from each state to each exit, `[states, exits]`.
    ///
    /// Reference: D. E. Knuth, *A Generalization of Dijkstra's Algorithm*, Information Processing
    /// Letters 6(1), 1977.
    ///
    /// # Errors
    /// If a limit is breached.
    pub fn distances(&self, meter: &Meter) -> Result<Vec<Distance>> {
        let Self { states, exits, ref backward, .. } = *self;
        let callers = Csr::new(states, self.calls.iter().map(|(&state, call)| (call.enter, state)));
        // For each return state, its calls: the call state times the number of exits, plus the
        // exit.
        let returned = self.calls.iter().flat_map(|(&state, call)| {
            let outcomes = call.returns.iter().enumerate();
            outcomes.map(move |(outcome, &to)| (to, state * exits as u32 + outcome as u32))
        });
        let returned = Csr::new(states, returned);
        let mut found = Found {
            distances: vec![Distance::NONE; states * exits],
            last: vec![false; states * exits],
            exits,
            queue: Queue::default(),
        };
        let none = Distance { bytes: 0, frames: 0 };
        self.accepting.iter().for_each(|&state| found.push(Distance { bytes: 1, ..none }, state, 0));
        self.returning.iter().for_each(|&(state, outcome)| found.push(none, state, outcome));
        let mut count = 0;
        while let Some((distance, state, exit)) = found.pop() {
            count += 1;
            if count % 4096 == 0 {
                meter.time()?;
            }
            let longer = Distance { bytes: distance.bytes + 1, ..distance };
            backward.of(state).iter().for_each(|&before| found.push(longer, before, exit));
            // The path through a procedure, and on from the return state.
            let through = |procedure: Distance, rest: Distance| Distance {
                bytes: procedure.bytes + rest.bytes,
                frames: (procedure.frames + 1).max(rest.frames),
            };
            for &caller in callers.of(state) {
                let Some(&to) = self.calls[&caller].returns.get(exit as usize) else { continue };
                for after in 0..exits as u32 {
                    if to != 0
                        && let Some(rest) = found.shortest(to, after)
                    {
                        found.push(through(distance, rest), caller, after);
                    }
                }
            }
            for &index in returned.of(state) {
                let (caller, outcome) = (index / exits as u32, index % exits as u32);
                if let Some(procedure) = found.shortest(self.calls[&caller].enter, outcome) {
                    found.push(through(procedure, distance), caller, exit);
                }
            }
        }
        Ok(found.distances)
    }
}

/// The paths found so far.
struct Found {
    /// The shortest path of each state to each exit, `[states, exits]`.
    distances: Vec<Distance>,
    /// Whether the path is final.
    last: Vec<bool>,
    exits: usize,
    /// Paths with unprocessed predecessors.
    queue: Queue,
}

impl Found {
    fn index(&self, state: u32, exit: u32) -> usize {
        state as usize * self.exits + exit as usize
    }

    /// Adds a path if it is shorter than the known one.
    #[inline(always)]
    fn push(&mut self, distance: Distance, state: u32, exit: u32) {
        let index = self.index(state, exit);
        if distance.is_some() && distance < self.distances[index] {
            self.distances[index] = distance;
            self.queue.push(distance, state, exit);
        }
    }

    /// The shortest path not yet processed; marks it as final.
    fn pop(&mut self) -> Option<(Distance, u32, u32)> {
        loop {
            let (distance, state, exit) = self.queue.pop()?;
            let index = self.index(state, exit);
            if self.distances[index] == distance {
                self.last[index] = true;
                return Some((distance, state, exit));
            }
        }
    }

    /// The path from a state to an exit, if it is final.
    fn shortest(&self, state: u32, exit: u32) -> Option<Distance> {
        let index = self.index(state, exit);
        self.last[index].then(|| self.distances[index])
    }
}

/// A priority queue of paths with their state and exit. No path is shorter than an already
/// processed one, and most are one byte longer, so the queue stores these lengths separately.
#[derive(Default)]
struct Queue {
    /// The length in bytes of the current paths.
    bytes: u32,
    /// The frames, the states and the exits of the current paths; the fewest frames come last.
    now: Vec<(u32, u32, u32)>,
    /// Current paths added during processing.
    more: BinaryHeap<Reverse<(u32, u32, u32)>>,
    /// Paths one byte longer.
    next: Vec<(u32, u32, u32)>,
    later: BinaryHeap<Reverse<(Distance, u32, u32)>>,
}

impl Queue {
    fn push(&mut self, distance: Distance, state: u32, exit: u32) {
        match distance.bytes - self.bytes {
            0 => self.more.push(Reverse((distance.frames, state, exit))),
            1 => self.next.push((distance.frames, state, exit)),
            _ => self.later.push(Reverse((distance, state, exit))),
        }
    }

    fn pop(&mut self) -> Option<(Distance, u32, u32)> {
        while self.now.is_empty() && self.more.is_empty() {
            let later = self.later.peek().map(|Reverse((distance, ..))| distance.bytes);
            let next = (!self.next.is_empty()).then_some(self.bytes + 1);
            self.bytes = next.into_iter().chain(later).min()?;
            if next == Some(self.bytes) {
                std::mem::swap(&mut self.now, &mut self.next);
                self.now.sort_unstable_by_key(|&(frames, ..)| Reverse(frames));
            }
            while let Some(Reverse((distance, state, exit))) = self.later.peek().copied()
                && distance.bytes <= self.bytes + 1
            {
                self.later.pop();
                self.push(distance, state, exit);
            }
        }
        let frames = |&(frames, ..): &(u32, u32, u32)| frames;
        let more = self.more.peek().map(|Reverse(more)| frames(more));
        let is_more = more.is_some_and(|more| self.now.last().is_none_or(|now| more < frames(now)));
        let found = if is_more { self.more.pop().map(|Reverse(more)| more) } else { self.now.pop() };
        found.map(|(frames, state, exit)| (Distance { bytes: self.bytes, frames }, state, exit))
    }
}
