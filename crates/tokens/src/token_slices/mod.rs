//! Token slices: sets of tokens that are legal because of their characters, without a read of each
//! token.
//!
//! A token consists of an optional space, a first character and the *rest*. The search follows
//! characters from the state after the first character, not tokens. A character is *within* the
//! slice if it has the same transition as most other characters, at each step. It is *dead* if it
//! has no transition at any step. All other characters are *open*. A token whose rest is within the
//! slice is legal, a token with a dead character and no open one is not, and the trie decides the
//! tokens with open characters.
//!
//! Example: a position inside a JSON string, `{"name": "I have a`. Every first character but `"`
//! and `\` stays in the string, and so do the characters of a rest. The slice is:
//!
//! | | |
//! |---|---|
//! | first | all characters but control characters, `"` and `\`, with or without a space before |
//! | within | the same characters; `reach` has no limit |
//! | dead | control characters |
//! | open | `"` and `\` |
//!
//! `cat` and ` cat` are legal by the slice. A token of a line feed is not: its first character is
//! dead. `a"`, `a",` and `a\n` (a backslash and the letter n) have an open character: the search
//! reads them from the tries of the tokens with `"` and with `\`. `"` and `\n` begin with an open
//! character. Few tokens do, so they are read from the trie of the vocabulary.
//!
//! `cache` keeps the steps of a constraint, and `transitions` follows the characters.

mod cache;
mod transitions;

use std::rc::Rc;
use std::sync::{MutexGuard, PoisonError};

use super::mask::Thresholds;
use super::stack::{StackGraph, StackTop};
use super::steps::{KnownStep, Steps};
use super::{BudgetInterval, ConstraintParts, RowPosition, SelfLoop, StateId, TokenReading};
use burn_dfa_automata::Differences;
use burn_dfa_vocabulary::{ANY_LENGTH, CharacterSet, Characters, LONGEST, Spelled, Vocabulary};
pub use cache::CharTransitionCache;
use cache::Weighed;
use transitions::{CharTransition, CharTransitions, Entered, WideEffect};

/// The legal tokens among the tokens with some first characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenSlice {
    /// These tokens are legal, and longer tokens up to `reach`.
    pub(crate) spelled: Spelled,
    /// The maximum number of characters of a legal rest, `usize::MAX` without a limit. `None` if
    /// unknown: then tokens with more than [`LONGEST`] characters are read.
    pub(crate) reach: Option<usize>,
    /// Tokens are read if their first character outside of `within` is one of these, and are
    /// illegal otherwise.
    pub(crate) open: CharacterSet,
    /// The state that the characters within the slice do not leave, if there is one.
    pub(crate) self_loop: Option<SelfLoop>,
    /// First characters that lead to other states, from which most characters have the same
    /// transitions as from the state of `self_loop`.
    pub(crate) exceptions: [CharacterSet; 2],
}

/// The slices of a position.
#[derive(Debug, Default)]
pub(crate) struct TokenSlices {
    pub(crate) slices: Vec<TokenSlice>,
    /// The first characters of tokens to read, without a space before them and with one. Tokens
    /// with first characters that are neither here nor in a slice are illegal.
    pub(crate) read: [CharacterSet; 2],
}

impl ConstraintParts {
    /// The token slices at `position` with the budget `left` after the next token; `None` if all
    /// tokens must be read.
    pub(crate) fn token_slices(
        &self,
        position: &RowPosition,
        left: &mut BudgetInterval,
        thresholds: &Thresholds,
    ) -> Option<TokenSlices> {
        let TokenReading::Bytes { vocabulary, char_transitions, .. } = &self.reading else { return None };
        if self.alive_nodes(position.state, vocabulary, char_transitions) <= thresholds.few_nodes {
            return None;
        }
        let (stacks, top) = self.calls.as_ref().map(|calls| StackGraph::of(self, calls, position)).unzip();
        let characters = vocabulary.characters();
        let steps = char_transitions.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reader = Reader {
            parts: self,
            char_transitions,
            characters,
            weighed: char_transitions.weighed(vocabulary),
            thresholds,
            stacks,
            left,
            steps,
            entered: Vec::new(),
            seen: Vec::new(),
            followed: Vec::new(),
        };
        reader.slices((position.state, top.unwrap_or(StackTop::EMPTY)))
    }

    /// The number of trie nodes of tokens whose first byte has a transition from `state`.
    fn alive_nodes(
        &self,
        state: StateId,
        vocabulary: &Vocabulary,
        char_transitions: &CharTransitionCache,
    ) -> usize {
        if let Some(runs) = self.next.runs(state) {
            let trie = vocabulary.trie();
            return runs.iter().map(|run| trie.count_between(run.first, run.last)).sum();
        }
        let (row, columns) = (self.row(state), char_transitions.weighed(vocabulary).columns.iter());
        let alive = columns.filter(|column| row[column.column] != StateId::DEAD.0);
        alive.map(|column| column.nodes).sum()
    }
}

/// A plain state, after the epsilon closure, and the top frame of the stack.
type Configuration = (StateId, StackTop);

/// First characters that lead to the same configuration, without a space before them and with one.
struct Family {
    to: Configuration,
    first: [CharacterSet; 2],
    /// The configurations between the bytes of these characters.
    amid: Vec<Configuration>,
}

impl Family {
    /// The number of first bytes.
    fn count(&self) -> usize {
        self.first.iter().map(|set| set.count()).sum()
    }
}

/// One or more steps from a configuration.
struct StepEffect {
    /// The number of steps.
    steps: usize,
    /// The configuration after the last step.
    next: Configuration,
    /// The characters of each step, and the dead characters.
    sets: [CharacterSet; 2],
    /// Whether the step was not known before.
    is_new: bool,
}

/// Follows characters from one position.
struct Reader<'a> {
    parts: &'a ConstraintParts,
    char_transitions: &'a CharTransitionCache,
    characters: &'a Characters,
    weighed: &'a Weighed,
    thresholds: &'a Thresholds,
    stacks: Option<StackGraph<'a>>,
    left: &'a mut BudgetInterval,
    steps: MutexGuard<'a, Steps>,
    /// Scratch memory.
    entered: Vec<Entered>,
    /// The transitions of characters that were found for this position.
    seen: Vec<(Configuration, Rc<CharTransitions>)>,
    /// The non-ASCII characters that were followed after their first bytes.
    followed: Vec<WideEffect>,
}

impl Reader<'_> {
    fn slices(&mut self, start: Configuration) -> Option<TokenSlices> {
        self.enter(start.0);
        if !self.entered.iter().any(|entered| self.is_broad(StateId(entered.to))) {
            return None;
        }
        let bare = self
            .transitions_by_step(start)
            .unwrap_or_else(|| self.transitions_of_entered(start, CharTransitions::default()));
        let spaced = match bare.to.iter().find(|transition| transition.set.contains(b' ')) {
            Some(transition) => self.transitions(transition.to),
            None if bare.split.contains(b' ') => {
                Rc::new(CharTransitions { split: CharacterSet::ALL, ..CharTransitions::default() })
            }
            None => Rc::default(),
        };
        let mut found = TokenSlices { read: [bare.split, spaced.split], ..TokenSlices::default() };
        let mut families: Vec<Family> = Vec::new();
        for (is_spaced, transitions) in [bare, spaced].into_iter().enumerate() {
            for &CharTransition { to, set, ref amid, .. } in &transitions.to {
                let same = families.iter().position(|known| self.are_alike(known.to, to));
                let at = same.unwrap_or_else(|| {
                    families.push(Family { to, first: Default::default(), amid: Vec::new() });
                    families.len() - 1
                });
                let family = &mut families[at];
                family.first[is_spaced] = family.first[is_spaced].or(set);
                family.amid.extend(amid);
            }
        }
        // Families of many characters first: smaller families may be exceptions of their slices.
        families.sort_by_cached_key(|family| std::cmp::Reverse(family.count()));
        // The configurations of `self_loop`, each with the index of its slice.
        let mut lasting: Vec<(Configuration, usize)> = Vec::new();
        for family in families {
            let exception = self.exception_of(&family, &lasting);
            let is_settled = exception.is_some() && family.count() <= self.thresholds.few_characters;
            if !is_settled && let Some((slice, stays)) = self.slice_of(&family) {
                lasting.extend(stays.map(|stays| (stays, found.slices.len())));
                found.slices.push(slice);
                continue;
            }
            let with = |sets: [CharacterSet; 2]| [0, 1].map(|at| sets[at].or(family.first[at]));
            match exception.map(|number| &mut found.slices[number]) {
                Some(slice) => {
                    (slice.exceptions, slice.spelled.first) =
                        (with(slice.exceptions), with(slice.spelled.first));
                }
                None => found.read = with(found.read),
            }
        }
        (!found.slices.is_empty()).then_some(found)
    }

    /// The slice after the first characters of a family, and its configuration of `self_loop`;
    /// `None` if the tokens must be read.
    fn slice_of(&mut self, family: &Family) -> Option<(TokenSlice, Option<Configuration>)> {
        let (characters, first) = (self.characters, family.first);
        if !characters.begin_any(first) || !self.is_broad(family.to.0) || !self.can_end_at(&family.amid) {
            return None;
        }
        let (slice, stays) = self.slice(family.to)?;
        // One trie is read for each open character.
        let spelled = Spelled { first, ..slice.spelled };
        characters.are_few(slice.open).then_some((TokenSlice { spelled, ..slice }, stays))
    }

    /// The index of a slice that decides these first characters too, except for tokens with a few
    /// next characters: all other characters have the same transitions as from the state of
    /// `self_loop`.
    fn exception_of(&mut self, family: &Family, lasting: &[(Configuration, usize)]) -> Option<usize> {
        let (parts, characters, weighed, to) = (self.parts, self.characters, self.weighed, family.to);
        if !family.first.iter().all(|set| set.is_within(CharacterSet::ASCII)) {
            return None;
        }
        // The number of tokens with a character in their rests that has another transition.
        let except = |other: StateId| match [to.0, other].map(|state| parts.next.runs(state)) {
            [Some(runs), Some(other)] => Differences::new(runs, other)
                .map(|(first, last)| characters.count_rest_between(first, last))
                .sum::<usize>(),
            _ => {
                let [row, other] = [to.0, other].map(|state| parts.row(state));
                let columns =
                    weighed.columns.iter().filter(|column| row[column.column] != other[column.column]);
                columns.map(|column| column.weight).sum()
            }
        };
        let max_except = self.thresholds.max_except;
        let is_alike = |stays: Configuration| {
            max_except.saturating_mul(except(stays.0)) <= weighed.weight
                && self.are_alike((stays.0, to.1), stays)
        };
        let &(_, number) = lasting.iter().find(|&&(stays, _)| is_alike(stays))?;
        self.can_end(to).then_some(number)
    }

    fn can_end_at(&mut self, all: &[Configuration]) -> bool {
        all.iter().all(|&at| self.can_end(at))
    }

    /// Whether many characters have a transition from `state`, or that is unknown.
    fn is_broad(&self, state: StateId) -> bool {
        let weight: usize = match self.parts.next.runs(state) {
            Some(runs) => {
                runs.iter().map(|run| self.characters.count_rest_between(run.first, run.last)).sum()
            }
            None => {
                let (row, columns) = (self.parts.row(state), self.weighed.columns.iter());
                let alive = columns.filter(|column| row[column.column] != StateId::DEAD.0);
                alive.map(|column| column.weight).sum()
            }
        };
        self.thresholds.broad.saturating_mul(weight) >= self.weighed.weight || !self.parts.rests(state)
    }

    /// The slice from a configuration, and its configuration of `self_loop`; `None` if unknown.
    fn slice(&mut self, mut at: Configuration) -> Option<(TokenSlice, Option<Configuration>)> {
        let longest = self.characters.longest();
        let (mut within, mut length, mut found) = (CharacterSet::default(), 0, 0);
        let (mut dead, mut stays, mut goes_on) = (CharacterSet::ALL, None, false);
        let is_known = loop {
            if !self.can_end(at) {
                return None;
            }
            let among = (length > 0).then_some(within);
            let StepEffect { steps, next, sets: [on, off], is_new } = self.steps(at, among)?;
            found += usize::from(is_new);
            dead = dead.and(off);
            match among {
                None => within = on,
                Some(among) if among.is_within(off) => break true,
                Some(among) => within = among.and(on),
            }
            if within.is_empty() {
                // The slice is empty: either no character may follow the first one, or characters
                // differ.
                if length > 0 || on != CharacterSet::default() {
                    return None;
                }
                break true;
            }
            if steps == 1 && next == at {
                (stays, goes_on) = (Some(at), true);
                break true;
            }
            length += steps;
            if length > longest {
                goes_on = true;
                break true;
            }
            // Known steps cost little; each unknown step is one more search.
            if found > LONGEST && length > LONGEST {
                break false;
            }
            at = next;
        };
        let open = CharacterSet::CHARACTERS.without(within).without(dead);
        let reach = if goes_on { usize::MAX } else { length };
        let max_rest = if goes_on { ANY_LENGTH } else { length.min(LONGEST) };
        let slice = TokenSlice {
            spelled: Spelled { first: Default::default(), within, max_rest },
            reach: is_known.then_some(reach),
            open,
            self_loop: stays.map(|(state, _)| SelfLoop::of(state, within)),
            exceptions: Default::default(),
        };
        Some((slice, stays))
    }

    /// The step from a configuration, or all known steps with the same characters.
    fn steps(&mut self, from: Configuration, among: Option<CharacterSet>) -> Option<StepEffect> {
        if let Some(KnownStep { sets, .. }) = self.steps.of(from.0)
            && self.leads(among, sets)
            && let Some(ahead) = self.steps.ahead(from.0)
            && ahead.steps >= self.thresholds.worth_at_once
            && self.can_end_in_all(&ahead.farthest, from.1)
            && let Some(next) = self.epsilon_closure(ahead.entered.0, from.1, &mut false)
        {
            return Some(StepEffect { steps: ahead.steps, next, sets, is_new: false });
        }
        self.step(from, among)
    }

    /// Whether a step by the characters `on` is the step by most of the characters `among`, or all
    /// of these are dead.
    fn leads(&self, among: Option<CharacterSet>, [on, off]: [CharacterSet; 2]) -> bool {
        let count = |set: CharacterSet| self.characters.count_rest(set);
        among.is_none_or(|among| {
            among.is_within(on) || among.is_within(off) || 2 * count(among.and(on)) > count(among)
        })
    }

    /// The step to the configuration after most of the characters `among`, with all characters that
    /// lead there and all dead characters; `None` if the budget ends no token between the bytes of
    /// such a character.
    fn step(&mut self, from: Configuration, among: Option<CharacterSet>) -> Option<StepEffect> {
        if let Some(KnownStep { entered, sets, amid }) = self.steps.of(from.0)
            && self.leads(among, sets)
        {
            let amid = amid.to_vec();
            if let Some(next) = self.epsilon_closure(entered.0, from.1, &mut false) {
                let can_end = amid.iter().all(|&state| self.can_end((state, from.1)));
                return can_end.then_some(StepEffect { steps: 1, next, sets, is_new: false });
            }
        }
        let is_new = self.steps.of(from.0).is_none();
        let transitions = self.transitions(from);
        let weigh = |transition: &CharTransition| match among {
            Some(among) if !transition.set.is_within(among) => {
                self.characters.count_rest(transition.set.and(among))
            }
            _ => transition.weight,
        };
        let dead = transitions.dead();
        let Some(main) = transitions.to.iter().max_by_key(|transition| weigh(transition)) else {
            let sets = [CharacterSet::default(), dead];
            return Some(StepEffect { steps: 1, next: from, sets, is_new });
        };
        let (next, sets) = (main.to, [main.set, dead]);
        if let Some(entered) = main.entered.filter(|_| among.is_none_or(|among| among.is_within(main.set))) {
            let amid = main.amid.iter().map(|&(state, _)| state);
            self.steps.keep(self.thresholds.max_steps, self.parts, from.0, entered, sets, amid);
        }
        self.can_end_at(&main.amid).then_some(StepEffect { steps: 1, next, sets, is_new })
    }

    /// The configuration after the epsilon closure of an entered state; `None` if the stack has no
    /// capacity.
    fn epsilon_closure(&mut self, entered: u32, top: StackTop, moved: &mut bool) -> Option<Configuration> {
        let Some(stacks) = &mut self.stacks else { return Some((StateId(entered), top)) };
        let next = stacks.epsilon_closure(StateId(entered), top);
        *moved |= next != (StateId(entered), top);
        (next.0 != StateId::DEAD).then_some(next)
    }

    /// Whether two configurations have the same future. Characters of several lengths make separate
    /// calls with equal returns.
    fn are_alike(&self, (state, top): Configuration, (other, other_top): Configuration) -> bool {
        state == other && self.stacks.as_ref().is_none_or(|stacks| stacks.are_alike(top, other_top))
    }

    fn can_end(&mut self, (state, top): Configuration) -> bool {
        match &self.stacks {
            None => self.parts.reach(state, &[], self.left),
            Some(stacks) => stacks.reach(state, top, self.left),
        }
    }

    /// Whether the budget ends a token in all of some states with this top frame.
    fn can_end_in_all(&mut self, farthest: &[(u32, u32)], top: StackTop) -> bool {
        self.left.reach(match &self.stacks {
            None => farthest[0].0,
            Some(stacks) => stacks.to_end_of_all(farthest, top),
        })
    }
}
