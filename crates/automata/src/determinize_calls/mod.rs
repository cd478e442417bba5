//! The subset construction for automata with calls.
//!
//! A deterministic state is a set of *items*: paths through the [`TransitionNetwork`] that read the
//! same text and share the frames on the stack. An item may have entered more procedures than other
//! items; these calls are its *pending calls*, a part of the item. As soon as every item has
//! pending calls, the outermost one of each item is pushed on the stack, as one frame for all: a
//! set of calls. An item within a procedure carries a *tag*, the number of its entering call in the
//! frame. An exit of a procedure is the set of ended tags, each with its own exit. (A frame of
//! return addresses alone would confuse callers: in `S = A 1 | B 2` with `A = ( A ) | a` and
//! `B = ( B ) | b` it would accept `(b)1`.)
//!
//! If a procedure may return or continue, the next byte decides: a state keeps its returning items,
//! and every byte not read by the other items returns with its own exit, which records the ended
//! tags and the byte. No call may continue with a byte that the procedure reads itself.
//!
//! If tokens are counted, a boundary between two tokens is one more symbol, with transitions from
//! all items of a state; see [`rows`] and [`forks`].
//!
//! The result is exact for every ambiguous text. The construction rejects only unbounded ambiguity
//! in *height*: items that differ by ever more calls, or a byte read both inside a procedure and
//! after it. The error is a [`Conflict`].
//!
//! References: R. Alur and P. Madhusudan, *Visibly Pushdown Languages*, STOC 2004, for frames that
//! are sets; J. Aycock and N. Horspool, *Faster Generalised LR Parsing*, CC 1999, for a stack only
//! where rules embed themselves.

mod ahead;
mod closure;
mod conflict;
mod exits;
mod forks;
mod frames;
mod outcomes;
mod rows;

use std::rc::Rc;

use self::ahead::Ahead;
pub use self::conflict::{Conflict, ConflictKind};
use super::network::TransitionNetwork;
use super::pushdown::UntrimmedPda;
use super::stamps::StampSet;
use super::sweep::Cuts;
use super::{Call, FastMap, Interner, Rows, SparseAutomaton, SparseDfa};
use burn_dfa_common::{Error, Limit, Result};

/// The maximum number of pending calls of an item.
const MAX_PENDING: usize = 8;

/// Approximate memory of a row.
const ROW_BYTES: usize = 256;

/// Approximate memory of an exit of a procedure, and of a forbidden one.
const EXIT_BYTES: usize = 64;

/// Approximate memory of the target of a call for an exit.
const RETURN_BYTES: usize = 48;

/// The maximum number of exits of the procedures of an automaton.
pub const MAX_EXITS: usize = 16;

/// Why the subset construction failed.
pub enum Failure {
    /// A limit was breached.
    Error(Error),
    /// Two readings of one text never diverged.
    Conflict(Conflict),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

type Outcome<T> = std::result::Result<T, Failure>;

impl TransitionNetwork<'_> {
    /// The deterministic automaton of the texts on paths from `start` to [`ACCEPT`](Self::ACCEPT),
    /// and the maximum number of distinct pending calls in a state; `None` if no such text exists.
    /// Follows at most `positions` of them.
    pub fn determinize(&self, start: u32, positions: usize) -> Outcome<Option<(SparseAutomaton, usize)>> {
        let mut special = FastMap::default();
        loop {
            match Subsets::new(self, positions, &special).run(start) {
                Err(Failure::Conflict(conflict)) => {
                    let known = special.len();
                    special.extend(conflict.procedure.iter().map(|&node| (node, ())));
                    if special.len() == known {
                        return Err(Failure::Conflict(conflict));
                    }
                }
                done => return done,
            }
        }
    }
}

/// A path through the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Item {
    tag: u32,
    pending: u32,
    node: u32,
}

/// The target of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Target {
    Dead,
    State(u32),
    Call(u32),
    Return(u32),
}

/// How a state was first reached.
#[derive(Clone, Copy, Debug)]
enum Witness {
    Start,
    /// By a byte from another state.
    Read {
        from: u32,
        byte: u8,
    },
    /// After a call: from the state `from` of its procedure by `byte`.
    After {
        call: u32,
        from: u32,
        byte: u8,
    },
}

/// A procedure, entered with one set of items.
#[derive(Default)]
struct Procedure {
    /// Its first state; unused for the outermost part.
    enter: u32,
    outcomes: Vec<u32>,
    /// Where each exit was first found.
    met: Vec<(u32, u8)>,
    /// Exits that no call may continue from.
    forbidden: Vec<Forbidden>,
    callers: Vec<u32>,
    /// The nodes of its entry items.
    nodes: Vec<u32>,
    /// For each tag the calls that enter the procedure, if it is specific to them.
    known_calls: Option<Vec<Vec<u32>>>,
}

/// An exit that no call may continue from, because the procedure itself continues.
#[derive(Clone, Copy)]
struct Forbidden {
    /// The procedure that continues.
    procedure: u32,
    outcome: u32,
    /// The number of the continuing items among the moves; `None` at the end of the text.
    inner: Option<u32>,
    witness: Witness,
}

/// The key of a procedure: its entry items and, if its callers are known, the calls by tag.
type Entry = (Vec<Item>, Option<Vec<Vec<u32>>>);

/// By tag of the called procedure: tags of the calling procedure, and call nodes.
type Frame = Vec<Vec<(u32, u32)>>;

/// A call state.
struct CallState {
    /// The calling procedure.
    within: u32,
    procedure: u32,
    frame: Frame,
    /// By exit.
    returns: FastMap<u32, Target>,
    witness: Witness,
}

/// The range of a state's runs.
#[derive(Clone, Copy, Default)]
struct Row {
    from: usize,
    to: usize,
    accepting: bool,
}

/// The pending calls of an item, or the call from which it returned early.
#[derive(Clone, Copy, Default)]
struct PendingCalls {
    /// The pending calls without the last one.
    before: u32,
    call: u32,
    /// The number of pending calls; they follow the early return, if any.
    length: usize,
    /// The call from which the item returned, while its frame is still on the stack.
    early_return: Option<u32>,
}

/// The items reachable without reading.
#[derive(Default)]
struct Closed {
    /// Items that read a byte, close a terminal, end the text or return; sorted.
    items: Vec<Item>,
}

struct Subsets<'n, 'm> {
    network: &'n TransitionNetwork<'m>,
    positions: usize,
    /// The first entry has no pending calls.
    pending_calls: Vec<PendingCalls>,
    pending_of: FastMap<(u32, u32, bool), u32>,
    /// The entry nodes of procedures with known callers.
    special: &'n FastMap<u32, ()>,
    /// The states: the procedure, and the items.
    sets: Interner<u32>,
    witnesses: Vec<Witness>,
    /// Whether a state is the start of a procedure.
    begins: Vec<bool>,
    rows: Vec<Row>,
    /// The runs of all rows, contiguous.
    runs: Vec<(u8, u8, Target)>,
    procedures: Vec<Procedure>,
    procedure_of: FastMap<Entry, u32>,
    calls: Vec<CallState>,
    call_of: FastMap<(u32, u32, Frame), u32>,
    /// Sets of tags with their exits.
    endings: Interner<u32>,
    /// The lookahead of an exit, see [`exits`], and a set of tags.
    outcomes: Interner<u32>,
    /// The known exits of each procedure, and the forbidden ones.
    known_exits: FastMap<(u32, u32), ()>,
    known_forbidden: FastMap<(u32, u32, Option<u32>), ()>,
    /// Calls with an exit and no target yet.
    owed: Vec<(u32, u32)>,
    /// Calls not yet checked to stop at a forbidden exit.
    unchecked: Vec<(u32, Forbidden)>,
    /// The continuations after a call, by a set of ended tags.
    aheads: FastMap<(u32, u32), Rc<Ahead>>,
    /// Approximate memory of `aheads`.
    ahead_bytes: usize,
    /// Approximate memory of the exits of procedures, and of the targets of calls.
    exit_bytes: usize,
    /// States with ended counted parts, and the states after the parts; see [`forks`].
    forks: Vec<(u32, u32)>,
    /// The bytes, divided where the runs of any node start and end.
    cuts: Cuts,
    /// The maximum number of distinct pending calls of a state.
    widest: usize,
    /// The witness of the step in progress.
    now: Witness,
    /// The procedure and items after a byte, and their target.
    moves: Interner<u32>,
    moved: Vec<Target>,
    /// The same for one item without tag and pending calls, by procedure and node.
    moved_alone: FastMap<u64, Target>,
    /// The nodes seen in a closure, in items without tag or pending calls.
    seen: StampSet,
    /// The other items seen in the closure.
    seen_others: FastMap<Item, ()>,
    work: usize,
    /// Scratch: the key of a set, and the items still to be followed.
    key: Vec<u32>,
    stack: Vec<Item>,
}

impl<'n, 'm> Subsets<'n, 'm> {
    fn new(network: &'n TransitionNetwork<'m>, positions: usize, special: &'n FastMap<u32, ()>) -> Self {
        Self {
            network,
            positions,
            pending_calls: vec![PendingCalls::default()],
            pending_of: FastMap::default(),
            special,
            sets: Interner::new(),
            witnesses: Vec::new(),
            begins: Vec::new(),
            rows: Vec::new(),
            runs: Vec::new(),
            procedures: vec![Procedure::default()],
            procedure_of: FastMap::default(),
            calls: Vec::new(),
            call_of: FastMap::default(),
            endings: Interner::new(),
            outcomes: Interner::new(),
            known_exits: FastMap::default(),
            known_forbidden: FastMap::default(),
            aheads: FastMap::default(),
            ahead_bytes: 0,
            exit_bytes: 0,
            owed: Vec::new(),
            unchecked: Vec::new(),
            forks: Vec::new(),
            cuts: network.cuts(),
            widest: 1,
            now: Witness::Start,
            moves: Interner::new(),
            moved: Vec::new(),
            moved_alone: FastMap::default(),
            key: Vec::new(),
            stack: Vec::new(),
            seen: StampSet::new(network.node_count()),
            seen_others: FastMap::default(),
            work: 0,
        }
    }

    fn run(mut self, start: u32) -> Outcome<Option<(SparseAutomaton, usize)>> {
        let first = Item { tag: 0, pending: 0, node: start };
        // Even if all items have pending calls, the start is no call.
        let Closed { items } = self.closed(0, &[first])?;
        if items.is_empty() {
            return Ok(None);
        }
        let start = self.state(0, &items, Witness::Start)?;
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
        // The sets take more memory than the automaton built from them.
        drop(self);
        let determinized = if done.calls.is_empty() {
            SparseDfa::new(&done.rows, done.start, meter)?.map(SparseAutomaton::Finite)
        } else {
            done.pushdown(meter)?.map(SparseAutomaton::Pushdown)
        };
        Ok(determinized.map(|determinized| (determinized, widest)))
    }

    /// The deterministic automaton.
    fn finish(&self, start: u32) -> Outcome<UntrimmedPda> {
        let merged = self.merged()?;
        if merged.max_exits > MAX_EXITS {
            return Err(Error::limit(Limit::Exits(MAX_EXITS)).into());
        }
        // States, then calls, then RETURN states, numbered from 1 on.
        let calls = 1 + self.rows.len() as u32;
        let returning = calls + self.calls.len() as u32;
        let number = |procedure: u32, target: Target| match target {
            Target::Dead => 0,
            Target::State(state) => 1 + state,
            Target::Call(call) => calls + call,
            Target::Return(outcome) => {
                merged.number(procedure, outcome).map_or(0, |outcome| returning + outcome)
            }
        };
        let mut rows = Rows::with_capacity(1 + self.rows.len(), self.runs.len());
        for (state, row) in self.rows.iter().enumerate() {
            let procedure = self.sets.get(state as u32)[0];
            let runs = self.runs[row.from..row.to].iter();
            rows.push(row.accepting, runs.map(|&(first, last, to)| (first, last, number(procedure, to))));
        }
        rows.reserve(self.calls.len() + merged.max_exits);
        let call = |call: &CallState| {
            let mut returns = vec![0; merged.max_exits];
            for (&outcome, &to) in &call.returns {
                if let Some(outcome) = merged.number(call.procedure, outcome) {
                    returns[outcome as usize] = number(call.within, to);
                }
            }
            Call { enter: 1 + self.procedures[call.procedure as usize].enter, returns }
        };
        Ok(UntrimmedPda {
            rows,
            start: 1 + start,
            calls: self.calls.iter().zip(calls..).map(|(of, state)| (state, call(of))).collect(),
            returning: (returning..).take(merged.max_exits).collect(),
        })
    }

    fn tick(&mut self, work: usize) -> Result<()> {
        self.work += work + 1;
        if self.work > 1 << 12 {
            self.work = 0;
            self.network.meter().time()?;
            self.check_bytes()?;
        }
        Ok(())
    }

    /// Checks the memory of the states, exits and calls against the limit.
    fn check_bytes(&self) -> Result<()> {
        let sets = self.sets.bytes() + self.moves.bytes() + self.endings.bytes() + self.outcomes.bytes();
        let queues = self.owed.capacity() * size_of::<(u32, u32)>()
            + self.unchecked.capacity() * size_of::<(u32, Forbidden)>();
        let rows = self.rows.len() * ROW_BYTES;
        self.network.meter().bytes(sets + queues + rows + self.exit_bytes + self.ahead_bytes)
    }
}
