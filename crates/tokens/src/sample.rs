//! Random outputs: walks along legal tokens that end within a budget.

use super::{CompiledConstraint, RowPosition, StateId};
use burn_dfa_common::random::Random;
use burn_dfa_vocabulary::{TokenId, Vocabulary};

impl CompiledConstraint {
    /// An infinite sequence of random outputs, the end of sequence included, the same for the same
    /// seed; empty if the shortest output takes more than `max_tokens`. Meant for tests and for
    /// examples of a constraint's outputs.
    ///
    /// A token is legal if its path to the end fits the rest of the budget, as in generation.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits, TokenId, CompiledConstraint, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::from_chars("abc.".chars())?.with_eos([TokenId(3)])?;
    /// let compiled = CompiledConstraint::compile(
    ///     &Constraint::regex("a[bc]+")?,
    ///     &vocabulary,
    ///     &Limits::default(),
    /// )?;
    /// let outputs: Vec<_> = compiled.samples(&vocabulary, 7, 10).take(3).collect();
    /// assert!(outputs.iter().all(|tokens| tokens.len() <= 10 && compiled.accepts(tokens)));
    /// assert_eq!(compiled.samples(&vocabulary, 7, 2).next(), None);
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    pub fn samples(
        &self,
        vocabulary: &Vocabulary,
        seed: u64,
        max_tokens: u32,
    ) -> impl Iterator<Item = Vec<TokenId>> {
        let mut random = Random(seed);
        std::iter::from_fn(move || self.sample(vocabulary, max_tokens, &mut random))
    }

    fn sample(&self, vocabulary: &Vocabulary, budget: u32, random: &mut Random) -> Option<Vec<TokenId>> {
        let mut position = RowPosition::new(self.start(), budget);
        if !self.can_end(&position) {
            return None;
        }
        let mut tokens = Vec::new();
        while position.remaining > 0 {
            let token = pick(vocabulary, random, |&token| self.can_end(&self.after(&position, token)))?;
            position = self.after(&position, token);
            tokens.push(token);
            if position.state == StateId::DONE {
                return Some(tokens);
            }
        }
        None
    }
}

/// A random fitting token: from a few blind tries, else from all fitting tokens.
fn pick(vocabulary: &Vocabulary, random: &mut Random, fits: impl Fn(&TokenId) -> bool) -> Option<TokenId> {
    const BLIND: usize = 32;
    // Always ending at the first chance would leave few long texts.
    let ends = vocabulary.eos().iter().copied().find(|token| fits(token));
    if ends.is_some() && random.below(4) == 0 {
        return ends;
    }
    let tries = (0..BLIND).map(|_| TokenId(random.below(vocabulary.len()) as u32)).find(|token| fits(token));
    tries.or_else(|| {
        let fitting: Vec<TokenId> = (0..vocabulary.len() as u32).map(TokenId).filter(|t| fits(t)).collect();
        (!fitting.is_empty()).then(|| fitting[random.below(fitting.len())])
    })
}
