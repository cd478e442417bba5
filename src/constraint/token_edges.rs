//! Tokens that an automaton over bytes reads whole, and where the boundaries between tokens lead.

use crate::vocabulary::TokenId;

/// Edges that are followed by a token as a whole, whatever its bytes. A token that is text is read by its bytes as well.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenEdges {
    pub(crate) classes: TokenClasses,
    /// `(state, class, next)`, by class and state.
    pub(crate) edges: Vec<(u32, u32, u32)>,
    /// By state the one behind the end of a token that leads there; empty where tokens are not counted, so that all states stay
    /// as they are.
    pub(crate) boundaries: Vec<u32>,
}

/// Classes of tokens, numbered from 0: tokens of a class follow the same edges.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenClasses {
    /// The tokens that are named, in order.
    pub(crate) named: Vec<NamedToken>,
    /// The class of all others but those that end a sequence or are not used.
    pub(crate) others: Option<u32>,
}

/// A token that is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedToken {
    pub(crate) token: TokenId,
    /// `None` where it is excluded wherever others may come.
    pub(crate) class: Option<u32>,
    /// Whether it is asked for, and not only excluded.
    pub(crate) wanted: bool,
}

impl TokenClasses {
    /// The number of classes.
    pub(crate) fn count(&self) -> usize {
        let classes = self.named.iter().filter_map(|named| named.class).chain(self.others);
        classes.max().map_or(0, |last| last as usize + 1)
    }
}

impl TokenEdges {
    /// Whether all tokens are text, and none is counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.edges.is_empty() && self.boundaries.is_empty()
    }

    /// The same among states whose numbers are greater by `shift`, behind states that boundaries leave as they are.
    pub(crate) fn shifted(self, shift: u32) -> Self {
        let edges = self.edges.into_iter().map(|(from, class, to)| (from + shift, class, to + shift));
        let boundaries = match &self.boundaries[..] {
            [] => Vec::new(),
            [_, live @ ..] => {
                let live = live.iter().map(|&to| if to == 0 { 0 } else { to + shift });
                (0..=shift).chain(live).collect()
            }
        };
        Self { classes: self.classes, edges: edges.collect(), boundaries }
    }
}
