//! The tokens of each class.

use std::sync::OnceLock;

use super::{TokenBits, TokenId};

/// The tokens of each class of a partition of the tokens.
#[derive(Debug)]
pub struct ClassTokens {
    tokens: Vec<u32>,
    /// `[classes + 1]`
    offsets: Vec<u32>,
    /// The large classes in order, each with a lazily built set of its tokens.
    sets: Vec<(usize, OnceLock<TokenBits>)>,
}

/// A class is large if it has at least one in `LARGE` of the tokens: all sets together then take no
/// more memory than the lists.
const LARGE: usize = 32;

impl ClassTokens {
    /// `class` holds the class of every token, below `classes`.
    pub fn by_class<C: Copy + PartialEq + Into<u32>>(class: &[C], classes: usize) -> Self {
        let number = |run: &[C]| -> usize { run[0].into() as usize };
        let mut offsets = vec![0; classes + 1];
        // Neighbors often share a class: a run of them is counted and placed at once.
        for run in class.chunk_by(|a, b| a == b) {
            offsets[number(run) + 1] += run.len() as u32;
        }
        for class in 0..classes {
            offsets[class + 1] += offsets[class];
        }
        let mut fill = offsets.clone();
        let mut tokens = vec![0; class.len()];
        let mut token = 0;
        for run in class.chunk_by(|a, b| a == b) {
            let first = &mut fill[number(run)];
            for out in &mut tokens[*first as usize..][..run.len()] {
                *out = token;
                token += 1;
            }
            *first += run.len() as u32;
        }
        Self::new(tokens, offsets)
    }

    fn new(tokens: Vec<u32>, offsets: Vec<u32>) -> Self {
        let large = |(class, offsets): (usize, &[u32])| {
            ((offsets[1] - offsets[0]) as usize * LARGE >= tokens.len().max(1))
                .then(|| (class, OnceLock::new()))
        };
        let sets = offsets.windows(2).enumerate().filter_map(large).collect();
        Self { tokens, offsets, sets }
    }

    /// For classes given as `runs` of tokens; all other classes are empty. Takes time linear in the
    /// listed tokens.
    pub fn by_runs<'a>(classes: usize, runs: impl Iterator<Item = (u32, &'a [TokenId])> + Clone) -> Self {
        let mut offsets = vec![0; classes + 1];
        runs.clone().for_each(|(class, tokens)| offsets[class as usize + 1] += tokens.len() as u32);
        for class in 0..classes {
            offsets[class + 1] += offsets[class];
        }
        let mut fill = offsets.clone();
        let mut tokens = vec![0; offsets[classes] as usize];
        for (class, run) in runs {
            let first = &mut fill[class as usize];
            let outs = &mut tokens[*first as usize..][..run.len()];
            outs.iter_mut().zip(run).for_each(|(out, token)| *out = token.0);
            *first += run.len() as u32;
        }
        Self::new(tokens, offsets)
    }

    /// The class of every token.
    pub fn classes(&self) -> Vec<u32> {
        let mut classes = vec![0; self.tokens.len()];
        for class in 0..self.offsets.len() - 1 {
            for &token in self.of(class) {
                classes[token as usize] = class as u32;
            }
        }
        classes
    }

    /// The tokens of `class`, each once.
    pub fn of(&self, class: usize) -> &[u32] {
        &self.tokens[self.offsets[class] as usize..self.offsets[class + 1] as usize]
    }

    /// Sets the bits of the tokens of `class`.
    #[inline(always)]
    pub fn add(&self, class: usize, bits: &mut TokenBits) {
        let tokens = self.of(class);
        let list = |bits: &mut TokenBits| tokens.iter().for_each(|&token| bits.set(token));
        // The lists may have only a few of all tokens.
        let is_large = tokens.len() * LARGE >= bits.len();
        let set = self.sets.binary_search_by_key(&class, |(class, _)| *class).ok().filter(|_| is_large);
        match set {
            None => list(bits),
            Some(set) => bits.unite(self.sets[set].1.get_or_init(|| {
                let mut own = TokenBits::none(bits.len());
                list(&mut own);
                own
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn runs_give_the_tokens_that_classes_give() {
        let class: Vec<u32> = (0..100).map(|token: u32| token * token % 7).collect();
        let mut tokens: Vec<TokenId> = (0..100).rev().map(TokenId).collect();
        tokens.sort_by_key(|token| token.0 % 5);
        let of = |token: &TokenId| class[token.index()];
        let runs = tokens.chunk_by(|a, b| of(a) == of(b)).map(|run| (of(&run[0]), run));
        let runs = runs.filter(|&(class, _)| class != 0 && class != 4);
        let by_runs = ClassTokens::by_runs(7, runs);
        let by_class = ClassTokens::by_class(&class, 7);
        for class in 0..7 {
            let mut own = by_runs.of(class).to_vec();
            own.sort_unstable();
            let expected = if class == 0 || class == 4 { &[][..] } else { by_class.of(class) };
            assert_eq!(own, expected, "{class}");
            // Once to build the set, once to reuse it, and once among enough tokens that the class
            // is small.
            for all in [100, 100, 1000] {
                let mut bits = TokenBits::none(all);
                bits.set(3);
                by_runs.add(class, &mut bits);
                let expected: BTreeSet<u32> = expected.iter().copied().chain([3]).collect();
                assert_eq!(bits.ones().collect::<BTreeSet<u32>>(), expected, "{class}");
            }
        }
        assert_eq!(by_class.classes(), class);
    }
}
