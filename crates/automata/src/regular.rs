//! The regular operators on finished automata: concatenation, repetition, complement.

use std::sync::Arc;

use super::{ByteDfa, ByteStateId, Expr, Rows};
use burn_dfa_common::{Limits, Result, limits::Meter};

impl ByteDfa {
    /// The automaton of the words of this language, each followed by a word of `other`.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    ///
    /// let limits = Limits::default();
    /// let word = |regex| Constraint::regex(regex)?.to_byte_dfa(&limits).map(Option::unwrap);
    /// assert_eq!(word("a*")?.concat(&word("ab?")?, &limits)?, word("a+b?")?);
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a limit is breached.
    pub fn concat(&self, other: &Self, limits: &Limits) -> Result<Self> {
        let part = |dfa: &Self| Expr::Dfa(Arc::new(dfa.clone()));
        Expr::Concat(vec![part(self), part(other)]).determinize(&Meter::start(limits))
    }

    /// The automaton of `min` to `max` words one after the other; without a maximum if `max` is
    /// `None`. It is empty if `max` is below `min`.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    ///
    /// let limits = Limits::default();
    /// let word = |regex| Constraint::regex(regex)?.to_byte_dfa(&limits).map(Option::unwrap);
    /// assert_eq!(word("ab|c")?.repeat(1, Some(3), &limits)?, word("(ab|c){1,3}")?);
    /// assert_eq!(word("ab|c")?.repeat(0, None, &limits)?, word("(ab|c)*")?);
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a limit is breached.
    pub fn repeat(&self, min: usize, max: Option<usize>, limits: &Limits) -> Result<Self> {
        let expr = Arc::new(Expr::Dfa(Arc::new(self.clone())));
        Expr::Repeat { expr, min, max }.determinize(&Meter::start(limits))
    }

    /// The automaton of all byte strings that are not words of this language, including invalid
    /// UTF-8.
    ///
    /// For the words of another language that are not words of this one, see
    /// [`difference`](Self::difference).
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    ///
    /// let limits = Limits::default();
    /// let dfa = Constraint::choice(["yes"])?.to_byte_dfa(&limits)?.unwrap();
    /// let rest = dfa.complement(&limits)?;
    /// assert!(rest.matches(b"no") && rest.matches(b"\xff") && !rest.matches(b"yes"));
    /// assert_eq!(rest.complement(&limits)?, dfa);
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a limit is breached.
    pub fn complement(&self, limits: &Limits) -> Result<Self> {
        let meter = Meter::start(limits);
        let intervals = self.intervals();
        let mut rows = Rows::new();
        // The dead state becomes a state that accepts everything: state `s` becomes `s + 1`.
        for state in (0..self.state_count() as u32).map(ByteStateId) {
            let row = intervals
                .iter()
                .map(|&(first, last, class)| (first, last, self.next_by_class(state, class).0 + 1));
            rows.push(!self.is_accepting(state), row);
            if state.0 % 4096 == 0 {
                rows.check(&meter)?;
            }
        }
        rows.minimize(self.start().0 + 1, &meter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FastMap;
    use burn_dfa_common::ErrorKind;
    use std::collections::BTreeSet;

    type Words = BTreeSet<Vec<u8>>;

    /// Longest word of the brute-force test.
    const LONGEST: usize = 4;

    /// All words over two letters and a foreign byte.
    fn all() -> Vec<Vec<u8>> {
        let mut words = vec![Vec::new()];
        let mut at = 0;
        while words[at].len() < LONGEST {
            for letter in [b'a', b'b', 0xff] {
                words.push([&words[at][..], &[letter]].concat());
            }
            at += 1;
        }
        words
    }

    fn dfa(words: &Words) -> ByteDfa {
        let limits = Limits::default();
        Expr::Literals(words.iter().cloned().collect()).determinize(&Meter::start(&limits)).unwrap()
    }

    fn concat(a: &Words, b: &Words) -> Words {
        a.iter().flat_map(|a| b.iter().map(move |b| [&a[..], b].concat())).collect()
    }

    /// Some languages of few short words, including the empty language and the language of the
    /// empty word.
    fn languages() -> Vec<Words> {
        let words: Vec<Vec<u8>> =
            all().into_iter().filter(|word| word.len() <= 2 && !word.contains(&0xff)).collect();
        (0..1u32 << words.len())
            .step_by(5)
            .map(|set| {
                words
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| set >> at & 1 == 1)
                    .map(|(_, w)| w.clone())
                    .collect()
            })
            .collect()
    }

    #[test]
    fn operators_agree_with_sets_of_words() {
        let limits = Limits::default();
        let all = all();
        let languages = languages();
        assert!(languages.iter().any(Words::is_empty));
        for a in &languages {
            let automaton = dfa(a);
            let rest = automaton.complement(&limits).unwrap();
            assert!(all.iter().all(|word| rest.matches(word) != a.contains(word)));
            assert_eq!(rest.complement(&limits).unwrap(), automaton);
            assert!(rest.is_disjoint(&automaton));
            for (min, max) in [(0, Some(0)), (0, Some(2)), (1, Some(3)), (2, Some(2)), (3, Some(1))] {
                let mut power = Words::from([Vec::new()]);
                let mut expected = Words::new();
                for count in 0..=max.unwrap_or(0) {
                    if count >= min {
                        expected.extend(power.iter().cloned());
                    }
                    power = concat(&power, a);
                }
                assert_eq!(automaton.repeat(min, max, &limits).unwrap(), dfa(&expected));
            }
            let star = automaton.repeat(0, None, &limits).unwrap();
            assert_eq!(star.repeat(2, None, &limits).unwrap(), star);
            for b in &languages {
                let other = dfa(b);
                assert_eq!(automaton.concat(&other, &limits).unwrap(), dfa(&concat(a, b)));
                assert_eq!(automaton.is_subset(&other), a.is_subset(b));
                assert_eq!(automaton.is_disjoint(&other), a.is_disjoint(b));
                assert_eq!(automaton.is_equivalent(&other), a == b);
                assert_eq!(star.is_subset(&other.repeat(0, None, &limits).unwrap()), {
                    let others = other.repeat(0, None, &limits).unwrap();
                    a.iter().all(|word| others.matches(word))
                });
            }
            let shortest = a.iter().min_by_key(|word| (word.len(), (*word).clone()));
            assert_eq!(automaton.shortest_word().as_ref(), shortest);
            let mut drawn: FastMap<Vec<u8>, usize> = FastMap::default();
            for word in automaton.samples(1, 4).take(2000) {
                *drawn.entry(word).or_default() += 1;
            }
            assert_eq!(drawn.into_keys().collect::<Words>(), *a, "each word comes up, and nothing else");
        }
    }

    #[test]
    fn operations_beyond_the_states_are_refused() {
        let limits = Limits { states: 100, ..Limits::default() };
        let word = dfa(&Words::from([b"ab".to_vec()]));
        assert_eq!(word.repeat(1000, None, &limits).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(word.repeat(0, Some(usize::MAX), &limits).unwrap_err().kind(), ErrorKind::Limit);
        let long = word.repeat(49, Some(49), &limits).unwrap();
        assert_eq!(long.concat(&long, &limits).unwrap_err().kind(), ErrorKind::Limit);
        let few = Limits { states: 3, ..Limits::default() };
        assert_eq!(long.complement(&few).unwrap_err().kind(), ErrorKind::Limit);
    }
}
