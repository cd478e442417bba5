//! What is left to be matched, as a formula over the states of a layout.
//!
//! A formula is a choice of *ways*, a way a state of the layout and what else must hold of the rest of the string:
//! formulas again, plain or negated, of the look-ahead that the way has met. Formulas are numbered, so that
//! equal ones are one; there are finitely many for a layout, since those that a way holds belong to a look-ahead
//! nested one deeper.

use super::layout::DONE;
use crate::automaton::Interner;

/// One way to match.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Way {
    pub(super) at: u32,
    /// Sorted and distinct.
    pub(super) held: Vec<Held>,
}

/// What must hold of the rest of the string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Held {
    pub(super) formula: u32,
    pub(super) negated: bool,
}

/// What is known of something held.
pub(super) enum Truth {
    True,
    False,
    Open(Held),
}

impl Held {
    pub(super) fn truth(self) -> Truth {
        match (self.formula, self.negated) {
            (Formulas::FALSE, false) | (Formulas::TRUE, true) => Truth::False,
            (Formulas::TRUE, false) | (Formulas::FALSE, true) => Truth::True,
            _ => Truth::Open(self),
        }
    }
}

impl Way {
    pub(super) fn to(at: u32) -> Self {
        Self { at, held: Vec::new() }
    }

    /// The same where more is held; `None` where that contradicts itself.
    pub(super) fn holding(mut self, more: &[Held]) -> Option<Self> {
        for held in more {
            if let Err(place) = self.held.binary_search(held) {
                if self.held.contains(&Held { negated: !held.negated, ..*held }) {
                    return None;
                }
                self.held.insert(place, *held);
            }
        }
        Some(self)
    }

    /// Whether all that this way holds is held by `other`.
    fn asks_no_more(&self, other: &Self) -> bool {
        self.held.iter().all(|held| other.held.binary_search(held).is_ok())
    }
}

/// Formulas by number.
pub(super) struct Formulas {
    /// Of each way its state, how much it holds, and that.
    words: Interner<u32>,
}

impl Formulas {
    pub(super) const FALSE: u32 = 0;
    pub(super) const TRUE: u32 = 1;

    pub(super) fn new() -> Self {
        let mut formulas = Self { words: Interner::new() };
        formulas.number(&[]);
        formulas.number(&[Way::to(DONE)]);
        formulas
    }

    /// The formula of any of `ways`, once it is true all the same what else there is.
    pub(super) fn any(&mut self, mut ways: Vec<Way>) -> u32 {
        tidy(&mut ways);
        let ends: Vec<Way> = ways.iter().filter(|way| way.at == DONE).cloned().collect();
        ways.retain(|way| way.at == DONE || !ends.iter().any(|end| end.asks_no_more(way)));
        self.number(&ways)
    }

    /// As [`any`](Self::any), where the ways that are at their end are no reason to give up the others.
    pub(super) fn all(&mut self, mut ways: Vec<Way>) -> u32 {
        tidy(&mut ways);
        self.number(&ways)
    }

    pub(super) fn ways(&self, formula: u32) -> Vec<Way> {
        let mut words = self.words.get(formula).iter().copied();
        let mut ways = Vec::new();
        while let (Some(at), Some(count)) = (words.next(), words.next()) {
            let held = words.by_ref().take(count as usize);
            let held = held.map(|word| Held { formula: word >> 1, negated: word & 1 == 1 }).collect();
            ways.push(Way { at, held });
        }
        ways
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.bytes()
    }

    fn number(&mut self, ways: &[Way]) -> u32 {
        let mut words = Vec::with_capacity(2 * ways.len());
        for way in ways {
            words.extend([way.at, way.held.len() as u32]);
            words.extend(way.held.iter().map(|held| held.formula << 1 | u32::from(held.negated)));
        }
        self.words.intern(&words).0
    }
}

/// Sorts ways and leaves out those that ask for more than another to the same state.
fn tidy(ways: &mut Vec<Way>) {
    ways.sort_unstable();
    ways.dedup();
    let mut kept: Vec<Way> = Vec::with_capacity(ways.len());
    for group in ways.chunk_by(|a, b| a.at == b.at) {
        let least = |way: &&Way| !group.iter().any(|other| other != *way && other.asks_no_more(way));
        kept.extend(group.iter().filter(least).cloned());
    }
    *ways = kept;
}
