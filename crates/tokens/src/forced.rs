//! Tokens forced by a state.

use super::{
    BudgetInterval, CompiledConstraint, ConstraintParts, RowPosition, StateId, TokenReading, Unread,
};
use burn_dfa_vocabulary::{TokenId, Vocabulary};

/// More legal tokens than this are never all prefixes of one another.
const MAX: usize = 256;

impl CompiledConstraint {
    /// The forced token of every state, `None` for reserved states: the only legal token or, if
    /// `longest` is set, the longest token made only of forced bytes. With calls, only such a
    /// longest token is found, up to the first byte that changes the stack: other legal tokens
    /// depend on the stack.
    #[doc(hidden)]
    pub fn forced(&self, vocabulary: &Vocabulary, longest: bool) -> Vec<Option<TokenId>> {
        let parts = self.parts();
        let max = if longest { MAX } else { 1 };
        let tokens_of = tokens_of(parts);
        let bytes = if longest { parts.forced_bytes(&tokens_of, vocabulary) } else { Vec::new() };
        let (mut legal, mut run) = (Vec::new(), Vec::new());
        let forced = |state| {
            legal.clear();
            let few = parts.calls.is_none() && parts.few_legal(state, &tokens_of, max, &mut legal);
            if let ([only], true) = (&legal[..], few) {
                return Some(*only);
            }
            if longest {
                parts.spell(state, &bytes, vocabulary.trie().max_depth(), &mut run);
            }
            let within = parts.longest_within(state, &run, vocabulary);
            let within = within
                .or_else(|| if longest { parts.begins_all(state, &tokens_of, vocabulary) } else { None });
            // If bytes are not tokens, compare the tokens themselves.
            within.or_else(|| if few && longest { longest_of(&legal, vocabulary) } else { None })
        };
        let own = (StateId::RESERVED..self.state_count() as u32).map(StateId);
        std::iter::repeat_n(None, StateId::RESERVED as usize).chain(own.map(forced)).collect()
    }
}

/// The tokens of each column of a token-level constraint, or of each reserved or special column of
/// a byte-level constraint.
fn tokens_of(parts: &ConstraintParts) -> Vec<Vec<TokenId>> {
    let mut tokens_of = vec![Vec::new(); parts.columns()];
    for id in (0..parts.vocabulary_len as u32).map(TokenId) {
        let column = match &parts.reading {
            TokenReading::Classes(class) => class.of(id),
            TokenReading::Bytes { .. } => parts.reserved_column(id),
        };
        if let Some(column) = column {
            tokens_of[column as usize].push(id);
        }
    }
    tokens_of
}

impl ConstraintParts {
    /// Collects the legal tokens of a state of the constraint; false if more than `max` are legal,
    /// or more than one byte may come next.
    fn few_legal(
        &self,
        state: StateId,
        tokens_of: &[Vec<TokenId>],
        max: usize,
        legal: &mut Vec<TokenId>,
    ) -> bool {
        let row = self.row(state);
        let columns = row.iter().zip(tokens_of).filter(|&(&next, _)| self.has_end(StateId(next)));
        for tokens in columns.map(|(_, tokens)| tokens) {
            if legal.len() + tokens.len() > max {
                return false;
            }
            legal.extend(tokens);
        }
        if let TokenReading::Bytes { column_of, vocabulary, .. } = &self.reading {
            let alive = column_of.iter().filter(|&&column| row[column as usize] != StateId::DEAD.0);
            match (alive.take(2).count(), legal.len()) {
                (0, _) => {}
                (1, 0) => {
                    let (position, trie) = (RowPosition::unlimited(state), vocabulary.trie());
                    let mut left = BudgetInterval::new(RowPosition::UNLIMITED - 1);
                    let shortest = self.shortest(state);
                    let fits =
                        |id: &&TokenId| vocabulary.bytes(**id).is_some_and(|bytes| bytes.len() >= shortest);
                    self.each_text(&position, &mut left, [Unread::all(trie)], |ids, _| {
                        legal.extend(ids.iter().filter(fits));
                    });
                }
                _ => return false,
            }
        }
        !legal.is_empty() && legal.len() <= max
    }
}

impl ConstraintParts {
    /// The only possible next byte of every state, and the state after it.
    fn forced_bytes(
        &self,
        tokens_of: &[Vec<TokenId>],
        vocabulary: &Vocabulary,
    ) -> Vec<Option<(u8, StateId)>> {
        let (mut single, mut starts) = ([None; 256], vec![Starts::default(); self.columns()]);
        match &self.reading {
            TokenReading::Classes(_) => {
                for (column, tokens_of) in starts.iter_mut().zip(tokens_of) {
                    tokens_of.iter().for_each(|&id| column.add(vocabulary.bytes(id).map(|bytes| bytes[0])));
                }
                for (id, bytes) in vocabulary.iter() {
                    if let [byte] = bytes {
                        single[*byte as usize] = Some(id);
                    }
                }
            }
            TokenReading::Bytes { column_of, .. } => {
                for (column, tokens_of) in starts.iter_mut().zip(tokens_of) {
                    tokens_of.iter().for_each(|_| column.add(None));
                }
                (0..=u8::MAX).for_each(|byte| starts[column_of[byte as usize] as usize].add(Some(byte)));
            }
        }
        let after = |state: StateId, byte: u8| match &self.reading {
            TokenReading::Classes(_) => {
                single[byte as usize].map_or(StateId::DEAD, |id| self.next(state, id))
            }
            TokenReading::Bytes { column_of, .. } => {
                StateId(self.row(state)[column_of[byte as usize] as usize])
            }
        };
        (0..self.bound_to_end.len() as u32)
            .map(|state| {
                let state = StateId(state);
                let mut all = Starts::default();
                let row = self.row(state).iter();
                // Inside a token, a token path to the end is not required.
                let alive = row.zip(&starts).filter(|&(&to, _)| to != StateId::DEAD.0);
                alive.for_each(|(_, starts)| all.join(starts));
                let byte = all.only()?;
                Some((byte, after(state, byte))).filter(|(_, to)| *to != StateId::DEAD && self.rests(*to))
            })
            .collect()
    }

    /// Writes the forced bytes from `state` on into `run`, at most `max` bytes.
    fn spell(&self, mut state: StateId, bytes: &[Option<(u8, StateId)>], max: usize, run: &mut Vec<u8>) {
        run.clear();
        while let Some((byte, next)) = bytes[state.index()].filter(|_| run.len() < max) {
            run.push(byte);
            state = next;
        }
    }

    /// The legal token of a token-level constraint that is a prefix of all other legal tokens and
    /// has a token as its first byte. If forced text allows only its longest token, the function
    /// returns the longest token: shorter tokens do not reveal which bytes are forced.
    fn begins_all(
        &self,
        state: StateId,
        tokens_of: &[Vec<TokenId>],
        vocabulary: &Vocabulary,
    ) -> Option<TokenId> {
        if self.is_byte_level() {
            return None;
        }
        let columns = self.row(state).iter().zip(tokens_of).filter(|&(&next, _)| self.has_end(StateId(next)));
        let legal = || columns.clone().flat_map(|(_, tokens)| tokens).map(|&id| (id, vocabulary.bytes(id)));
        let first = legal().next()?.1?[0];
        let mut shortest: Option<(TokenId, &[u8])> = None;
        for (id, bytes) in legal() {
            let bytes = bytes.filter(|bytes| bytes[0] == first)?;
            if shortest.is_none_or(|(_, shortest)| bytes.len() < shortest.len()) {
                shortest = Some((id, bytes));
            }
        }
        let (id, own) = shortest.filter(|_| vocabulary.spelled_bytes()[first as usize])?;
        legal().all(|(_, bytes)| bytes.is_some_and(|bytes| bytes.starts_with(own))).then_some(id)
    }

    /// The longest legal token that is a prefix of `run`.
    fn longest_within(&self, state: StateId, run: &[u8], vocabulary: &Vocabulary) -> Option<TokenId> {
        let trie = vocabulary.trie();
        let mut longest = None;
        let (mut node, mut end) = (0, trie.len());
        for &byte in run {
            // The children of a node follow it in order, each after the subtree of the previous
            // child.
            while node < end && trie.byte(node) != byte {
                node = trie.end(node) as usize;
            }
            if node >= end {
                break;
            }
            let mut tokens = trie.tokens(node).iter().copied();
            let legal = tokens.find(|&id| self.has_end(self.next(state, id)));
            longest = legal.or(longest);
            (node, end) = (node + 1, trie.end(node) as usize);
        }
        longest
    }
}

/// The first bytes of a column's tokens: a set of bytes, or no byte.
#[derive(Clone, Copy, Default)]
struct Starts {
    bytes: [u64; 4],
    other: bool,
}

impl Starts {
    fn add(&mut self, byte: Option<u8>) {
        match byte {
            Some(byte) => self.bytes[byte as usize / 64] |= 1 << (byte % 64),
            None => self.other = true,
        }
    }

    fn join(&mut self, starts: &Self) {
        self.bytes.iter_mut().zip(starts.bytes).for_each(|(all, more)| *all |= more);
        self.other |= starts.other;
    }

    /// The byte, if the set has one byte and nothing else.
    fn only(&self) -> Option<u8> {
        let count: u32 = self.bytes.iter().map(|word| word.count_ones()).sum();
        let word = self.bytes.iter().position(|&word| word != 0)?;
        (count == 1 && !self.other).then(|| 64 * word as u8 + self.bytes[word].trailing_zeros() as u8)
    }
}

/// The token with all legal tokens as its prefixes.
fn longest_of(legal: &[TokenId], vocabulary: &Vocabulary) -> Option<TokenId> {
    let bytes = |id: TokenId| vocabulary.bytes(id);
    // The first of the longest, if no end of sequence is legal.
    let longest = legal.iter().copied().rev().max_by_key(|&id| bytes(id).map_or(0, <[u8]>::len))?;
    let whole = bytes(longest)?;
    legal.iter().all(|&id| bytes(id).is_some_and(|part| whole.starts_with(part))).then_some(longest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Constraint, ForcedText, Limits};

    #[test]
    fn forced_tokens_are_the_same_in_both_forms() {
        let words = ["a", "ab", "abc", "b", "c", "bc", "x", "é"].map(|word| Some(word.as_bytes().to_vec()));
        let bytes = "é".bytes().map(|byte| Some(vec![byte]));
        let vocabulary = Vocabulary::from_bytes(words.into_iter().chain(bytes).chain([None])).unwrap();
        let vocabulary = vocabulary.with_eos([TokenId(10)]).unwrap();
        let constraint = Constraint::regex("abc(x|é)x").unwrap();
        for compile in [CompiledConstraint::compile_token_level, CompiledConstraint::compile_byte_level] {
            let limits = Limits::default().with_forced_text(ForcedText::AnyToken);
            let compiled = compile(&constraint, &vocabulary, &limits).unwrap();
            let after = |text: &[u32]| {
                text.iter().fold(compiled.start(), |state, &id| compiled.next(state, TokenId(id))).index()
            };
            for (longest, start) in [(true, Some(TokenId(2))), (false, None)] {
                let forced = compiled.forced(&vocabulary, longest);
                assert_eq!(forced[compiled.start().index()], start);
                assert_eq!(forced[after(&[1])], Some(TokenId(4)), "only `c`");
                assert_eq!(forced[after(&[2])], None, "`x` or `é`");
                assert_eq!(forced[after(&[2, 6])], Some(TokenId(6)));
                assert_eq!(forced[after(&[2, 6, 6])], Some(TokenId(10)), "the end");
                assert!(forced[..StateId::RESERVED as usize].iter().all(Option::is_none));
            }
        }
    }

    #[test]
    fn the_longest_token_adds_forced_bytes_only() {
        let words = ["a", "b", "c", "x", "y", "ab", "abc", "abcx", "bc", "cy"];
        let words = words.map(|word| Some(word.as_bytes().to_vec()));
        let vocabulary = Vocabulary::from_bytes(words.into_iter().chain([None])).unwrap();
        let vocabulary = vocabulary.with_eos([TokenId(10)]).unwrap();
        // After `abc`, `x` and `y` are legal; `abcx` would choose one.
        let constraint = Constraint::regex("abc(x|y)c?").unwrap();
        let forms = [CompiledConstraint::compile_token_level, CompiledConstraint::compile_byte_level];
        for (compile, text) in
            forms.into_iter().flat_map(|form| [(form, ForcedText::AnyToken), (form, ForcedText::Longest)])
        {
            let limits = Limits::default().with_forced_text(text);
            let compiled = compile(&constraint, &vocabulary, &limits).unwrap();
            let forced = compiled.forced(&vocabulary, true);
            let at = |text: &[u32]| {
                let state =
                    text.iter().fold(compiled.start(), |state, &id| compiled.next(state, TokenId(id)));
                forced[state.index()]
            };
            assert_eq!(at(&[]), Some(TokenId(6)), "`abc`");
            if text == ForcedText::AnyToken {
                assert_eq!(at(&[0]), Some(TokenId(8)), "`bc`");
                assert_eq!(at(&[5]), Some(TokenId(2)), "`c`, not `cy`");
            }
            assert_eq!(at(&[6]), None);
            assert_eq!(at(&[7]), None, "the end, or `c`");
            assert_eq!(at(&[7, 2]), Some(TokenId(10)));
            assert!(compiled.forced(&vocabulary, false)[compiled.start().index()].is_none());
        }
    }

    #[test]
    fn a_byte_is_not_forced_beside_a_token_that_begins_with_another() {
        // No token is `b`: after the byte `a` no token path continues, and yet `ab` is legal.
        let words = ["ab", "c", "e"].map(|word| Some(word.as_bytes().to_vec()));
        let vocabulary = Vocabulary::from_bytes(words.into_iter().chain([None])).unwrap();
        let vocabulary = vocabulary.with_eos([TokenId(3)]).unwrap();
        let constraint = Constraint::regex("ab|ce?").unwrap();
        for compile in [CompiledConstraint::compile_token_level, CompiledConstraint::compile_byte_level] {
            let compiled = compile(&constraint, &vocabulary, &Limits::default()).unwrap();
            let start = compiled.start();
            assert!([0, 1].iter().all(|&id| compiled.next(start, TokenId(id)) != StateId::DEAD));
            assert_eq!(compiled.forced(&vocabulary, true)[start.index()], None);
        }
    }
}
