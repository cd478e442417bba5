//! Steps from character to character in a walked table, as they were found, and how many of them in a row are alike.
//!
//! A *step* leads from one state in which a row rests by most characters to one other. In counted text every character leads to
//! a further state, by steps that have the same characters all along a block. So it is kept of each state how many steps from
//! there on are alike, and where they lead; characters are followed over all of them at once.

use std::sync::Arc;

use super::{StateId, TableParts};
use crate::automaton::FastMap;
use crate::vocabulary::{CharacterSet, TAILS};

/// The most states of which steps are known at a time: about a quarter of a megabyte.
const MOST_STEPS: usize = 1024;

/// The most steps that are followed at once, about.
const MOST_AT_ONCE: usize = 256;

/// The longest way to each end of a piece, and the most frames that it needs; where there are no calls, to the end.
type Farthest = Arc<[(u32, u32)]>;

/// The steps that are known.
#[derive(Default)]
pub(super) struct Steps {
    /// By state.
    known: FastMap<u32, Step>,
    /// Which characters lead there, and which nowhere: the same for most states.
    sets: Vec<[CharacterSet; 2]>,
    numbers: FastMap<[CharacterSet; 2], u32>,
}

/// A step. It leaves the stack as it is, but for what the state that it enters does to it.
struct Step {
    /// The number of the sets.
    sets: u32,
    /// The states amid its characters.
    amid: Arc<[StateId]>,
    entered: StateId,
    /// This step, and those behind it that are known to have the same sets.
    ahead: Stretch,
}

/// What is known of a step.
pub(super) struct KnownStep<'a> {
    /// What it enters; a row may not rest there.
    pub(super) entered: StateId,
    /// By which characters, and which lead nowhere.
    pub(super) sets: [CharacterSet; 2],
    /// The states amid the former.
    pub(super) amid: &'a Arc<[StateId]>,
}

/// Steps one after the other that have the same sets.
#[derive(Clone)]
pub(super) struct Stretch {
    /// How many they are, at least 1.
    pub(super) steps: usize,
    /// What the last of them enters; a row may not rest there.
    pub(super) entered: StateId,
    /// Of all states on the way, but for the one that is entered.
    pub(super) farthest: Farthest,
    /// What each of [`TAILS`] enters from the states between the characters, if that is the same from all of them.
    pub(super) tails: [Option<StateId>; TAILS.len()],
}

impl Stretch {
    /// One step of a state, by characters amid which there are these states.
    fn of_one(parts: &TableParts, state: StateId, amid: &[StateId], entered: StateId) -> Self {
        let ends = parts.calls.as_ref().map_or(1, |calls| calls.ends);
        let farthest = (0..ends).map(|end| {
            let states = || std::iter::once(&state).chain(amid);
            match &parts.calls {
                None => (states().map(|state| parts.tokens_to_end[state.index()]).max().unwrap_or(0), 0),
                Some(calls) => (
                    states().map(|&state| calls.ways_of(state)[end]).max().unwrap_or(0),
                    states().map(|&state| calls.frames_of(state)[end]).max().unwrap_or(0),
                ),
            }
        });
        Self { steps: 1, entered, farthest: farthest.collect(), tails: tails(parts, state).map(Some) }
    }

    /// These, and then others.
    fn then(&self, behind: &Self) -> Self {
        let farthest = self.farthest.iter().zip(&*behind.farthest);
        let same = |at: usize| self.tails[at].filter(|_| self.tails[at] == behind.tails[at]);
        Self {
            steps: self.steps + behind.steps,
            entered: behind.entered,
            farthest: farthest.map(|(a, b)| (a.0.max(b.0), a.1.max(b.1))).collect(),
            tails: std::array::from_fn(same),
        }
    }
}

/// What each of [`TAILS`] enters from a state.
pub(super) fn tails(parts: &TableParts, state: StateId) -> [StateId; TAILS.len()] {
    let leads = parts.leads(state);
    TAILS.map(|byte| leads.after(byte))
}

impl Steps {
    /// The step from a state.
    pub(super) fn of(&self, state: StateId) -> Option<KnownStep<'_>> {
        let Step { sets, amid, entered, .. } = self.known.get(&state.0)?;
        Some(KnownStep { entered: *entered, sets: self.sets[*sets as usize], amid })
    }

    /// Keeps the step from a state.
    pub(super) fn keep(
        &mut self,
        parts: &TableParts,
        state: StateId,
        entered: StateId,
        sets: [CharacterSet; 2],
        amid: impl Iterator<Item = StateId>,
    ) {
        if self.known.len() >= MOST_STEPS {
            *self = Self::default();
        }
        let number = *self.numbers.entry(sets).or_insert_with(|| {
            self.sets.push(sets);
            self.sets.len() as u32 - 1
        });
        let amid: Arc<[StateId]> = amid.collect();
        let ahead = Stretch::of_one(parts, state, &amid, entered);
        self.known.insert(state.0, Step { sets: number, amid, entered, ahead });
    }

    /// The steps from a state on that have the same sets, as far as they are known, and about [`MOST_AT_ONCE`] of them at most.
    pub(super) fn ahead(&mut self, state: StateId) -> Option<Stretch> {
        let sets = self.known.get(&state.0)?.sets;
        let mut parts: Vec<(StateId, Stretch)> = Vec::new();
        let (mut at, mut steps) = (state, 0);
        while steps < MOST_AT_ONCE
            && let Some(step) = self.known.get(&at.0).filter(|step| step.sets == sets)
        {
            parts.push((at, step.ahead.clone()));
            if step.ahead.entered == at {
                break;
            }
            (at, steps) = (step.ahead.entered, steps + step.ahead.steps);
        }
        // From the last one on, so that next time all of them are known at once.
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
    use crate::{Constraint, Limits, TokenId, TokenTable, Vocabulary};

    fn vocabulary() -> Vocabulary {
        let words = ["a", "b", "\""].map(|word| Some(word.as_bytes()));
        Vocabulary::from_bytes(words.into_iter().chain([None])).unwrap().with_eos([TokenId(3)]).unwrap()
    }

    #[test]
    fn steps_with_the_same_sets_are_one_stretch() {
        let vocabulary = vocabulary();
        let text = Constraint::regex("[ab]{12}(\"|[ab]{8})|[ab]{10}\"").unwrap();
        let table = TokenTable::walk(&text, &vocabulary, &Limits::default()).unwrap();
        let parts = table.parts();
        let mut states = vec![table.start()];
        for _ in 0..20 {
            states.push(table.next(states[states.len() - 1], TokenId(0)));
        }
        let [few, more] = [b"a".as_slice(), b"ab"].map(|set| CharacterSet::of(set.iter().copied()));
        let mut steps = Steps::default();
        assert!(steps.ahead(states[0]).is_none());
        let keep = |steps: &mut Steps, at: usize, set| {
            let amid = [states[0]].into_iter();
            steps.keep(parts, states[at], states[at + 1], [set, CharacterSet::default()], amid);
        };
        // As they are found: at first up to state 7, then further, and with another set from state 15 on.
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
        // The farthest of all is the one amid the characters. A quotation mark may not be read up to state 9, and then at two of them.
        let [all, last] = [0, 13].map(|at| steps.ahead(states[at]).unwrap());
        assert_eq!(*all.farthest, [(table.tokens_to_end(states[0]), 0)]);
        assert_eq!((all.tails[0], last.tails[0]), (None, Some(StateId::DEAD)));
        assert_eq!(steps.ahead(states[6]).unwrap().tails, [None, Some(StateId::DEAD)]);
    }

    #[test]
    fn a_circle_of_steps_is_followed_for_a_while() {
        let vocabulary = vocabulary();
        let text = Constraint::regex("(ab)*").unwrap();
        let table = TokenTable::walk(&text, &vocabulary, &Limits::default()).unwrap();
        let start = table.start();
        let other = table.next(start, TokenId(0));
        let mut steps = Steps::default();
        let sets = [CharacterSet::ASCII; 2];
        steps.keep(table.parts(), start, other, sets, std::iter::empty());
        steps.keep(table.parts(), other, start, sets, std::iter::empty());
        for _ in 0..3 {
            let ahead = steps.ahead(start).unwrap();
            assert!(ahead.steps >= MOST_AT_ONCE && ahead.steps < 2 * MOST_AT_ONCE, "{}", ahead.steps);
            assert_eq!(ahead.entered, if ahead.steps.is_multiple_of(2) { start } else { other });
        }
        // A step that stays is one.
        steps.keep(table.parts(), start, start, sets, std::iter::empty());
        assert_eq!(steps.ahead(start).unwrap().steps, 1);
    }
}
