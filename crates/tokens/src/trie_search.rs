//! Reads the trie: which text tokens are legal in a byte-level constraint.

use super::mask::Thresholds;
use super::rows::{TransitionView, entered};
use super::stack::{StackGraph, StackTop};
use super::{BudgetInterval, ConstraintParts, RowPosition, SelfLoop, StateId, TokenReading};
use burn_dfa_automata::Differences;
use burn_dfa_vocabulary::{CharacterSet, Children, TokenId, Trie};

/// A set of tokens to read.
#[derive(Clone, Copy)]
pub(crate) struct Unread<'a> {
    trie: &'a Trie,
    /// Whether the tokens begin with a space before the first character.
    is_spaced: bool,
    /// The first characters.
    first: CharacterSet,
    selection: Selection,
}

/// Which tokens of a trie are read.
#[derive(Clone, Copy)]
enum Selection {
    All,
    /// After the first character come characters of the set, then one with this first byte.
    Beyond(CharacterSet, u8),
    /// A byte after the first character has another transition than from the state of `SelfLoop`.
    /// If the first characters are all characters, this includes the first byte.
    Differing(SelfLoop),
}

impl<'a> Unread<'a> {
    /// All tokens of `trie`.
    pub(crate) fn all(trie: &'a Trie) -> Self {
        Self { trie, is_spaced: false, first: CharacterSet::ALL, selection: Selection::All }
    }

    /// The tokens with these first characters, without a space before them and with one. Without
    /// one, the first character space stands for the token of a space alone.
    pub(crate) fn begun(trie: &'a Trie, first: [CharacterSet; 2]) -> [Self; 2] {
        let [bare, spaced] = first;
        [(false, bare), (true, spaced)].map(|(is_spaced, first)| Self { is_spaced, first, ..Self::all(trie) })
    }

    /// Of these, the tokens that continue with characters `within` a set, then one that begins with
    /// `byte`.
    pub(crate) fn beyond(self, within: CharacterSet, byte: u8) -> Self {
        Self { selection: Selection::Beyond(within, byte), ..self }
    }

    /// Of these, the tokens that the mask of the state `self_loop` does not decide: a byte after
    /// the first character has another transition. If the first characters are all characters, the
    /// first byte counts as well.
    pub(crate) fn differing_from(self, self_loop: SelfLoop) -> Self {
        Self { selection: Selection::Differing(self_loop), ..self }
    }

    /// The bytes before the first character.
    fn prefix(&self) -> &'static [u8] {
        if self.is_spaced { b" " } else { b"" }
    }

    /// After characters that begin nothing to read: whether `byte` begins what must be read; `None`
    /// if the tokens below it are not in the set.
    #[inline]
    fn begins(&self, byte: u8) -> Option<bool> {
        let Selection::Beyond(within, other) = self.selection else { return Some(true) };
        let goes_on = matches!(byte, 0x80..0xc0) || within.contains(byte);
        if goes_on { Some(false) } else { (byte == other).then_some(true) }
    }
}

impl ConstraintParts {
    /// Calls `found` with the legal tokens of `unread` at `position`, some of them more than once,
    /// and with the state after these tokens. `left` is the budget after the next token. With
    /// [`differing_from`](Unread::differing_from), it first calls `found` with `DEAD` and the
    /// tokens that the other mask does not decide.
    pub(crate) fn each_text<'a>(
        &self,
        position: &RowPosition,
        left: &mut BudgetInterval,
        unread: impl IntoIterator<Item = Unread<'a>>,
        found: impl FnMut(&[TokenId], StateId),
    ) {
        self.each_text_with(&Thresholds::USUAL, position, left, unread, found);
    }

    /// The same with other thresholds. Returns false if the difference of all tokens from another
    /// mask takes more nodes than [`Thresholds::near_max_nodes`]: the remaining tokens are not read.
    pub(crate) fn each_text_with<'a>(
        &self,
        thresholds: &Thresholds,
        position: &RowPosition,
        left: &mut BudgetInterval,
        unread: impl IntoIterator<Item = Unread<'a>>,
        found: impl FnMut(&[TokenId], StateId),
    ) -> bool {
        if let TokenReading::Classes(_) = self.reading {
            return true;
        }
        let Some(calls) = &self.calls else {
            return each_token(self, Bytes { parts: self, left }, position.state, unread, thresholds, found);
        };
        let (stacks, top) = StackGraph::of(self, calls, position);
        let start = (position.state, top, stacks.mark());
        each_token(self, StackedBytes { stacks, left }, start, unread, thresholds, found)
    }

    /// Finds for each state the symbols whose bytes do not leave it, if the rows are not written on
    /// demand.
    pub(super) fn find_rests(&mut self) {
        if let TokenReading::Bytes { column_of, .. } = &self.reading {
            self.next.find_rests(column_of);
        }
    }
}

/// Follows the bytes of tokens.
trait Reader {
    /// The configuration of a row within a token.
    type At: Copy;

    /// The configuration after the epsilon closure of a live entered state; `None` if it is
    /// illegal.
    fn enter(&mut self, at: Self::At, entered: StateId) -> Option<Self::At>;

    /// Whether the budget ends a token there.
    fn can_end(&mut self, at: Self::At) -> bool;

    fn state(at: Self::At) -> StateId;

    /// Whether two configurations have the same stack.
    fn is_on_same(a: Self::At, b: Self::At) -> bool;
}

/// A constraint without calls.
struct Bytes<'a> {
    parts: &'a ConstraintParts,
    left: &'a mut BudgetInterval,
}

impl Reader for Bytes<'_> {
    type At = StateId;

    #[inline]
    fn enter(&mut self, _: StateId, entered: StateId) -> Option<StateId> {
        Some(entered)
    }

    #[inline]
    fn can_end(&mut self, at: StateId) -> bool {
        self.parts.reach(at, &[], self.left)
    }

    fn state(at: StateId) -> StateId {
        at
    }

    fn is_on_same(_: StateId, _: StateId) -> bool {
        true
    }
}

/// A constraint with calls. A configuration is a state, the top of the stack, and the number of
/// frames in the graph at that time; frames that other tokens pushed later are dropped.
struct StackedBytes<'a> {
    stacks: StackGraph<'a>,
    left: &'a mut BudgetInterval,
}

impl Reader for StackedBytes<'_> {
    type At = (StateId, StackTop, usize);

    #[inline]
    fn enter(&mut self, (_, top, mark): Self::At, entered: StateId) -> Option<Self::At> {
        if self.stacks.is_plain(entered) {
            return Some((entered, top, mark));
        }
        self.stacks.forget(mark);
        let (next, top) = self.stacks.epsilon_closure(entered, top);
        (next != StateId::DEAD).then(|| (next, top, self.stacks.mark()))
    }

    #[inline]
    fn can_end(&mut self, (state, top, _): Self::At) -> bool {
        self.stacks.reach(state, top, self.left)
    }

    fn state((state, ..): Self::At) -> StateId {
        state
    }

    fn is_on_same((_, a, _): Self::At, (_, b, _): Self::At) -> bool {
        a == b
    }
}

/// A node of the trie, with the configuration after its string.
struct Level<'a, At> {
    at: At,
    /// The remaining children.
    children: Children,
    /// The transitions, without runs before the remaining children.
    transitions: TransitionView<'a>,
    /// Whether the tokens below are read.
    is_read: bool,
    /// Whether only children with another transition than from the other state are read.
    is_differing: bool,
}

/// The next child with a live transition, its byte, and the entered state.
#[inline(always)]
fn next_alive(
    trie: &Trie,
    children: &mut Children,
    transitions: &mut TransitionView<'_>,
) -> Option<(usize, u8, StateId)> {
    match transitions {
        TransitionView::Runs(runs) if children.are_many() => loop {
            let run = runs.first()?;
            if let Some((node, byte)) = trie.next_child_within(children, (run.first, run.last)) {
                return Some((node, byte, entered(run)));
            }
            *runs = &runs[1..];
        },
        transitions => {
            let mut entered = StateId::DEAD;
            let (node, byte) = trie.next_child(children, |byte| {
                entered = transitions.after(byte);
                entered != StateId::DEAD
            })?;
            Some((node, byte, entered))
        }
    }
}

/// The bytes with different transitions from two states.
enum Unlike<'a> {
    Views(TransitionView<'a>, TransitionView<'a>),
    /// The ranges, the current one first, and the transitions of the first state.
    Ranges(Option<(u8, u8)>, Differences<'a>, TransitionView<'a>),
}

impl<'a> Unlike<'a> {
    /// The bytes of `children` with different transitions from `state` and `other`.
    fn new(parts: &'a ConstraintParts, [state, other]: [StateId; 2], children: &Children) -> Self {
        let transitions = parts.transitions(state);
        match (transitions, parts.next.runs(other)) {
            (TransitionView::Runs(runs), Some(others)) if children.are_many() => {
                let mut ranges = Differences::new(runs, others);
                Self::Ranges(ranges.next(), ranges, transitions)
            }
            _ => Self::Views(transitions, parts.transitions(other)),
        }
    }

    /// The next child with such a byte, the byte, and the entered state.
    fn next(&mut self, trie: &Trie, children: &mut Children) -> Option<(usize, u8, StateId)> {
        match self {
            Self::Views(transitions, other) => {
                let mut entered = StateId::DEAD;
                let (node, byte) = trie.next_child(children, |byte| {
                    entered = transitions.after(byte);
                    entered != other.after(byte)
                })?;
                Some((node, byte, entered))
            }
            Self::Ranges(range, further, transitions) => loop {
                if let Some((node, byte)) = trie.next_child_within(children, (*range)?) {
                    return Some((node, byte, transitions.after(byte)));
                }
                *range = further.next();
            },
        }
    }
}

/// See [`ConstraintParts::each_text`].
fn each_token<'a, 'b, R: Reader>(
    parts: &'a ConstraintParts,
    reader: R,
    start: R::At,
    unread: impl IntoIterator<Item = Unread<'b>>,
    thresholds: &'a Thresholds,
    mut found: impl FnMut(&[TokenId], StateId),
) -> bool {
    let special = parts.special();
    let found = |tokens: &[TokenId], state: StateId| {
        if special.tokens().is_empty() {
            found(tokens, state);
        } else {
            let text = tokens.chunks(1).filter(|token| special.column(token[0]).is_none());
            text.for_each(|token| found(token, state));
        }
    };
    let mut walk = Walk { reader, parts, thresholds, levels: Vec::new(), unlike: Vec::new(), found };
    unread.into_iter().all(|unread| walk.all(start, &unread))
}

/// Reads tokens.
struct Walk<'a, R: Reader, F> {
    reader: R,
    parts: &'a ConstraintParts,
    thresholds: &'a Thresholds,
    levels: Vec<Level<'a, R::At>>,
    /// One per level with `is_differing`; these levels come before all others.
    unlike: Vec<Unlike<'a>>,
    found: F,
}

impl<R: Reader, F: FnMut(&[TokenId], StateId)> Walk<'_, R, F> {
    /// Reads the tokens of `unread`; returns whether all were read.
    fn all(&mut self, start: R::At, unread: &Unread<'_>) -> bool {
        if unread.first.is_empty() {
            return true;
        }
        if matches!(unread.selection, Selection::Differing(_)) && unread.first == CharacterSet::ALL {
            self.push(unread, None, start, false);
            return self.levels(unread, self.thresholds.near_max_nodes);
        }
        let begun = unread.prefix().iter().try_fold(start, |at, &byte| {
            let entered = self.parts.transitions(R::state(at)).after(byte);
            if entered == StateId::DEAD { None } else { self.reader.enter(at, entered) }
        });
        let Some((begun, mut children)) = begun.zip(unread.trie.children_behind(unread.prefix())) else {
            return true;
        };
        let mut transitions = self.parts.transitions(R::state(begun));
        while let Some(child) = next_alive(unread.trie, &mut children, &mut transitions) {
            if unread.first.contains(child.1) {
                // In a set of first characters, a space without a space before it is a token of a
                // space alone.
                let is_alone = child.1 == b' ' && !unread.is_spaced && unread.first != CharacterSet::ALL;
                self.node(unread, begun, child, matches!(unread.selection, Selection::All), is_alone);
                self.levels(unread, usize::MAX);
            }
        }
        true
    }

    /// Reads the remaining children of all levels, `max_nodes` at most; returns whether all were read.
    fn levels(&mut self, unread: &Unread<'_>, max_nodes: usize) -> bool {
        let mut read = 0;
        while let Some(level) = self.levels.last_mut() {
            let (at, is_read, is_differing) = (level.at, level.is_read, level.is_differing);
            let child = match self.unlike.last_mut() {
                Some(unlike) if is_differing => unlike.next(unread.trie, &mut level.children),
                _ => next_alive(unread.trie, &mut level.children, &mut level.transitions),
            };
            let Some(child) = child else {
                self.levels.pop();
                if is_differing {
                    self.unlike.pop();
                }
                continue;
            };
            read += 1;
            if read > max_nodes {
                return false;
            }
            if is_differing && let Selection::Differing(self_loop) = unread.selection {
                self.differing(unread, self_loop, at, child);
            } else if let Some(is_read) = if is_read { Some(true) } else { unread.begins(child.1) } {
                self.node(unread, at, child, is_read, false);
            }
        }
        true
    }

    /// Reads a node, then the nodes below it, unless the tokens below are decided or `is_alone`.
    #[inline(always)]
    fn node(
        &mut self,
        unread: &Unread<'_>,
        at: R::At,
        (node, _, entered): (usize, u8, StateId),
        is_read: bool,
        is_alone: bool,
    ) {
        let (trie, rows) = (unread.trie, &self.parts.next);
        let Some(next) = self.reader.enter(at, entered) else { return };
        // If every byte below does not leave the state, all tokens below lead there.
        let is_leaf = trie.is_leaf(node);
        let rests = || trie.below(node) & !rows.rests_on(R::state(next)) == 0;
        let is_whole =
            is_leaf || is_read && rests() && trie.subtree(node).len() >= self.thresholds.min_subtree;
        let tokens = if is_whole { trie.subtree(node) } else { trie.own(node) };
        if !tokens.is_empty() && self.reader.can_end(next) {
            (self.found)(&trie.all_tokens()[tokens], R::state(next));
        }
        if !is_whole && !is_alone {
            self.push(unread, Some(node), next, is_read);
        }
    }

    /// Reads a node whose byte has another transition than from the other state.
    fn differing(
        &mut self,
        unread: &Unread<'_>,
        self_loop: SelfLoop,
        at: R::At,
        (node, byte, entered): (usize, u8, StateId),
    ) {
        let trie = unread.trie;
        let next = if entered == StateId::DEAD { None } else { self.reader.enter(at, entered) };
        let goes_on = self_loop.is_kept_by(byte) && next.is_some_and(|next| R::is_on_same(next, at));
        let tokens = trie.own(node);
        let can_end = !tokens.is_empty() && next.is_some_and(|next| self.reader.can_end(next));
        if !(goes_on && can_end) {
            let dead = if goes_on { tokens.clone() } else { trie.subtree(node) };
            (self.found)(&trie.all_tokens()[dead], StateId::DEAD);
        }
        if let Some(next) = next {
            if !goes_on && can_end {
                (self.found)(&trie.all_tokens()[tokens], R::state(next));
            }
            if !trie.is_leaf(node) {
                self.push(unread, Some(node), next, !goes_on);
            }
        }
    }

    /// Pushes the children of `node`: with live transitions, or with another transition than from
    /// the state of [`Selection::Differing`], unless all tokens below are read.
    #[inline(always)]
    fn push(&mut self, unread: &Unread<'_>, node: Option<usize>, at: R::At, is_read: bool) {
        let (parts, state, children) = (self.parts, R::state(at), unread.trie.children(node));
        let (mut transitions, mut is_differing) = (TransitionView::Runs(&[]), false);
        match unread.selection {
            Selection::Differing(self_loop) if !is_read => {
                self.unlike.push(Unlike::new(parts, [state, self_loop.state], &children));
                is_differing = true;
            }
            _ => transitions = parts.transitions(state),
        }
        self.levels.push(Level { at, children, transitions, is_read, is_differing });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompiledConstraint, Constraint, Limits, Vocabulary};
    use burn_dfa_constraints::Syntax;
    use burn_dfa_vocabulary::symbol;

    /// The tokens of text that may follow, found by walking the trie, and one after the other.
    fn both(
        constraint: &CompiledConstraint,
        vocabulary: &Vocabulary,
        position: &RowPosition,
    ) -> [Vec<u32>; 2] {
        let parts = constraint.parts();
        let (mut walked, trie) = (Vec::new(), vocabulary.trie());
        let mut left = BudgetInterval::new(position.remaining.saturating_sub(1));
        parts.each_text(position, &mut left, [Unread::all(trie)], |tokens, state| {
            for &token in tokens {
                assert_eq!(constraint.after(position, token).state, state);
                walked.push(token.0);
            }
        });
        walked.sort_unstable();
        let text = (0..vocabulary.len() as u32).filter(|&id| vocabulary.bytes(TokenId(id)).is_some());
        let may_follow = |&id: &u32| {
            let after = constraint.after(position, TokenId(id));
            after.state != StateId::DEAD && constraint.can_end(&after)
        };
        [walked, text.filter(may_follow).collect()]
    }

    #[test]
    fn subtrees_of_tokens_that_keep_the_state_are_found_at_once() {
        let words =
            ["a", "ab", "abc", "ab1", "aé", "(", "(a", "(ab", ")", "a)", "ab)", "+", "ab+ab", "1", "é"];
        let vocabulary = Vocabulary::from_bytes(words.map(Some).into_iter().chain([None])).unwrap();
        let vocabulary = vocabulary.with_eos([TokenId(words.len() as u32)]).unwrap();
        let grammar = r#"root ::= name | "(" root ")" | root "+" name
name ::= [a-z] [a-z0-9]*"#;
        let grammar = Constraint::grammar(Syntax::Gbnf, grammar).unwrap();
        let word = Constraint::regex("[a-z][a-z0-9]*").unwrap();
        let limits = Limits::default();
        let constraints = [
            CompiledConstraint::compile(&grammar, &vocabulary, &limits).unwrap(),
            CompiledConstraint::compile_byte_level(&word, &vocabulary, &limits).unwrap(),
        ];
        for (constraint, text) in constraints.iter().zip([&[6, 7, 5, 1, 0, 8][..], &[0, 3, 13]]) {
            for budget in 1..=12 {
                let mut position = RowPosition::new(constraint.start(), budget);
                for &token in text {
                    let [walked, one_by_one] = both(constraint, &vocabulary, &position);
                    assert_eq!(walked, one_by_one, "{position:?}");
                    position = constraint.after(&position, TokenId(token));
                    if position.state == StateId::DEAD || !constraint.can_end(&position) {
                        break;
                    }
                }
            }
        }
        let rests_on = |state| constraints[1].parts().next.rests_on(StateId(state));
        let mut rests = (0..constraints[1].state_count() as u32).map(rests_on);
        assert!(rests.any(|rests| rests & 1 << symbol(b'b') != 0 && rests & 1 << symbol(b'+') == 0));
    }
}
