//! Places where nearly the same tokens may follow as where a row stays.
//!
//! At the start of a name of an object, and amid one, most characters lead to where any other name goes on, and a row stays there by most
//! of them. What may follow there is known once for all such places, and each of them differs by the tokens that begin as its
//! own names do.

use super::rows::entered;
use super::{Left, RowPosition, StateId, TableParts, TokenReading};
use crate::automaton::{Differences, Run};
use crate::vocabulary::CharacterSet;

/// Where no more nodes of the trie begin with the bytes that lead to one state, they are read.
const FEW_NODES: usize = 512;

/// So many bytes leave a row where it stays: where they are fewer, as those of white space, few tokens may follow, and are soon read.
const MANY: usize = 16;

/// Nodes of the trie that follow where a row stays, and not at a place near it, at most.
const MOST_DEAD: usize = 512;

/// A state in which a row stays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near {
    pub(crate) stays: StateId,
    /// The bytes of ASCII that leave it there.
    within: CharacterSet,
}

impl Near {
    /// A state in which a row stays by the characters within a set.
    pub(super) fn of(stays: StateId, within: CharacterSet) -> Self {
        Self { stays, within: within.and(CharacterSet::ASCII) }
    }

    /// Whether a byte leaves a row there.
    #[inline]
    pub(super) fn stays_by(&self, byte: u8) -> bool {
        self.within.contains(byte)
    }
}

impl TableParts {
    /// The state that most tokens lead to by their first bytes at `position`, where a row stays there, can end there with so many tokens `left`, and
    /// hardly more may follow. Known of rows that are written on demand only.
    pub(crate) fn near(&self, position: &RowPosition, left: &mut Left) -> Option<Near> {
        let TokenReading::Bytes { vocabulary, .. } = &self.reading else { return None };
        let trie = vocabulary.trie();
        let runs = self.next.runs(position.state)?;
        let nodes = |run: &Run| trie.count_between(run.first, run.last);
        let ascii = runs.iter().filter(|run| run.last.is_ascii()).map(|run| (nodes(run), run));
        let (_, main) = ascii.max_by_key(|&(nodes, _)| nodes).filter(|&(nodes, _)| nodes > FEW_NODES)?;
        let stays = entered(main);
        let others = self.next.runs(stays).filter(|_| stays != position.state)?;
        let own = |run: &&Run| entered(run) == stays && run.last.is_ascii();
        let within = others.iter().filter(own).map(|run| CharacterSet::between(run.first, run.last));
        let within = within.fold(CharacterSet::default(), CharacterSet::or);
        let is_broad = within.contains(main.first) && within.count() >= MANY;
        if !is_broad || self.calls.as_ref().is_some_and(|calls| !calls.is_plain(stays)) {
            return None;
        }
        let mut dead = 0;
        for (first, last) in Differences::new(runs, others) {
            if !runs.iter().any(|run| run.first <= first && first <= run.last) {
                dead += trie.count_between(first, last);
            }
            if !last.is_ascii() || dead > MOST_DEAD {
                return None;
            }
        }
        left.reach(self.to_end(stays, &position.frames)).then(|| Near::of(stays, within))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Constraint, Limits, TokenId, TokenTable, Vocabulary};

    #[test]
    fn amid_a_name_a_row_is_near_where_any_other_name_goes_on() {
        let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
        let letters = || b'a'..=b'z';
        let pairs = letters().flat_map(|a| letters().map(move |b| [a, b]));
        let triples = pairs.flat_map(|[a, b]| letters().map(move |c| vec![a, b, c]));
        let words: Vec<_> = bytes.chain(triples).map(Some).chain([None]).collect();
        let end = TokenId(words.len() as u32 - 1);
        let vocabulary = Vocabulary::from_bytes(words).unwrap().with_eos([end]).unwrap();
        let text = Constraint::regex(r#""nab":[0-9]{3}|"[a-z]*":[a-z]|_"#).unwrap();
        let table = TokenTable::walk(&text, &vocabulary, &Limits::default()).unwrap();
        let after = |text: &str| {
            let start = RowPosition::unlimited(table.start());
            text.bytes().fold(start, |at, byte| table.after(&at, TokenId(byte.into())))
        };
        let near = |text: &str, tokens| table.parts().near(&after(text), &mut Left::new(tokens));
        let is_near = |text: &str, tokens| near(text, tokens).is_some();
        let other = after("\"q").state;
        for text in ["\"", "\"n", "\"na", "\"nab"] {
            let near = near(text, 4).unwrap();
            assert_eq!(near.stays, other, "{text}");
            assert!(
                near.stays_by(b'a') && near.stays_by(b'z') && !near.stays_by(b'"') && !near.stays_by(0xc3)
            );
            // A quotation mark, a colon, a letter and the end.
            assert!(!is_near(text, 3), "{text}");
        }
        // Where it stays itself, and where all is different.
        for text in ["\"q", "", "\"nab\":", "\"q\":"] {
            assert!(!is_near(text, 4), "{text}");
        }
    }
}
