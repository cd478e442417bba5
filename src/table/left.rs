//! The tokens that are left behind the next one, and with which other numbers of them the same tokens may follow.

use std::ops::Range;

/// How many tokens are left behind the next one.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    tokens: u32,
    /// With so many, [`reach`](Self::reach) would have given the same answers.
    alike: Range<u32>,
}

impl Left {
    pub(crate) fn new(tokens: u32) -> Self {
        Self { tokens, alike: 0..u32::MAX }
    }

    /// Whether the end is reached over a way of so many tokens.
    #[inline]
    pub(crate) fn reach(&mut self, way: u32) -> bool {
        let reached = way <= self.tokens;
        if reached {
            self.alike.start = self.alike.start.max(way);
        } else {
            self.alike.end = self.alike.end.min(way);
        }
        reached
    }

    /// The numbers of tokens with which all answers would have been the same.
    pub(crate) fn alike(self) -> Range<u32> {
        self.alike
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_change_at_the_ends_of_the_range() {
        let ways = [3, 7, 12, 5, u32::MAX];
        let answers = |tokens| {
            let mut left = Left::new(tokens);
            (ways.map(|way| left.reach(way)), left.alike())
        };
        for tokens in 0..20 {
            let (own, alike) = answers(tokens);
            for other in 0..20 {
                assert_eq!(own == answers(other).0, alike.contains(&other), "{tokens}, {other}: {alike:?}");
            }
        }
    }
}
