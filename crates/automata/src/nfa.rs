//! Nondeterministic automata, built from expressions and regexes and then determinized.
//!
//! An [`Nfa`] is built *backward*: the successors of a state are added before it, so the targets of
//! its transitions already exist. Only loops are patched afterward.
//!
//! # Repetitions with a count
//! The body of `X{m,n}` is built once and copied. A copy with more repetitions left matches
//! everything that a copy with fewer repetitions left matches, from the same state of the body. The
//! states of the copies have [`Rank`]s, and the subset construction drops a state if another state
//! in the set outranks it. Example: after `ab`, the expression `(?:a|b|ab){0,50}` has matched one
//! body or two, and the set holds the copies with 49 and with 48 repetitions left. The second copy
//! is dropped, so that 50 sets remain. Without ranks, the sets are the 1,275 intervals between 0
//! and 50.

use std::sync::Arc;

use regex_automata::util::look::Look;
use regex_syntax::utf8::Utf8Sequences;

use super::edges::{Edges, Span, index};
use super::{ByteDfa, FastMap, Rows, Run};
use burn_dfa_common::{Error, Limit, Result, limits::Meter};

/// A state of an [`Nfa`] with assertions of type `A`.
#[derive(Clone, Copy, Debug)]
pub enum State<'n, A = Look> {
    /// Reads a byte by one of the runs, which are in order and disjoint.
    Bytes(&'n [Run]),
    /// Continues to all of the states without reading.
    Union(&'n [u32]),
    /// Continues without reading if the assertion holds.
    Look {
        /// The assertion.
        look: A,
        /// The next state.
        next: u32,
    },
    /// The end of the language: no more bytes may follow.
    Accept,
}

/// A [`State`] with the spans of its edges.
#[derive(Clone, Copy)]
enum Stored<A> {
    Bytes(Span),
    Union(Span),
    Look { look: A, next: u32 },
    Accept,
}

/// The position of a state among the copies of a repeated body.
///
/// Of two states with the same [`body`](Self::body), the first matches everything that the second
/// matches if each of its [`counts`](Self::counts) is at least the count of the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rank {
    /// The same number for all copies of a state that can be compared.
    pub(super) body: u32,
    /// A count for each repetition around the state, 15 bits each, the outermost one in the lowest
    /// bits.
    pub(super) counts: u64,
}

impl Rank {
    /// Bits of a count, with one bit more that is always 0.
    const BITS: u32 = 16;

    /// The greatest count.
    const MAX: usize = (1 << (Self::BITS - 1)) - 1;

    /// The bit above each count.
    const GUARDS: u64 = 0x8000_8000_8000_8000;

    /// Whether no count is below that of `other`, which has the same body.
    pub(super) fn is_at_least(self, other: Self) -> bool {
        ((self.counts | Self::GUARDS) - other.counts) & Self::GUARDS == Self::GUARDS
    }
}

/// The states of a repeated body, and its continuation.
struct Body {
    states: std::ops::Range<u32>,
    start: u32,
    next: u32,
    is_ranked: bool,
}

/// A nondeterministic automaton over bytes with assertions; state 0 accepts.
pub struct Nfa<'a, A = Look> {
    meter: &'a Meter<'a>,
    states: Vec<Stored<A>>,
    edges: Edges,
    /// The automata of the character classes added so far: a class is often repeated.
    classes: FastMap<Vec<(char, char)>, Arc<ByteDfa>>,
    /// The ranks of states; empty if no state has one, and shorter than the states if the last ones
    /// have none.
    ranks: Vec<Rank>,
}

impl Nfa<'_> {
    /// The state that accepts.
    pub const ACCEPT: u32 = ACCEPT;

    /// Most bytes of an automaton with copies of a repeated body, if the limits allow as much.
    pub const MAX_BYTES: usize = MAX_BYTES;

    /// The distinct assertions.
    pub(super) fn looks(&self) -> Vec<Look> {
        let mut looks = Vec::new();
        for state in &self.states {
            if let Stored::Look { look, .. } = state
                && !looks.contains(look)
            {
                looks.push(*look);
            }
        }
        looks
    }
}

/// See [`Nfa::ACCEPT`].
const ACCEPT: u32 = 0;

/// See [`Nfa::MAX_BYTES`].
const MAX_BYTES: usize = 128 << 20;

impl<'a, A: Copy> Nfa<'a, A> {
    /// The automaton of the empty string: the accepting state alone.
    pub fn new(meter: &'a Meter<'a>) -> Self {
        let (states, edges) = (vec![Stored::Accept], Edges::default());
        Self { meter, states, edges, classes: FastMap::default(), ranks: Vec::new() }
    }

    /// Number of states.
    pub fn state_count(&self) -> usize {
        self.states.len()
    }

    /// A state.
    pub fn state(&self, state: u32) -> State<'_, A> {
        match self.states[state as usize] {
            Stored::Bytes(span) => State::Bytes(self.edges.runs(span)),
            Stored::Union(span) => State::Union(self.edges.branches(span)),
            Stored::Look { look, next } => State::Look { look, next },
            Stored::Accept => State::Accept,
        }
    }

    pub(super) fn meter(&self) -> &'a Meter<'a> {
        self.meter
    }

    /// Adds a state that reads one byte by one of `runs`, which must be in order and disjoint.
    pub fn bytes<R: Into<Run>>(&mut self, runs: impl IntoIterator<Item = R>) -> Result<u32> {
        let span = self.edges.add_runs(runs)?;
        self.add(Stored::Bytes(span))
    }

    /// Adds a state that reads nothing and continues nowhere.
    pub fn dead(&mut self) -> Result<u32> {
        self.add(Stored::Bytes(Span::EMPTY))
    }

    /// Adds a state that continues to each of `branches`.
    pub fn union(&mut self, branches: impl IntoIterator<Item = u32>) -> Result<u32> {
        let span = self.edges.add_branches(branches)?;
        self.add(Stored::Union(span))
    }

    /// Adds a state that continues to `next` if `look` holds.
    pub fn look(&mut self, look: A, next: u32) -> Result<u32> {
        self.add(Stored::Look { look, next })
    }

    /// Replaces the first branch of a union.
    pub fn patch(&mut self, union: u32, branch: u32) {
        if let Stored::Union(span) = self.states[union as usize] {
            *self.edges.first_branch(span) = branch;
        }
    }

    /// The number that the next state will have.
    pub fn next_state(&self) -> Result<u32> {
        index(self.states.len())
    }

    /// Copies the states readable from `start` in `rows`, in which every state reaches an accepting
    /// state; accepting states are followed by `next`. Returns the start of the copy.
    pub(super) fn copy(&mut self, rows: &Rows, start: u32, next: u32) -> Result<u32> {
        if start == 0 {
            return self.dead();
        }
        // Numbers come first. A state that reads bytes takes one number, and a second if it also
        // accepts.
        let mut numbers = vec![next; rows.state_count()];
        let mut count = self.next_state()?;
        let reading = || (1..rows.state_count() as u32).filter(|&state| !rows.row(state).is_empty());
        for state in reading() {
            let accepts = u32::from(rows.is_accepting(state));
            numbers[state as usize] = count + accepts;
            count = count.checked_add(1 + accepts).ok_or_else(|| self.too_large())?;
        }
        for state in reading() {
            let runs = rows.row(state).iter();
            let mut copy =
                self.bytes(runs.map(|run| Run { target: numbers[run.target as usize], ..*run }))?;
            if rows.is_accepting(state) {
                copy = self.union([copy, next])?;
            }
            debug_assert_eq!(copy, numbers[state as usize]);
        }
        Ok(numbers[start as usize])
    }

    /// Adds states that read one character out of `ranges`, in UTF-8, and continue to `next`.
    /// Returns their start.
    pub fn class(&mut self, ranges: &[(char, char)], next: u32) -> Result<u32> {
        if let [(first, last)] = ranges
            && first.is_ascii()
            && last.is_ascii()
            && first <= last
        {
            return self.bytes([(*first as u8, *last as u8, next)]);
        }
        let dfa = match self.classes.get(ranges) {
            Some(dfa) => Arc::clone(dfa),
            None => {
                let dfa = Arc::new(one_char(ranges, self.meter)?);
                self.classes.insert(ranges.to_vec(), Arc::clone(&dfa));
                dfa
            }
        };
        self.copy(&Rows::from(&*dfa), dfa.start().0, next)
    }

    /// Adds from `min` to `max` repetitions of a body, without a maximum if `max` is `None`, in
    /// front of the state `next`. `body` adds the body in front of a state. Returns the start of
    /// the repetitions.
    pub fn repeat(
        &mut self,
        min: usize,
        max: Option<usize>,
        next: u32,
        body: impl FnOnce(&mut Self, u32) -> Result<u32>,
    ) -> Result<u32> {
        let optional = match max {
            Some(max) if max < min => return self.dead(),
            Some(0) => return Ok(next),
            Some(max) => max - min,
            None => 0,
        };
        let first_next = if max.is_none() { self.union([next, next])? } else { next };
        let from = self.next_state()?;
        let start = body(self, first_next)?;
        let states = from..self.next_state()?;
        // A copy outranks the copies with fewer optional repetitions left. Without a maximum, it
        // outranks the copies with more mandatory repetitions left.
        let ranked = if max.is_none() { min.saturating_sub(1) } else { optional };
        let is_ranked = ranked > 0 && ranked <= Rank::MAX && self.has_free_count(states.clone());
        let body = Body { states, start, next: first_next, is_ranked };
        self.rank(&body, if max.is_none() { ranked } else { 0 });
        self.refuse_copies(&body, max.unwrap_or(min.max(1)) - 1)?;
        let mut at = start;
        if max.is_none() {
            self.patch(first_next, start);
            if min == 0 {
                return Ok(first_next);
            }
            for left in 1..min {
                at = self.copy_body(&body, at, Some(ranked - left))?;
            }
            return Ok(at);
        }
        let mut copied = 1;
        if optional > 0 {
            // Nested, as in `(x(x)?)?`; each skipped optional repetition leads straight to the end.
            at = self.union([start, next])?;
            while copied < optional {
                let copy = self.copy_body(&body, at, Some(copied))?;
                at = self.union([copy, next])?;
                copied += 1;
            }
            if min > 0 {
                at = self.copy_body(&body, at, Some(optional))?;
                copied += 1;
            }
        }
        while copied < optional + min {
            at = self.copy_body(&body, at, None)?;
            copied += 1;
        }
        Ok(at)
    }

    /// The rank of a state.
    pub(super) fn rank_of(&self, state: u32) -> Rank {
        self.ranks.get(state as usize).copied().unwrap_or(Rank { body: state, counts: 0 })
    }

    /// Whether states have ranks.
    pub(super) fn is_ranked(&self) -> bool {
        !self.ranks.is_empty()
    }

    /// Whether the ranks of `states` have space for one more count.
    fn has_free_count(&self, states: std::ops::Range<u32>) -> bool {
        states.into_iter().all(|state| self.rank_of(state).counts >> (u64::BITS - Rank::BITS) == 0)
    }

    /// Adds a count to the ranks of a body.
    fn rank(&mut self, body: &Body, count: usize) {
        if !body.is_ranked {
            return;
        }
        for state in self.ranks.len() as u32..body.states.end {
            self.ranks.push(Rank { body: state, counts: 0 });
        }
        for state in body.states.clone() {
            let rank = &mut self.ranks[state as usize];
            rank.counts = rank.counts << Rank::BITS | count as u64;
        }
    }

    /// Copies a body in front of the state `next`, with a count for its rank if it has one. Returns
    /// the start of the copy.
    fn copy_body(&mut self, body: &Body, next: u32, count: Option<usize>) -> Result<u32> {
        let Body { ref states, start, .. } = *body;
        let shift = self.next_state()? - states.start;
        let moved = |state: u32| match state {
            _ if state == body.next => next,
            _ if states.contains(&state) => state + shift,
            _ => state,
        };
        // Ranks within the body are kept. A copy without a comparable count gets new body numbers.
        let is_comparable = body.is_ranked && count.is_some();
        for state in states.clone() {
            if let Some(&rank) = self.ranks.get(state as usize) {
                let copy = self.next_state()?;
                let unranked = self.ranks.len() as u32..copy;
                self.ranks.extend(unranked.map(|state| Rank { body: state, counts: 0 }));
                self.ranks.push(match (is_comparable, count) {
                    (true, Some(count)) => {
                        let counts = rank.counts >> Rank::BITS << Rank::BITS | count as u64;
                        Rank { counts, ..rank }
                    }
                    _ => Rank { body: rank.body + shift, ..rank },
                });
            }
            match self.states[state as usize] {
                Stored::Bytes(span) => {
                    let copy = self.edges.copy_runs(span, moved)?;
                    self.add(Stored::Bytes(copy))?;
                }
                Stored::Union(span) => {
                    let copy = self.edges.copy_branches(span, moved)?;
                    self.add(Stored::Union(copy))?;
                }
                Stored::Look { look, next } => {
                    self.add(Stored::Look { look, next: moved(next) })?;
                }
                Stored::Accept => {}
            }
        }
        Ok(moved(start))
    }

    /// Refuses copies of a body that exceed the memory limit, before creating them.
    fn refuse_copies(&self, body: &Body, copies: usize) -> Result<()> {
        let of = |state: u32| match self.states[state as usize] {
            Stored::Bytes(span) => span.len() * size_of::<Run>(),
            Stored::Union(span) => span.len() * size_of::<u32>(),
            Stored::Look { .. } | Stored::Accept => 0,
        };
        let bytes: usize = body.states.clone().map(|state| size_of::<Stored<A>>() + of(state)).sum();
        // Each copy has a union in front of it.
        let bytes = bytes + size_of::<Stored<A>>() + 2 * size_of::<u32>();
        let bytes = self.used().saturating_add(bytes.saturating_mul(copies));
        if copies > 0 && bytes > MAX_BYTES {
            return Err(self.too_large());
        }
        self.meter.bytes(bytes)
    }

    /// Memory in use.
    fn used(&self) -> usize {
        self.states.len() * size_of::<Stored<A>>() + self.edges.bytes() + self.ranks.len() * size_of::<Rank>()
    }

    fn add(&mut self, state: Stored<A>) -> Result<u32> {
        let id = index(self.states.len())?;
        self.states.push(state);
        if id % 4096 == 0 {
            self.check()?;
        }
        Ok(id)
    }

    /// Refuses to exceed the limits of memory or time.
    pub(super) fn check(&self) -> Result<()> {
        self.meter.bytes(self.used())?;
        self.meter.time()
    }

    fn too_large(&self) -> Error {
        Error::limit(Limit::Bytes(self.meter.limits().bytes))
    }
}

/// The automaton of one character out of `ranges`.
fn one_char(ranges: &[(char, char)], meter: &Meter) -> Result<ByteDfa> {
    let mut nfa = Nfa::new(meter);
    let mut starts = Vec::new();
    for &(first, last) in ranges {
        for sequence in Utf8Sequences::new(first, last) {
            let start = sequence
                .as_slice()
                .iter()
                .rev()
                .try_fold(Nfa::ACCEPT, |next, range| nfa.bytes([(range.start, range.end, next)]))?;
            starts.push(start);
        }
    }
    let start = nfa.union(starts)?;
    nfa.determinize(start)
}
