//! The tokens of each class.

use super::TokenId;

/// For each class of a partition of the tokens, its tokens.
#[derive(Debug)]
pub(crate) struct ClassTokens {
    tokens: Vec<u32>,
    /// `[classes + 1]`
    offsets: Vec<u32>,
}

impl ClassTokens {
    /// `class` holds the class of every token, below `classes`.
    pub(crate) fn by_class(class: &[u32], classes: usize) -> Self {
        let mut offsets = vec![0; classes + 1];
        // Neighbours are often of one class: a run of them is counted and placed without going to memory.
        for run in class.chunk_by(|a, b| a == b) {
            offsets[run[0] as usize + 1] += run.len() as u32;
        }
        for class in 0..classes {
            offsets[class + 1] += offsets[class];
        }
        let mut fill = offsets.clone();
        let mut tokens = vec![0; class.len()];
        let mut token = 0;
        for run in class.chunk_by(|a, b| a == b) {
            let first = &mut fill[run[0] as usize];
            for place in &mut tokens[*first as usize..][..run.len()] {
                *place = token;
                token += 1;
            }
            *first += run.len() as u32;
        }
        Self { tokens, offsets }
    }

    /// Of a partition that is known by `runs` of tokens with their classes; the classes of all other tokens are those that `is_other`, and no
    /// run has one of these. Takes a fifth of the time.
    pub(crate) fn by_runs<'a>(
        class: &[u32],
        classes: usize,
        runs: impl Iterator<Item = (u32, &'a [TokenId])> + Clone,
        is_other: impl Fn(u32) -> bool,
    ) -> Self {
        let others = || (0..).zip(class).filter(|&(_, &class)| is_other(class));
        let mut offsets = vec![0; classes + 1];
        runs.clone().for_each(|(class, tokens)| offsets[class as usize + 1] += tokens.len() as u32);
        others().for_each(|(_, &class)| offsets[class as usize + 1] += 1);
        for class in 0..classes {
            offsets[class + 1] += offsets[class];
        }
        let mut fill = offsets.clone();
        let mut tokens = vec![0; class.len()];
        for (class, run) in runs {
            let first = &mut fill[class as usize];
            let places = &mut tokens[*first as usize..][..run.len()];
            places.iter_mut().zip(run).for_each(|(place, token)| *place = token.0);
            *first += run.len() as u32;
        }
        for (token, &class) in others() {
            tokens[fill[class as usize] as usize] = token;
            fill[class as usize] += 1;
        }
        Self { tokens, offsets }
    }

    /// The class of every token.
    pub(crate) fn classes(&self) -> Vec<u32> {
        let mut classes = vec![0; self.tokens.len()];
        for class in 0..self.offsets.len() - 1 {
            for &token in self.of(class) {
                classes[token as usize] = class as u32;
            }
        }
        classes
    }

    /// The tokens of `class`, each once.
    pub(crate) fn of(&self, class: usize) -> &[u32] {
        &self.tokens[self.offsets[class] as usize..self.offsets[class + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_give_the_tokens_that_classes_give() {
        let class: Vec<u32> = (0..100).map(|token: u32| token * token % 7).collect();
        let mut tokens: Vec<TokenId> = (0..100).rev().map(TokenId).collect();
        tokens.sort_by_key(|token| token.0 % 5);
        let of = |token: &TokenId| class[token.index()];
        let runs = tokens.chunk_by(|a, b| of(a) == of(b)).map(|run| (of(&run[0]), run));
        let runs = runs.filter(|&(class, _)| class != 0 && class != 4);
        let by_runs = ClassTokens::by_runs(&class, 7, runs, |class| class == 0 || class == 4);
        let by_class = ClassTokens::by_class(&class, 7);
        for class in 0..7 {
            let mut own = by_runs.of(class).to_vec();
            own.sort_unstable();
            assert_eq!(own, by_class.of(class), "{class}");
        }
        assert_eq!(by_runs.classes(), class);
    }
}
