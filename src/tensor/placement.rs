//! The placement of the states of several constraints in one device constraint.

use std::ops::Range;

use burn_dfa_tokens::{CompiledConstraint, StateId};

/// Constraints one after the other.
#[derive(Clone, Debug)]
pub(super) struct Joined {
    /// The offset of the unreserved states of constraint `i`.
    offsets: Vec<u32>,
    pub(super) states: usize,
}

impl Joined {
    pub(super) fn new(constraints: &[&CompiledConstraint]) -> Self {
        let mut states = StateId::RESERVED as usize;
        let mut offsets = Vec::with_capacity(constraints.len());
        for constraint in constraints {
            offsets.push((states - StateId::RESERVED as usize) as u32);
            states += constraint.state_count() - StateId::RESERVED as usize;
        }
        Self { offsets, states }
    }

    pub(super) fn state(&self, index: usize, state: StateId) -> StateId {
        if state.0 < StateId::RESERVED { state } else { StateId(state.0 + self.offsets[index]) }
    }

    /// The constraint of a joined state, and the original state; reserved states belong to the
    /// first constraint.
    #[cfg(feature = "flex")]
    fn own(&self, state: StateId) -> (usize, StateId) {
        if state.0 < StateId::RESERVED {
            return (0, state);
        }
        let after = self.offsets.partition_point(|&offset| offset + StateId::RESERVED <= state.0);
        (after - 1, StateId(state.0 - self.offsets[after - 1]))
    }
}

/// The number of states of a page: a constraint takes whole free pages.
pub(super) const PAGE: usize = 32;

/// The number of pages of a constraint of `states` states; reserved states are shared.
pub(crate) fn pages_of(states: usize) -> usize {
    states.saturating_sub(StateId::RESERVED as usize).div_ceil(PAGE)
}

/// The first state of a page.
pub(crate) fn first_of(page: u32) -> usize {
    StateId::RESERVED as usize + page as usize * PAGE
}

/// Runs of adjacent pages, in order.
pub(super) fn runs(pages: &[u32]) -> impl Iterator<Item = Range<u32>> + '_ {
    pages.chunk_by(|&page, &next| page + 1 == next).map(|run| run[0]..run[0] + run.len() as u32)
}

/// The placed state of `state` of a constraint on `pages`.
pub(super) fn placed(pages: &[u32], state: StateId) -> StateId {
    if state.0 < StateId::RESERVED {
        return state;
    }
    let own = (state.0 - StateId::RESERVED) as usize;
    StateId((first_of(pages[own / PAGE]) + own % PAGE) as u32)
}

/// Constraints on pages, with a lookup from a state to its constraint.
#[cfg(feature = "flex")]
#[derive(Clone, Debug)]
pub(super) struct Paged {
    /// The pages of every constraint, in order of its states.
    of_constraint: Vec<Vec<u32>>,
    /// For every page, its constraint, and the index of the page among the constraint's pages. The
    /// first constraint has no pages and means "none".
    of_page: Vec<(u32, u32)>,
}

#[cfg(feature = "flex")]
impl Paged {
    pub(super) fn new(constraint_count: usize, pages: usize) -> Self {
        Self { of_constraint: vec![Vec::new(); constraint_count], of_page: vec![(0, 0); pages] }
    }

    /// Sets the pages of a constraint.
    pub(super) fn set(&mut self, index: usize, pages: &[u32]) {
        for &page in &self.of_constraint[index] {
            self.of_page[page as usize] = (0, 0);
        }
        for (part, &page) in pages.iter().enumerate() {
            self.of_page[page as usize] = (index as u32, part as u32);
        }
        self.of_constraint[index] = pages.to_vec();
    }

    fn state(&self, index: usize, state: StateId) -> StateId {
        placed(&self.of_constraint[index], state)
    }

    /// States of free pages are dead.
    fn own(&self, state: StateId) -> (usize, StateId) {
        if state.0 < StateId::RESERVED {
            return (0, state);
        }
        let at = (state.0 - StateId::RESERVED) as usize;
        match self.of_page[at / PAGE] {
            (0, _) => (0, StateId::DEAD),
            (index, part) => {
                (index as usize, StateId(part * PAGE as u32 + (at % PAGE) as u32 + StateId::RESERVED))
            }
        }
    }
}

/// Joined or paged.
#[cfg(feature = "flex")]
#[derive(Clone, Debug)]
pub(super) enum Placement {
    Joined(Joined),
    Paged(Paged),
}

#[cfg(feature = "flex")]
impl Placement {
    /// Total number of states of all constraints, or the capacity.
    pub(super) fn states(&self) -> usize {
        match self {
            Self::Joined(joined) => joined.states,
            Self::Paged(paged) => first_of(paged.of_page.len() as u32),
        }
    }

    /// The placed state of a state of a constraint.
    pub(super) fn state(&self, index: usize, state: StateId) -> StateId {
        match self {
            Self::Joined(joined) => joined.state(index, state),
            Self::Paged(paged) => paged.state(index, state),
        }
    }

    /// The constraint of a state in range, and the original state; reserved states belong to the
    /// first constraint.
    pub(super) fn own(&self, state: StateId) -> (usize, StateId) {
        match self {
            Self::Joined(joined) => joined.own(state),
            Self::Paged(paged) => paged.own(state),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_lie_on_pages_in_any_order() {
        let pages = [4, 0, 1, 7];
        assert_eq!(runs(&pages).collect::<Vec<_>>(), [4..5, 0..2, 7..8]);
        assert_eq!([0, 3, 4, 3 + PAGE, 4 + PAGE].map(pages_of), [0, 0, 1, 1, 2]);
        let of = |state| placed(&pages, StateId(state)).0 as usize;
        assert_eq!([0, 1, 2].map(of), [0, 1, 2]);
        assert_eq!(of(3), first_of(4));
        assert_eq!(of(3 + PAGE as u32 + 5), first_of(0) + 5);
        assert_eq!(of(2 + 4 * PAGE as u32), first_of(8) - 1);
    }

    #[cfg(feature = "flex")]
    #[test]
    fn a_state_leads_back_to_its_constraint_while_it_is_there() {
        let mut paged = Paged::new(3, 8);
        let pages = [4, 0, 1, 7];
        paged.set(2, &pages);
        paged.set(1, &[2]);
        for own in (3..3 + 4 * PAGE as u32).map(StateId) {
            assert_eq!(paged.own(placed(&pages, own)), (2, own));
        }
        assert_eq!(paged.own(paged.state(1, StateId(3))), (1, StateId(3)));
        paged.set(2, &[]);
        assert_eq!(paged.own(placed(&pages, StateId(3))), (0, StateId::DEAD));
        assert_eq!(paged.own(StateId::UNCONSTRAINED), (0, StateId::UNCONSTRAINED));
        assert_eq!(paged.own(paged.state(1, StateId(9))), (1, StateId(9)));
    }
}
