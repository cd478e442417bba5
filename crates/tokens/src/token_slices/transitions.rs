//! The transitions of all characters from one configuration.

use std::rc::Rc;

use super::cache::{Bytes, Column, Wide};
use super::{Configuration, Reader};
use crate::rows;
use crate::steps::KnownStep;
use crate::{ConstraintParts, StateId};
use burn_dfa_vocabulary::CharacterSet;

/// Characters that lead to the same configuration.
#[derive(Clone)]
pub(super) struct CharTransition {
    pub(super) to: Configuration,
    /// The configurations between the bytes of these characters.
    pub(super) amid: Vec<Configuration>,
    pub(super) set: CharacterSet,
    /// About the number of tokens with these characters in their rests.
    pub(super) weight: usize,
    /// The state that all of the characters enter, if it is one state and the stack is unchanged
    /// until then.
    pub(super) entered: Option<StateId>,
}

/// The transitions of all characters from one configuration.
#[derive(Clone, Default)]
pub(super) struct CharTransitions {
    pub(super) to: Vec<CharTransition>,
    /// First bytes of tokens to read: some of their characters are dead, lead to another
    /// configuration, or make calls that exceed the stack.
    pub(super) split: CharacterSet,
}

impl CharTransitions {
    /// The dead characters.
    pub(super) fn dead(&self) -> CharacterSet {
        let alive = self.to.iter().fold(self.split, |all, transition| all.or(transition.set));
        CharacterSet::CHARACTERS.without(alive)
    }
}

/// The result of [`Reader::follow`].
pub(super) struct WideEffect {
    begun: Configuration,
    moved: bool,
    /// The index of the characters in [`CharTransitionCache::wide`](super::CharTransitionCache).
    wide: usize,
    found: Option<(Configuration, Option<StateId>)>,
    amid: Vec<Configuration>,
}

/// A state entered by first bytes.
#[derive(Clone, Copy)]
pub(super) struct Entered {
    pub(super) to: u32,
    set: CharacterSet,
    /// The number of tokens with these characters in their rests.
    weight: usize,
}

impl ConstraintParts {
    /// Calls `enters` with each state entered by the bytes, with `DEAD` as well, and with some
    /// states several times.
    fn each_entered(&self, state: StateId, bytes: &Bytes, mut enters: impl FnMut(u32)) {
        let &Bytes { first, last, ref columns } = bytes;
        let Some(runs) = self.next.runs(state) else {
            let row = self.row(state);
            return columns.iter().for_each(|&column| enters(row[column as usize]));
        };
        let mut dead = usize::from(last - first) + 1;
        for run in runs.iter().filter(|run| run.first <= last && run.last >= first) {
            dead -= usize::from(run.last.min(last) - run.first.max(first)) + 1;
            enters(rows::entered(run).0);
        }
        if dead > 0 {
            enters(StateId::DEAD.0);
        }
    }
}

impl Reader<'_> {
    /// Finds the states entered by the first bytes of characters.
    pub(super) fn enter(&mut self, state: StateId) {
        self.entered.clear();
        let entered = &mut self.entered;
        let mut add =
            |to: u32, set: CharacterSet, weight: usize| match entered.iter_mut().find(|known| known.to == to)
            {
                _ if to == StateId::DEAD.0 || set.is_empty() => {}
                Some(known) => (known.set, known.weight) = (known.set.or(set), known.weight + weight),
                None => entered.push(Entered { to, set, weight }),
            };
        let Some(runs) = self.parts.next.runs(state) else {
            let (row, columns) = (self.parts.row(state), self.weighed.columns.iter());
            return columns.for_each(|&Column { column, set, weight, .. }| add(row[column], set, weight));
        };
        for run in runs {
            let set = CharacterSet::between(run.first, run.last).and(CharacterSet::CHARACTERS);
            add(rows::entered(run).0, set, self.characters.count_rest_between(run.first, run.last));
        }
    }

    /// The transitions of all characters.
    pub(super) fn transitions(&mut self, from: Configuration) -> Rc<CharTransitions> {
        if let Some((_, transitions)) = self.seen.iter().find(|(seen, _)| *seen == from) {
            return Rc::clone(transitions);
        }
        self.transitions_by_step(from).unwrap_or_else(|| {
            self.enter(from.0);
            self.transitions_of_entered(from, CharTransitions::default())
        })
    }

    /// The same from a known step, if few other characters are alive.
    pub(super) fn transitions_by_step(&mut self, from: Configuration) -> Option<Rc<CharTransitions>> {
        let KnownStep { entered, sets: [on, off], amid } = self.steps.of(from.0)?;
        let others = CharacterSet::CHARACTERS.without(on).without(off);
        if !others.is_within(CharacterSet::ASCII) || others.count() > self.thresholds.few_characters {
            return None;
        }
        let amid = amid.iter().map(|&state| (state, from.1)).collect();
        let to = self.epsilon_closure(entered.0, from.1, &mut false)?;
        let mut transitions = CharTransitions::default();
        let weight = self.weighed.weight;
        self.add(&mut transitions, CharTransition { to, amid, set: on, weight, entered: Some(entered) });
        let (view, characters) = (self.parts.transitions(from.0), self.characters);
        self.entered.clear();
        self.entered.extend(others.bytes().map(|byte| Entered {
            to: view.after(byte).0,
            set: CharacterSet::of([byte]),
            weight: characters.count_rest_between(byte, byte),
        }));
        Some(self.transitions_of_entered(from, transitions))
    }

    /// The same by the states in `entered`, added to known `transitions`.
    pub(super) fn transitions_of_entered(
        &mut self,
        from: Configuration,
        mut transitions: CharTransitions,
    ) -> Rc<CharTransitions> {
        for at in 0..self.entered.len() {
            let Entered { to, set, weight } = self.entered[at];
            let mut moved = false;
            let Some(begun) = self.epsilon_closure(to, from.1, &mut moved) else {
                transitions.split = transitions.split.or(set);
                continue;
            };
            let ascii = set.and(CharacterSet::ASCII);
            let entered = Some(StateId(to));
            self.add(
                &mut transitions,
                CharTransition { to: begun, amid: Vec::new(), set: ascii, weight, entered },
            );
            if ascii == set {
                continue;
            }
            for (wide, Wide { first, .. }) in self.char_transitions.wide.iter().enumerate() {
                let set = set.and(*first);
                if set.is_empty() {
                    continue;
                }
                let followed = self.follow(begun, wide, moved);
                let WideEffect { found, ref amid, .. } = self.followed[followed];
                match found {
                    Some((to, entered)) => {
                        let amid = amid.clone();
                        self.add(&mut transitions, CharTransition { to, amid, set, weight, entered });
                    }
                    None => transitions.split = transitions.split.or(set),
                }
            }
        }
        let transitions = Rc::new(transitions);
        self.seen.push((from, Rc::clone(&transitions)));
        transitions
    }

    fn add(&self, transitions: &mut CharTransitions, transition: CharTransition) {
        if transition.set.is_empty() {
            return;
        }
        match transitions.to.iter_mut().find(|known| self.are_alike(known.to, transition.to)) {
            Some(known) => {
                known.entered = known.entered.filter(|_| known.entered == transition.entered);
                known.set = known.set.or(transition.set);
                known.weight += transition.weight;
                let new: Vec<_> = transition.amid.into_iter().filter(|at| !known.amid.contains(at)).collect();
                known.amid.extend(new);
            }
            None => transitions.to.push(transition),
        }
    }

    /// Follows the continuation bytes of non-ASCII characters from `begun`, and returns the index
    /// of the result in `followed`. The result is `None` if the characters lead to several
    /// configurations or some are dead. It names the entered state if that is one state and the
    /// stack did not change before; `moved` says whether the stack changed already.
    fn follow(&mut self, begun: Configuration, wide: usize, moved: bool) -> usize {
        let same = |known: &WideEffect| (known.begun, known.wide, known.moved) == (begun, wide, moved);
        if let Some(known) = self.followed.iter().position(same) {
            return known;
        }
        let followed = self.follow_bytes(begun, wide, moved);
        self.followed.push(followed);
        self.followed.len() - 1
    }

    /// The same without the cache.
    fn follow_bytes(&mut self, begun: Configuration, wide: usize, was_moved: bool) -> WideEffect {
        let (mut moved, mut at, mut entered, mut amid) = (was_moved, begun, None, Vec::new());
        for bytes in &self.char_transitions.wide[wide].behind {
            amid.push(at);
            let (parts, (state, top)) = (self.parts, at);
            let (mut first, mut is_one, mut last) = (None, !moved, None);
            let (mut next, mut all_lead) = (None, true);
            parts.each_entered(state, bytes, |to| {
                if last.replace(to) == Some(to) {
                    return;
                }
                is_one &= *first.get_or_insert(to) == to;
                // The first byte has dead and live characters: the tokens are read.
                if to == StateId::DEAD.0 {
                    all_lead = false;
                    return;
                }
                match self.epsilon_closure(to, top, &mut moved) {
                    Some(to) => all_lead &= self.are_alike(*next.get_or_insert(to), to),
                    None => all_lead = false,
                }
            });
            let Some(next) = next.filter(|_| all_lead) else {
                return WideEffect { begun, moved: was_moved, wide, found: None, amid };
            };
            (at, entered) = (next, first.filter(|_| is_one));
        }
        let found = Some((at, entered.map(StateId)));
        WideEffect { begun, moved: was_moved, wide, found, amid }
    }
}
