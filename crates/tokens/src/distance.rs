//! The distance to the end in tokens, from the distance in bytes.
//!
//! A byte-level constraint is compiled with distances in bytes. These distances define one shortest
//! byte path from each state: each byte of the path is the smallest one-byte token that leads one
//! byte nearer to the end. The distance in tokens is the least number of tokens that a text takes
//! if each token is a prefix of the byte path that remains: an upper bound on the exact least
//! number, and never more than the distance in bytes.
//!
//! The distance falls by at least one along the token chosen at each state, so a row that starts
//! with at least the distance of its position can always end. The distances are computed on
//! demand: masks compare a budget with the distance in bytes first, and most budgets reach it.
//!
//! Example: from `{"a":` the path is `0}`. With the tokens `0`, `}` and `0}`, the distance in bytes
//! is 3 and the distance in tokens is 2, each including the end of sequence.
//!
//! With calls, a path enters procedures and returns from them, but it ends at the RETURN of the
//! procedure that it begins in: the text after it depends on the stack.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use super::rows::entered;
use super::{BudgetInterval, CompiledConstraint, StateId, TableParts, TokenReading};
use burn_dfa_automata::{FARTHEST, FastMap};
use burn_dfa_vocabulary::{TokenId, Trie};

/// The distances of a compiled constraint in tokens, or how to find them.
#[derive(Default)]
pub struct Distances {
    source: Source,
    /// `[states, exits]`: one more than the distance, or 0 if it is not computed yet.
    known: OnceLock<Box<[AtomicU32]>>,
    /// The one-byte tokens of text, each the smallest of its column, and the columns.
    bytes: OnceLock<Vec<(u8, u32)>>,
}

/// The source of distances in tokens.
#[derive(Clone, Default)]
enum Source {
    /// The steps of the bound are tokens.
    Exact,
    /// The shortest byte paths.
    #[default]
    Paths,
    /// The constraint that this constraint was pruned from.
    Pruned(Arc<TableParts>),
    /// An artifact.
    Stored(Arc<[u32]>),
}

impl Distances {
    /// The distances of a constraint whose bound counts tokens.
    pub(super) fn exact() -> Self {
        Source::Exact.into()
    }

    /// The distances of the constraint that a constraint was pruned from.
    pub(super) fn pruned_from(parts: &Arc<TableParts>) -> Self {
        Source::Pruned(Arc::clone(parts)).into()
    }

    /// Whether the distances follow from the constraint and its own vocabulary.
    pub(super) fn are_own(&self) -> bool {
        matches!(self.source, Source::Exact | Source::Paths)
    }

    /// Distances from an artifact, `[states, exits]`.
    pub(super) fn stored(ways: Vec<u32>) -> Self {
        Source::Stored(ways.into()).into()
    }
}

impl From<Source> for Distances {
    fn from(source: Source) -> Self {
        Self { source, known: OnceLock::new(), bytes: OnceLock::new() }
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

/// The next step of a path to an exit.
#[derive(Clone, Copy)]
enum Step {
    /// A byte, and the place after it.
    Byte(u8, usize),
    /// A token read as a whole, and the place after it.
    Whole(usize),
    /// A call: the place entered, and the place that continues after the procedure.
    Call(usize, usize),
    /// The RETURN of the procedure.
    Return,
    /// The end of the text, or no step that leads nearer to the exit: the bound holds.
    Bound,
}

/// Computes distances. A *place* is a state and an exit: the state times the number of exits, plus
/// the exit.
struct Paths<'a> {
    parts: &'a TableParts,
    trie: &'a Trie,
    exits: usize,
    known: &'a [AtomicU32],
    steps: FastMap<usize, Step>,
    /// Places whose distances are required; the distance of the last one comes first.
    open: Vec<usize>,
}

impl TableParts {
    fn exits(&self) -> usize {
        self.calls.as_ref().map_or(1, |calls| calls.ends)
    }

    /// The bound on the distance of a place, and the frames that the path adds to the stack.
    fn bound_of(&self, place: usize) -> (u32, u32) {
        match &self.calls {
            None => (self.bound_to_end[place], 0),
            Some(calls) => (calls.ways[place], calls.frames[place]),
        }
    }

    /// The number of tokens from a state to an exit of its procedure; without calls, exit 0 is the
    /// end. `u32::MAX` if no path exists.
    pub fn way(&self, state: StateId, exit: usize) -> u32 {
        self.way_of(state.index() * self.exits() + exit)
    }

    fn way_of(&self, place: usize) -> u32 {
        let bound = self.bound_of(place).0;
        // One step is one token.
        if bound <= 1 || bound >= FARTHEST {
            return bound;
        }
        match &self.distances.source {
            Source::Exact => bound,
            Source::Pruned(parts) => parts.way_of(place),
            Source::Stored(ways) => ways[place],
            Source::Paths => {
                let known = self.distances.known.get();
                let known = known.and_then(|known| known[place].load(Ordering::Relaxed).checked_sub(1));
                known.or_else(|| Some(Paths::new(self)?.find(place))).unwrap_or(bound)
            }
        }
    }

    /// The numbers of tokens from all states to all exits, `[states, exits]`.
    pub fn all_ways(&self) -> Vec<u32> {
        let places = 0..self.bound_to_end.len() * self.exits();
        match (&self.distances.source, Paths::new(self)) {
            (Source::Paths, Some(mut paths)) => places.map(|place| paths.find(place)).collect(),
            _ => places.map(|place| self.way_of(place)).collect(),
        }
    }

    /// See [`CompiledConstraint::tokens_to_end`].
    pub(super) fn tokens_to_end(&self, state: StateId) -> u32 {
        (0..self.exits()).map(|exit| self.way(state, exit)).min().unwrap_or(u32::MAX)
    }

    /// An upper bound on [`to_end`](Self::to_end) that needs no distances in tokens.
    #[inline]
    fn bound(&self, state: StateId, frames: &[u32]) -> u32 {
        match &self.calls {
            None => self.bound_to_end[state.index()],
            Some(calls) => calls.bound(state, frames),
        }
    }

    /// The number of tokens to the end from a plain state, with the frames of a position on the
    /// stack; a number beyond all budgets if no path exists.
    #[doc(hidden)]
    pub fn to_end(&self, state: StateId, frames: &[u32]) -> u32 {
        match &self.calls {
            None => self.way(state, 0),
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
    fn new(parts: &'a TableParts) -> Option<Self> {
        let TokenReading::Bytes { vocabulary, .. } = &parts.reading else { return None };
        let exits = parts.exits();
        let places = parts.bound_to_end.len() * exits;
        let known = parts
            .distances
            .known
            .get_or_init(|| std::iter::repeat_with(AtomicU32::default).take(places).collect());
        let (steps, open) = (FastMap::default(), Vec::new());
        Some(Self { parts, trie: vocabulary.trie(), exits, known, steps, open })
    }

    /// The distance of a place, if it needs no computation.
    fn known(&self, place: usize) -> Option<u32> {
        let bound = self.parts.bound_of(place).0;
        if bound <= 1 || bound >= FARTHEST {
            return Some(bound);
        }
        self.known[place].load(Ordering::Relaxed).checked_sub(1)
    }

    /// The distance of a place, after the distances of the places on its path. The places form a
    /// list and not a recursion: a path may have as many bytes as the constraint has states.
    fn find(&mut self, place: usize) -> u32 {
        loop {
            if let Some(way) = self.known(place) {
                self.open.clear();
                return way;
            }
            let next = self.open.last().copied().unwrap_or(place);
            if self.known(next).is_some() {
                self.open.pop();
            } else if let Some(way) = self.computed(next) {
                self.known[next].store(way.saturating_add(1), Ordering::Relaxed);
            }
        }
    }

    /// The distance of a place, if all distances that it depends on are known; else these are
    /// opened. Each of these places has fewer bytes or is a place of an entered procedure.
    fn computed(&mut self, place: usize) -> Option<u32> {
        match self.step(place) {
            Step::Bound => return Some(self.parts.bound_of(place).0),
            Step::Return => return Some(0),
            Step::Whole(to) => return self.sum(to, &[]).map(|way| way.saturating_add(1)),
            Step::Call(enter, to) => return self.sum(enter, &[to]),
            Step::Byte(..) => {}
        }
        let shortest = self.parts.shortest(StateId((place / self.exits) as u32));
        let (mut at, mut returns, mut node, mut length) = (place, Vec::new(), None, 0);
        let (mut least, mut is_known) = (u32::MAX, true);
        loop {
            match self.step(at) {
                Step::Byte(byte, to) => {
                    let Some(child) = child(self.trie, node, byte) else { break };
                    (node, at, length) = (Some(child), to, length + 1);
                    if length >= shortest && self.parts.has_text(self.trie.tokens(child)) {
                        match self.sum(at, &returns) {
                            Some(way) => least = least.min(way.saturating_add(1)),
                            None => is_known = false,
                        }
                    }
                }
                Step::Call(enter, to) => {
                    returns.push(to);
                    at = enter;
                }
                Step::Return => match returns.pop() {
                    Some(to) => at = to,
                    None => break,
                },
                Step::Whole(_) | Step::Bound => break,
            }
        }
        is_known.then(|| least.min(self.parts.bound_of(place).0))
    }

    /// The sum of the distances of a place and of the places that calls return to. Opens each place
    /// with an unknown distance.
    fn sum(&mut self, at: usize, returns: &[usize]) -> Option<u32> {
        let mut sum = Some(0);
        for place in returns.iter().copied().chain([at]) {
            let way = self.known(place);
            if way.is_none() && self.open.last() != Some(&place) {
                self.open.push(place);
            }
            sum = sum.zip(way).map(|(sum, way): (u32, u32)| sum.saturating_add(way));
        }
        sum
    }

    fn step(&mut self, place: usize) -> Step {
        if let Some(&step) = self.steps.get(&place) {
            return step;
        }
        let step = self.found_step(place);
        self.steps.insert(place, step);
        step
    }

    fn found_step(&self, place: usize) -> Step {
        let (parts, exits) = (self.parts, self.exits);
        let (state, exit) = (StateId((place / exits) as u32), place % exits);
        let (bytes, frames) = parts.bound_of(place);
        if state.0 < StateId::RESERVED || bytes >= FARTHEST {
            return Step::Bound;
        }
        if let Some(calls) = &parts.calls {
            match calls.jump(state.0) {
                [0, ..] => {}
                [enter, returns @ ..] if *enter > 0 => {
                    for (outcome, &to) in returns.iter().enumerate().filter(|&(_, &to)| to != 0) {
                        let (enter, to) = (*enter as usize * exits + outcome, to as usize * exits + exit);
                        let [piece, rest] = [enter, to].map(|place| parts.bound_of(place));
                        let is_path = piece.0 > 0 && piece.0.saturating_add(rest.0) == bytes;
                        if is_path && piece.1 < frames && rest.1 <= frames {
                            return Step::Call(enter, to);
                        }
                    }
                    return Step::Bound;
                }
                _ if bytes == 0 => return Step::Return,
                _ => return Step::Bound,
            }
        }
        if bytes == 1 && parts.next.reserved(state)[CompiledConstraint::EOS as usize] != StateId::DEAD.0 {
            return Step::Bound;
        }
        let nearer = |to: StateId| {
            let place = to.index() * exits + exit;
            let (rest, more) = parts.bound_of(place);
            (to != StateId::DEAD && Some(rest) == bytes.checked_sub(1) && more <= frames).then_some(place)
        };
        if let Some(step) = self.byte_step(state, nearer) {
            return step;
        }
        let mut whole = parts.special().of(&parts.next, state).iter().copied();
        whole.find_map(|to| nearer(StateId(to))).map_or(Step::Bound, Step::Whole)
    }

    /// The smallest one-byte token of text that leads to a nearer place.
    fn byte_step(&self, state: StateId, nearer: impl Fn(StateId) -> Option<usize>) -> Option<Step> {
        let parts = self.parts;
        let Some(runs) = parts.next.runs(state) else {
            let row = parts.row(state);
            let step =
                |&(byte, column): &(u8, u32)| Some(Step::Byte(byte, nearer(StateId(row[column as usize]))?));
            return parts.bytes_of_text().iter().find_map(step);
        };
        runs.iter().find_map(|run| {
            let to = nearer(entered(run))?;
            let byte = (run.first..=run.last).find(|&byte| parts.spells(byte))?;
            Some(Step::Byte(byte, to))
        })
    }
}

impl TableParts {
    /// The one-byte tokens of text in order, each the smallest of its column, and the columns.
    fn bytes_of_text(&self) -> &[(u8, u32)] {
        self.distances.bytes.get_or_init(|| {
            let TokenReading::Bytes { column_of, .. } = &self.reading else { return Vec::new() };
            let mut is_met = vec![false; self.columns()];
            let bytes = (0..=u8::MAX).zip(column_of.iter().copied());
            bytes
                .filter(|&(byte, column)| {
                    self.spells(byte) && !std::mem::replace(&mut is_met[column as usize], true)
                })
                .collect()
        })
    }

    /// Whether a byte is a token of text.
    fn spells(&self, byte: u8) -> bool {
        let TokenReading::Bytes { vocabulary, .. } = &self.reading else { return false };
        let trie = vocabulary.trie();
        child(trie, None, byte).is_some_and(|node| self.has_text(trie.tokens(node)))
    }

    /// Whether any of some tokens is read as text.
    fn has_text(&self, tokens: &[TokenId]) -> bool {
        let special = self.special();
        match special.tokens() {
            [] => !tokens.is_empty(),
            _ => tokens.iter().any(|&token| special.column(token).is_none()),
        }
    }
}

/// The child of a node by a byte; without a node, of the root.
fn child(trie: &Trie, node: Option<usize>, byte: u8) -> Option<usize> {
    let mut children = trie.children(node);
    trie.next_child_within(&mut children, (byte, byte)).map(|(node, _)| node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Constraint, ForcedText, Limits, RowPosition, Vocabulary};
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
    fn tokens_are_prefixes_of_the_shortest_text() {
        let regex = |text: &str| Constraint::regex(text).unwrap();
        let least = |text: &str, words: &[&str]| {
            let table = compiled(&regex(text), words, ForcedText::AnyToken);
            table.tokens_to_end(table.start())
        };
        assert_eq!(least(r#"\{"a":0\}"#, &["0}"]), 7);
        assert_eq!(least(r#"\{"a":0\}"#, &["0}", "{\"", "\":"]), 5);
        // The longest token is not always on the path with the fewest tokens.
        assert_eq!(least("abcdef", &["abcd", "abc", "def"]), 3);
        assert_eq!(least("a{20}", &["aaaa"]), 6);
        assert_eq!(least("a*", &["aaaa"]), 1);
        // The shortest text has no token of several bytes, and a longer text has one.
        assert_eq!(least("abc|defgh", &["defgh"]), 4);
    }

    #[test]
    fn only_legal_tokens_of_forced_text_count() {
        let words = ["abcd", "abcdx", "cdxyz", "xyz"];
        let text = Constraint::regex("abcd(xyz|yyyy)").unwrap();
        let [any, longest] = [ForcedText::AnyToken, ForcedText::Longest]
            .map(|forced| compiled(&text, &words, forced))
            .map(|table| table.tokens_to_end(table.start()));
        assert_eq!([any, longest], [3, 3]);
        let text = Constraint::regex("abcdxyz").unwrap();
        let table = compiled(&text, &words, ForcedText::Longest);
        assert_eq!(table.tokens_to_end(table.start()), 4, "`abcdx`, `y`, `z`");
    }

    #[test]
    fn paths_pass_calls_and_end_at_returns() {
        let grammar = "root ::= \"(\" root \")\" | \"[\" pair \"]\"\npair ::= \"a\" | root \",\" root";
        let constraint = Constraint::grammar(Syntax::Gbnf, grammar).unwrap();
        let table = compiled(&constraint, &["[a", "a]", "]", "(["], ForcedText::AnyToken);
        assert!(table.outcomes() > 0);
        let least = |at: &RowPosition| table.parts().to_end(at.state, &at.frames);
        let mut at = RowPosition::unlimited(table.start());
        assert!(least(&at) <= 4);
        for byte in b"(((([a" {
            let after = table.after(&at, TokenId(u32::from(*byte)));
            assert!(least(&after) <= 8 && table.can_end(&after), "{after:?}");
            at = after;
        }
        // All distances at once are those of each state.
        let (parts, fresh) = (table.parts(), table.parts().clone());
        for (place, way) in fresh.all_ways().into_iter().enumerate() {
            assert_eq!(parts.way_of(place), way);
            assert!(way <= parts.bound_of(place).0);
        }
    }

    #[test]
    fn a_pruned_constraint_keeps_its_distances() {
        let constraint = Constraint::regex("abcdef").unwrap();
        let vocabulary = vocabulary(&["abc", "def"]);
        let table =
            CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &Limits::default()).unwrap();
        let pruned = table.prune(&vocabulary, &[TokenId(256), TokenId(258)]).unwrap();
        let states = (0..table.state_count() as u32).map(StateId);
        for state in states {
            assert_eq!(pruned.tokens_to_end(state), table.tokens_to_end(state));
        }
        assert_eq!(pruned.tokens_to_end(pruned.start()), 3);
    }
}
