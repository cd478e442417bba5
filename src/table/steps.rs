//! Steps from character to character in a walked table, as they were found, and how many of them in a row are alike.
//!
//! A *step* leads from one state in which a row rests by most characters to one other. In counted text every character leads to
//! a further state, by steps that have the same characters all along a block. So it is kept of each state how many steps from
//! there on are alike, and where they lead; characters are followed over all of them at once.

use std::ops::Range;
use std::sync::Arc;

use super::rows::entered;
use super::{StateId, TableParts};
use crate::automaton::{FastMap, Run};
use crate::vocabulary::{CONTINUATION, CharacterSet, LENGTH_CLASSES, TAILS};

/// The most states of which steps are known at a time: about a quarter of a megabyte.
const MOST_STEPS: usize = 1024;

/// The most steps that are followed at once, about.
const MOST_AT_ONCE: usize = 256;

/// States of which steps are known are compared with so many others.
const MOST_EXAMPLES: usize = 4;

/// The longest way to each end of a piece, and the most frames that it needs; where there are no calls, to the end.
pub(super) type Farthest = Arc<[(u32, u32)]>;

/// The steps that are known.
#[derive(Default)]
pub(super) struct Steps {
    /// By state.
    known: FastMap<u32, Step>,
    /// Which characters lead there, and which nowhere: the same for most states.
    sets: Vec<[CharacterSet; 2]>,
    numbers: FastMap<[CharacterSet; 2], u32>,
    /// States whose steps were found and not those of another state, the latest last.
    examples: Vec<StateId>,
    /// The states amid the characters of all steps.
    amid: Vec<StateId>,
    /// That of the latest step, which most have.
    farthest: Option<Farthest>,
    /// Scratch.
    both: Vec<([StateId; 2], usize)>,
}

/// A step. It leaves the stack as it is, but for what the state that it enters does to it.
struct Step {
    /// The number of the sets.
    sets: u32,
    /// The states amid its characters, of [`Steps::amid`].
    amid: Range<usize>,
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
    pub(super) amid: &'a [StateId],
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
    /// These, and then others.
    fn then(&self, behind: &Self) -> Self {
        let (mut farthest, others) = (Arc::clone(&self.farthest), &behind.farthest);
        if farthest.iter().zip(&**others).any(|(own, other)| own.0 < other.0 || own.1 < other.1) {
            widen(Arc::make_mut(&mut farthest), others.iter().copied());
        }
        let same = |at: usize| self.tails[at].filter(|_| self.tails[at] == behind.tails[at]);
        Self {
            steps: self.steps + behind.steps,
            entered: behind.entered,
            farthest,
            tails: std::array::from_fn(same),
        }
    }
}

/// Adds a state to some of which these are the longest way to each end and the most frames that it needs.
pub(super) fn add_farthest(parts: &TableParts, state: StateId, all: &mut [(u32, u32)]) {
    let Some(calls) = &parts.calls else {
        return all[0].0 = all[0].0.max(parts.tokens_to_end[state.index()]);
    };
    widen(all, calls.ways_of(state).iter().copied().zip(calls.frames_of(state).iter().copied()));
}

/// Adds states of which others are the longest ways to each end and the most frames.
pub(super) fn widen(all: &mut [(u32, u32)], others: impl Iterator<Item = (u32, u32)>) {
    all.iter_mut().zip(others).for_each(|(all, other)| *all = (all.0.max(other.0), all.1.max(other.1)));
}

/// Of no states.
pub(super) fn no_farthest(parts: &TableParts) -> Vec<(u32, u32)> {
    vec![(0, 0); parts.calls.as_ref().map_or(1, |calls| calls.ends)]
}

/// What each of [`TAILS`] enters from a state.
pub(super) fn tails(parts: &TableParts, state: StateId) -> [StateId; TAILS.len()] {
    let leads = parts.leads_by_runs(state);
    TAILS.map(|byte| leads.after(byte))
}

impl Steps {
    /// The step from a state.
    pub(super) fn of(&self, state: StateId) -> Option<KnownStep<'_>> {
        let Step { sets, amid, entered, .. } = self.known.get(&state.0)?;
        let amid = &self.amid[amid.clone()];
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
        self.insert(parts, state, entered, sets, amid);
        if self.examples.len() >= MOST_EXAMPLES {
            self.examples.remove(0);
        }
        self.examples.push(state);
    }

    fn insert(
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
        let first = self.amid.len();
        self.amid.extend(amid);
        let amid = first..self.amid.len();
        let mut own = no_farthest(parts);
        let states = std::iter::once(&state).chain(&self.amid[amid.clone()]);
        states.for_each(|&state| add_farthest(parts, state, &mut own));
        let same = self.farthest.take().filter(|known| **known == *own);
        let farthest = same.unwrap_or_else(|| own.into());
        self.farthest = Some(Arc::clone(&farthest));
        let ahead = Stretch { steps: 1, entered, farthest, tails: tails(parts, state).map(Some) };
        self.known.insert(state.0, Step { sets: number, amid, entered, ahead });
    }

    /// Whether the step from a state is known, or is like that from another one, and then it is kept: along counted text the
    /// same bytes lead on from each state, but each to states of its own. So they do behind it, where as many steps as are asked for are
    /// kept at once.
    pub(super) fn is_known(&mut self, parts: &TableParts, state: StateId, steps: usize) -> bool {
        if self.known.contains_key(&state.0) {
            return true;
        }
        let Some(mut next) = self.keep_like(parts, state) else { return false };
        for _ in 1..steps {
            if self.known.contains_key(&next.0) {
                break;
            }
            let Some(entered) = self.keep_like(parts, next) else { break };
            next = entered;
        }
        true
    }

    /// Keeps the step from a state if it is like that from another one, and gives what it enters.
    fn keep_like(&mut self, parts: &TableParts, state: StateId) -> Option<StateId> {
        let mut amid = std::mem::take(&mut self.both);
        let like = self.examples.iter().rev().find_map(|example| {
            let step = self.known.get(&example.0)?;
            let sets = self.sets[step.sets as usize];
            amid.clear();
            let mut like = Like { parts, on: sets[0], entered: (step.entered, None), amid: &mut amid };
            Some((like.step(*example, state)?, sets))
        });
        if let Some((entered, sets)) = like {
            self.insert(parts, state, entered, sets, amid.iter().map(|&([_, own], _)| own));
        }
        self.both = amid;
        like.map(|(entered, _)| entered)
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

/// Compares a state with one of which the step is known.
struct Like<'a> {
    parts: &'a TableParts,
    /// The characters of the step.
    on: CharacterSet,
    /// What they enter, and what they enter from the other state, once that is known.
    entered: (StateId, Option<StateId>),
    /// States amid them with those of the other state, and how many bytes of the character are missing there.
    amid: &'a mut Vec<([StateId; 2], usize)>,
}

impl<'a> Like<'a> {
    /// What the characters of the step from `known` enter from `state`, if that is one state too, and all that leads nowhere from
    /// there leads nowhere from here.
    fn step(&mut self, known: StateId, state: StateId) -> Option<StateId> {
        for (run, entered) in self.both([known, state])? {
            let set = CharacterSet::between(run.first, run.last).and(CharacterSet::CHARACTERS);
            if set.and(self.on).is_empty() {
                continue;
            }
            if !set.is_within(self.on) || !set.and(CharacterSet::ASCII).is_empty() && !self.enter(entered) {
                return None;
            }
            if run.last < LENGTH_CLASSES[0].first {
                continue;
            }
            let wide =
                LENGTH_CLASSES.iter().filter(|class| class.first <= run.last && class.last >= run.first);
            for class in wide {
                if !self.go_on(entered, class.length - 1) {
                    return None;
                }
            }
        }
        self.entered.1
    }

    /// The runs of two states, each with where it leads from both, if they have the same bytes.
    fn both(&self, states: [StateId; 2]) -> Option<impl Iterator<Item = (&'a Run, [StateId; 2])> + use<'a>> {
        let parts = self.parts;
        let [Some(known), Some(own)] = states.map(|state| parts.next.runs(state)) else { return None };
        let both = known.iter().zip(own);
        let is_alike = known.len() == own.len()
            && both.clone().all(|(known, own)| (known.first, known.last) == (own.first, own.last));
        is_alike.then(|| both.map(|(known, own)| (known, [known, own].map(entered))))
    }

    /// Whether this is what the characters enter from the two states.
    fn enter(&mut self, [known, own]: [StateId; 2]) -> bool {
        known == self.entered.0 && *self.entered.1.get_or_insert(own) == own
    }

    /// Whether the bytes that are `missing` amid a character lead from two states to what it enters, and nothing moves the stack.
    fn go_on(&mut self, states: [StateId; 2], missing: usize) -> bool {
        if self.amid.contains(&(states, missing)) {
            return true;
        }
        let is_plain = |state| self.parts.calls.as_ref().is_none_or(|calls| calls.is_plain(state));
        if !states.into_iter().all(is_plain) {
            return false;
        }
        self.amid.push((states, missing));
        let Some(mut both) = self.both(states) else { return false };
        let (first, last) = CONTINUATION;
        both.all(|(run, entered)| {
            let is_amid = run.first <= last && run.last >= first;
            !is_amid || if missing == 1 { self.enter(entered) } else { self.go_on(entered, missing - 1) }
        })
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
    fn steps_that_are_like_a_known_one_are_known() {
        let bytes = (0..=u8::MAX).map(|byte| Some(vec![byte])).chain([None]);
        let vocabulary = Vocabulary::from_bytes(bytes).unwrap().with_eos([TokenId(256)]).unwrap();
        // At first all characters lead to one state, then those beyond ASCII to another one, and then there are fewer.
        let text = Constraint::regex(r#"[^"]{6}([[:ascii:]--["]]{2}|[^[:ascii:]]{4})[a-z]"#).unwrap();
        let table = TokenTable::walk(&text, &vocabulary, &Limits::default()).unwrap();
        let parts = table.parts();
        let after = |state, text: &str| {
            text.bytes().fold(state, |state, byte| table.next(state, TokenId(byte.into())))
        };
        let mut states = vec![table.start()];
        for _ in 0..8 {
            states.push(after(states[states.len() - 1], "a"));
        }
        let quote = CharacterSet::of([b'"']);
        let sets = [CharacterSet::CHARACTERS.without(quote), quote];
        let amid =
            |state| ["é", "漢", "🙂"].map(|text| table.next(state, TokenId(text.as_bytes()[0].into())));
        let mut steps = Steps::default();
        steps.keep(parts, states[1], states[2], sets, amid(states[1]).into_iter());
        // As many as are asked for, and those that are alike.
        assert!(steps.is_known(parts, states[2], 2));
        assert_eq!([2, 3, 4].map(|at| steps.of(states[at]).is_some()), [true, true, false]);
        assert!(steps.is_known(parts, states[4], 9));
        assert_eq!([5, 6].map(|at| steps.of(states[at]).is_some()), [true, false]);
        for at in [0, 2, 3, 4, 5] {
            assert!(steps.is_known(parts, states[at], 1), "{at}");
            let step = steps.of(states[at]).unwrap();
            assert_eq!((step.entered, step.sets), (states[at + 1], sets), "{at}");
            assert!(amid(states[at]).iter().all(|state| step.amid.contains(state)), "{at}");
        }
        let beyond = after(states[6], "é");
        assert!(beyond != states[7] && after(states[5], "é") == states[6]);
        for state in [states[6], states[7], states[8], beyond, StateId::DEAD] {
            assert!(!steps.is_known(parts, state, 9), "{state:?}");
        }
        // From there characters of the step lead nowhere, or to another state.
        let ascii = [CharacterSet::ASCII.without(quote), quote];
        steps.keep(parts, states[7], states[8], ascii, std::iter::empty());
        assert!(!steps.is_known(parts, beyond, 9) && !steps.is_known(parts, states[8], 9));
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
