//! The distance to the end in tokens, from the distance in bytes.
//!
//! A byte-level constraint is compiled with distances in bytes. The distance of a state in tokens
//! is one more than the least distance of the states that a token leads to, over tokens that lead
//! to fewer bytes: those along any shortest text, and some along texts that are a few bytes longer.
//! It is an upper bound on the exact least number, and never more than the distance in bytes.
//!
//! The distance falls by at least one along some token of each state, so a row that starts with at
//! least the distance of its position can always end. The distances are computed on demand: masks
//! compare a budget with the distance in bytes first, and most budgets reach it.
//!
//! Example: from `{"a":` a shortest text is `0}`. With the tokens `0`, `}` and `7}`, the distance
//! in bytes is 3 and the distance in tokens is 2, each including the end of sequence.
//!
//! With calls, a token enters procedures and returns from them, but it ends at the RETURN of the
//! procedure that it begins in: the text after it depends on the stack.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use super::rows::{TransitionView, entered};
use super::{BudgetInterval, ConstraintParts, StateId, TokenReading};
use burn_dfa_automata::{FARTHEST, FastMap};
use burn_dfa_common::threads;
use burn_dfa_vocabulary::{Symbols, TokenId, Trie, symbol};

/// The distances of a compiled constraint in tokens, or how to find them.
#[derive(Default)]
pub struct Distances {
    source: Source,
    /// `[states, exits]`: one more than the distance, or 0 if it is not computed yet.
    known: OnceLock<Box<[AtomicU32]>>,
}

/// The source of distances in tokens.
#[derive(Clone, Default)]
enum Source {
    /// The steps of the bound are tokens.
    Exact,
    /// The tokens that lead to fewer bytes.
    #[default]
    Paths,
    /// The constraint that this constraint was pruned from.
    Pruned(Arc<ConstraintParts>),
    /// An artifact.
    Stored(Arc<[u32]>),
}

impl Distances {
    /// The distances of a constraint whose bound counts tokens.
    pub(super) fn exact() -> Self {
        Source::Exact.into()
    }

    /// The distances of the constraint that a constraint was pruned from.
    pub(super) fn pruned_from(parts: &Arc<ConstraintParts>) -> Self {
        Source::Pruned(Arc::clone(parts)).into()
    }

    /// Whether the distances follow from the constraint and its own vocabulary.
    pub(super) fn are_own(&self) -> bool {
        matches!(self.source, Source::Exact | Source::Paths)
    }

    /// Distances from an artifact, `[states, exits]`.
    pub(super) fn stored(distances: Vec<u32>) -> Self {
        Source::Stored(distances.into()).into()
    }
}

impl From<Source> for Distances {
    fn from(source: Source) -> Self {
        Self { source, known: OnceLock::new() }
    }
}

impl Clone for Distances {
    /// Computed distances are not copied.
    fn clone(&self) -> Self {
        self.source.clone().into()
    }
}

impl PartialEq for Distances {
    /// Distances follow from the other parts of a constraint.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Distances {}

/// How a pair continues.
enum Step {
    /// It reads a byte or a special token.
    Read,
    /// A call: the pair entered, and the pair that continues after the procedure.
    Call(usize, usize),
    /// The RETURN of the procedure.
    Return,
    /// No step leads nearer to the exit: the bound holds.
    Bound,
}

/// The maximum number of trie nodes that are visited to find the distance of a pair: along the
/// shortest texts, and along longer texts.
const MAX_VISITS: usize = 1_000;
const MAX_LATER: usize = 32;

/// The maximum number of bytes by which a text exceeds the shortest one.
const EXCESS: u32 = 4;

/// The least number of pairs per thread.
const SHARED_PAIRS: usize = 512;

/// Computes distances. A *pair* is a state and an exit: the state times the number of exits, plus
/// the exit.
struct Paths<'a> {
    parts: &'a ConstraintParts,
    trie: &'a Trie,
    exits: usize,
    known: &'a [AtomicU32],
    /// Places whose distances are required; the distance of the last one comes first.
    open: Vec<usize>,
    /// The pairs that calls return to, each with the index of the one below; the first entry is
    /// none.
    returns: Vec<(usize, usize)>,
    /// Prefixes along the shortest texts, and of longer texts, which come later.
    visits: Vec<Visit>,
    later: Vec<Visit>,
    /// The symbols that lead nearer to the exit, by pair.
    nearer: FastMap<usize, Symbols>,
}

/// A prefix of tokens.
#[derive(Clone, Copy)]
struct Visit {
    node: Option<usize>,
    length: u32,
    at: Landing,
}

/// A byte of a token.
#[derive(Clone, Copy)]
enum Edge {
    /// On a shortest text.
    Shortest(Landing),
    /// On a longer text. A token may end here.
    Longer(Landing),
    /// On a longer text. No token ends here: one of some symbols must follow.
    Before(Landing, Symbols),
}

/// A pair, and the pairs that the calls before it return to.
#[derive(Clone, Copy)]
struct Landing {
    pair: usize,
    /// An index of [`Paths::returns`].
    returns: usize,
    /// The number of these pairs.
    depth: u32,
    /// The sum of their bounds.
    after: u32,
}

impl ConstraintParts {
    fn exits(&self) -> usize {
        self.calls.as_ref().map_or(1, |calls| calls.exits)
    }

    /// The bound on the distance of a pair, and the frames that the path adds to the stack.
    fn bound_of(&self, pair: usize) -> (u32, u32) {
        match &self.calls {
            None => (self.bound_to_end[pair], 0),
            Some(calls) => (calls.bytes_to_exit[pair], calls.frames[pair]),
        }
    }

    /// The number of tokens from a state to an exit of its procedure; without calls, exit 0 is the
    /// end. `u32::MAX` if no path exists.
    pub fn distance(&self, state: StateId, exit: usize) -> u32 {
        self.distance_of(state.index() * self.exits() + exit)
    }

    fn distance_of(&self, pair: usize) -> u32 {
        let bound = self.bound_of(pair).0;
        // One step is one token.
        if bound <= 1 || bound >= FARTHEST {
            return bound;
        }
        match &self.distances.source {
            Source::Exact => bound,
            Source::Pruned(parts) => parts.distance_of(pair),
            Source::Stored(distances) => distances[pair],
            Source::Paths => {
                let known = self.distances.known.get();
                let known = known.and_then(|known| known[pair].load(Ordering::Relaxed).checked_sub(1));
                known.or_else(|| Some(Paths::new(self)?.find(pair))).unwrap_or(bound)
            }
        }
    }

    /// The numbers of tokens from all states to all exits, `[states, exits]`.
    pub fn all_distances(&self) -> Vec<u32> {
        let mut distances = vec![0; self.bound_to_end.len() * self.exits()];
        let own = matches!(self.distances.source, Source::Paths);
        threads::rows(&mut distances, 1, threads::available(), SHARED_PAIRS, |first, distances| {
            let mut paths = if own { Paths::new(self) } else { None };
            for (pair, distance) in (first..).zip(distances) {
                *distance = match &mut paths {
                    Some(paths) => paths.find(pair),
                    None => self.distance_of(pair),
                };
            }
        });
        distances
    }

    /// See [`CompiledConstraint::tokens_to_end`].
    pub(super) fn tokens_to_end(&self, state: StateId) -> u32 {
        (0..self.exits()).map(|exit| self.distance(state, exit)).min().unwrap_or(u32::MAX)
    }

    /// An upper bound on [`to_end`](Self::to_end) that needs no distances in tokens.
    #[inline]
    fn bound(&self, state: StateId, frames: &[u32]) -> u32 {
        match &self.calls {
            None => self.bound_to_end[state.index()],
            Some(calls) => calls.bound(state, frames),
        }
    }

    /// The number of tokens to the end from the start; 0 if it is at most `budget` by the bound
    /// alone, which needs no search.
    #[doc(hidden)]
    pub fn needed_beyond(&self, budget: usize) -> usize {
        if self.bound(self.start, &[]) as usize <= budget {
            return 0;
        }
        self.tokens_to_end(self.start) as usize
    }

    /// The number of tokens to the end from a plain state, with the frames of a position on the
    /// stack; a number beyond all budgets if no path exists.
    #[doc(hidden)]
    pub fn to_end(&self, state: StateId, frames: &[u32]) -> u32 {
        match &self.calls {
            None => self.distance(state, 0),
            Some(calls) => calls.to_end(self, state, frames),
        }
    }

    /// Whether the end is reachable from a plain state in the tokens left, with the frames of a
    /// position on the stack.
    #[inline]
    pub(crate) fn reach(&self, state: StateId, frames: &[u32], left: &mut BudgetInterval) -> bool {
        left.reach_within(self.bound(state, frames), || self.to_end(state, frames))
    }
}

impl<'a> Paths<'a> {
    /// `None` for a constraint that does not read tokens byte by byte.
    fn new(parts: &'a ConstraintParts) -> Option<Self> {
        let TokenReading::Bytes { vocabulary, .. } = &parts.reading else { return None };
        let exits = parts.exits();
        let pairs = parts.bound_to_end.len() * exits;
        let known = parts
            .distances
            .known
            .get_or_init(|| std::iter::repeat_with(AtomicU32::default).take(pairs).collect());
        let trie = vocabulary.trie();
        Some(Self {
            parts,
            trie,
            exits,
            known,
            open: Vec::new(),
            returns: Vec::new(),
            visits: Vec::new(),
            later: Vec::new(),
            nearer: FastMap::default(),
        })
    }

    /// The distance of a pair, if it needs no computation.
    fn known(&self, pair: usize) -> Option<u32> {
        let bound = self.parts.bound_of(pair).0;
        if bound <= 1 || bound >= FARTHEST {
            return Some(bound);
        }
        self.known[pair].load(Ordering::Relaxed).checked_sub(1)
    }

    /// The distance of a pair, after the distances of the pairs on its path. The pairs form a
    /// list and not a recursion: a path may have as many bytes as the constraint has states.
    fn find(&mut self, pair: usize) -> u32 {
        loop {
            if let Some(distance) = self.known(pair) {
                self.open.clear();
                return distance;
            }
            let next = self.open.last().copied().unwrap_or(pair);
            if self.known(next).is_some() {
                self.open.pop();
            } else if let Some(distance) = self.computed(next) {
                self.known[next].store(distance.saturating_add(1), Ordering::Relaxed);
            }
        }
    }

    /// The distance of a pair, if all distances that it depends on are known; else the first
    /// unknown ones are opened. Each of these pairs has fewer bytes or is a pair of an entered
    /// procedure.
    fn computed(&mut self, pair: usize) -> Option<u32> {
        let (bytes, frames) = self.parts.bound_of(pair);
        self.returns.clear();
        self.returns.push((0, 0));
        let start = Landing { pair, returns: 0, depth: 0, after: 0 };
        match self.step(pair) {
            Step::Bound => return Some(bytes),
            Step::Return => return Some(0),
            Step::Call(..) => {
                return match self.entered(start) {
                    Some(at) => self.sum(at),
                    None => Some(bytes),
                };
            }
            Step::Read => {}
        }
        let special: Vec<u32> = self.parts.special().of(&self.parts.next, self.state(pair)).to_vec();
        let mut least = bytes;
        for to in special {
            let at = Landing { pair: self.with_state(pair, StateId(to)), ..start };
            if to != StateId::DEAD.0 && self.frames(at) <= frames {
                least = least.min(self.after(at, bytes)?);
            }
        }
        let shortest = self.parts.shortest(self.state(pair)) as u32;
        let (mut visited, mut later) = (0, 0);
        self.visits.clear();
        self.later.clear();
        self.visits.push(Visit { node: None, length: 0, at: start });
        while let Some(visit) = self.next(&mut visited, &mut later) {
            let is_token = visit.node.is_some_and(|node| self.parts.has_text(self.trie.tokens(node)));
            if is_token && visit.length >= shortest {
                least = least.min(self.after(visit.at, bytes)?);
            }
            if let Some(at) = self.entered(visit.at) {
                self.read(Visit { at, ..visit }, (bytes.saturating_sub(visit.length + 1), frames));
            }
        }
        Some(least)
    }

    /// The next visit, within the limits on their number.
    fn next(&mut self, visited: &mut usize, later: &mut usize) -> Option<Visit> {
        if *visited < MAX_VISITS
            && let Some(visit) = self.visits.pop()
        {
            *visited += 1;
            return Some(visit);
        }
        *later += 1;
        if *later <= MAX_LATER { self.later.pop() } else { None }
    }

    /// The distance by a token that leads to fewer than `bytes`, `bytes` for another token; `None`
    /// if it is not known yet.
    fn after(&mut self, at: Landing, bytes: u32) -> Option<u32> {
        if self.bound(at) < bytes { Some(self.sum(at)?.saturating_add(1)) } else { Some(bytes) }
    }

    /// Adds the visits of the children of a node, from a landing that reads bytes; of these, the
    /// visits whose path has at most `max` more bytes and frames.
    fn read(&mut self, from: Visit, max: (u32, u32)) {
        let trie = self.trie;
        let (mut children, first) = (trie.children(from.node), self.visits.len());
        match self.parts.transitions(self.state(from.at.pair)) {
            TransitionView::Runs(runs) => {
                for run in runs {
                    let bytes = (run.first, run.last);
                    // Most runs have no child below the root.
                    let Some((mut node, _)) = trie.next_child_within(&mut children, bytes) else { continue };
                    let Some(edge) = self.edge(from, entered(run), max) else { continue };
                    loop {
                        self.visit(from, node, edge);
                        let Some((next, _)) = trie.next_child_within(&mut children, bytes) else { break };
                        node = next;
                    }
                }
            }
            transitions @ TransitionView::Row(..) => {
                while let Some((node, byte)) = trie.next_child(&mut children, |_| true) {
                    if let Some(edge) = self.edge(from, transitions.after(byte), max) {
                        self.visit(from, node, edge);
                    }
                }
            }
        }
        self.visits[first..].reverse();
    }

    /// The edge to a state; `None` if its path is too long.
    fn edge(&mut self, from: Visit, to: StateId, (bytes, frames): (u32, u32)) -> Option<Edge> {
        let at = Landing { pair: self.with_state(from.at.pair, to), ..from.at };
        let bound = self.bound(at);
        if to == StateId::DEAD || bound > bytes.saturating_add(EXCESS) || self.frames(at) > frames {
            return None;
        }
        Some(if bound <= bytes {
            Edge::Shortest(at)
        } else if bound <= bytes.saturating_add(from.length) {
            Edge::Longer(at)
        } else {
            Edge::Before(at, self.nearer(at.pair))
        })
    }

    /// Adds the visit of a node by an edge.
    fn visit(&mut self, from: Visit, node: usize, edge: Edge) {
        let visit = |at| Visit { node: Some(node), length: from.length + 1, at };
        match edge {
            Edge::Shortest(at) => self.visits.push(visit(at)),
            Edge::Longer(at) => self.later.push(visit(at)),
            Edge::Before(at, symbols) if self.trie.below(node) & symbols != 0 => self.later.push(visit(at)),
            Edge::Before(..) => {}
        }
    }

    /// The symbols of the bytes that lead nearer to the exit of a pair; all at a call or a RETURN.
    fn nearer(&mut self, pair: usize) -> Symbols {
        if let Some(&symbols) = self.nearer.get(&pair) {
            return symbols;
        }
        let symbols = match self.step(pair) {
            Step::Read => {
                let (transitions, bytes) =
                    (self.parts.transitions(self.state(pair)), self.parts.bound_of(pair).0);
                let is_nearer =
                    |to| to != StateId::DEAD && self.parts.bound_of(self.with_state(pair, to)).0 < bytes;
                match transitions {
                    TransitionView::Runs(runs) => {
                        let runs = runs.iter().filter(|run| is_nearer(entered(run)));
                        runs.flat_map(|run| run.first..=run.last)
                            .fold(0, |symbols, byte| symbols | 1 << symbol(byte))
                    }
                    transitions => {
                        let bytes = (0..=u8::MAX).filter(|&byte| is_nearer(transitions.after(byte)));
                        bytes.fold(0, |symbols, byte| symbols | 1 << symbol(byte))
                    }
                }
            }
            _ => Symbols::MAX,
        };
        self.nearer.insert(pair, symbols);
        symbols
    }

    fn state(&self, pair: usize) -> StateId {
        StateId((pair / self.exits) as u32)
    }

    /// The pair of another state with the same exit.
    fn with_state(&self, pair: usize, state: StateId) -> usize {
        state.index() * self.exits + pair % self.exits
    }

    /// The bound on the bytes from a landing to the exit of the pair that it began at.
    fn bound(&self, at: Landing) -> u32 {
        self.parts.bound_of(at.pair).0.saturating_add(at.after)
    }

    /// The frames that the path from a landing adds.
    fn frames(&self, at: Landing) -> u32 {
        self.parts.bound_of(at.pair).1.saturating_add(at.depth)
    }

    /// The landing after the calls and returns up to a state that reads; `None` if there is none.
    fn entered(&mut self, mut at: Landing) -> Option<Landing> {
        loop {
            match self.step(at.pair) {
                Step::Read => return Some(at),
                Step::Bound => return None,
                Step::Call(enter, to) => {
                    self.returns.push((to, at.returns));
                    let after = at.after.saturating_add(self.parts.bound_of(to).0);
                    at = Landing { pair: enter, returns: self.returns.len() - 1, depth: at.depth + 1, after };
                }
                Step::Return if at.depth == 0 => return None,
                Step::Return => {
                    let (pair, below) = self.returns[at.returns];
                    let after = at.after.saturating_sub(self.parts.bound_of(pair).0);
                    at = Landing { pair, returns: below, depth: at.depth - 1, after };
                }
            }
        }
    }

    /// The sum of the distances of a landing and of the pairs that calls return to. Opens each
    /// pair with an unknown distance.
    fn sum(&mut self, at: Landing) -> Option<u32> {
        let (mut sum, mut pair, mut below) = (Some(0u32), at.pair, at.returns);
        for _ in 0..=at.depth {
            let distance = self.known(pair);
            if distance.is_none() {
                self.open.push(pair);
            }
            sum = sum.zip(distance).map(|(sum, distance)| sum.saturating_add(distance));
            (pair, below) = self.returns[below];
        }
        sum
    }

    fn step(&self, pair: usize) -> Step {
        let (parts, exits) = (self.parts, self.exits);
        let (state, exit) = (self.state(pair), pair % exits);
        let (bytes, frames) = parts.bound_of(pair);
        if state.0 < StateId::RESERVED || bytes >= FARTHEST {
            return Step::Bound;
        }
        let Some(calls) = &parts.calls else { return Step::Read };
        match calls.jump(state.0) {
            [0, ..] => Step::Read,
            [enter, returns @ ..] if *enter > 0 => {
                let returns = returns.iter().enumerate().filter(|&(_, &to)| to != 0);
                let mut paths = returns
                    .map(|(outcome, &to)| (*enter as usize * exits + outcome, to as usize * exits + exit));
                let is_shortest = |&(enter, to): &(usize, usize)| {
                    let [procedure, rest] = [enter, to].map(|pair| parts.bound_of(pair));
                    let is_path = procedure.0 > 0 && procedure.0.saturating_add(rest.0) == bytes;
                    is_path && procedure.1 < frames && rest.1 <= frames
                };
                paths.find(is_shortest).map_or(Step::Bound, |(enter, to)| Step::Call(enter, to))
            }
            _ if bytes == 0 => Step::Return,
            _ => Step::Bound,
        }
    }
}

impl ConstraintParts {
    /// Whether any of some tokens is read as text.
    fn has_text(&self, tokens: &[TokenId]) -> bool {
        let special = self.special();
        match special.tokens() {
            [] => !tokens.is_empty(),
            _ => tokens.iter().any(|&token| special.column(token).is_none()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompiledConstraint, Constraint, ForcedText, Limits, RowPosition, Vocabulary};
    use burn_dfa_constraints::Syntax;

    /// All bytes, words from id 256 on, and the end of sequence.
    fn vocabulary(words: &[&str]) -> Vocabulary {
        let bytes = (0..=u8::MAX).map(|byte| Some(vec![byte]));
        let words = words.iter().map(|word| Some(word.as_bytes().to_vec()));
        let all: Vec<_> = bytes.chain(words).chain([None]).collect();
        let end = TokenId(all.len() as u32 - 1);
        Vocabulary::from_bytes(all).unwrap().with_eos([end]).unwrap()
    }

    fn compiled(constraint: &Constraint, words: &[&str], forced: ForcedText) -> CompiledConstraint {
        let limits = Limits::default().with_forced_text(forced);
        CompiledConstraint::compile_byte_level(constraint, &vocabulary(words), &limits).unwrap()
    }

    #[test]
    fn tokens_follow_texts_that_are_short_in_bytes() {
        let regex = |text: &str| Constraint::regex(text).unwrap();
        let least = |text: &str, words: &[&str]| {
            let constraint = compiled(&regex(text), words, ForcedText::AnyToken);
            constraint.tokens_to_end(constraint.start())
        };
        assert_eq!(least(r#"\{"a":0\}"#, &["0}"]), 7);
        assert_eq!(least(r#"\{"a":0\}"#, &["0}", "{\"", "\":"]), 5);
        // The longest token is not always on the path with the fewest tokens.
        assert_eq!(least("abcdef", &["abcd", "abc", "def"]), 3);
        assert_eq!(least("a{20}", &["aaaa"]), 6);
        assert_eq!(least("a*", &["aaaa"]), 1);
        // Among the shortest texts, one with longer tokens.
        assert_eq!(least("[0-9]{4}x", &["73", "5x"]), 4);
        // The shortest text has no token of several bytes, and a longer text has one.
        assert_eq!(least("abc|defgh", &["defgh"]), 2);
        assert_eq!(least(r#""a":[ ]?"b""#, &["\": \""]), 6);
    }

    #[test]
    fn only_legal_tokens_of_forced_text_count() {
        let words = ["abcd", "abcdx", "cdxyz", "xyz"];
        let text = Constraint::regex("abcd(xyz|yyyy)").unwrap();
        let [any, longest] = [ForcedText::AnyToken, ForcedText::Longest]
            .map(|forced| compiled(&text, &words, forced))
            .map(|constraint| constraint.tokens_to_end(constraint.start()));
        assert_eq!([any, longest], [3, 3]);
        let text = Constraint::regex("abcdxyz").unwrap();
        let constraint = compiled(&text, &words, ForcedText::Longest);
        assert_eq!(constraint.tokens_to_end(constraint.start()), 4, "`abcdx`, `y`, `z`");
    }

    #[test]
    fn paths_pass_calls_and_end_at_returns() {
        let grammar = "root ::= \"(\" root \")\" | \"[\" pair \"]\"\npair ::= \"a\" | root \",\" root";
        let constraint = Constraint::grammar(Syntax::Gbnf, grammar).unwrap();
        let compiled = compiled(&constraint, &["[a", "a]", "]", "(["], ForcedText::AnyToken);
        assert!(compiled.exits() > 0);
        let least = |at: &RowPosition| compiled.parts().to_end(at.state, &at.frames);
        let mut at = RowPosition::unlimited(compiled.start());
        assert!(least(&at) <= 4);
        for byte in b"(((([a" {
            let after = compiled.after(&at, TokenId(u32::from(*byte)));
            assert!(least(&after) <= 8 && compiled.can_end(&after), "{after:?}");
            at = after;
        }
        // All distances at once equal the distances of single states.
        let (parts, fresh) = (compiled.parts(), compiled.parts().clone());
        for (index, distance) in fresh.all_distances().into_iter().enumerate() {
            assert_eq!(parts.distance_of(index), distance);
            assert!(distance <= parts.bound_of(index).0);
        }
    }

    #[test]
    fn a_pruned_constraint_keeps_its_distances() {
        let constraint = Constraint::regex("abcdef").unwrap();
        let vocabulary = vocabulary(&["abc", "def"]);
        let compiled =
            CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &Limits::default()).unwrap();
        let pruned = compiled.prune(&vocabulary, &[TokenId(256), TokenId(258)]).unwrap();
        let states = (0..compiled.state_count() as u32).map(StateId);
        for state in states {
            assert_eq!(pruned.tokens_to_end(state), compiled.tokens_to_end(state));
        }
        assert_eq!(pruned.tokens_to_end(pruned.start()), 3);
    }
}
