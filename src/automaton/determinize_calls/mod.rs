//! The subset construction for automata with calls.
//!
//! A deterministic state is a set of *items*: ways through the [`Network`] that read the same text. All of them share the
//! frames on the stack. An item may have called more pieces than the others; the calls that it is ahead by are its *lead*, which
//! is part of the item. As soon as every item has a lead, the outermost call of each goes on the stack, as one frame for all: a
//! set of calls. An item within a piece carries the number of the call in that frame by which it was entered, its *tag*, and an
//! outcome of a piece is the set of tags (with outcomes of their own) that end there. (A frame that held only where to return
//! would mix up what was called for what: in `S = A 1 | B 2` with `A = ( A ) | a` and `B = ( B ) | b` it would accept `(b)1`.)
//!
//! Where a piece may end or go on, the next byte decides: a state keeps the items that return, and each byte that none of the
//! others reads returns from it with an outcome of its own, which says which tags ended and what was read behind them. No call
//! may go on with a byte that is read within.
//!
//! Where tokens are counted, a boundary between two of them is one more symbol, and leads from all items of a state; see [`rows`] and
//! [`forks`].
//!
//! So the result is exact, whatever is ambiguous in the text. What it cannot follow is ambiguity in *height* without end: where
//! items are apart by ever more calls, or where one byte is read within a piece and behind it. That is a [`Conflict`].
//!
//! References: R. Alur and P. Madhusudan, *Visibly Pushdown Languages*, STOC 2004, for frames that are sets;
//! J. Aycock and N. Horspool, *Faster Generalised LR Parsing*, CC 1999, for a stack only where rules embed themselves.

mod ahead;
mod closure;
mod conflict;
mod ends;
mod forks;
mod frames;
mod outcomes;
mod rows;

use std::rc::Rc;

use self::ahead::Ahead;
pub(crate) use self::conflict::{Conflict, ConflictKind};
use super::network::Network;
use super::pushdown::Draft;
use super::{Call, FastMap, Interner, Pushdown, RowDfa, Rows};
use crate::error::{Error, Limit, Result};

/// The most calls that an item may be ahead by.
const LONGEST_LEAD: usize = 8;

/// Memory of a row, roughly.
const ROW_BYTES: usize = 256;

/// The most outcomes of the pieces of an automaton.
pub(crate) const MOST_OUTCOMES: usize = 16;

/// What a network becomes.
pub(crate) enum Determinized {
    /// Without calls.
    Finite(RowDfa),
    Called(Pushdown),
}

/// What determinising may end in, beside breaching a limit.
pub(crate) enum Failure {
    Error(Error),
    Conflict(Conflict),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

type Outcome<T> = std::result::Result<T, Failure>;

impl Network<'_> {
    /// The deterministic automaton of the texts that lead from `start` to [`ACCEPT`](Self::ACCEPT), and the most leads of a
    /// state; `None` where there is no such text. At most `positions` different leads are followed.
    pub(crate) fn determinize(&self, start: u32, positions: usize) -> Outcome<Option<(Determinized, usize)>> {
        let mut special = FastMap::default();
        loop {
            match Subsets::new(self, positions, &special).run(start) {
                Err(Failure::Conflict(conflict)) => {
                    let known = special.len();
                    special.extend(conflict.piece.iter().map(|&node| (node, ())));
                    if special.len() == known {
                        return Err(Failure::Conflict(conflict));
                    }
                }
                done => return done,
            }
        }
    }
}

/// A way through the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Item {
    tag: u32,
    lead: u32,
    node: u32,
}

/// Where a byte leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Target {
    Dead,
    State(u32),
    Call(u32),
    Return(u32),
}

/// How a state was met first.
#[derive(Clone, Copy, Debug)]
enum Story {
    Start,
    /// By a byte from another state.
    Read {
        from: u32,
        byte: u8,
    },
    /// Behind a call: from the state `from` of its piece by `byte`.
    After {
        call: u32,
        from: u32,
        byte: u8,
    },
}

/// A part that is entered with one set of items.
#[derive(Default)]
struct Piece {
    /// Its first state; of no use for the outermost part.
    enter: u32,
    outcomes: Vec<u32>,
    /// Where each outcome was met first.
    met: Vec<(u32, u8)>,
    /// Outcomes that no call may go on from.
    forbidden: Vec<Forbidden>,
    callers: Vec<u32>,
    /// Where it begins.
    nodes: Vec<u32>,
    /// By tag the calls that enter it, where it is only for these.
    known_calls: Option<Vec<Vec<u32>>>,
}

/// An outcome that no call may go on from, as the piece goes on itself.
#[derive(Clone, Copy)]
struct Forbidden {
    /// The piece that goes on.
    piece: u32,
    outcome: u32,
    /// The number of the items that go on, as they were moved to; none where the text ends.
    inner: Option<u32>,
    story: Story,
}

/// What a piece is entered with: its items and, where it knows them, the calls by tag.
type Entry = (Vec<Item>, Option<Vec<Vec<u32>>>);

/// By the tag in the called piece: tags of the calling one, and call nodes.
type Frame = Vec<Vec<(u32, u32)>>;

/// A state that calls.
struct CallState {
    /// The piece that it is part of.
    within: u32,
    piece: u32,
    frame: Frame,
    /// By outcome.
    returns: FastMap<u32, Target>,
    story: Story,
}

/// Where the runs of a state are.
#[derive(Clone, Copy, Default)]
struct Row {
    from: usize,
    to: usize,
    accepting: bool,
}

/// The calls that an item is ahead by, or behind.
#[derive(Clone, Copy, Default)]
struct Lead {
    /// The lead without the last call.
    before: u32,
    call: u32,
    /// The number of calls ahead; they are ahead of the call that the item lags behind, if there is one.
    length: usize,
    lag: Option<u32>,
}

/// The items that can be reached without reading.
#[derive(Default)]
struct Closed {
    /// That read a byte, close a terminal, end the text or return; in order.
    items: Vec<Item>,
}

struct Subsets<'n, 'm> {
    network: &'n Network<'m>,
    positions: usize,
    /// The first is empty.
    leads: Vec<Lead>,
    lead_of: FastMap<(u32, u32, bool), u32>,
    /// Where pieces begin that know their calls.
    special: &'n FastMap<u32, ()>,
    /// The states: the piece, and the items.
    sets: Interner<u32>,
    stories: Vec<Story>,
    /// Whether a state is where a piece begins.
    begins: Vec<bool>,
    rows: Vec<Row>,
    /// Of all rows, back to back.
    runs: Vec<(u8, u8, Target)>,
    pieces: Vec<Piece>,
    piece_of: FastMap<Entry, u32>,
    calls: Vec<CallState>,
    call_of: FastMap<(u32, u32, Frame), u32>,
    /// Sets of tags with their outcomes.
    endings: Interner<u32>,
    /// What was read behind a piece, see [`ends`], and a set of tags.
    outcomes: Interner<u32>,
    /// The outcomes of each piece, and those that it must not have.
    ends_known: FastMap<(u32, u32), ()>,
    forbidden_known: FastMap<(u32, u32, Option<u32>), ()>,
    /// Calls of which it was not worked out yet where they go on by an outcome.
    owed: Vec<(u32, u32)>,
    /// Calls of which it was not checked yet that they do not go on.
    unchecked: Vec<(u32, Forbidden)>,
    /// What may come behind a call by a set of tags.
    aheads: FastMap<(u32, u32), Rc<Ahead>>,
    /// States from which counted parts end, and the state that begins there; see [`forks`].
    forks: Vec<(u32, u32)>,
    /// The numbers of bytes from which on other ranges begin.
    cuts: [bool; 257],
    /// The most leads of a state.
    widest: usize,
    /// What is being read.
    now: Story,
    /// What was moved to by a byte, the piece and the items, and where that led.
    moves: Interner<u32>,
    moved: Vec<Target>,
    /// The same for one item without tag and lead, by piece and node.
    moved_alone: FastMap<u64, Target>,
    /// The pass in which each node was last seen, by an item without tag or lead.
    seen: Vec<u32>,
    pass: u32,
    /// The other items that were seen in a pass.
    seen_others: FastMap<Item, ()>,
    work: usize,
    /// Room for what a set is known by, and for the items of which it was not yet asked what they reach.
    key: Vec<u32>,
    stack: Vec<Item>,
}

impl<'n, 'm> Subsets<'n, 'm> {
    fn new(network: &'n Network<'m>, positions: usize, special: &'n FastMap<u32, ()>) -> Self {
        Self {
            network,
            positions,
            leads: vec![Lead::default()],
            lead_of: FastMap::default(),
            special,
            sets: Interner::new(),
            stories: Vec::new(),
            begins: Vec::new(),
            rows: Vec::new(),
            runs: Vec::new(),
            pieces: vec![Piece::default()],
            piece_of: FastMap::default(),
            calls: Vec::new(),
            call_of: FastMap::default(),
            endings: Interner::new(),
            outcomes: Interner::new(),
            ends_known: FastMap::default(),
            forbidden_known: FastMap::default(),
            aheads: FastMap::default(),
            owed: Vec::new(),
            unchecked: Vec::new(),
            forks: Vec::new(),
            cuts: network.cuts(),
            widest: 1,
            now: Story::Start,
            moves: Interner::new(),
            moved: Vec::new(),
            moved_alone: FastMap::default(),
            key: Vec::new(),
            stack: Vec::new(),
            seen: vec![0; network.node_count()],
            pass: 0,
            seen_others: FastMap::default(),
            work: 0,
        }
    }

    fn run(mut self, start: u32) -> Outcome<Option<(Determinized, usize)>> {
        let first = Item { tag: 0, lead: 0, node: start };
        // Even if all items have a lead, the start is no call.
        let Closed { items } = self.closed(0, &[first])?;
        if items.is_empty() {
            return Ok(None);
        }
        let start = self.state(0, &items, Story::Start)?;
        let mut at = 0;
        while at < self.rows.len() {
            let row = self.row(at as u32)?;
            self.rows[at] = row;
            at += 1;
            self.settle()?;
        }
        let meter = self.network.meter();
        let widest = self.widest;
        let done = self.finish(start)?;
        if !self.forks.is_empty() {
            return Ok(self.joined(&done)?.map(|determinized| (determinized, widest)));
        }
        // The sets take more memory than all that is made of them.
        drop(self);
        let draft = Draft { rows: &done.rows, calls: done.calls, returning: &done.returning };
        let determinized = if draft.calls.is_empty() {
            RowDfa::new(draft.rows, done.start, meter)?.map(Determinized::Finite)
        } else {
            draft.pushdown(done.start, meter)?.map(Determinized::Called)
        };
        Ok(determinized.map(|determinized| (determinized, widest)))
    }

    /// The rows of the deterministic automaton.
    fn finish(&self, start: u32) -> Outcome<Done> {
        let merged = self.merged();
        if merged.most > MOST_OUTCOMES {
            return Err(Error::limit(Limit::Outcomes(MOST_OUTCOMES)).into());
        }
        // States, then calls, then RETURN states, numbered from 1 on.
        let calls = 1 + self.rows.len() as u32;
        let returning = calls + self.calls.len() as u32;
        let number = |piece: u32, target: Target| match target {
            Target::Dead => 0,
            Target::State(state) => 1 + state,
            Target::Call(call) => calls + call,
            Target::Return(outcome) => merged.number(piece, outcome).map_or(0, |outcome| returning + outcome),
        };
        let mut rows = Rows::with_capacity(1 + self.rows.len(), self.runs.len());
        for (state, row) in self.rows.iter().enumerate() {
            let piece = self.sets.get(state as u32)[0];
            let runs = self.runs[row.from..row.to].iter();
            rows.push(row.accepting, runs.map(|&(first, last, to)| (first, last, number(piece, to))));
        }
        rows.reserve(self.calls.len() + merged.most);
        let call = |call: &CallState| {
            let mut returns = vec![0; merged.most];
            for (&outcome, &to) in &call.returns {
                if let Some(outcome) = merged.number(call.piece, outcome) {
                    returns[outcome as usize] = number(call.within, to);
                }
            }
            Call { enter: 1 + self.pieces[call.piece as usize].enter, returns }
        };
        Ok(Done {
            rows,
            start: 1 + start,
            calls: self.calls.iter().zip(calls..).map(|(of, state)| (state, call(of))).collect(),
            returning: (returning..).take(merged.most).collect(),
        })
    }

    fn tick(&mut self, work: usize) -> Result<()> {
        self.work += work + 1;
        if self.work > 1 << 12 {
            self.work = 0;
            self.network.meter().time()?;
        }
        Ok(())
    }
}

/// An automaton as rows, with calls.
struct Done {
    rows: Rows,
    start: u32,
    calls: FastMap<u32, Call>,
    returning: Vec<u32>,
}
