//! From an automaton to a token-level constraint: the effect of each token on each state.

use std::borrow::Cow;

use super::CompiledConstraint;
use super::build::build;
use super::columns::{ColumnId, Columns, Rests};
use super::untrimmed::{TokenRun, UntrimmedAutomaton};
use super::whole::{TokenStates, check_token};
use burn_dfa_automata::{ByteDfa, ByteStateId};
use burn_dfa_common::{Result, limits::Meter};
use burn_dfa_constraints::{Marker, TokenAutomaton};
use burn_dfa_vocabulary::{CONTINUATION, LENGTH_CLASSES, Symbols, TokenId, Vocabulary};

/// The effects of a vocabulary's tokens on the states of an automaton.
struct TokenEffects<'a> {
    columns: Columns,
    tokens: &'a [TokenId],
    /// The columns of runs of tokens; tokens outside of the runs have no transitions.
    runs: Vec<TokenRun>,
    /// Whether every byte taken by a state is a token.
    spells: bool,
}

impl<'a> TokenEffects<'a> {
    /// Follows every token's bytes through `dfa`, sharing the work of common prefixes.
    fn new(dfa: &ByteDfa, vocabulary: &'a Vocabulary, meter: &Meter) -> Result<Self> {
        let mut walk = Walk::new(dfa);
        let trie = if reads_length_classes(dfa) { vocabulary.length_class_trie() } else { vocabulary.trie() };
        let mut runs = Vec::new();
        // Whether some token is a single byte of each class. A class taken by no state, for bytes
        // without transitions, need not be spelled.
        let mut spelled: Vec<bool> =
            walk.next.chunks_exact(dfa.state_count()).map(|to| to.iter().all(|&to| to == 0)).collect();
        let spell = |spelled: &mut [bool], node: usize| {
            if trie.depth(node) == 1 && !trie.own(node).is_empty() {
                spelled[dfa.classes()[trie.byte(node) as usize] as usize] = true;
            }
        };
        // `path[d]` is the column after the first `d` bytes of the current node.
        let mut path = vec![walk.identity; trie.max_depth() + 1];
        let mut node = 0;
        let mut checked = 0;
        while node < trie.len() {
            walk.work += 1;
            if walk.work > checked + 4096 {
                checked = walk.work;
                meter.time()?;
                meter.bytes(walk.bytes())?;
            }
            let depth = trie.depth(node);
            let column = walk.step(path[depth - 1], trie.byte(node));
            let end = trie.end(node) as usize;
            if column == Columns::NOWHERE {
                node = end;
            } else if end > node + 1 && walk.rests(column, trie.byte(node + 1), trie.below(node)) {
                TokenRun::push(&mut runs, trie.subtree(node), column);
                spell(&mut spelled, node);
                node = end;
            } else {
                TokenRun::push(&mut runs, trie.own(node), column);
                spell(&mut spelled, node);
                path[depth] = column;
                node += 1;
            }
        }
        let spells = spelled.iter().all(|&spelled| spelled);
        Ok(Self { columns: walk.columns, tokens: trie.all_tokens(), runs, spells })
    }
}

/// Follows every token through the automaton.
pub(super) fn from_bytes(
    text: &TokenStates,
    vocabulary: &Vocabulary,
    meter: &Meter,
) -> Result<CompiledConstraint> {
    let dfa = &*text.dfa;
    let TokenEffects { columns, tokens, runs, spells } = TokenEffects::new(dfa, vocabulary, meter)?;
    let states = dfa.state_count();
    let accepting = (0..states as u32).map(|s| dfa.is_accepting(ByteStateId(s))).collect();
    // If all bytes are tokens, every state reachable by bytes is reachable by tokens.
    let all_reached = text.groups.is_empty() && spells && !text.counts();
    let (start, tokens) = (text.past_boundary(dfa.start().0), Cow::Borrowed(tokens));
    let mut source =
        UntrimmedAutomaton { states, start, accepting, columns, tokens, runs, all_reached, free: text.free };
    source.read_whole(text);
    source.pass_boundaries(text, meter)?;
    source.keep_longest(text, spells, vocabulary, meter)?;
    build(source, vocabulary, meter)
}

/// Whether `dfa` treats all characters of each of the [`LENGTH_CLASSES`] alike, and their lead
/// bytes.
fn reads_length_classes(dfa: &ByteDfa) -> bool {
    let class = |byte: u8| dfa.classes()[byte as usize] as usize;
    let classes = |(first, last): (u8, u8)| {
        let mut classes: Vec<usize> = (first..=last).map(class).collect();
        classes.dedup();
        classes
    };
    let last = classes(CONTINUATION);
    LENGTH_CLASSES.iter().all(|lead| {
        let second = classes(lead.second);
        classes((lead.first, lead.last)).len() == 1
            && (1..dfa.state_count() as u32).all(|state| {
                let mut now = dfa.next(ByteStateId(state), lead.first);
                let mut taken = 1;
                while taken < lead.length && now != ByteStateId::DEAD {
                    let classes = if taken == 1 { &second } else { &last };
                    let next = dfa.next_by_class(now, classes[0]);
                    if classes.iter().any(|&class| dfa.next_by_class(now, class) != next) {
                        return false;
                    }
                    now = next;
                    taken += 1;
                }
                true
            })
    })
}

/// Uses the given transitions, after free text up to each of the `markers`.
pub(super) fn from_tokens(
    mut automaton: TokenAutomaton,
    markers: &[Marker],
    vocabulary: &Vocabulary,
    meter: &Meter,
) -> Result<CompiledConstraint> {
    for marker in markers {
        if let &Marker::Token(token) = marker {
            check_token(token, vocabulary)?;
        }
        automaton = automaton.behind(marker, vocabulary, meter)?;
    }
    let mut by_token = automaton.transitions;
    by_token.sort_unstable_by_key(|&(state, token, _)| (token, state));
    let mut columns = Columns::new();
    let mut tokens = Vec::new();
    let mut runs = Vec::new();
    for group in by_token.chunk_by(|a, b| a.1 == b.1) {
        meter.time()?;
        let token = group[0].1;
        check_token(token, vocabulary)?;
        let pairs: Vec<_> = group.iter().map(|&(state, _, next)| (state, next)).collect();
        TokenRun::push(&mut runs, tokens.len()..tokens.len() + 1, columns.intern(&pairs));
        tokens.push(token);
    }
    let source = UntrimmedAutomaton {
        states: automaton.accepting.len(),
        start: automaton.start,
        accepting: automaton.accepting,
        columns,
        tokens: tokens.into(),
        runs,
        all_reached: false,
        free: 0,
    };
    build(source, vocabulary, meter)
}

/// The memoized walk over columns.
struct Walk<'a> {
    dfa: &'a ByteDfa,
    /// `[byte classes, states]`: the next states, class by class.
    next: Vec<u32>,
    columns: Columns,
    identity: ColumnId,
    /// `[columns, byte classes]`; `UNKNOWN` if not yet computed.
    memo: Vec<ColumnId>,
    /// `[columns]`
    rests: Vec<Rests>,
    scratch: Vec<(u32, u32)>,
    /// Nodes visited and pairs read so far.
    work: usize,
}

const UNKNOWN: ColumnId = ColumnId::MAX;

impl<'a> Walk<'a> {
    fn new(dfa: &'a ByteDfa) -> Self {
        let states = dfa.state_count() as u32;
        let each_state = |class| (0..states).map(move |state| dfa.next_by_class(ByteStateId(state), class).0);
        let next = (0..dfa.class_count()).flat_map(each_state).collect();
        let mut columns = Columns::new();
        let live: Vec<_> = (1..states).map(|s| (s, s)).collect();
        let identity = columns.intern(&live);
        let mut walk = Self {
            dfa,
            next,
            columns,
            identity,
            memo: Vec::new(),
            rests: Vec::new(),
            scratch: Vec::new(),
            work: 0,
        };
        walk.grow();
        walk
    }

    /// Extends the memo for new columns.
    fn grow(&mut self) {
        self.memo.resize(self.columns.len() * self.dfa.class_count(), UNKNOWN);
        self.rests.resize(self.columns.len(), Rests::default());
    }

    /// The column after `column` and one more byte.
    fn step(&mut self, column: ColumnId, byte: u8) -> ColumnId {
        let class = self.dfa.classes()[byte as usize] as usize;
        let at = column as usize * self.dfa.class_count() + class;
        if self.memo[at] != UNKNOWN {
            return self.memo[at];
        }
        let states = self.dfa.state_count();
        let next = &self.next[class * states..][..states];
        self.scratch.clear();
        let landings = self.columns.get(column).iter().map(|&(state, now)| (state, next[now as usize]));
        self.scratch.extend(landings.filter(|&(_, next)| next != ByteStateId::DEAD.0));
        self.work += self.columns.get(column).len();
        let next = self.columns.intern(&self.scratch);
        self.memo[at] = next;
        self.grow();
        next
    }

    /// Whether no byte with a symbol in `symbols` changes `column`; `first` is one of the bytes.
    fn rests(&mut self, column: ColumnId, first: u8, symbols: Symbols) -> bool {
        if self.step(column, first) != column {
            return false;
        }
        let mut known = self.rests[column as usize];
        let rests = known.all(symbols, |byte| self.step(column, byte) == column);
        self.rests[column as usize] = known;
        rests
    }

    fn bytes(&self) -> usize {
        self.columns.bytes() + self.memo.len() * size_of::<ColumnId>() + self.next.len() * size_of::<u32>()
    }
}
