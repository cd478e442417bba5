//! The tokens of text that may follow in a walked table.

use super::rows::{Leads, entered};
use super::stack::{Stacks, Top};
use super::{CharacterRun, Left, Near, RowPosition, StateId, TableParts, TokenReading};
use crate::automaton::Differences;
use crate::vocabulary::{CONTINUATION, CharacterSet, Children, LENGTH_CLASSES, Tails, TokenId, Trie};

/// Where so many times as many children could follow as first characters, the children are looked for one by one.
const FEW_FIRST: usize = 4;

/// Tokens that are to be read.
#[derive(Clone, Copy)]
pub(crate) struct Unread<'a> {
    trie: &'a Trie,
    /// What they begin with, and how many bytes that are: a space, a character of ASCII, or both in this order.
    prefix: ([u8; 2], usize),
    /// The characters that come next.
    first: CharacterSet,
    part: Part<'a>,
}

/// Which tokens of a trie are to be read.
#[derive(Clone, Copy)]
enum Part<'a> {
    All,
    /// Behind their first characters come some of a set, and then one that begins with this byte.
    Beyond(CharacterSet, u8),
    /// The trie is that of their tails, before which are the first characters of a run that are its own, and others within it.
    Tails(&'a Tails, &'a CharacterRun),
    /// They are not what another state says: a byte leads elsewhere from there, behind their first characters where these are some of all.
    Beside(Near),
    /// Their first characters lead nowhere.
    Lacking,
}

impl<'a> Unread<'a> {
    /// All tokens of `trie`.
    pub(crate) fn all(trie: &'a Trie) -> Self {
        Self::behind(trie, &[], CharacterSet::ALL)
    }

    /// Those that begin with two bytes at most and then one of these characters. Where neither comes before it, a space stands for a
    /// token of a space alone.
    pub(crate) fn behind(trie: &'a Trie, prefix: &[u8], first: CharacterSet) -> Self {
        let mut bytes = [0; 2];
        bytes[..prefix.len()].copy_from_slice(prefix);
        Self { trie, prefix: (bytes, prefix.len()), first, part: Part::All }
    }

    /// Of these, those that have characters `within` a set next, and then one that begins with `byte`.
    pub(crate) fn beyond(self, within: CharacterSet, byte: u8) -> Self {
        Self { part: Part::Beyond(within, byte), ..self }
    }

    /// Of these, those of which another state may not say whether they may follow, since bytes behind their first characters lead
    /// elsewhere from there; or any bytes, where these are all.
    pub(crate) fn beside(self, near: Near) -> Self {
        Self { part: Part::Beside(near), ..self }
    }

    /// Of these, those whose first characters lead nowhere: with each of them, `DEAD` is given.
    pub(crate) fn lacking(self) -> Self {
        Self { part: Part::Lacking, ..self }
    }

    /// Those before whose tails are a first character of a `run` that is its own, and others within it. All that leads to where the
    /// bytes `begun` do.
    pub(crate) fn tails(tails: &'a Tails, begun: ([u8; 2], usize), run: &'a CharacterRun) -> Self {
        Self { prefix: begun, part: Part::Tails(tails, run), ..Self::all(tails.trie()) }
    }

    /// What is read before the trie is.
    fn prefix(&self) -> &[u8] {
        &self.prefix.0[..self.prefix.1]
    }

    /// What is read of the trie then.
    fn children(&self) -> Option<Children> {
        self.trie.children_behind(if matches!(self.part, Part::Tails(..)) { &[] } else { self.prefix() })
    }

    /// Whether what is below a first character is read whatever comes next.
    fn is_whole(&self) -> bool {
        matches!(self.part, Part::All | Part::Tails(..))
    }

    /// Whether a byte behind the first one of a character begins what has to be read, where what was before it does not;
    /// `None` where the token is not among these.
    #[inline]
    fn begins(&self, byte: u8) -> Option<bool> {
        let Part::Beyond(within, other) = self.part else { return Some(true) };
        let goes_on = matches!(byte, 0x80..0xc0) || within.contains(byte);
        if goes_on { Some(false) } else { (byte == other).then_some(true) }
    }
}

impl TableParts {
    /// Calls `found` with tokens that may follow at `position`, where so many tokens are `left` behind the next one, and
    /// the state after all of them, until each of those `unread` was given, some of them more than once. With `DEAD` it gives tokens
    /// of which a state [beside](Unread::beside) does not say whether they may follow, before those of them that may. Returns the number
    /// of nodes that were read.
    pub(crate) fn each_text<'a>(
        &self,
        position: &RowPosition,
        left: &mut Left,
        unread: impl IntoIterator<Item = Unread<'a>>,
        found: impl FnMut(&[TokenId], StateId),
    ) -> usize {
        self.each_text_up_to(usize::MAX, position, left, unread, found)
    }

    /// The same where no more nodes are read than about so many: the rest is left out then.
    pub(crate) fn each_text_up_to<'a>(
        &self,
        most: usize,
        position: &RowPosition,
        left: &mut Left,
        unread: impl IntoIterator<Item = Unread<'a>>,
        found: impl FnMut(&[TokenId], StateId),
    ) -> usize {
        if let TokenReading::Classes(_) = self.reading {
            return 0;
        }
        let bytes = Bytes { parts: self, left };
        let Some(calls) = &self.calls else {
            return each_token(bytes, position.state, unread, most, found);
        };
        let (stacks, top) = Stacks::of(calls, position);
        let start = (position.state, top, stacks.mark());
        each_token(StackedBytes { bytes, stacks }, start, unread, most, found)
    }
}

impl TableParts {
    /// Finds for each state the symbols whose bytes leave a row there, where rows are not written on demand.
    pub(super) fn find_rests(&mut self) {
        if let TokenReading::Bytes { column_of, .. } = &self.reading {
            self.next.find_rests(column_of);
        }
    }
}

/// Follows bytes.
trait Reader<'a> {
    /// Where a row is amid a token.
    type At: Copy;

    fn bytes(&self) -> &Bytes<'a>;

    /// Where it is once it entered a state that is alive; `None` where that is illegal.
    fn enter(&mut self, at: Self::At, entered: StateId) -> Option<Self::At>;

    /// Whether a token may end there.
    fn can_end(&mut self, at: Self::At) -> bool;

    fn state(at: Self::At) -> StateId;

    /// Whether the stack is the same.
    fn is_on_same(a: Self::At, b: Self::At) -> bool;
}

/// A table without calls.
struct Bytes<'a> {
    parts: &'a TableParts,
    left: &'a mut Left,
}

impl<'a> Reader<'a> for Bytes<'a> {
    type At = StateId;

    fn bytes(&self) -> &Bytes<'a> {
        self
    }

    #[inline]
    fn enter(&mut self, _: StateId, entered: StateId) -> Option<StateId> {
        Some(entered)
    }

    #[inline]
    fn can_end(&mut self, at: StateId) -> bool {
        self.left.reach(self.parts.tokens_to_end[at.index()])
    }

    fn state(at: StateId) -> StateId {
        at
    }

    fn is_on_same(_: StateId, _: StateId) -> bool {
        true
    }
}

/// A table with calls. A row is in a state with a stack, and there were so many frames when it came there: those that other
/// tokens pushed since are forgotten.
struct StackedBytes<'a> {
    bytes: Bytes<'a>,
    stacks: Stacks<'a>,
}

impl<'a> Reader<'a> for StackedBytes<'a> {
    type At = (StateId, Top, usize);

    fn bytes(&self) -> &Bytes<'a> {
        &self.bytes
    }

    #[inline]
    fn enter(&mut self, (_, top, mark): Self::At, entered: StateId) -> Option<Self::At> {
        if self.stacks.is_plain(entered) {
            return Some((entered, top, mark));
        }
        self.stacks.forget(mark);
        let (next, top) = self.stacks.settle(entered, top);
        (next != StateId::DEAD).then(|| (next, top, self.stacks.mark()))
    }

    #[inline]
    fn can_end(&mut self, (state, top, _): Self::At) -> bool {
        self.bytes.left.reach(self.stacks.to_end(state, top))
    }

    fn state((state, ..): Self::At) -> StateId {
        state
    }

    fn is_on_same((_, a, _): Self::At, (_, b, _): Self::At) -> bool {
        a == b
    }
}

/// A string that tokens go on from, and where the row is behind it.
struct Level<'a, At> {
    at: At,
    /// What is left of its children.
    children: Children,
    /// Where bytes lead from there; runs before what is left of the children are left out.
    leads: Leads<'a>,
    /// Whether what follows is to be read.
    is_read: bool,
    /// Whether only children whose bytes lead elsewhere than from a state beside are met.
    is_beside: bool,
}

/// The next child whose byte leads on, the byte, and the state that it enters.
#[inline(always)]
fn next_alive(trie: &Trie, children: &mut Children, leads: &mut Leads<'_>) -> Option<(usize, u8, StateId)> {
    match leads {
        Leads::Runs(runs) if children.are_many() => loop {
            let run = runs.first()?;
            if let Some((node, byte)) = trie.next_child_within(children, (run.first, run.last)) {
                return Some((node, byte, entered(run)));
            }
            *runs = &runs[1..];
        },
        leads => {
            let (node, byte) = trie.next_child(children, |byte| leads.after(byte) != StateId::DEAD)?;
            Some((node, byte, leads.after(byte)))
        }
    }
}

/// How many leaves of the trie follow `child`, if that is one, among `children`, whose bytes lead where its own does.
#[inline(always)]
fn leaves_alike(
    trie: &Trie,
    children: &mut Children,
    leads: &Leads<'_>,
    (node, byte, _): (usize, u8, StateId),
) -> usize {
    match leads {
        Leads::Runs([run, ..]) if run.last > byte && trie.is_leaf(node) => {
            trie.leaves_behind(children, node, run.last)
        }
        _ => 0,
    }
}

/// The bytes that lead elsewhere from one state than from another.
enum Unlike<'a> {
    Leads(Leads<'a>, Leads<'a>),
    /// By ranges, the current one first; and where they lead.
    Ranges(Option<(u8, u8)>, Differences<'a>, Leads<'a>),
}

impl<'a> Unlike<'a> {
    /// Those from `state` and another, of `children`.
    fn new(parts: &'a TableParts, [state, other]: [StateId; 2], children: &Children) -> Self {
        let leads = parts.leads(state);
        match (leads, parts.next.runs(other)) {
            (Leads::Runs(runs), Some(others)) if children.are_many() => {
                let mut ranges = Differences::new(runs, others);
                Self::Ranges(ranges.next(), ranges, leads)
            }
            _ => Self::Leads(leads, parts.leads(other)),
        }
    }

    /// The next child that has one of them, the byte, and the state that it enters.
    fn next(&mut self, trie: &Trie, children: &mut Children) -> Option<(usize, u8, StateId)> {
        match self {
            Self::Leads(leads, other) => {
                let (node, byte) =
                    trie.next_child(children, |byte| leads.after(byte) != other.after(byte))?;
                Some((node, byte, leads.after(byte)))
            }
            Self::Ranges(range, further, leads) => loop {
                if let Some((node, byte)) = trie.next_child_within(children, (*range)?) {
                    return Some((node, byte, leads.after(byte)));
                }
                *range = further.next();
            },
        }
    }
}

/// See [`TableParts::each_text`].
fn each_token<'a, 'b, R: Reader<'a>>(
    reader: R,
    start: R::At,
    unread: impl IntoIterator<Item = Unread<'b>>,
    most: usize,
    mut found: impl FnMut(&[TokenId], StateId),
) -> usize {
    let special = reader.bytes().parts.special();
    let found = |tokens: &[TokenId], state: StateId| {
        if special.tokens().is_empty() {
            found(tokens, state);
        } else {
            let text = tokens.chunks(1).filter(|token| special.column(token[0]).is_none());
            text.for_each(|token| found(token, state));
        }
    };
    let parts = reader.bytes().parts;
    let mut walk = Walk { parts, reader, levels: Vec::new(), unlike: Vec::new(), found, read: 0, most };
    unread.into_iter().for_each(|unread| walk.all(start, &unread));
    walk.read
}

/// Reads tokens.
struct Walk<'a, R: Reader<'a>, F> {
    reader: R,
    parts: &'a TableParts,
    levels: Vec<Level<'a, R::At>>,
    /// Of each level beside a state, which come before all others.
    unlike: Vec<Unlike<'a>>,
    found: F,
    /// Number of nodes that were read, and the most that are.
    read: usize,
    most: usize,
}

impl<'a, R: Reader<'a>, F: FnMut(&[TokenId], StateId)> Walk<'a, R, F> {
    fn all(&mut self, start: R::At, unread: &Unread<'_>) {
        if unread.first.is_empty() {
            return;
        }
        if let Part::Beside(near) = unread.part
            && unread.first == CharacterSet::ALL
        {
            self.push(unread.trie.children(None), start, false, Some(near.stays));
            return self.levels(unread);
        }
        let begun = unread.prefix().iter().try_fold(start, |at, &byte| {
            let entered = self.parts.leads(R::state(at)).after(byte);
            if entered == StateId::DEAD { None } else { self.reader.enter(at, entered) }
        });
        let Some((begun, mut children)) = begun.zip(unread.children()) else { return };
        let mut leads = self.parts.leads(R::state(begun));
        if FEW_FIRST * unread.first.count() < children.count() {
            for byte in unread.first.bytes() {
                let entered = leads.after(byte);
                if entered != StateId::DEAD
                    && let Some((node, _)) = unread.trie.next_child_within(&mut children, (byte, byte))
                {
                    self.below_first(unread, begun, (node, byte, entered));
                }
            }
            return;
        }
        while let Some(child) = next_alive(unread.trie, &mut children, &mut leads) {
            if unread.first.contains(child.1) {
                self.below_first(unread, begun, child);
            }
        }
    }

    /// Reads the tokens that begin with a first character.
    fn below_first(&mut self, unread: &Unread<'_>, begun: R::At, first: (usize, u8, StateId)) {
        // Where no token is known by what comes before it, a space stands for itself alone.
        let is_alone = first.1 == b' ' && unread.prefix().is_empty() && unread.first != CharacterSet::ALL;
        if let Part::Lacking = unread.part {
            let class = LENGTH_CLASSES.iter().find(|class| first.1 >= class.first && first.1 <= class.last);
            return self.lacking(unread.trie, begun, first, class.map_or(0, |class| class.length - 1));
        }
        self.node(unread, begun, first, 0, unread.is_whole(), is_alone);
        self.levels(unread);
    }

    /// Gives the tokens that begin with a character that leads nowhere, of which so many bytes are `missing` behind this node.
    fn lacking(&mut self, trie: &Trie, at: R::At, child: (usize, u8, StateId), missing: usize) {
        self.read += 1;
        let (node, _, entered) = child;
        let next = if entered == StateId::DEAD { None } else { self.reader.enter(at, entered) };
        let Some(next) = next else {
            return (self.found)(&trie.all_tokens()[trie.subtree(node)], StateId::DEAD);
        };
        let leads = self.parts.leads(R::state(next));
        let (first, last) = CONTINUATION;
        if missing == 0 || missing == 1 && leads.lead_on(first, last) {
            return;
        }
        let mut children = trie.children(Some(node));
        while let Some((child, byte)) = trie.next_child_within(&mut children, CONTINUATION) {
            self.lacking(trie, next, (child, byte, leads.after(byte)), missing - 1);
        }
    }

    /// Reads what is left of all levels.
    fn levels(&mut self, unread: &Unread<'_>) {
        while let Some(level) = self.levels.last_mut() {
            if self.read > self.most {
                self.levels.clear();
                self.unlike.clear();
                return;
            }
            let (at, is_read, is_beside) = (level.at, level.is_read, level.is_beside);
            let child = match self.unlike.last_mut() {
                Some(unlike) if is_beside => unlike.next(unread.trie, &mut level.children),
                _ => next_alive(unread.trie, &mut level.children, &mut level.leads),
            };
            let Some(child) = child else {
                self.levels.pop();
                if is_beside {
                    self.unlike.pop();
                }
                continue;
            };
            match unread.part {
                Part::Beside(near) if is_beside => {
                    self.beside(unread.trie, at, child, near);
                    continue;
                }
                _ => {}
            }
            if is_read {
                let more = leaves_alike(unread.trie, &mut level.children, &level.leads, child);
                self.node(unread, at, child, more, true, false);
                continue;
            }
            let Some(is_read) = unread.begins(child.1) else { continue };
            self.node(unread, at, child, 0, is_read, false);
        }
    }

    /// Reads a node, where it is a leaf with so many `more` behind it, and then what is below it, but where that is known, or it `is_alone`.
    #[inline(always)]
    fn node(
        &mut self,
        unread: &Unread<'_>,
        at: R::At,
        (node, _, entered): (usize, u8, StateId),
        more: usize,
        is_read: bool,
        is_alone: bool,
    ) {
        self.read += 1 + more;
        let (trie, rows) = (unread.trie, &self.parts.next);
        let Some(next) = self.reader.enter(at, entered) else { return };
        // Whatever comes below a byte behind which the row rests leads there as well.
        let is_leaf = trie.is_leaf(node);
        let rests = || trie.below(node) & !rows.rests_on(R::state(next)) == 0;
        let is_whole = is_leaf || is_read && rests();
        let tokens =
            if is_whole { trie.subtree(node).start..trie.subtree(node + more).end } else { trie.own(node) };
        if !tokens.is_empty() && self.reader.can_end(next) {
            let state = R::state(next);
            match unread.part {
                Part::Tails(tails, run) => {
                    let most = run.reach.unwrap_or(0);
                    tails.among(tokens, run.own, run.spelled.within, most, |tokens| {
                        (self.found)(tokens, state)
                    });
                }
                _ => (self.found)(&trie.all_tokens()[tokens], state),
            }
        }
        if !is_whole && !is_alone {
            let beside = match unread.part {
                Part::Beside(near) if !is_read => Some(near.stays),
                _ => None,
            };
            self.push(trie.children(Some(node)), next, is_read, beside);
        }
    }

    /// Reads a node whose byte leads elsewhere than from the state beside.
    fn beside(&mut self, trie: &Trie, at: R::At, (node, byte, entered): (usize, u8, StateId), near: Near) {
        self.read += 1;
        let next = if entered == StateId::DEAD { None } else { self.reader.enter(at, entered) };
        let goes_on = near.stays_by(byte) && next.is_some_and(|next| R::is_on_same(next, at));
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
                self.push(trie.children(Some(node)), next, !goes_on, goes_on.then_some(near.stays));
            }
        }
    }

    /// Goes on with children whose bytes lead on, or elsewhere than from a state beside.
    #[inline(always)]
    fn push(&mut self, children: Children, at: R::At, is_read: bool, beside: Option<StateId>) {
        let (mut leads, state) = (Leads::Runs(&[]), R::state(at));
        match beside {
            Some(other) => self.unlike.push(Unlike::new(self.parts, [state, other], &children)),
            None => {
                // By runs, leaves beside one another are read at once.
                let parts = self.parts;
                leads = if children.are_many() { parts.leads_by_runs(state) } else { parts.leads(state) };
            }
        }
        self.levels.push(Level { at, children, leads, is_read, is_beside: beside.is_some() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraint::Syntax;
    use crate::vocabulary::symbol;
    use crate::{Constraint, Limits, TokenTable, Vocabulary};

    /// The tokens of text that may follow, found by walking the trie, and one after the other.
    fn both(table: &TokenTable, vocabulary: &Vocabulary, position: &RowPosition) -> [Vec<u32>; 2] {
        let parts = table.parts();
        let (mut walked, trie) = (Vec::new(), vocabulary.trie());
        let mut left = Left::new(position.remaining.saturating_sub(1));
        parts.each_text(position, &mut left, [Unread::all(trie)], |tokens, state| {
            for &token in tokens {
                assert_eq!(table.after(position, token).state, state);
                walked.push(token.0);
            }
        });
        walked.sort_unstable();
        let text = (0..vocabulary.len() as u32).filter(|&id| vocabulary.bytes(TokenId(id)).is_some());
        let may_follow = |&id: &u32| {
            let after = table.after(position, TokenId(id));
            after.state != StateId::DEAD && table.can_end(&after)
        };
        [walked, text.filter(may_follow).collect()]
    }

    /// Digits that are leaves lead to one state together, as far as its run goes, and others among them stand for themselves.
    #[test]
    fn leaves_beside_one_another_are_read_at_once() {
        let digits = (0..1000).map(|number| number.to_string());
        let words: Vec<String> = digits.chain(["12a", "12b", "345", "3456"].map(str::to_owned)).collect();
        let words: std::collections::BTreeSet<String> = words.into_iter().collect();
        let vocabulary = Vocabulary::from_bytes(words.iter().map(Some).chain([None])).unwrap();
        let vocabulary = vocabulary.with_eos([TokenId(words.len() as u32)]).unwrap();
        for regex in ["[0-9]{2,9}", "[0-5]{1,4}[3-9]{0,3}", "([0-9]{2}[02-68]){1,2}", "1?[0-9]{4}|12[ab]"] {
            let regex = Constraint::regex(regex).unwrap();
            let table = TokenTable::walk(&regex, &vocabulary, &Limits::default()).unwrap();
            for budget in [1, 2, 3, 20] {
                let position = RowPosition::new(table.start(), budget);
                let [walked, one_by_one] = both(&table, &vocabulary, &position);
                assert_eq!(walked, one_by_one, "{regex:?}, {budget}");
            }
        }
    }

    #[test]
    fn subtrees_behind_which_a_row_rests_are_found_as_a_whole() {
        let words =
            ["a", "ab", "abc", "ab1", "aé", "(", "(a", "(ab", ")", "a)", "ab)", "+", "ab+ab", "1", "é"];
        let vocabulary = Vocabulary::from_bytes(words.map(Some).into_iter().chain([None])).unwrap();
        let vocabulary = vocabulary.with_eos([TokenId(words.len() as u32)]).unwrap();
        let grammar = r#"root ::= name | "(" root ")" | root "+" name
name ::= [a-z] [a-z0-9]*"#;
        let grammar = Constraint::grammar(Syntax::Gbnf, grammar).unwrap();
        let word = Constraint::regex("[a-z][a-z0-9]*").unwrap();
        let limits = Limits::default();
        let tables = [
            TokenTable::compile(&grammar, &vocabulary, &limits).unwrap(),
            TokenTable::walk(&word, &vocabulary, &limits).unwrap(),
        ];
        for (table, text) in tables.iter().zip([&[6, 7, 5, 1, 0, 8][..], &[0, 3, 13]]) {
            for budget in 1..=12 {
                let mut position = RowPosition::new(table.start(), budget);
                for &token in text {
                    let [walked, one_by_one] = both(table, &vocabulary, &position);
                    assert_eq!(walked, one_by_one, "{position:?}");
                    position = table.after(&position, TokenId(token));
                    if position.state == StateId::DEAD || !table.can_end(&position) {
                        break;
                    }
                }
            }
        }
        let rests_on = |state| tables[1].parts().next.rests_on(StateId(state));
        let mut rests = (0..tables[1].state_count() as u32).map(rests_on);
        assert!(rests.any(|rests| rests & 1 << symbol(b'b') != 0 && rests & 1 << symbol(b'+') == 0));
    }
}
