//! How many plain characters may be read from a place, whichever they are.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::stack::{Stacks, Top};
use super::{Left, StateId, TableParts, TokenReading};
use crate::vocabulary::{Plainness, WIDE, is_control_byte, is_plain_byte};

/// The most places to which characters may lead of which that is found out.
const MOST_PLACES: usize = 32;

/// How plain characters are read.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PlainText {
    /// The columns of their bytes.
    word: Vec<u32>,
    ascii: Vec<u32>,
    /// Of characters beyond ASCII, byte by byte.
    wide: Vec<Vec<Vec<u32>>>,
    /// Of control characters.
    control: Vec<u32>,
    /// By kind.
    successors: [Successors; 3],
}

impl PlainText {
    pub(super) fn new(column_of: &[u32; 256]) -> Self {
        let columns = |bytes: &mut dyn Iterator<Item = u8>| {
            let mut columns: Vec<u32> = bytes.map(|byte| column_of[byte as usize]).collect();
            columns.sort_unstable();
            columns.dedup();
            columns
        };
        let mut wide = WIDE
            .map(|bytes| bytes.iter().map(|&(first, last)| columns(&mut (first..=last))).collect())
            .to_vec();
        wide.sort_unstable();
        wide.dedup();
        Self {
            word: columns(&mut (0..=u8::MAX).filter(u8::is_ascii_alphanumeric)),
            ascii: columns(&mut (0..=u8::MAX).filter(|&byte| is_plain_byte(byte))),
            wide,
            control: columns(&mut (0..=u8::MAX).filter(|&byte| is_control_byte(byte))),
            successors: Default::default(),
        }
    }
}

/// Of a state the one that every plain character of a kind leads to, without a call or a return, as far as that was found; 0 where not. In counted text each
/// state leads to another, and steps go from one to the next.
#[derive(Default)]
struct Successors(OnceLock<Box<[AtomicU32]>>);

impl Successors {
    fn of(&self, state: StateId) -> Option<StateId> {
        let next = self.0.get()?[state.index()].load(Relaxed);
        (next != 0).then_some(StateId(next))
    }

    /// Of a table of so many states.
    fn set(&self, states: usize, state: StateId, next: StateId) {
        let all = self.0.get_or_init(|| (0..states).map(|_| AtomicU32::new(0)).collect());
        all[state.index()].store(next.0, Relaxed);
    }
}

impl Clone for Successors {
    /// What was found is found anew.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Successors {
    /// They follow from the table.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Successors {}

/// Which plain tokens of a kind, and of those before it, may follow at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainRun {
    pub(crate) kind: Plainness,
    /// All that have at most so many characters may follow, and no others.
    pub(crate) characters: usize,
    /// Whether a control character may follow some of them.
    pub(crate) control: bool,
}

impl TableParts {
    /// The plain tokens that may follow in `state`, if so many tokens are `left` behind the next one; `None` where that does not
    /// depend on their lengths alone.
    pub(crate) fn plain_run(
        &self,
        state: StateId,
        stack: Option<(&mut Stacks<'_>, Top)>,
        left: &mut Left,
    ) -> Option<PlainRun> {
        let TokenReading::Bytes { plain, vocabulary, .. } = &self.reading else { return None };
        let (stacks, top) = stack.unzip();
        let mark = stacks.as_ref().map(|stacks| stacks.mark());
        let mut run = Run {
            parts: self,
            plain,
            stacks,
            left,
            places: Vec::new(),
            at: Vec::new(),
            next: Vec::new(),
            moves_stack: false,
        };
        let start = (state, top.unwrap_or(Top::EMPTY));
        let kinds = [Plainness::Wide, Plainness::Ascii, Plainness::Word];
        let found =
            kinds.into_iter().find_map(|kind| run.of(kind, start, vocabulary.plain_lengths(kind).len() - 1));
        if let (Some(stacks), Some(mark)) = (run.stacks, mark) {
            stacks.forget(mark);
        }
        found
    }
}

/// A state in which a row may rest amid a token, and the frame on top of its stack then.
type Place = (StateId, Top);

/// Reads characters.
struct Run<'a, 'b> {
    parts: &'a TableParts,
    plain: &'a PlainText,
    stacks: Option<&'a mut Stacks<'b>>,
    left: &'a mut Left,
    /// Where the row may be.
    places: Vec<Place>,
    /// Where it may be amid a character.
    at: Vec<Place>,
    /// Scratch.
    next: Vec<Place>,
    /// Whether a call or a return was met.
    moves_stack: bool,
}

impl Run<'_, '_> {
    /// The tokens of this kind that may follow at `start`, none of which has more than `longest` characters; `None` where after some
    /// characters one may be read and another not, or where no token may end.
    fn of(&mut self, kind: Plainness, start: Place, longest: usize) -> Option<PlainRun> {
        let mut places = vec![start];
        let mut run = PlainRun { kind, characters: 0, control: self.reads_control(&places) };
        while run.characters < longest {
            if !self.character(kind, &places)? {
                return Some(run);
            }
            if !(0..self.places.len()).all(|at| self.can_end(self.places[at])) {
                return None;
            }
            if self.places == places {
                run.characters = longest;
            } else {
                run.characters += 1;
                run.control |= self.reads_control(&self.places);
                std::mem::swap(&mut self.places, &mut places);
            }
        }
        Some(run)
    }

    /// Whether a control character may be read at one of some places.
    fn reads_control(&self, places: &[Place]) -> bool {
        let reads = |&(state, _): &Place| {
            let row = self.parts.row(state);
            self.plain.control.iter().any(|&column| row[column as usize] != StateId::DEAD.0)
        };
        places.iter().any(reads)
    }

    /// Finds the `places` that the characters of a kind lead to from others; whether they may be read, `None` where only some may.
    fn character(&mut self, kind: Plainness, from: &[Place]) -> Option<bool> {
        self.places.clear();
        let plain = self.plain;
        let successors = &plain.successors[kind as usize];
        if let &[(state, top)] = from
            && let Some(next) = successors.of(state)
        {
            self.places.push((next, top));
            return Some(true);
        }
        self.moves_stack = false;
        let is_read =
            self.bytes(from, &[if kind == Plainness::Word { &plain.word } else { &plain.ascii }])?;
        if kind == Plainness::Wide {
            for sequence in &plain.wide {
                if self.bytes(from, sequence)? != is_read {
                    return None;
                }
            }
        }
        if let (true, &[(state, _)], &[(next, _)]) = (is_read && !self.moves_stack, from, &self.places[..]) {
            successors.set(self.parts.tokens_to_end.len(), state, next);
        }
        Some(is_read)
    }

    /// The same of characters whose bytes have these columns.
    fn bytes(&mut self, from: &[Place], sequence: &[impl AsRef<[u32]>]) -> Option<bool> {
        self.at.clear();
        self.at.extend_from_slice(from);
        for columns in sequence {
            if !self.byte(columns.as_ref())? {
                return Some(false);
            }
        }
        for place in &self.at {
            if !self.places.contains(place) {
                self.places.push(*place);
            }
        }
        (self.places.len() <= MOST_PLACES).then_some(true)
    }

    /// Reads a byte, whose columns are these.
    fn byte(&mut self, columns: &[u32]) -> Option<bool> {
        self.next.clear();
        let mut is_read = None;
        for &(state, top) in &self.at {
            let row = self.parts.row(state);
            let mut last = None;
            for &column in columns {
                let to = row[column as usize];
                if last == Some(to) {
                    continue;
                }
                last = Some(to);
                let lives = to != StateId::DEAD.0;
                if *is_read.get_or_insert(lives) != lives {
                    return None;
                }
                if lives && !self.next.contains(&(StateId(to), top)) {
                    self.next.push((StateId(to), top));
                }
            }
        }
        if let Some(stacks) = &mut self.stacks {
            for at in 0..self.next.len() {
                let entered = self.next[at];
                let (state, top) = stacks.settle(entered.0, entered.1);
                self.moves_stack |= (state, top) != entered;
                // Characters of several lengths make calls of their own, which return alike.
                let mut met = self.places.iter().chain(&self.next[..at]).map(|&(_, met)| met);
                self.next[at] = (state, met.find(|&met| stacks.are_alike(met, top)).unwrap_or(top));
            }
            // The stack may have no room.
            if self.next.iter().any(|&(state, _)| state == StateId::DEAD) {
                return None;
            }
        }
        std::mem::swap(&mut self.at, &mut self.next);
        (self.at.len() <= MOST_PLACES).then_some(is_read == Some(true))
    }

    fn can_end(&mut self, (state, top): Place) -> bool {
        match &self.stacks {
            None => self.left.reach(self.parts.tokens_to_end[state.index()]),
            Some(stacks) => self.left.reach(stacks.to_end(state, top)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::constraint::Syntax;
    use crate::table::RowPosition;
    use crate::vocabulary::{Plainness, TokenId};
    use crate::{Constraint, Limits, TokenTable, Vocabulary};
    use serde_json::json;

    /// Every byte is the token of its number; behind them are plain tokens of all kinds and lengths.
    fn vocabulary() -> Vocabulary {
        let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
        // The last one is too long to be plain, as all those that begin with it.
        let spaces = " ".repeat(129);
        let runs = ["0123456789abcdefghijklmnopqrstu", "a b, c-d e_f g h i", "aé ü漢🙂b ß𝄞- x y z", &spaces];
        let plain = runs.iter().flat_map(|run| {
            (2..=run.chars().count()).map(|length| run.chars().take(length).collect::<String>())
        });
        let others = ["\n", " \n", "a\n", "é\t\"", "\t\"", "a-", "-a", "  ", "é", "éé", "x\"", "A", "AB"]
            .map(String::from);
        let words = bytes.chain(plain.chain(others).map(String::into_bytes)).map(Some);
        let vocabulary = Vocabulary::from_bytes(words.chain([None])).unwrap();
        let end = TokenId(vocabulary.len() as u32 - 1);
        vocabulary.with_eos([end]).unwrap()
    }

    fn less_plain(vocabulary: &Vocabulary, kind: Plainness, control: bool) -> BTreeSet<TokenId> {
        let tries = vocabulary.less_plain(kind, control);
        let tokens = tries.flat_map(|(trie, begins)| {
            let nodes = trie.by_first_byte().filter(move |&(byte, _)| begins(byte));
            nodes.flat_map(|(_, nodes)| trie.tokens_within(&nodes))
        });
        tokens.copied().collect()
    }

    /// Follows `text` and compares what is known of plain tokens with each of them. How often each kind was known, and how often
    /// none.
    fn compare(
        table: &TokenTable,
        vocabulary: &Vocabulary,
        text: &str,
        budget: u32,
        skips: &mut usize,
    ) -> [usize; 4] {
        let mut position = RowPosition::new(table.start(), budget);
        let mut known = [0; 4];
        for &byte in text.as_bytes() {
            position = table.after(&position, TokenId(byte.into()));
            let mut stack = table.parts().calls.as_ref().map(|calls| Stacks::of(calls, &position));
            let stack = stack.as_mut().map(|(stacks, top)| (stacks, *top));
            let mut left = Left::new(position.remaining - 1);
            let run = table.parts().plain_run(position.state, stack, &mut left);
            known[run.map_or(3, |run| run.kind as usize)] += 1;
            let Some(run) = run else { continue };
            for (id, token) in (0..).map(TokenId).zip(vocabulary.plain_tokens()) {
                if token.kind <= run.kind {
                    let after = table.after(&position, id);
                    let is_among = usize::from(token.characters) <= run.characters;
                    assert_eq!(table.can_end(&after), is_among, "{run:?}, token {id:?}, {position:?}");
                }
            }
            if !run.control {
                let kept = less_plain(vocabulary, run.kind, false);
                for id in less_plain(vocabulary, run.kind, true).difference(&kept) {
                    assert!(
                        !table.can_end(&table.after(&position, *id)),
                        "{run:?}, token {id:?}, {position:?}"
                    );
                    *skips += 1;
                }
            }
        }
        known
    }

    #[test]
    fn plain_tokens_follow_by_their_lengths() {
        let schema = |schema| Constraint::json_schema(schema).unwrap();
        let string = |more: serde_json::Value| {
            let mut all = json!({"type": "string"});
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            schema(all)
        };
        let long = format!("\"{}", "abcdé".repeat(60));
        let words = format!("\"{}{}", "abcd ".repeat(28), "x".repeat(150));
        let digits = format!("\"{}", "7".repeat(254));
        let nested = "((0123456789abcdefghij(0123456789abcdefghij))0123456789abcdefghij)".to_owned();
        let brackets = r#"root ::= "(" ( [a-z0-9]{20} | root )* ")""#;
        let cases = [
            (string(json!({})), &long, [0, 0, 361, 0]),
            // Blocks of characters are called, the first from the state behind the quotation mark.
            (string(json!({"maxLength": 300})), &long, [0, 0, 361, 0]),
            (string(json!({"minLength": 280, "maxLength": 320})), &long, [0, 0, 361, 0]),
            (string(json!({"pattern": "^[ -~]{3,300}$"})), &digits, [0, 255, 0, 0]),
            (string(json!({"pattern": "^[0-9A-Za-z]*$"})), &digits, [255, 0, 0, 0]),
            (string(json!({"pattern": "^[0-9A-Za-z_-]{1,255}$"})), &digits, [255, 0, 0, 0]),
            (string(json!({"pattern": "^[A-Z0-9]*$"})), &digits, [0, 0, 0, 255]),
            (
                string(json!({"maxLength": 300, "pattern": "^(?:\\S+\\s+){0,29}\\S+$"})),
                &words,
                [182, 0, 0, 0],
            ),
            (Constraint::regex("[ -~]{250}").unwrap(), &words, [0, 249, 42, 0]),
            (Constraint::regex("(?s).{3,400}").unwrap(), &words, [0, 0, 291, 0]),
            (Constraint::grammar(Syntax::Gbnf, brackets).unwrap(), &nested, [0, 0, 1, 65]),
        ];
        let vocabulary = vocabulary();
        let mut skips = 0;
        for (constraint, text, least) in cases {
            for frames in [0, 4, 64] {
                let limits = Limits { frames, ..Limits::default() };
                let Ok(table) = TokenTable::walk(&constraint, &vocabulary, &limits) else {
                    assert_eq!(frames, 0, "{constraint:?}");
                    continue;
                };
                let mut known = compare(&table, &vocabulary, text, RowPosition::UNLIMITED, &mut skips);
                assert!(
                    known.iter().zip(&least).all(|(known, least)| known >= least),
                    "{known:?} of {least:?}"
                );
                for budget in [text.len() as u32 + 3, text.len() as u32 + 40] {
                    known = compare(&table, &vocabulary, text, budget, &mut skips);
                }
                assert!(known.iter().sum::<usize>() == text.len());
            }
        }
        assert!(skips > 10_000, "{skips}");
    }

    /// A run is read as far as the longest plain token; what follows more characters than that is not known by it.
    #[test]
    fn a_control_character_behind_more_characters_than_a_plain_token_has_is_walked() {
        let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
        let words = bytes.chain(["ab", "abababab\n", "a\n"].map(|text| text.as_bytes().to_vec()));
        let vocabulary = Vocabulary::from_bytes(words.map(Some).chain([None])).unwrap();
        let vocabulary = vocabulary.with_eos([TokenId(259)]).unwrap();
        let constraint = Constraint::regex("[^\\x00-\\x1f]{8}\\n").unwrap();
        let table = TokenTable::walk(&constraint, &vocabulary, &Limits::default()).unwrap();
        assert!(table.accepts(&[TokenId(257), TokenId(259)]));
        let run = table.parts().plain_run(table.start(), None, &mut Left::new(u32::MAX - 1)).unwrap();
        assert_eq!((run.characters, run.control), (2, false));
        let walked = less_plain(&vocabulary, run.kind, run.control);
        assert!(walked.contains(&TokenId(257)) && !walked.contains(&TokenId(258)));
    }
}
