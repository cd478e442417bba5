//! The budget left after the next token, and the interval of budgets with the same legal tokens.

use std::ops::Range;

/// The number of tokens left after the next token.
#[derive(Clone, Debug)]
pub(crate) struct BudgetInterval {
    tokens: u32,
    /// With any number in the range, [`reach`](Self::reach) would have given the same answers.
    alike: Range<u32>,
}

impl BudgetInterval {
    pub(crate) fn new(tokens: u32) -> Self {
        Self { tokens, alike: 0..u32::MAX }
    }

    /// Whether the end is reachable in `distance` tokens.
    #[inline]
    pub(crate) fn reach(&mut self, distance: u32) -> bool {
        let reached = distance <= self.tokens;
        if reached {
            self.alike.start = self.alike.start.max(distance);
        } else {
            self.alike.end = self.alike.end.min(distance);
        }
        reached
    }

    /// Whether the end is reachable in `distance()` tokens, which is at most `bound`. Does not call
    /// `distance` if the bound suffices; [`alike`](Self::alike) is narrower then.
    #[inline]
    pub(crate) fn reach_within(&mut self, bound: u32, distance: impl FnOnce() -> u32) -> bool {
        self.reach(if bound <= self.tokens { bound } else { distance() })
    }

    /// The interval of budgets with the same answers.
    pub(crate) fn alike(self) -> Range<u32> {
        self.alike
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_change_at_the_ends_of_the_range() {
        let distances = [3, 7, 12, 5, u32::MAX];
        let answers = |tokens| {
            let mut left = BudgetInterval::new(tokens);
            (distances.map(|distance| left.reach(distance)), left.alike())
        };
        for tokens in 0..20 {
            let (own, alike) = answers(tokens);
            for other in 0..20 {
                assert_eq!(own == answers(other).0, alike.contains(&other), "{tokens}, {other}: {alike:?}");
            }
        }
    }
}
