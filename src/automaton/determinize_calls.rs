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

use super::network::{Network, Node, Range};
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

/// Two ways to read a text that need different stacks for ever.
#[derive(Clone, Debug)]
pub(crate) struct Conflict {
    /// What the two are part of; see [`Network::origin`].
    pub(crate) origins: [u32; 2],
    /// A text that both read.
    pub(crate) text: Vec<u8>,
    pub(crate) kind: ConflictKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConflictKind {
    /// After the text what the first calls may end, and the second go on.
    End,
    /// After the text the two are within different numbers of calls, and there are more such ways than are followed.
    Height,
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

/// A state that calls.
struct CallState {
    /// The piece that it is part of.
    within: u32,
    piece: u32,
    /// By the tag in the called piece: tags of this one, and call nodes.
    frame: Vec<Vec<(u32, u32)>>,
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
    call_of: FastMap<(u32, u32, Vec<Vec<(u32, u32)>>), u32>,
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

    /// What can be reached from `items` without reading. Calls are entered, and the items that do so have a longer lead.
    fn closed(&mut self, items: &[Item]) -> Outcome<Closed> {
        self.pass += 1;
        if self.pass == u32::MAX {
            self.seen.fill(0);
            self.pass = 1;
        }
        if !self.seen_others.is_empty() {
            self.seen_others.clear();
        }
        let mut closed = Closed::default();
        let mut stack = items.to_vec();
        while let Some(item) = stack.pop() {
            if self.was_seen(item) {
                continue;
            }
            self.tick(1)?;
            match self.network.node(item.node) {
                Node::Bytes { from, to } if from == to => {}
                Node::Bytes { .. } | Node::Close { .. } | Node::Accept => closed.items.push(item),
                Node::Union { from, to } => {
                    let branches = self.network.branches(from, to).iter();
                    stack.extend(branches.map(|&node| Item { node, ..item }));
                }
                Node::Call { enter, .. } => {
                    let Some(lead) = self.longer(item.lead, item.node) else {
                        return Err(self.too_far_ahead(item.node));
                    };
                    stack.push(Item { lead, node: enter, ..item });
                }
                Node::Return(_) if item.lead == 0 => closed.items.push(item),
                Node::Return(outcome) => {
                    let (lead, call, _) = self.leads[item.lead as usize];
                    stack.push(Item { lead, node: self.after(call, outcome), ..item });
                }
            }
        }
        closed.items.sort_unstable();
        Ok(closed)
    }

    /// Whether an item was seen in this pass, as it is from now on.
    fn was_seen(&mut self, item: Item) -> bool {
        if item.tag == 0 && item.lead == 0 {
            return std::mem::replace(&mut self.seen[item.node as usize], self.pass) == self.pass;
        }
        self.seen_others.insert(item, ()).is_some()
    }

    /// Where a call goes on by an outcome.
    fn after(&self, call: u32, outcome: u32) -> u32 {
        let Node::Call { from, to, .. } = self.network.node(call) else { return Network::DEAD };
        self.network.branches(from, to).get(outcome as usize).copied().unwrap_or(Network::DEAD)
    }

    /// `lead` and one more call; `None` where that is too long.
    fn longer(&mut self, lead: u32, call: u32) -> Option<u32> {
        let length = self.leads[lead as usize].2 + 1;
        if length > LONGEST_LEAD {
            return None;
        }
        let leads = &mut self.leads;
        Some(*self.lead_of.entry((lead, call)).or_insert_with(|| {
            leads.push((lead, call, length));
            leads.len() as u32 - 1
        }))
    }

    /// The calls of a lead, the outermost first.
    fn calls_of(&self, mut lead: u32) -> Vec<u32> {
        let mut calls = Vec::new();
        while lead != 0 {
            let (rest, call, _) = self.leads[lead as usize];
            calls.push(call);
            lead = rest;
        }
        calls.reverse();
        calls
    }

    /// The items behind the terminals that end.
    fn behind(&mut self, items: &[Item]) -> Outcome<Closed> {
        let ended: Vec<Item> = items
            .iter()
            .filter_map(|item| match self.network.node(item.node) {
                Node::Close { next, .. } => Some(Item { node: next, ..*item }),
                _ => None,
            })
            .collect();
        self.closed(&ended)
    }

    fn reads(&self, item: &Item) -> bool {
        matches!(self.network.node(item.node), Node::Bytes { .. })
    }

    fn closes(&self, item: &Item) -> bool {
        matches!(self.network.node(item.node), Node::Close { .. })
    }

    fn is_lazy(&self, item: &Item) -> bool {
        matches!(self.network.node(item.node), Node::Close { lazy: true, .. })
    }

    fn returns(&self, item: &Item) -> bool {
        matches!(self.network.node(item.node), Node::Return(_))
    }

    /// Where a byte leads that leads to `items`, in a piece.
    fn target(&mut self, piece: u32, items: &[Item], story: Story) -> Outcome<Target> {
        self.now = story;
        let mut items = self.closed(items)?.items;
        // A lazy terminal ends now, and those beside it are given up.
        if items.iter().any(|item| self.is_lazy(item)) {
            items.retain(|item| self.is_lazy(item));
        }
        // Terminals of which none can go on end now.
        while !items.is_empty() && !items.iter().any(|item| self.reads(item)) {
            if !items.iter().any(|item| self.closes(item)) {
                break;
            }
            let mut rest = self.behind(&items)?.items;
            rest.extend(items.iter().filter(|item| !self.closes(item)));
            rest.sort_unstable();
            rest.dedup();
            items = rest;
        }
        self.settled(piece, items, story)
    }

    /// Where closed items lead.
    fn settled(&mut self, piece: u32, items: Vec<Item>, story: Story) -> Outcome<Target> {
        if items.is_empty() {
            return Ok(Target::Dead);
        }
        if let Some(&ending) = items.iter().find(|item| self.returns(item)) {
            if let Some(&other) = items.iter().find(|item| !self.returns(item)) {
                return Err(self.may_end(piece, ending, Some(other), story));
            }
            let outcome = items.iter().flat_map(|item| match self.network.node(item.node) {
                Node::Return(outcome) => [item.tag, outcome],
                _ => [item.tag, 0],
            });
            let outcome = outcome.collect::<Vec<_>>();
            let outcome = self.outcomes.intern(&outcome).0;
            return Ok(Target::Return(outcome));
        }
        if items.iter().all(|item| item.lead != 0) {
            return self.called(piece, &items, story).map(Target::Call);
        }
        self.state(piece, &items, story).map(Target::State)
    }

    /// The call state of items that all have a lead.
    fn called(&mut self, within: u32, items: &[Item], story: Story) -> Outcome<u32> {
        // What was entered by each outermost call.
        let mut entered: Vec<((u32, u32), Vec<(Vec<u32>, u32)>)> = Vec::new();
        for item in items {
            let calls = self.calls_of(item.lead);
            let by = (item.tag, calls[0]);
            let way = (calls[1..].to_vec(), item.node);
            match entered.iter_mut().find(|(known, _)| *known == by) {
                Some((_, ways)) => ways.push(way),
                None => entered.push((by, vec![way])),
            }
        }
        for (_, ways) in &mut entered {
            ways.sort_unstable();
        }
        // Calls that entered the same are one.
        entered.sort_unstable_by(|a, b| (&a.1, a.0).cmp(&(&b.1, b.0)));
        let mut frame: Vec<Vec<(u32, u32)>> = Vec::new();
        let mut entry = Vec::new();
        let mut last: Option<&Vec<(Vec<u32>, u32)>> = None;
        for (by, ways) in &entered {
            if last == Some(ways) {
                if let Some(calls) = frame.last_mut() {
                    calls.push(*by);
                }
                continue;
            }
            last = Some(ways);
            let tag = frame.len() as u32;
            frame.push(vec![*by]);
            for (calls, node) in ways {
                let lead = calls.iter().try_fold(0, |lead, &call| self.longer(lead, call)).unwrap_or(0);
                entry.push(Item { tag, lead, node: *node });
            }
        }
        entry.sort_unstable();
        let piece = self.piece(entry, story)?;
        let key = (within, piece, frame.clone());
        if let Some(&known) = self.call_of.get(&key) {
            return Ok(known);
        }
        let call = self.calls.len() as u32;
        self.call_of.insert(key, call);
        self.calls.push(CallState { within, piece, frame, returns: FastMap::default(), story });
        self.pieces[piece as usize].callers.push(call);
        for outcome in self.pieces[piece as usize].outcomes.clone() {
            self.returned(call, outcome)?;
        }
        Ok(call)
    }

    /// The piece that is entered with these items.
    fn piece(&mut self, entry: Vec<Item>, story: Story) -> Outcome<u32> {
        if let Some(&known) = self.piece_of.get(&entry) {
            return Ok(known);
        }
        let piece = self.pieces.len() as u32;
        self.piece_of.insert(entry.clone(), piece);
        self.pieces.push(Piece { enter: 0, outcomes: Vec::new(), met: Vec::new(), callers: Vec::new() });
        // Even if all items have a lead still: no call enters another one, which goes on the stack after the next byte.
        let enter = self.state(piece, &entry, story)?;
        self.begins[enter as usize] = true;
        self.pieces[piece as usize].enter = enter;
        Ok(piece)
    }

    /// Works out where a call goes on by an outcome.
    fn returned(&mut self, call: u32, outcome: u32) -> Outcome<()> {
        let CallState { within, piece, ref frame, ref returns, .. } = self.calls[call as usize];
        if returns.contains_key(&outcome) {
            return Ok(());
        }
        let mut items = Vec::new();
        for ended in self.outcomes.get(outcome).chunks_exact(2) {
            let calls = frame[ended[0] as usize].iter();
            items.extend(calls.map(|&(tag, node)| Item { tag, lead: 0, node: self.after(node, ended[1]) }));
        }
        let of = &self.pieces[piece as usize];
        let at = of.outcomes.iter().position(|known| *known == outcome).unwrap_or(0);
        let (from, byte) = of.met[at];
        let target = self.target(within, &items, Story::After { call, from, byte })?;
        if let Target::Return(outcome) = target {
            self.ends(within, outcome, from, byte);
        }
        self.calls[call as usize].returns.insert(outcome, target);
        Ok(())
    }

    /// Notes that a piece ends with an outcome.
    fn ends(&mut self, piece: u32, outcome: u32, from: u32, byte: u8) {
        let of = &mut self.pieces[piece as usize];
        if !of.outcomes.contains(&outcome) {
            of.outcomes.push(outcome);
            of.met.push((from, byte));
            self.news.push((piece, outcome));
        }
    }

    /// The state of some items in a piece.
    fn state(&mut self, piece: u32, items: &[Item], story: Story) -> Outcome<u32> {
        let mut leads: Vec<u32> = items.iter().map(|item| item.lead).collect();
        leads.sort_unstable();
        leads.dedup();
        self.widest = self.widest.max(leads.len());
        if leads.len() > self.positions {
            let of = |lead| {
                items.iter().find(|item| item.lead == lead).map_or(0, |item| self.network.origin(item.node))
            };
            let origins = [of(leads[0]), of(leads[leads.len() - 1])];
            return Err(self.conflict(ConflictKind::Height, origins, story));
        }
        let mut key = Vec::with_capacity(1 + 3 * items.len());
        key.push(piece);
        key.extend(items.iter().flat_map(|item| [item.tag, item.lead, item.node]));
        let (state, new) = self.sets.intern(&key);
        if new {
            self.rows.push(Row::default());
            self.stories.push(story);
            self.begins.push(false);
            let meter = self.network.meter();
            meter.states(self.rows.len() + self.calls.len())?;
            if state % 256 == 0 {
                let rows = self.rows.len() * ROW_BYTES;
                meter.bytes(self.sets.bytes() + self.moves.bytes() + rows)?;
            }
        }
        Ok(state)
    }

    /// Works out where each byte leads.
    fn row(&mut self, state: u32) -> Outcome<Row> {
        self.now = self.stories[state as usize];
        let key = self.sets.get(state);
        let piece = key[0];
        let words = key[1..].chunks_exact(3);
        let items: Vec<Item> =
            words.map(|word| Item { tag: word[0], lead: word[1], node: word[2] }).collect();
        let behind =
            if items.iter().any(|item| self.closes(item)) { self.behind(&items)?.items } else { Vec::new() };
        let accepts = |item: &Item| item.node == Network::ACCEPT && item.lead == 0;
        let accepting = items.iter().chain(&behind).any(accepts);
        let ending = behind.iter().find(|item| self.returns(item)).copied();
        let (mut inner, mut outer) = (self.edges(&items), self.edges(&behind));
        let mut cuts = [false; 257];
        for (range, _) in inner.pending.iter().chain(&outer.pending) {
            cuts[range.first as usize] = true;
            cuts[range.last as usize + 1] = true;
        }
        let mut row = Row { runs: Vec::new(), accepting };
        let mut next = Vec::new();
        let mut key = Vec::new();
        let mut first = 0;
        while first < 256 {
            let last = (first..256).find(|&byte| cuts[byte + 1]).unwrap_or(255);
            let byte = first as u8;
            first = last + 1;
            inner.after(byte, &mut next);
            if next.is_empty() {
                // The terminals end before this byte.
                outer.after(byte, &mut next);
                if let Some(ending) = ending {
                    return Err(self.may_end(piece, ending, next.first().copied(), self.now));
                }
            }
            if next.is_empty() {
                continue;
            }
            next.sort_unstable();
            next.dedup();
            key.clear();
            key.push(piece);
            key.extend(next.iter().flat_map(|item| [item.tag, item.lead, item.node]));
            let (number, new) = self.moves.intern(&key);
            if new {
                self.moved.push(Target::Dead);
                let target = self.target(piece, &next, Story::Read { from: state, byte })?;
                if let Target::Return(outcome) = target {
                    self.ends(piece, outcome, state, byte);
                }
                self.moved[number as usize] = target;
            }
            self.tick(next.len())?;
            row.runs.push((byte, last as u8, self.moved[number as usize]));
        }
        Ok(row)
    }

    fn edges(&self, items: &[Item]) -> Edges {
        let mut pending = Vec::new();
        for item in items {
            if let Node::Bytes { from, to } = self.network.node(item.node) {
                pending.extend(self.network.ranges(from, to).iter().map(|&range| (range, *item)));
            }
        }
        // From the end, the first byte first.
        pending.sort_unstable_by(|a, b| b.0.first.cmp(&a.0.first));
        Edges { pending, open: Vec::new() }
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

    /// Of a way that is too many calls ahead, by one more call.
    fn too_far_ahead(&self, call: u32) -> Failure {
        let rule = self.network.origin(call);
        self.conflict(ConflictKind::Height, [rule; 2], self.now)
    }

    /// Of items that end in a piece where others do not.
    fn may_end(&self, piece: u32, ending: Item, other: Option<Item>, story: Story) -> Failure {
        let call = self.pieces[piece as usize].callers.first().map(|&call| &self.calls[call as usize]);
        let call = call.and_then(|call| call.frame.get(ending.tag as usize)?.first());
        // Where the call stands; it is not known yet where a piece is empty.
        let node = call.map_or(ending.node, |&(_, call)| call);
        let rule = self.network.origin(node);
        let other = other.map_or(rule, |other| self.network.origin(other.node));
        self.conflict(ConflictKind::End, [rule, other], story)
    }

    fn conflict(&self, kind: ConflictKind, origins: [u32; 2], story: Story) -> Failure {
        let mut text = Vec::new();
        self.tell(story, false, 64, &mut text);
        Failure::Conflict(Conflict { origins, text, kind })
    }

    /// Writes down a text that leads to where the story ends; from the beginning of the piece on if that is asked for.
    fn tell(&self, story: Story, within: bool, depth: usize, text: &mut Vec<u8>) {
        let mut bytes = Vec::new();
        let mut story = story;
        let mut front = Vec::new();
        loop {
            match story {
                Story::Start => break,
                Story::Read { from, byte } => {
                    bytes.push(byte);
                    if within && self.begins[from as usize] {
                        break;
                    }
                    story = self.stories[from as usize];
                }
                Story::After { call, from, byte } => {
                    if depth == 0 {
                        front = "…".into();
                        break;
                    }
                    let mut inner = Vec::new();
                    self.tell(Story::Read { from, byte }, true, depth - 1, &mut inner);
                    bytes.extend(inner.iter().rev());
                    story = self.calls[call as usize].story;
                }
            }
            if bytes.len() > 1000 {
                front = "…".into();
                break;
            }
        }
        text.extend(front);
        text.extend(bytes.iter().rev());
    }
}

/// The ranges of a state, read from the first byte on.
struct Edges {
    /// That begin later, the next one last.
    pending: Vec<(Range, Item)>,
    open: Vec<(Range, Item)>,
}

impl Edges {
    /// Where `byte` leads, which is greater than at the last time.
    fn after(&mut self, byte: u8, next: &mut Vec<Item>) {
        while let Some(edge) = self.pending.pop_if(|(range, _)| range.first <= byte) {
            self.open.push(edge);
        }
        self.open.retain(|(range, _)| range.last >= byte);
        next.clear();
        next.extend(self.open.iter().map(|(range, item)| Item { node: range.next, ..*item }));
    }
}

/// An automaton as rows, with calls.
struct Done {
    rows: Rows,
    start: u32,
    calls: FastMap<u32, Call>,
    returning: Vec<u32>,
}
