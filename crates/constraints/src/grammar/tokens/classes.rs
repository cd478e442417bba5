//! Sets of tokens, and the classes they consist of.
//!
//! Each token part of a grammar has a set of tokens. Tokens in the same sets are read alike
//! everywhere: they form a *class*. Tokens outside of all sets form a class, too.

use std::fmt;

use crate::{NamedToken, TokenClasses};
use burn_dfa_automata::FastMap;
use burn_dfa_vocabulary::TokenId;

/// Most tokens of a set in an error message.
const SHOWN: usize = 8;

/// The sets of tokens of a grammar, by number: some tokens, or all but some.
#[derive(Default)]
pub(in super::super) struct Sets {
    sets: Vec<Set>,
    numbers: FastMap<Set, usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Set {
    /// In order, each once.
    pub(in super::super) listed: Vec<TokenId>,
    /// Whether the set is all tokens except these.
    pub(in super::super) except: bool,
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = self.listed.iter().take(SHOWN).map(TokenId::to_string).collect();
        let rest = if self.listed.len() > SHOWN { ",…" } else { "" };
        match (self.except, &shown[..]) {
            (true, []) => write!(f, "<[*]>"),
            (true, shown) => write!(f, "<[^{}{rest}]>", shown.join(",")),
            (false, shown) => write!(f, "<[{}{rest}]>", shown.join(",")),
        }
    }
}

impl Set {
    /// Whether the set has any tokens.
    pub(in super::super) fn has_tokens(&self) -> bool {
        self.except || !self.listed.is_empty()
    }
}

impl Sets {
    /// The number of a set.
    pub(in super::super) fn number(&mut self, mut listed: Vec<TokenId>, except: bool) -> usize {
        listed.sort_unstable();
        listed.dedup();
        let set = Set { listed, except };
        if let Some(&known) = self.numbers.get(&set) {
            return known;
        }
        self.sets.push(set.clone());
        self.numbers.insert(set, self.sets.len() - 1);
        self.sets.len() - 1
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    pub(in super::super) fn get(&self, set: usize) -> &Set {
        &self.sets[set]
    }

    /// The classes, and the classes of each set, in order; `None` if there are more than `max`.
    pub(super) fn classes(&self, max: usize) -> Option<(TokenClasses, Vec<Vec<u32>>)> {
        // Initially all tokens are in class 0; tokens outside of all sets stay in it.
        let mut class_of: FastMap<TokenId, u32> = FastMap::default();
        let mut count = 1;
        for set in &self.sets {
            let mut parted = FastMap::default();
            for &token in &set.listed {
                let class = class_of.entry(token).or_insert(0);
                *class = *parted.entry(*class).or_insert_with(|| {
                    count += 1;
                    count - 1
                });
            }
            // One class may be in no set.
            if parted.len() > max + 1 {
                return None;
            }
        }
        let mut used: FastMap<u32, u32> = FastMap::default();
        let mut of_sets = Vec::with_capacity(self.sets.len());
        let mut present: Vec<u32> = class_of.values().copied().chain([0]).collect();
        present.sort_unstable();
        present.dedup();
        if present.len() > max + 1 {
            return None;
        }
        for set in &self.sets {
            let mut listed: Vec<u32> = set.listed.iter().map(|token| class_of[token]).collect();
            listed.sort_unstable();
            listed.dedup();
            let own = present.iter().filter(|class| listed.binary_search(class).is_ok() != set.except);
            let mut classes: Vec<u32> = own
                .map(|&class| {
                    let next = used.len() as u32;
                    *used.entry(class).or_insert(next)
                })
                .collect();
            classes.sort_unstable();
            of_sets.push(classes);
        }
        if used.len() > max {
            return None;
        }
        let wanted = self.sets.iter().filter(|set| !set.except).flat_map(|set| &set.listed);
        let mut wanted: Vec<TokenId> = wanted.copied().collect();
        wanted.sort_unstable();
        let named = class_of.iter().map(|(&token, class)| NamedToken {
            token,
            class: used.get(class).copied(),
            wanted: wanted.binary_search(&token).is_ok(),
        });
        let mut named: Vec<NamedToken> = named.collect();
        named.sort_unstable_by_key(|named| named.token);
        Some((TokenClasses { named, others: used.get(&0).copied() }, of_sets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(sets: &[(&[u32], bool)]) -> (TokenClasses, Vec<Vec<u32>>) {
        let mut all = Sets::default();
        for &(listed, except) in sets {
            all.number(listed.iter().copied().map(TokenId).collect(), except);
        }
        all.classes(8).unwrap()
    }

    fn class(classes: &TokenClasses, token: u32) -> Option<u32> {
        let known = classes.named.iter().find(|named| named.token == TokenId(token));
        known.map_or(classes.others, |named| named.class)
    }

    #[test]
    fn tokens_of_the_same_sets_are_a_class() {
        let (classes, of) = sets(&[(&[1, 2, 3], false), (&[3, 4], false)]);
        assert_eq!(class(&classes, 1), class(&classes, 2));
        let [one, three, four] = [1, 3, 4].map(|token| class(&classes, token).unwrap());
        assert!(one != three && three != four && classes.others.is_none());
        assert_eq!(of[0].len(), 2);
        assert!(of[1].contains(&three) && of[1].contains(&four) && of[1].len() == 2);
    }

    #[test]
    fn a_token_that_every_set_excludes_has_no_class() {
        let (classes, of) = sets(&[(&[1, 2], true), (&[2], true)]);
        assert_eq!(class(&classes, 2), None);
        let (one, other) = (class(&classes, 1).unwrap(), class(&classes, 9).unwrap());
        assert_eq!(of[0], [other]);
        assert_eq!(of[1].len(), 2);
        assert!(of[1].contains(&one) && !classes.named[0].wanted);
    }

    #[test]
    fn more_classes_than_there_may_be_are_none() {
        let mut all = Sets::default();
        (0..9).for_each(|id| _ = all.number(vec![TokenId(id)], false));
        assert!(all.classes(8).is_none() && all.classes(9).is_some());
        // The number of tokens in each set is unlimited.
        let mut all = Sets::default();
        all.number((0..100_000).map(TokenId).collect(), false);
        assert_eq!(all.classes(1).unwrap().0.named.len(), 100_000);
    }
}
