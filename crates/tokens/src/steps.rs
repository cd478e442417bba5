//! Steps: the transitions of most characters from one state to the next, as skip links.
//!
//! A *step* is the transition of a set of characters from a plain state to a state. In a
//! string of bounded length every character leads to a further state, and all steps of a block have
//! the same characters. So each state keeps a *skip link*: the number of known steps with the same
//! characters from there on, and the state after them. The search then follows all of
//! these steps at once.

use std::ops::Range;
use std::sync::Arc;

use super::{ConstraintParts, StateId};
use burn_dfa_automata::FastMap;
use burn_dfa_vocabulary::CharacterSet;

/// About the maximum number of steps in one skip link. It is a size and no field of `Thresholds`:
/// without it, a cycle of steps would never end.
const MAX_AT_ONCE: usize = 256;

/// A step has at most about this many states between the bytes of its characters.
const AMID: usize = 8;

/// For each exit of the procedure, the longest distance and the most frames of some states; without
/// calls, the distance to the end alone.
type Farthest = Arc<[(u32, u32)]>;

/// The known steps.
#[derive(Default)]
pub(super) struct Steps {
    /// By state.
    known: FastMap<u32, Step>,
    /// The distinct pairs of the characters of a step and the dead characters; most steps share one
    /// pair.
    sets: Vec<[CharacterSet; 2]>,
    numbers: FastMap<[CharacterSet; 2], u32>,
    /// The states between the bytes of the characters, of all steps.
    amid: Vec<StateId>,
    /// The distances of the latest step, which most steps share.
    farthest: Option<Farthest>,
}

/// A step. Only the epsilon closure of the entered state changes the stack.
struct Step {
    /// The index in [`Steps::sets`].
    sets: u32,
    /// The range of its states in [`Steps::amid`].
    amid: Range<usize>,
    entered: StateId,
    /// This step and the known steps after it that have the same sets.
    ahead: SkipLink,
}

/// A known step.
pub(super) struct KnownStep<'a> {
    /// The entered state, before the epsilon closure.
    pub(super) entered: StateId,
    /// The characters of the step, and the dead characters.
    pub(super) sets: [CharacterSet; 2],
    /// The states between the bytes of the characters.
    pub(super) amid: &'a [StateId],
}

/// Consecutive steps with the same sets.
#[derive(Clone)]
pub(super) struct SkipLink {
    /// The number of steps, at least 1.
    pub(super) steps: usize,
    /// The state entered by the last step, before the epsilon closure.
    pub(super) entered: StateId,
    /// The distances of all states of the steps, without the last entered state.
    pub(super) farthest: Farthest,
}

impl SkipLink {
    /// The skip link `self`, followed by the skip link `behind`.
    fn then(&self, behind: &Self) -> Self {
        let (mut farthest, others) = (Arc::clone(&self.farthest), &behind.farthest);
        if farthest.iter().zip(&**others).any(|(own, other)| own.0 < other.0 || own.1 < other.1) {
            widen(Arc::make_mut(&mut farthest), others.iter().copied());
        }
        Self { steps: self.steps + behind.steps, entered: behind.entered, farthest }
    }
}

/// Raises the longest distances and the most frames to the values of `state`.
fn add_farthest(parts: &ConstraintParts, state: StateId, all: &mut [(u32, u32)]) {
    let Some(calls) = &parts.calls else {
        return all[0].0 = all[0].0.max(parts.bound_to_end[state.index()]);
    };
    widen(all, calls.bytes_of(state).iter().copied().zip(calls.frames_of(state).iter().copied()));
}

/// Raises the longest distances and the most frames to `others`.
fn widen(all: &mut [(u32, u32)], others: impl Iterator<Item = (u32, u32)>) {
    all.iter_mut().zip(others).for_each(|(all, other)| *all = (all.0.max(other.0), all.1.max(other.1)));
}

impl Steps {
    /// The step from a state.
    pub(super) fn of(&self, state: StateId) -> Option<KnownStep<'_>> {
        let Step { sets, amid, entered, .. } = self.known.get(&state.0)?;
        let amid = &self.amid[amid.clone()];
        Some(KnownStep { entered: *entered, sets: self.sets[*sets as usize], amid })
    }

    /// Keeps the step from a state. If there are `max_steps` steps, drops all of them first; also
    /// if there are more than [`AMID`] states between bytes for each, which replaced steps leave
    /// behind.
    pub(super) fn keep(
        &mut self,
        max_steps: usize,
        parts: &ConstraintParts,
        state: StateId,
        entered: StateId,
        sets: [CharacterSet; 2],
        amid: impl Iterator<Item = StateId>,
    ) {
        if max_steps == 0 {
            return;
        }
        if self.known.len() >= max_steps || self.amid.len() / AMID >= max_steps {
            *self = Self::default();
        }
        let number = *self.numbers.entry(sets).or_insert_with(|| {
            self.sets.push(sets);
            self.sets.len() as u32 - 1
        });
        let first = self.amid.len();
        self.amid.extend(amid);
        let amid = first..self.amid.len();
        let mut own = vec![(0, 0); parts.calls.as_ref().map_or(1, |calls| calls.exits)];
        let states = std::iter::once(&state).chain(&self.amid[amid.clone()]);
        states.for_each(|&state| add_farthest(parts, state, &mut own));
        let same = self.farthest.take().filter(|known| **known == *own);
        let farthest = same.unwrap_or_else(|| own.into());
        self.farthest = Some(Arc::clone(&farthest));
        let ahead = SkipLink { steps: 1, entered, farthest };
        self.known.insert(state.0, Step { sets: number, amid, entered, ahead });
    }

    /// The known steps from a state on that have the same sets, about [`MAX_AT_ONCE`] at most.
    pub(super) fn ahead(&mut self, state: StateId) -> Option<SkipLink> {
        let sets = self.known.get(&state.0)?.sets;
        let mut parts: Vec<(StateId, SkipLink)> = Vec::new();
        let (mut at, mut steps) = (state, 0);
        while steps < MAX_AT_ONCE
            && let Some(step) = self.known.get(&at.0).filter(|step| step.sets == sets)
        {
            parts.push((at, step.ahead.clone()));
            if step.ahead.entered == at {
                break;
            }
            (at, steps) = (step.ahead.entered, steps + step.ahead.steps);
        }
        // Backwards, so that each state keeps its longest skip link.
        let (_, mut all) = parts.pop()?;
        while let Some((state, own)) = parts.pop() {
            all = own.then(&all);
            if let Some(step) = self.known.get_mut(&state.0) {
                step.ahead = all.clone();
            }
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompiledConstraint, Constraint, Limits, TokenId, Vocabulary};

    const MAX_STEPS: usize = 64;

    /// The constraint of a regex over `a`, `b` and the quotation mark.
    fn compiled(regex: &str) -> CompiledConstraint {
        let words = ["a", "b", "\""].map(|word| Some(word.as_bytes()));
        let vocabulary = Vocabulary::from_bytes(words.into_iter().chain([None])).unwrap();
        let vocabulary = vocabulary.with_eos([TokenId(3)]).unwrap();
        let regex = Constraint::regex(regex).unwrap();
        CompiledConstraint::compile_byte_level(&regex, &vocabulary, &Limits::default()).unwrap()
    }

    #[test]
    fn steps_with_the_same_sets_are_one_skip_link() {
        let constraint = compiled("[ab]{12}(\"|[ab]{8})|[ab]{10}\"");
        let parts = constraint.parts();
        let mut states = vec![constraint.start()];
        for _ in 0..20 {
            states.push(constraint.next(states[states.len() - 1], TokenId(0)));
        }
        let [few, more] = [b"a".as_slice(), b"ab"].map(|set| CharacterSet::of(set.iter().copied()));
        let mut steps = Steps::default();
        assert!(steps.ahead(states[0]).is_none());
        let keep = |steps: &mut Steps, at: usize, set| {
            let amid = [states[0]].into_iter();
            steps.keep(MAX_STEPS, parts, states[at], states[at + 1], [set, CharacterSet::default()], amid);
        };
        // As they are found: at first up to state 7, then further, and with another set from state
        // 15 on.
        (0..7).for_each(|at| keep(&mut steps, at, few));
        let ahead = |steps: &mut Steps, at: usize| {
            let ahead = steps.ahead(states[at]).unwrap();
            (ahead.steps, states.iter().position(|&state| state == ahead.entered).unwrap())
        };
        assert_eq!([0, 3, 6].map(|at| ahead(&mut steps, at)), [(7, 7), (4, 7), (1, 7)]);
        (7..15).for_each(|at| keep(&mut steps, at, few));
        (15..19).for_each(|at| keep(&mut steps, at, more));
        assert_eq!([3, 0, 14, 15].map(|at| ahead(&mut steps, at)), [(12, 15), (15, 15), (1, 15), (4, 19)]);
        // One step stays one step, however many are known to follow.
        assert_eq!(steps.of(states[3]).unwrap().entered, states[4]);
        // The state between the bytes has the longest distance.
        let all = steps.ahead(states[0]).unwrap();
        assert_eq!(*all.farthest, [(constraint.tokens_to_end(states[0]), 0)]);
    }

    #[test]
    fn a_cycle_of_steps_is_followed_for_a_while() {
        let constraint = compiled("(ab)*");
        let start = constraint.start();
        let other = constraint.next(start, TokenId(0));
        let mut steps = Steps::default();
        let sets = [CharacterSet::ASCII; 2];
        steps.keep(MAX_STEPS, constraint.parts(), start, other, sets, std::iter::empty());
        steps.keep(MAX_STEPS, constraint.parts(), other, start, sets, std::iter::empty());
        for _ in 0..3 {
            let ahead = steps.ahead(start).unwrap();
            assert!(ahead.steps >= MAX_AT_ONCE && ahead.steps < 2 * MAX_AT_ONCE, "{}", ahead.steps);
            assert_eq!(ahead.entered, if ahead.steps.is_multiple_of(2) { start } else { other });
        }
        // A step that stays is one.
        steps.keep(MAX_STEPS, constraint.parts(), start, start, sets, std::iter::empty());
        assert_eq!(steps.ahead(start).unwrap().steps, 1);
    }

    #[test]
    fn replaced_steps_take_bounded_memory() {
        let constraint = compiled("ab");
        let (start, mut steps) = (constraint.start(), Steps::default());
        for _ in 0..4 * AMID * MAX_STEPS {
            let amid = [start; 3].into_iter();
            steps.keep(MAX_STEPS, constraint.parts(), start, start, [CharacterSet::ASCII; 2], amid);
            assert!(steps.amid.len() <= AMID * MAX_STEPS + 3 && steps.of(start).is_some());
        }
    }
}
