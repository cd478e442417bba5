//! The target states of tokens read both whole and by their bytes.
//!
//! A text token with an edge that reads it whole may lead to two states. The output may continue
//! from either, so the token leads to a *joined* state, a set of states of the automaton, as in the
//! subset construction. A joined state reads the bytes of all its member states; tokens may lead
//! from joined states to further joined states.
//!
//! If tokens are counted, a token leads to the state after the boundary at its end. For a joined
//! state, the boundary leads to the joined state of its members' boundary targets.

use std::sync::Arc;

use super::groups::Groups;
use crate::columns::Rests;
use burn_dfa_automata::{ByteDfa, ByteStateId, FastMap, Interner};
use burn_dfa_common::{Result, limits::Meter};
use burn_dfa_constraints::{TextAutomaton, Unrolled};
use burn_dfa_vocabulary::{TokenId, Vocabulary};

/// An automaton over bytes with its joined states, and the tokens read whole.
pub(crate) struct TokenStates {
    pub(crate) dfa: Arc<ByteDfa>,
    /// The number of states of free text, see
    /// [`FreeText::states`](burn_dfa_constraints::FreeText::states).
    pub(crate) free: u32,
    pub(crate) groups: Groups,
    /// The joined state of a byte target and an edge target.
    joined: FastMap<(u32, u32), u32>,
    /// For each target state of a token, the state after the token's boundary; empty if tokens are
    /// not counted.
    boundaries: Vec<u32>,
    pub(crate) unrolled: Option<Unrolled>,
}

impl TokenStates {
    /// # Errors
    /// If a limit is breached, or a named token is missing from the vocabulary.
    pub(crate) fn new(text: &TextAutomaton, vocabulary: &Vocabulary, meter: &Meter) -> Result<Self> {
        let groups = Groups::new(&text.free, vocabulary)?;
        let (free, unrolled) = (text.free.states, text.unrolled);
        if !groups.groups.iter().any(|group| group.is_text) {
            let dfa = Arc::clone(&text.dfa);
            let boundaries = text.free.tokens.boundaries.clone();
            return Ok(Self { dfa, free, groups, joined: FastMap::default(), boundaries, unrolled });
        }
        let mut joiner = Joiner::new(text, groups, vocabulary, meter);
        let mut state = 1;
        while state < joiner.state_count() {
            joiner.follow(state)?;
            state += 1;
        }
        Ok(joiner.finish(free, unrolled))
    }

    /// The target of a token with the byte target `bytes` and the edge target `whole`; either may
    /// be dead.
    pub(crate) fn join(&self, bytes: u32, whole: u32) -> u32 {
        match (bytes, whole) {
            (0, only) | (only, 0) => only,
            (one, other) if one == other => one,
            both => self.joined[&both],
        }
    }

    /// Whether tokens are counted.
    pub(crate) fn counts(&self) -> bool {
        !self.boundaries.is_empty()
    }

    /// The state after the boundary of a token with the target `state`, or after the boundary
    /// before the first token.
    pub(crate) fn past_boundary(&self, state: u32) -> u32 {
        self.boundaries.get(state as usize).copied().unwrap_or(state)
    }
}

/// Builds joined states.
struct Joiner<'a> {
    dfa: &'a ByteDfa,
    vocabulary: &'a Vocabulary,
    meter: &'a Meter<'a>,
    groups: Groups,
    /// By state of the automaton, the groups with an edge there, and the edge's target.
    edges: FastMap<u32, Vec<(usize, u32)>>,
    /// The members of each joined state; joined states are numbered after the states of the
    /// automaton.
    sets: Interner<u32>,
    /// The row of each joined state by class of bytes; empty until computed.
    rows: Vec<Vec<u32>>,
    joined: FastMap<(u32, u32), u32>,
    /// The boundary target of each state, as far as known; empty if tokens are not counted.
    boundaries: Vec<u32>,
    rests: Vec<Rests>,
}

impl<'a> Joiner<'a> {
    fn new(
        text: &'a TextAutomaton,
        groups: Groups,
        vocabulary: &'a Vocabulary,
        meter: &'a Meter<'a>,
    ) -> Self {
        let dfa = &*text.dfa;
        let mut edges: FastMap<u32, Vec<_>> = FastMap::default();
        for (number, group) in groups.groups.iter().enumerate() {
            for &(state, next) in &group.edges {
                edges.entry(state).or_default().push((number, next));
            }
        }
        Self {
            dfa,
            vocabulary,
            meter,
            groups,
            edges,
            sets: Interner::new(),
            rows: Vec::new(),
            joined: FastMap::default(),
            boundaries: text.free.tokens.boundaries.clone(),
            rests: vec![Rests::default(); dfa.state_count()],
        }
    }

    fn state_count(&self) -> u32 {
        (self.dfa.state_count() + self.sets.len()) as u32
    }

    /// The members of a joined state, or the state itself.
    fn states_of(&self, state: u32) -> Vec<u32> {
        match state.checked_sub(self.dfa.state_count() as u32) {
            Some(joined) => self.sets.get(joined).to_vec(),
            None => vec![state],
        }
    }

    /// The number of a set of states.
    fn number(&mut self, mut states: Vec<u32>) -> Result<u32> {
        states.sort_unstable();
        states.dedup();
        match states[..] {
            [] => return Ok(0),
            [one] => return Ok(one),
            _ => {}
        }
        let (joined, is_new) = self.sets.intern(&states);
        if is_new {
            self.rows.push(Vec::new());
            self.rests.push(Rests::default());
            self.meter.states(self.state_count() as usize)?;
            self.meter.bytes(self.sets.len().saturating_mul(64 + 4 * self.dfa.class_count()))?;
        }
        Ok(self.dfa.state_count() as u32 + joined)
    }

    /// Builds the joined state of two states.
    fn join(&mut self, bytes: u32, whole: u32) -> Result<()> {
        if bytes == 0 || bytes == whole || self.joined.contains_key(&(bytes, whole)) {
            return Ok(());
        }
        let both = [self.states_of(bytes), self.states_of(whole)].concat();
        let number = self.number(both)?;
        self.joined.insert((bytes, whole), number);
        Ok(())
    }

    fn row(&mut self, state: u32) -> Result<()> {
        let Some(joined) = (state as usize).checked_sub(self.dfa.state_count()) else { return Ok(()) };
        if self.rows[joined].is_empty() {
            let own = self.states_of(state);
            let mut row = Vec::with_capacity(self.dfa.class_count());
            for class in 0..self.dfa.class_count() {
                let next = own.iter().map(|&state| self.dfa.next_by_class(ByteStateId(state), class).0);
                row.push(self.number(next.filter(|&next| next != 0).collect())?);
            }
            self.rows[joined] = row;
        }
        Ok(())
    }

    /// The state after a byte; the [row](Self::row) must be known.
    fn read(&self, state: u32, byte: u8) -> u32 {
        let class = self.dfa.classes()[byte as usize] as usize;
        match (state as usize).checked_sub(self.dfa.state_count()) {
            Some(joined) => self.rows[joined][class],
            None => self.dfa.next_by_class(ByteStateId(state), class).0,
        }
    }

    fn next(&mut self, state: u32, byte: u8) -> Result<u32> {
        self.row(state)?;
        Ok(self.read(state, byte))
    }

    /// Follows the tokens read whole in `state`.
    fn follow(&mut self, state: u32) -> Result<()> {
        self.meter.time()?;
        self.row(state)?;
        self.pass_boundary(state)?;
        let mut reached: FastMap<usize, Vec<u32>> = FastMap::default();
        for own in self.states_of(state).iter() {
            for &(group, next) in self.edges.get(own).into_iter().flatten() {
                reached.entry(group).or_default().push(next);
            }
        }
        let mut reached: Vec<_> = reached.into_iter().collect();
        reached.sort_unstable_by_key(|&(group, _)| group);
        let reads = (0..=u8::MAX).any(|byte| self.read(state, byte) != 0);
        for (group, next) in reached {
            let whole = self.number(next)?;
            let own = &mut self.groups.groups[group];
            if state as usize >= self.dfa.state_count() {
                own.edges.push((state, whole));
            }
            if !own.is_text || !reads {
                continue;
            }
            for bytes in self.landings(state, group)? {
                self.join(bytes, whole)?;
            }
        }
        Ok(())
    }

    /// Computes the boundary target of a joined state.
    fn pass_boundary(&mut self, state: u32) -> Result<()> {
        if self.boundaries.is_empty() || (state as usize) < self.dfa.state_count() {
            return Ok(());
        }
        let own = self.states_of(state);
        let past = own.iter().map(|&state| self.boundaries[state as usize]);
        let past = self.number(past.filter(|&past| past != 0).collect())?;
        // States are followed in order.
        debug_assert_eq!(self.boundaries.len(), state as usize);
        self.boundaries.push(past);
        Ok(())
    }

    /// The byte targets of a group's tokens; for an open group, a superset.
    fn landings(&mut self, state: u32, group: usize) -> Result<Vec<u32>> {
        let mut found = if self.groups.groups[group].is_open {
            self.all_landings(state)?
        } else {
            let tokens = std::mem::take(&mut self.groups.groups[group].tokens);
            let found = self.landings_of(state, &tokens);
            self.groups.groups[group].tokens = tokens;
            found?
        };
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn landings_of(&mut self, state: u32, tokens: &[TokenId]) -> Result<Vec<u32>> {
        let (vocabulary, mut found) = (self.vocabulary, Vec::new());
        for (at, &token) in tokens.iter().enumerate() {
            if at % 1024 == 0 {
                self.meter.time()?;
            }
            let bytes = vocabulary.bytes(token).unwrap_or_default();
            let end = bytes.iter().try_fold(state, |at, &byte| match at {
                0 => Ok(0),
                at => self.next(at, byte),
            })?;
            found.push(end);
        }
        Ok(found)
    }

    /// The states that tokens lead to from `state` by their bytes.
    fn all_landings(&mut self, state: u32) -> Result<Vec<u32>> {
        let trie = self.vocabulary.trie();
        let mut found = Vec::new();
        let mut path = vec![state; trie.max_depth() + 1];
        let mut node = 0;
        while node < trie.len() {
            let depth = trie.depth(node);
            let to = self.next(path[depth - 1], trie.byte(node))?;
            let end = trie.end(node) as usize;
            if to == 0 {
                node = end;
                continue;
            }
            self.row(to)?;
            let mut rests = self.rests[to as usize];
            let all = rests.all(trie.below(node), |byte| self.read(to, byte) == to);
            self.rests[to as usize] = rests;
            if (all || !trie.tokens(node).is_empty()) && found.last() != Some(&to) {
                found.push(to);
            }
            path[depth] = to;
            node = if all { end } else { node + 1 };
        }
        Ok(found)
    }

    fn finish(mut self, free: u32, unrolled: Option<Unrolled>) -> TokenStates {
        let mut next = Vec::new();
        for state in 0..self.dfa.state_count() as u32 {
            next.extend_from_slice(self.dfa.row(ByteStateId(state)));
        }
        self.rows.iter_mut().for_each(|row| next.append(row));
        let is_accepting = |state: u32| self.dfa.is_accepting(ByteStateId(state));
        let mut accepting: Vec<bool> = (0..self.dfa.state_count() as u32).map(is_accepting).collect();
        let sets = (0..self.sets.len() as u32).map(|joined| self.sets.get(joined));
        accepting.extend(sets.map(|set| set.iter().any(|&state| is_accepting(state))));
        let (classes, count) = (*self.dfa.classes(), self.dfa.class_count());
        let dfa = ByteDfa::from_parts(classes, count, next, accepting, self.dfa.start());
        let Self { groups, joined, boundaries, .. } = self;
        TokenStates { dfa: dfa.into(), free, groups, joined, boundaries, unrolled }
    }
}
