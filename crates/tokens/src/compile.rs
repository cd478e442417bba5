//! From an automaton to a token-level constraint: the effect of each token on each state.

use std::borrow::Cow;
use std::ops::Range;

use super::CompiledConstraint;
use super::build::build;
use super::columns::{ColumnId, Columns};
use super::whole::TokenStates;
use burn_dfa_automata::{ByteDfa, ByteStateId, FastMap};
use burn_dfa_common::{Error, Result, limits::Meter};
use burn_dfa_constraints::{Marker, TokenAutomaton};
use burn_dfa_vocabulary::{CONTINUATION, LENGTH_CLASSES, Symbols, TokenId, TokenKind, Vocabulary, symbol};

/// A token automaton before trimming: columns over source states, and the column of each token.
pub(super) struct Source<'a> {
    pub(super) states: usize,
    pub(super) start: u32,
    pub(super) accepting: Vec<bool>,
    pub(super) columns: Columns,
    /// Tokens in any order, each at most once.
    pub(super) tokens: Cow<'a, [TokenId]>,
    /// The columns of runs of tokens; tokens outside of the runs have no transitions.
    pub(super) runs: Vec<TokenRun>,
    /// Whether a token path leads from the start to every state.
    pub(super) all_reached: bool,
    /// States 1 to `free` are free text.
    pub(super) free: u32,
}

/// The tokens in a range of positions share one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenRun {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) column: ColumnId,
}

impl TokenRun {
    /// Appends a run.
    pub(super) fn push(runs: &mut Vec<Self>, places: Range<usize>, column: ColumnId) {
        let (from, to) = (places.start as u32, places.end as u32);
        match runs.last_mut() {
            Some(last) if last.to == from && last.column == column => last.to = to,
            _ if from == to => {}
            _ => runs.push(Self { from, to, column }),
        }
    }
}

/// The effects of a vocabulary's tokens on the states of an automaton.
struct Followed<'a> {
    columns: Columns,
    tokens: &'a [TokenId],
    /// The columns of runs of tokens; tokens outside of the runs have no transitions.
    runs: Vec<TokenRun>,
    /// Whether every byte taken by a state is a token.
    spells: bool,
}

impl<'a> Followed<'a> {
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
    let Followed { columns, tokens, runs, spells } = Followed::new(dfa, vocabulary, meter)?;
    let states = dfa.state_count();
    let accepting = (0..states as u32).map(|s| dfa.is_accepting(ByteStateId(s))).collect();
    // If all bytes are tokens, every state reachable by bytes is reachable by tokens.
    let all_reached = text.groups.is_empty() && spells && !text.counts();
    let (start, tokens) = (text.past_boundary(dfa.start().0), Cow::Borrowed(tokens));
    let mut source = Source { states, start, accepting, columns, tokens, runs, all_reached, free: text.free };
    source.read_whole(text);
    source.pass_boundaries(text, meter)?;
    source.keep_longest(text, spells, vocabulary, meter)?;
    build(source, vocabulary, meter)
}

impl Source<'_> {
    /// Gives tokens read whole the columns that join their own edges with their bytes.
    fn read_whole(&mut self, states: &TokenStates) {
        if states.groups.is_empty() {
            return;
        }
        let mut by_bytes = vec![Columns::NOWHERE; self.tokens.len()];
        for &TokenRun { from, to, column } in &self.runs {
            by_bytes[from as usize..to as usize].fill(column);
        }
        // Markers may be among the tokens of text; other non-text tokens are not.
        let groups = &states.groups.groups;
        let silent = groups.iter().filter(|group| !group.is_text).flat_map(|group| &group.tokens);
        let known: Vec<bool> = {
            let mut known = vec![false; states.groups.token_count()];
            self.tokens.iter().for_each(|token| known[token.index()] = true);
            known
        };
        self.tokens.to_mut().extend(silent.filter(|token| !known[token.index()]));
        by_bytes.resize(self.tokens.len(), Columns::NOWHERE);
        let mut both: FastMap<(ColumnId, usize), ColumnId> = FastMap::default();
        self.runs.clear();
        for (place, (token, bytes)) in self.tokens.iter().zip(by_bytes).enumerate() {
            let column = match states.groups.of(*token) {
                None => bytes,
                Some(group) => {
                    let bytes = if groups[group].is_text { bytes } else { Columns::NOWHERE };
                    *both.entry((bytes, group)).or_insert_with(|| {
                        let pairs = either(self.columns.get(bytes), &groups[group].edges, states);
                        self.columns.intern(&pairs)
                    })
                }
            };
            if column != Columns::NOWHERE {
                TokenRun::push(&mut self.runs, place..place + 1, column);
            }
        }
    }
}

impl Source<'_> {
    /// If tokens are counted, moves each transition past the boundary at the end of the token.
    fn pass_boundaries(&mut self, states: &TokenStates, meter: &Meter) -> Result<()> {
        if !states.counts() {
            return Ok(());
        }
        let mut columns = Columns::new();
        let mut passed: Vec<Option<ColumnId>> = vec![None; self.columns.len()];
        let mut pairs = Vec::new();
        for run in &mut self.runs {
            let known = &mut passed[run.column as usize];
            run.column = *known.get_or_insert_with(|| {
                let own = self.columns.get(run.column).iter();
                let past = own.map(|&(state, to)| (state, states.past_boundary(to)));
                pairs.clear();
                pairs.extend(past.filter(|&(_, to)| to != 0));
                columns.intern(&pairs)
            });
            meter.bytes(columns.bytes())?;
        }
        self.runs.retain(|run| run.column != Columns::NOWHERE);
        self.columns = columns;
        Ok(())
    }
}

/// The column of a token with the transitions `bytes` by its bytes, and `whole` if read whole.
fn either(bytes: &[(u32, u32)], whole: &[(u32, u32)], states: &TokenStates) -> Vec<(u32, u32)> {
    let (mut bytes, mut whole) = (bytes.iter().peekable(), whole.iter().peekable());
    let mut pairs = Vec::new();
    loop {
        let next = [bytes.peek(), whole.peek()].into_iter().flatten().map(|pair| pair.0).min();
        let Some(state) = next else { return pairs };
        let [read, led] =
            [&mut bytes, &mut whole].map(|of| of.next_if(|pair| pair.0 == state).map_or(0, |pair| pair.1));
        pairs.push((state, states.join(read, led)));
    }
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
    let source = Source {
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

pub(super) fn check_token(token: TokenId, vocabulary: &Vocabulary) -> Result<()> {
    if token.index() >= vocabulary.len() {
        return Err(Error::incompatible_vocabulary(format!(
            "the constraint names token {token}, the vocabulary ends at {}",
            vocabulary.len()
        )));
    }
    if vocabulary.kind(token) == TokenKind::Unused && !vocabulary.eos().contains(&token) {
        return Err(Error::incompatible_vocabulary(format!(
            "the constraint names token {token}, which the vocabulary does not use"
        )));
    }
    if vocabulary.eos().contains(&token) {
        return Err(Error::incompatible_vocabulary(format!(
            "the constraint has a transition on token {token}, which ends the sequence: leave it out, accepting states allow it by themselves"
        )));
    }
    Ok(())
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

/// The symbols known to keep, or to change, a column or a state.
#[derive(Clone, Copy, Default)]
pub(super) struct Rests {
    yes: Symbols,
    no: Symbols,
}

impl Rests {
    /// Whether no byte with a symbol in `symbols` changes anything; `rests` answers for one byte.
    pub(super) fn all(&mut self, symbols: Symbols, mut rests: impl FnMut(u8) -> bool) -> bool {
        loop {
            if symbols & self.no != 0 {
                return false;
            }
            let open = symbols & !self.yes;
            if open == 0 {
                return true;
            }
            let next = open.trailing_zeros();
            let all = (0..=u8::MAX).filter(|&byte| symbol(byte) == next).all(&mut rests);
            *(if all { &mut self.yes } else { &mut self.no }) |= 1 << next;
        }
    }
}

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
