//! Tokens read whole by an automaton over bytes, and the targets of token boundaries.

use burn_dfa_vocabulary::TokenId;

/// Edges for whole tokens, regardless of their bytes. A token that is text is read by its bytes
/// too.
#[derive(Clone, Debug, Default)]
pub struct TokenEdges {
    /// The classes of its tokens.
    pub classes: TokenClasses,
    /// `(state, class, next)`, by class and state.
    pub edges: Vec<(u32, u32, u32)>,
    /// For each state before a token boundary, the state after it; empty if tokens are not counted,
    /// so all states stay unchanged.
    pub boundaries: Vec<u32>,
}

/// Classes of tokens, numbered from 0: tokens of a class follow the same edges.
#[derive(Clone, Debug, Default)]
pub struct TokenClasses {
    /// The named tokens, in order.
    pub named: Vec<NamedToken>,
    /// The class of all other tokens, except end-of-sequence and unused tokens.
    pub others: Option<u32>,
}

/// A token named by the constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedToken {
    /// The token.
    pub token: TokenId,
    /// `None` if the token is excluded from every set of other tokens.
    pub class: Option<u32>,
    /// Whether an edge asks for the token, rather than only excluding it.
    pub wanted: bool,
}

impl TokenClasses {
    /// The number of classes.
    pub fn count(&self) -> usize {
        let classes = self.named.iter().filter_map(|named| named.class).chain(self.others);
        classes.max().map_or(0, |last| last as usize + 1)
    }
}

impl TokenEdges {
    /// Whether all tokens are text, and none is counted.
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty() && self.boundaries.is_empty()
    }

    /// The edges with state numbers increased by `shift`. Boundaries leave the first `shift` states
    /// unchanged.
    pub fn shifted(self, shift: u32) -> Self {
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
