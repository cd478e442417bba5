//! Random members: walks along legal tokens that end within a budget.

use burn_dfa::{StateId, TokenId, TokenTable, Vocabulary};

/// A small generator of numbers: SplitMix64 (Steele, Lea and Flood, 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// A random member of at most `budget` tokens, the end included; `None` where none is as short.
///
/// A token is legal where its way to the end fits the rest of the budget, as in generation.
pub fn member(
    table: &TokenTable,
    vocabulary: &Vocabulary,
    budget: u32,
    random: &mut Random,
) -> Option<Vec<TokenId>> {
    let mut state = table.start();
    if table.tokens_to_end(state) > budget {
        return None;
    }
    let mut tokens = Vec::new();
    for left in (0..budget).rev() {
        let fits = |token: &TokenId| {
            let next = table.next(state, *token);
            next != StateId::DEAD && table.tokens_to_end(next) <= left
        };
        let token = pick(vocabulary, random, fits)?;
        state = table.next(state, token);
        tokens.push(token);
        if state == StateId::DONE {
            return Some(tokens);
        }
    }
    None
}

/// A token that fits: one out of a few blind tries, else out of all that do.
fn pick(vocabulary: &Vocabulary, random: &mut Random, fits: impl Fn(&TokenId) -> bool) -> Option<TokenId> {
    const BLIND: usize = 32;
    // An end wherever it fits would leave few texts of any length.
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
