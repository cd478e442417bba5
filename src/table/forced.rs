//! Tokens that a state leaves no choice about.

use super::{Parts, Reading, TokenTable};
use crate::automaton::StateId;
use crate::vocabulary::{TokenId, Vocabulary};

/// More legal tokens than this are never all beginnings of one another.
const MOST: usize = 256;

impl TokenTable {
    /// The forced token of every state, the reserved ones left out: the only legal one or, where `longest` is asked
    /// for, the one that all legal tokens are beginnings of.
    pub(crate) fn forced(&self, vocabulary: &Vocabulary, longest: bool) -> Vec<Option<TokenId>> {
        let parts = self.parts();
        let most = if longest { MOST } else { 1 };
        let members = members(parts);
        let mut legal = Vec::new();
        (0..self.state_count() as u32)
            .map(|state| {
                legal.clear();
                if state < StateId::RESERVED || !parts.few_legal(StateId(state), &members, most, &mut legal) {
                    return None;
                }
                match legal[..] {
                    [only] => Some(only),
                    _ => longest_of(&legal, vocabulary),
                }
            })
            .collect()
    }
}

/// The tokens of each column of a tabulated table, of each reserved column of a walked one.
fn members(parts: &Parts) -> Vec<Vec<TokenId>> {
    let mut members = vec![Vec::new(); parts.columns];
    for id in (0..parts.vocabulary_len as u32).map(TokenId) {
        let column = match &parts.reading {
            Reading::Classes(class) => Some(class[id.index()]),
            Reading::Bytes { .. } => parts.reserved_column(id),
        };
        if let Some(column) = column {
            members[column as usize].push(id);
        }
    }
    members
}

impl Parts {
    /// Collects the legal tokens of a state of the constraint; false where there are more than `most`, or where more
    /// than one byte may come next.
    fn few_legal(
        &self,
        state: StateId,
        members: &[Vec<TokenId>],
        most: usize,
        legal: &mut Vec<TokenId>,
    ) -> bool {
        let row = self.row(state);
        let columns = row.iter().zip(members).filter(|&(&next, _)| next != StateId::DEAD.0);
        for tokens in columns.map(|(_, tokens)| tokens) {
            if legal.len() + tokens.len() > most {
                return false;
            }
            legal.extend(tokens);
        }
        if let Reading::Bytes { column_of, vocabulary, .. } = &self.reading {
            let alive = column_of.iter().filter(|&&column| row[column as usize] != StateId::DEAD.0);
            match (alive.take(2).count(), legal.len()) {
                (0, _) => {}
                (1, 0) => self.each_text(state, vocabulary, column_of, false, |id, _| legal.push(id)),
                _ => return false,
            }
        }
        !legal.is_empty() && legal.len() <= most
    }
}

/// The token that all are beginnings of.
fn longest_of(legal: &[TokenId], vocabulary: &Vocabulary) -> Option<TokenId> {
    let bytes = |id: TokenId| vocabulary.bytes(id);
    // The first of the longest, and no end of sequence beside it.
    let longest = legal.iter().copied().rev().max_by_key(|&id| bytes(id).map_or(0, <[u8]>::len))?;
    let whole = bytes(longest)?;
    legal.iter().all(|&id| bytes(id).is_some_and(|part| whole.starts_with(part))).then_some(longest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Constraint, Limits};

    #[test]
    fn forced_tokens_are_the_same_in_both_forms() {
        let words = ["a", "ab", "abc", "b", "c", "bc", "x", "é"].map(|word| Some(word.as_bytes().to_vec()));
        let bytes = "é".bytes().map(|byte| Some(vec![byte]));
        let vocabulary = Vocabulary::from_bytes(words.into_iter().chain(bytes).chain([None])).unwrap();
        let vocabulary = vocabulary.with_eos([TokenId(10)]).unwrap();
        let constraint = Constraint::regex("abc(x|é)x").unwrap();
        for compile in [TokenTable::tabulate, TokenTable::walk] {
            let table = compile(&constraint, &vocabulary, &Limits::default()).unwrap();
            let after = |text: &[u32]| {
                text.iter().fold(table.start(), |state, &id| table.next(state, TokenId(id))).index()
            };
            for (longest, start) in [(true, Some(TokenId(2))), (false, None)] {
                let forced = table.forced(&vocabulary, longest);
                assert_eq!(forced[table.start().index()], start);
                assert_eq!(forced[after(&[1])], Some(TokenId(4)), "only `c`");
                assert_eq!(forced[after(&[2])], None, "`x` or `é`");
                assert_eq!(forced[after(&[2, 6])], Some(TokenId(6)));
                assert_eq!(forced[after(&[2, 6, 6])], Some(TokenId(10)), "the end");
                assert!(forced[..StateId::RESERVED as usize].iter().all(Option::is_none));
            }
        }
    }
}
