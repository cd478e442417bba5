//! The subset construction for automata with calls.
//!
//! A deterministic state is a set of *items*: ways through the [`Network`] that read the same text. All of them share the
//! frames on the stack. An item may have called more pieces than the others; the calls that it is ahead by are its *lead*, which
//! is part of the item. As soon as every item has a lead, the outermost call of each goes on the stack, as one frame for all: a
//! set of calls. An item within a piece carries the number of the call in that frame by which it was entered, its *tag*, and an
//! outcome of a piece is the set of tags (with outcomes of their own) that end there. (A frame that held only where to return
//! would mix up what was called for what: in `S = A 1 | B 2` with `A = ( A ) | a` and `B = ( B ) | b` it would accept `(b)1`.)
//!
//! So the result is exact, whatever is ambiguous in the text. What it cannot follow is ambiguity in *height* without end: where
//! items are apart by ever more calls, or where one would return from the piece while another goes on. That is a [`Conflict`].
//!
//! References: R. Alur and P. Madhusudan, *Visibly Pushdown Languages*, STOC 2004, for frames that are sets;
//! J. Aycock and N. Horspool, *Faster Generalised LR Parsing*, CC 1999, for a stack only where rules embed themselves.

mod closure;
mod conflict;
mod frames;
mod rows;

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
const MOST_OUTCOMES: usize = 8;

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
        Subsets::new(self, positions).run(start)
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
struct Piece {
    /// Its first state; of no use for the outermost part.
    enter: u32,
    outcomes: Vec<u32>,
    /// Where each outcome was met first.
    met: Vec<(u32, u8)>,
    callers: Vec<u32>,
}

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

#[derive(Default)]
struct Row {
    runs: Vec<(u8, u8, Target)>,
    accepting: bool,
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
    /// Leads: the lead without the last call, that call, and the number of calls. The first is empty.
    leads: Vec<(u32, u32, usize)>,
    lead_of: FastMap<(u32, u32), u32>,
    /// The states: the piece, and the items.
    sets: Interner<u32>,
    stories: Vec<Story>,
    /// Whether a state is where a piece begins.
    begins: Vec<bool>,
    rows: Vec<Row>,
    pieces: Vec<Piece>,
    piece_of: FastMap<Vec<Item>, u32>,
    calls: Vec<CallState>,
    call_of: FastMap<(u32, u32, Frame), u32>,
    /// Sets of tags with their outcomes.
    outcomes: Interner<u32>,
    /// Outcomes that callers were not told of: the piece and the outcome.
    news: Vec<(u32, u32)>,
    /// The most leads of a state.
    widest: usize,
    /// What is being read.
    now: Story,
    /// What was moved to by a byte, the piece and the items, and where that led.
    moves: Interner<u32>,
    moved: Vec<Target>,
    /// The pass in which each node was last seen, by an item without tag or lead.
    seen: Vec<u32>,
    pass: u32,
    /// The other items that were seen in a pass.
    seen_others: FastMap<Item, ()>,
    work: usize,
}

impl<'n, 'm> Subsets<'n, 'm> {
    fn new(network: &'n Network<'m>, positions: usize) -> Self {
        let outermost = Piece { enter: 0, outcomes: Vec::new(), met: Vec::new(), callers: Vec::new() };
        Self {
            network,
            positions,
            leads: vec![(0, 0, 0)],
            lead_of: FastMap::default(),
            sets: Interner::new(),
            stories: Vec::new(),
            begins: Vec::new(),
            rows: Vec::new(),
            pieces: vec![outermost],
            piece_of: FastMap::default(),
            calls: Vec::new(),
            call_of: FastMap::default(),
            outcomes: Interner::new(),
            news: Vec::new(),
            widest: 1,
            now: Story::Start,
            moves: Interner::new(),
            moved: Vec::new(),
            seen: vec![0; network.node_count()],
            pass: 0,
            seen_others: FastMap::default(),
            work: 0,
        }
    }

    fn run(mut self, start: u32) -> Outcome<Option<(Determinized, usize)>> {
        let first = Item { tag: 0, lead: 0, node: start };
        // Even if all items have a lead, the start is no call.
        let Closed { items } = self.closed(&[first])?;
        if items.is_empty() {
            return Ok(None);
        }
        let start = self.state(0, &items, Story::Start)?;
        let mut at = 0;
        while at < self.rows.len() || !self.news.is_empty() {
            while let Some((piece, outcome)) = self.news.pop() {
                for call in self.pieces[piece as usize].callers.clone() {
                    self.returned(call, outcome)?;
                }
            }
            if at < self.rows.len() {
                let row = self.row(at as u32)?;
                self.rows[at] = row;
                at += 1;
            }
        }
        let meter = self.network.meter();
        let widest = self.widest;
        let done = self.finish(start)?;
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
        if self.outcomes.len() > MOST_OUTCOMES {
            return Err(Error::limit(Limit::Outcomes(MOST_OUTCOMES)).into());
        }
        // States, then calls, then RETURN states, numbered from 1 on.
        let calls = 1 + self.rows.len() as u32;
        let returning = calls + self.calls.len() as u32;
        let number = |target: Target| match target {
            Target::Dead => 0,
            Target::State(state) => 1 + state,
            Target::Call(call) => calls + call,
            Target::Return(outcome) => returning + outcome,
        };
        let mut rows = Rows::new();
        for row in &self.rows {
            rows.push(row.accepting, row.runs.iter().map(|&(first, last, to)| (first, last, number(to))));
        }
        let states = self.calls.len() + self.outcomes.len();
        rows.reserve(states);
        let outcomes = 0..self.outcomes.len() as u32;
        let call = |call: &CallState| Call {
            enter: 1 + self.pieces[call.piece as usize].enter,
            returns: outcomes
                .clone()
                .map(|outcome| call.returns.get(&outcome).map_or(0, |&to| number(to)))
                .collect(),
        };
        Ok(Done {
            rows,
            start: 1 + start,
            calls: self.calls.iter().zip(calls..).map(|(of, state)| (state, call(of))).collect(),
            returning: outcomes.clone().map(|outcome| returning + outcome).collect(),
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
