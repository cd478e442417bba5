//! Formulas over the states of a layout: conditions on the rest of the string.
//!
//! A formula is a disjunction of *alternatives*. An alternative is a state of the layout from which
//! the rest must match, with further *held* conditions on the rest. Each held condition comes from
//! a look-ahead, and is again a formula, plain or negated. Equal formulas have the same number. A
//! layout has finitely many, because a held condition belongs to a look-ahead one level deeper.

use super::layout::DONE;
use burn_dfa_automata::Interner;

/// One alternative of a formula.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Alternative {
    pub(super) at: u32,
    /// Sorted and distinct.
    pub(super) held: Vec<Held>,
}

/// A condition on the rest of the string, from a look-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Held {
    pub(super) formula: u32,
    pub(super) negated: bool,
}

/// The known value of a condition.
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

impl Alternative {
    pub(super) fn to(at: u32) -> Self {
        Self { at, held: Vec::new() }
    }

    /// This alternative with more conditions; `None` if they contradict each other.
    pub(super) fn holding(mut self, more: &[Held]) -> Option<Self> {
        for held in more {
            if let Err(at) = self.held.binary_search(held) {
                if self.held.contains(&Held { negated: !held.negated, ..*held }) {
                    return None;
                }
                self.held.insert(at, *held);
            }
        }
        Some(self)
    }

    /// Whether every condition of this alternative is also a condition of `other`.
    fn asks_no_more(&self, other: &Self) -> bool {
        self.held.iter().all(|held| other.held.binary_search(held).is_ok())
    }
}

/// Formulas by number.
pub(super) struct Formulas {
    /// Each formula as a slice: for each alternative its state, the number of its conditions, and
    /// the conditions.
    words: Interner<u32>,
}

impl Formulas {
    pub(super) const FALSE: u32 = 0;
    pub(super) const TRUE: u32 = 1;

    pub(super) fn new() -> Self {
        let mut formulas = Self { words: Interner::new() };
        formulas.number(&[]);
        formulas.number(&[Alternative::to(DONE)]);
        formulas
    }

    /// The disjunction of `alternatives`. An alternative at its end replaces all alternatives with
    /// the same or further conditions.
    pub(super) fn any(&mut self, mut alternatives: Vec<Alternative>) -> u32 {
        tidy(&mut alternatives);
        let ends: Vec<Alternative> =
            alternatives.iter().filter(|alternative| alternative.at == DONE).cloned().collect();
        alternatives.retain(|alternative| {
            alternative.at == DONE || !ends.iter().any(|end| end.asks_no_more(alternative))
        });
        self.number(&alternatives)
    }

    /// Like [`any`](Self::any), but an alternative at its end does not replace others. Trackers
    /// need this, because they continue to search.
    pub(super) fn all(&mut self, mut alternatives: Vec<Alternative>) -> u32 {
        tidy(&mut alternatives);
        self.number(&alternatives)
    }

    pub(super) fn alternatives(&self, formula: u32) -> Vec<Alternative> {
        let mut words = self.words.get(formula).iter().copied();
        let mut alternatives = Vec::new();
        while let (Some(at), Some(count)) = (words.next(), words.next()) {
            let held = words.by_ref().take(count as usize);
            let held = held.map(|word| Held { formula: word >> 1, negated: word & 1 == 1 }).collect();
            alternatives.push(Alternative { at, held });
        }
        alternatives
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.bytes()
    }

    fn number(&mut self, alternatives: &[Alternative]) -> u32 {
        let mut words = Vec::with_capacity(2 * alternatives.len());
        for alternative in alternatives {
            words.extend([alternative.at, alternative.held.len() as u32]);
            words.extend(alternative.held.iter().map(|held| held.formula << 1 | u32::from(held.negated)));
        }
        self.words.intern(&words).0
    }
}

/// Sorts alternatives, and leaves out an alternative if another one to the same state has fewer
/// conditions.
fn tidy(alternatives: &mut Vec<Alternative>) {
    alternatives.sort_unstable();
    alternatives.dedup();
    let mut kept: Vec<Alternative> = Vec::with_capacity(alternatives.len());
    for group in alternatives.chunk_by(|a, b| a.at == b.at) {
        let least = |alternative: &&Alternative| {
            !group.iter().any(|other| other != *alternative && other.asks_no_more(alternative))
        };
        kept.extend(group.iter().filter(least).cloned());
    }
    *alternatives = kept;
}
