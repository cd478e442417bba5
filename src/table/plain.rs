//! The states of a walked table that every plain token may follow.

use std::rc::Rc;

use super::stack::{Stacks, Top};
use super::{Left, StateId, TableParts, TokenReading};
use crate::automaton::{Csr, FastMap};
use crate::vocabulary::{LONGEST_PLAIN, Plainness, WIDE, is_plain_byte};

/// The most calls that are looked at to see what a plain token may pass.
const MOST_CALLS: usize = 128;

/// Which plain tokens a state takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TakesPlain {
    /// All of this kind, and of those before it.
    kind: Plainness,
    /// The outcomes with which they may leave the state's piece, as bits: what follows there has to take them as well.
    leaves: u16,
    /// The least number of characters that leave the piece, if some do.
    soonest: u8,
}

impl TakesPlain {
    /// Whether a plain token of which so many characters were read before the state may leave its piece.
    fn may_leave(self, read: u8) -> bool {
        self.leaves != 0 && usize::from(read + self.soonest) <= LONGEST_PLAIN
    }
}

impl TableParts {
    /// The kind of plain tokens of which all may follow, if so many tokens are `left` behind the next one; `None` where that is
    /// not known.
    pub(crate) fn all_plain(
        &self,
        state: StateId,
        stack: Option<(&Stacks<'_>, Top)>,
        left: &mut Left,
    ) -> Option<Plainness> {
        let TokenReading::Bytes { takes_plain, farthest, .. } = &self.reading else { return None };
        let takes = takes_plain[state.index()]?;
        let mut kind = takes.kind;
        let (Some(calls), Some((stacks, top))) = (&self.calls, stack) else {
            return left.reach(*farthest).then_some(kind);
        };
        if !left.reach(stacks.farthest(top)?) {
            return None;
        }
        if takes.leaves != 0 {
            // Past the end of the piece, perhaps in one of those called next: there the way to the end is as long as that from the
            // frame below, and twice the longest, at most.
            let (call, below) = stacks.caller(top)?;
            if !left.reach(stacks.farthest(below)?.saturating_add(calls.longest)) {
                return None;
            }
            // The calls whose pieces a token may leave, by which outcomes, and the characters that were read by then.
            let mut met = vec![(call, takes.leaves, takes.soonest)];
            let mut at = 0;
            while let Some(&(call, leaves, read)) = met.get(at) {
                at += 1;
                for (outcome, &to) in calls.jump(call)[1..].iter().enumerate() {
                    if leaves >> outcome & 1 == 0 {
                        continue;
                    }
                    let enter = calls.jump(to as u32)[0];
                    let there =
                        takes_plain[u32::try_from(if enter == 0 { to } else { enter }).ok()? as usize]?;
                    kind = kind.min(there.kind);
                    let is_known = |&(call, _, sooner): &(u32, u16, u8)| {
                        call == to as u32 && sooner <= read + there.soonest
                    };
                    match there.may_leave(read) {
                        true if enter == 0 || met.len() == MOST_CALLS => return None,
                        true if !met.iter().any(is_known) => {
                            met.push((to as u32, there.leaves, read + there.soonest));
                        }
                        _ => {}
                    }
                }
            }
        }
        Some(kind)
    }

    /// Finds the states that every plain token may follow: those from which any run of plain characters stays alive
    /// for as long as the longest plain token, or leaves the piece.
    pub(super) fn find_plain(&mut self) {
        let TokenReading::Bytes { column_of, .. } = &self.reading else { return };
        let columns = |bytes: &mut dyn Iterator<Item = u8>| {
            let mut columns: Vec<u32> = bytes.map(|byte| column_of[byte as usize]).collect();
            columns.sort_unstable();
            columns.dedup();
            columns
        };
        let ascii = columns(&mut (0..=u8::MAX).filter(|&byte| is_plain_byte(byte)));
        let word = columns(&mut (0..=u8::MAX).filter(u8::is_ascii_alphanumeric));
        let wide = WIDE
            .map(|bytes| bytes.iter().map(|&(first, last)| columns(&mut (first..=last))).collect::<Vec<_>>());
        let states = self.tokens_to_end.len();
        // Of each kind the states that take any character; of words those that take no other of ASCII.
        let mut takes = [Characters::new(states), Characters::new(states)];
        let mut of_words = Characters::new(0);
        let (mut after, mut next, mut begun) = (Vec::new(), Vec::new(), Vec::new());
        let first: Vec<u32> = wide.iter().flat_map(|sequence| &sequence[0]).copied().collect();
        // By what the first bytes of all sequences lead to: what follows these characters, if all of them can be read.
        let mut rests: FastMap<Box<[u32]>, Option<Rc<[u32]>>> = FastMap::default();
        let (mut last, mut rest) = (Vec::new(), None);
        for state in StateId::RESERVED..states as u32 {
            after.clear();
            after.push(state);
            if !self.follow(&mut after, &mut next, &ascii) || !self.may_end(&after) {
                after.clear();
                after.push(state);
                if self.follow(&mut after, &mut next, &word) && self.may_end(&after) {
                    of_words.grow(states);
                    of_words.takes[state as usize] = true;
                    after.iter().for_each(|&to| of_words.add(self, state, to));
                }
                continue;
            }
            let [of_ascii, of_any] = &mut takes;
            of_ascii.takes[state as usize] = true;
            after.iter().for_each(|&to| of_ascii.add(self, state, to));
            let row = self.row(StateId(state));
            begun.clear();
            begun.extend(first.iter().map(|&column| row[column as usize]));
            // Neighbours are often alike.
            if begun != last {
                if !rests.contains_key(&begun[..]) {
                    let rest = self.after_wide(&wide, &begun);
                    rests.insert(begun[..].into(), rest);
                }
                rest.clone_from(&rests[&begun[..]]);
                std::mem::swap(&mut begun, &mut last);
            }
            if let Some(rest) = &rest {
                of_any.takes[state as usize] = true;
                after.iter().chain(rest.iter()).for_each(|&to| of_any.add(self, state, to));
            }
        }
        let [of_ascii, of_any] = takes;
        // Most tables have no state that takes words alone, or characters of ASCII alone.
        let words = match of_words.takes.is_empty() {
            true => vec![None; states],
            false => of_words.with(&of_ascii).tokens(),
        };
        let all = of_any.tokens();
        let takes_less = of_ascii.takes.iter().zip(&all).any(|(&takes, all)| takes && all.is_none());
        let ascii = if takes_less { of_ascii.tokens() } else { vec![None; states] };
        let takes = words.into_iter().zip(ascii).zip(all).map(|((word, ascii), all)| {
            let takes = |kind| move |(leaves, soonest)| TakesPlain { kind, leaves, soonest };
            // What takes all characters may leave sooner than what takes those of ASCII, and that sooner than what takes words.
            let all = all.map(takes(Plainness::Wide));
            all.or(ascii.map(takes(Plainness::Ascii))).or(word.map(takes(Plainness::Word)))
        });
        let takes = takes.collect();
        let alive = (0..states as u32).map(StateId).filter(|&state| self.has_end(state));
        let most = alive.map(|state| self.tokens_to_end[state.index()]).max().unwrap_or(0);
        if let TokenReading::Bytes { takes_plain, farthest, .. } = &mut self.reading {
            (*takes_plain, *farthest) = (takes, most);
        }
    }

    /// What follows the characters of some sequences of columns, whose first columns lead to `begun`; `None` where one of them
    /// cannot be read.
    fn after_wide(&self, wide: &[Vec<Vec<u32>>], begun: &[u32]) -> Option<Rc<[u32]>> {
        let (mut all, mut next, mut begun) = (Vec::new(), Vec::new(), begun);
        for sequence in wide {
            let (own, others) = begun.split_at(sequence[0].len());
            let mut after = own.to_vec();
            after.sort_unstable();
            after.dedup();
            begun = others;
            let is_read = sequence[1..].iter().all(|columns| self.follow(&mut after, &mut next, columns));
            if own.contains(&StateId::DEAD.0) || !is_read || !self.may_end(&after) {
                return None;
            }
            all.extend(after);
        }
        all.sort_unstable();
        all.dedup();
        Some(all.into())
    }

    /// Replaces states by those that the columns lead to; false where one of them leads nowhere.
    pub(super) fn follow(&self, states: &mut Vec<u32>, next: &mut Vec<u32>, columns: &[u32]) -> bool {
        next.clear();
        for &state in states.iter() {
            let row = self.row(StateId(state));
            let mut last = StateId::DEAD.0;
            for &column in columns {
                let to = row[column as usize];
                if to == StateId::DEAD.0 {
                    return false;
                }
                // There are few.
                if to != last && !next.contains(&to) {
                    next.push(to);
                }
                last = to;
            }
        }
        std::mem::swap(states, next);
        true
    }

    /// Whether a token may end in each of the states, or leave its piece there. One that makes a call has to be followed.
    fn may_end(&self, states: &[u32]) -> bool {
        states.iter().all(|&state| self.has_end(StateId(state)) && self.jump(state) <= 0)
    }

    fn jump(&self, state: u32) -> i32 {
        self.calls.as_ref().map_or(0, |calls| calls.jump(state)[0])
    }
}

/// The states that take any plain character of a kind.
struct Characters {
    takes: Vec<bool>,
    /// From each state that follows such a one to that one.
    edges: Vec<(u32, u32)>,
    /// The outcomes with which they leave their pieces, and the least number of characters that do.
    leaves: Vec<(u16, u8)>,
}

impl Characters {
    fn new(states: usize) -> Self {
        Self { takes: vec![false; states], edges: Vec::new(), leaves: vec![(0, 0); states] }
    }

    /// Of so many states.
    fn grow(&mut self, states: usize) {
        self.takes.resize(states, false);
        self.leaves.resize(states, (0, 0));
    }

    /// These states, and others that take more characters: what follows all of those is taken for what follows the fewer.
    fn with(mut self, others: &Self) -> Self {
        for (state, _) in others.takes.iter().enumerate().filter(|(_, takes)| **takes) {
            (self.takes[state], self.leaves[state]) = (true, others.leaves[state]);
        }
        self.edges.extend_from_slice(&others.edges);
        self
    }

    /// A character leads from `state` to `to`.
    fn add(&mut self, parts: &TableParts, state: u32, to: u32) {
        match parts.jump(to) {
            0 => self.edges.push((to, state)),
            // −1 is outcome 0.
            jump => {
                let (leaves, soonest) = &mut self.leaves[state as usize];
                *leaves |= 1 << (jump.unsigned_abs() - 1);
                *soonest = 1;
            }
        }
    }

    /// The states that take the longest plain token, with the outcomes with which it may leave their pieces, and the least number
    /// of characters that do.
    fn tokens(mut self) -> Vec<Option<(u16, u8)>> {
        let states = self.takes.len();
        let backward = Csr::new(states, self.edges.iter().copied());
        // A state takes one character less than the worst of those that follow it.
        let mut short: Vec<u32> = (0..states as u32).filter(|&state| !self.takes[state as usize]).collect();
        let mut leaving: Vec<u32> =
            (0..states as u32).filter(|&state| self.leaves[state as usize].0 != 0).collect();
        for read in 1..LONGEST_PLAIN as u8 {
            let mut next = Vec::new();
            for state in short {
                for &before in backward.of(state) {
                    if std::mem::replace(&mut self.takes[before as usize], false) {
                        next.push(before);
                    }
                }
            }
            short = next;
            let mut next = Vec::new();
            for state in leaving {
                let (leaves, _) = self.leaves[state as usize];
                for &before in backward.of(state) {
                    let (known, soonest) = &mut self.leaves[before as usize];
                    if *known | leaves != *known {
                        *soonest = if *known == 0 { read + 1 } else { *soonest };
                        *known |= leaves;
                        next.push(before);
                    }
                }
            }
            leaving = next;
        }
        self.takes.into_iter().zip(self.leaves).map(|(takes, leaves)| takes.then_some(leaves)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::RowPosition;
    use crate::vocabulary::TokenId;
    use crate::{Constraint, Limits, TokenTable, Vocabulary};
    use serde_json::json;

    /// Plain tokens of 16 characters: of one word, and of many.
    const LONG: [&str; 4] = ["abcdefghijklmnop", "a b c d e f g h ", " a b c d e f g h", "               b"];

    /// Every word of a vocabulary may follow in the states of a pattern that takes letters and digits, and more of other tokens where it
    /// takes those; within its bounds.
    #[test]
    fn words_follow_in_states_that_take_no_other_text() {
        let words = ["a", "Zz9", "0123456789abcdef", "a_b", "-", "a-", " a", "é"];
        let bytes = (0..=u8::MAX).map(|byte| vec![byte]).chain(words.map(|text| text.as_bytes().to_vec()));
        let vocabulary = Vocabulary::from_bytes(bytes.map(Some).chain([None])).unwrap();
        let vocabulary = vocabulary.with_eos([TokenId(256 + words.len() as u32)]).unwrap();
        for (pattern, lengths) in
            [("^[0-9A-Za-z]*$", 0..60), ("^[0-9A-Za-z_-]{1,255}$", 0..239), ("^[A-Z0-9]*$", 0..0)]
        {
            let schema = json!({"type": "string", "pattern": pattern});
            let constraint = Constraint::json_schema(schema).unwrap();
            let table = TokenTable::walk(&constraint, &vocabulary, &Limits::default()).unwrap();
            let mut position = RowPosition::new(table.start(), RowPosition::UNLIMITED);
            position = table.after(&position, TokenId(b'"'.into()));
            for length in 0..255 {
                let stack = table.parts().calls.as_ref().map(|calls| Stacks::of(calls, &position));
                let stack = stack.as_ref().map(|(stacks, top)| (stacks, *top));
                let all = table.parts().all_plain(position.state, stack, &mut Left::new(u32::MAX));
                let plain = vocabulary.plain_tokens();
                let takes = |token: u32| table.can_end(&table.after(&position, TokenId(token)));
                let takes_all = |kind| (0..264).filter(|&token| plain[token as usize] <= kind).all(takes);
                assert!(all.is_none_or(takes_all), "{pattern}, {length}: {all:?}");
                if lengths.contains(&length) {
                    assert_eq!(all, Some(Plainness::Word), "{pattern}, {length}");
                }
                position = table.after(&position, TokenId(b'7'.into()));
            }
        }
    }

    #[test]
    fn plain_tokens_pass_several_blocks_of_a_string() {
        let schema = json!({"type": "string", "maxLength": 300, "pattern": "^(?:\\S+\\s+){0,29}\\S+$"});
        // Every byte is the token of its number.
        let bytes = (0..=u8::MAX).map(|byte| vec![byte]).chain(LONG.map(|text| text.as_bytes().to_vec()));
        let vocabulary = Vocabulary::from_bytes(bytes.map(Some).chain([None])).unwrap();
        let end = TokenId(256 + LONG.len() as u32);
        let vocabulary = vocabulary.with_eos([end]).unwrap();
        let constraint = Constraint::json_schema(schema).unwrap();
        let table = TokenTable::compile(&constraint, &vocabulary, &Limits::default()).unwrap();
        let calls = table.parts().calls.as_ref().unwrap();
        let text = format!("\"{}{}", "abcd ".repeat(28), "x".repeat(150));
        let (mut taken, mut words, mut others) = (0, 0, 0);
        for budget in [RowPosition::UNLIMITED, 400, 310] {
            let mut position = RowPosition::new(table.start(), budget);
            for &byte in text.as_bytes() {
                position = table.after(&position, TokenId(byte.into()));
                let (stacks, top) = Stacks::of(calls, &position);
                let mut left = Left::new(position.remaining - 1);
                let all = table.parts().all_plain(position.state, Some((&stacks, top)), &mut left);
                let plain = vocabulary.plain_tokens();
                let takes = |token| table.can_end(&table.after(&position, TokenId(token)));
                let takes_all = |kind| (256..end.0).filter(|&token| plain[token as usize] <= kind).all(takes);
                assert!(all.is_none_or(takes_all), "{budget} {:?}", position.state);
                *match all {
                    Some(Plainness::Word) => &mut words,
                    Some(_) => &mut taken,
                    None => &mut others,
                } += 1;
            }
        }
        assert!(taken > 200 && words > 200 && others > 10, "{taken} {words} {others}");
    }
}
