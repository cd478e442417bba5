//! Token slices: sets of tokens that are legal because of their characters, without a read of each
//! token.
//!
//! A token consists of an optional space, a first character and the *rest*. The search follows
//! characters from the state after the first character, not tokens. A character is *within* the
//! slice if it has the same transition as most of the vocabulary, at each step. It is *dead* if it
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

use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::mask::Thresholds;
use super::rows;
use super::stack::{StackGraph, StackTop};
use super::steps::{Farthest, KnownStep, Steps, add_farthest, no_farthest, widen};
use super::{BudgetInterval, Near, RowPosition, StateId, TableParts, TokenReading};
use burn_dfa_automata::{Differences, FastMap};
use burn_dfa_vocabulary::{
    ANY_LENGTH, CONTINUATION, CharacterSet, Characters, LENGTH_CLASSES, LONGEST, LengthClass, Spelled,
    Vocabulary,
};

/// The legal tokens among the tokens with some first characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    stays: Option<StateId>,
    /// First characters that lead to other states, from which most characters have the same
    /// transitions as from the state of `stays`.
    pub(crate) beside: [CharacterSet; 2],
}

impl TokenSlice {
    /// The state of `stays`, with the characters that do not leave it.
    pub(crate) fn near(&self) -> Option<Near> {
        self.stays.map(|stays| Near::of(stays, self.spelled.within))
    }
}

/// The slices of a position.
#[derive(Debug, Default)]
pub(crate) struct TokenSlices {
    pub(crate) runs: Vec<TokenSlice>,
    /// The first characters of tokens to read, without a space before them and with one. Tokens
    /// with first characters that are neither here nor in a slice are illegal.
    pub(crate) read: [CharacterSet; 2],
}

/// The transitions of characters in one compiled constraint, and the slices and steps found so far.
pub struct CharTransitionCache {
    /// The columns of first bytes, each with its characters.
    columns: Vec<(u32, CharacterSet)>,
    wide: Vec<Wide>,
    /// Counts of the vocabulary by column.
    weighed: OnceLock<Weighed>,
    known: Mutex<Known>,
}

/// Counts of a vocabulary by column.
struct Weighed {
    /// For each column, the number of trie nodes of tokens with its first bytes.
    nodes: Vec<(u32, u32)>,
    columns: Vec<Column>,
    /// The sum of the weights of all columns.
    weight: usize,
}

/// Non-ASCII characters with the same columns.
struct Wide {
    first: CharacterSet,
    /// The continuation bytes by their index.
    behind: Vec<Bytes>,
}

/// A range of bytes with its columns.
#[derive(Clone)]
struct Bytes {
    first: u8,
    last: u8,
    columns: Vec<u32>,
}

/// What was found so far; valid for every stack.
#[derive(Default)]
struct Known {
    /// By state: the slices, and the distances of the states in which their tokens end. The slices
    /// are valid if all of these distances fit in the budget.
    runs: FastMap<u32, (Arc<TokenSlices>, Farthest)>,
    /// By state: the transition of most of the vocabulary.
    steps: Steps,
}

/// A column with its characters.
struct Column {
    column: usize,
    set: CharacterSet,
    /// The number of tokens with these characters in their rests.
    weight: usize,
}

impl CharTransitionCache {
    pub(super) fn new(column_of: &[u32; 256]) -> Self {
        let bytes = |(first, last): (u8, u8)| {
            let mut columns: Vec<u32> = (first..=last).map(|byte| column_of[byte as usize]).collect();
            columns.sort_unstable();
            columns.dedup();
            Bytes { first, last, columns }
        };
        let mut columns: Vec<(u32, CharacterSet)> = Vec::new();
        let mut place_of = vec![None; column_of.iter().max().map_or(0, |&most| most as usize + 1)];
        for byte in CharacterSet::CHARACTERS.bytes() {
            let column = column_of[byte as usize];
            let place = *place_of[column as usize].get_or_insert_with(|| {
                columns.push((column, CharacterSet::default()));
                columns.len() - 1
            });
            columns[place].1.insert(byte);
        }
        let wide = |class: &LengthClass| Wide {
            first: CharacterSet::of(class.first..=class.last),
            behind: (1..class.length)
                .map(|at| bytes(if at == 1 { class.second } else { CONTINUATION }))
                .collect(),
        };
        let mut all: Vec<Wide> = Vec::new();
        for wide in LENGTH_CLASSES.iter().map(wide) {
            let is_same = |known: &&mut Wide| {
                let columns = known.behind.iter().map(|bytes| &bytes.columns);
                columns.eq(wide.behind.iter().map(|bytes| &bytes.columns))
            };
            match all.iter_mut().find(is_same) {
                Some(known) => known.first = known.first.or(wide.first),
                None => all.push(wide),
            }
        }
        Self { columns, wide: all, weighed: OnceLock::new(), known: Mutex::default() }
    }

    /// Counts of the vocabulary by column. Computed once.
    fn weighed(&self, vocabulary: &Vocabulary) -> &Weighed {
        self.weighed.get_or_init(|| {
            let characters = vocabulary.characters();
            let mut nodes_of = [0; 256];
            for (byte, nodes) in vocabulary.trie().by_first_byte() {
                nodes_of[byte as usize] = nodes.len() as u32;
            }
            let nodes = |set: CharacterSet| set.bytes().map(|byte| nodes_of[byte as usize]).sum();
            let nodes = self.columns.iter().map(|&(column, set)| (column, nodes(set))).collect();
            let weigh = |set| characters.count_rest(set);
            let columns = self.columns.iter();
            let columns: Vec<Column> = columns
                .map(|&(column, set)| Column { column: column as usize, set, weight: weigh(set) })
                .collect();
            let weight = columns.iter().map(|column| column.weight).sum();
            Weighed { nodes, columns, weight }
        })
    }
}

impl Clone for CharTransitionCache {
    /// A clone starts without found slices.
    fn clone(&self) -> Self {
        let wide = self.wide.iter().map(|wide| Wide { first: wide.first, behind: wide.behind.clone() });
        Self {
            columns: self.columns.clone(),
            wide: wide.collect(),
            weighed: OnceLock::new(),
            known: Mutex::default(),
        }
    }
}

impl PartialEq for CharTransitionCache {
    /// The contents follow from the compiled constraint.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for CharTransitionCache {}

impl TableParts {
    /// The token slices at `position` with the budget `left` after the next token; `None` if all
    /// tokens must be read.
    pub(crate) fn token_slices(
        &self,
        position: &RowPosition,
        left: &mut BudgetInterval,
        thresholds: &Thresholds,
    ) -> Option<Arc<TokenSlices>> {
        let TokenReading::Bytes { vocabulary, alphabet, .. } = &self.reading else { return None };
        if self.alive_nodes(position.state, vocabulary, alphabet) <= thresholds.few_nodes {
            return None;
        }
        let (stacks, top) = self.calls.as_ref().map(|calls| StackGraph::of(self, calls, position)).unzip();
        let characters = vocabulary.characters();
        let known = alphabet.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reader = Reader {
            parts: self,
            alphabet,
            characters,
            weighed: alphabet.weighed(vocabulary),
            thresholds,
            stacks,
            left,
            known,
            entered: Vec::new(),
            at: Vec::new(),
            next: Vec::new(),
            moves_stack: false,
            farthest: Some(no_farthest(self)),
            seen: Vec::new(),
            followed: Vec::new(),
        };
        reader.known_slices((position.state, top.unwrap_or(StackTop::EMPTY)))
    }

    /// The number of trie nodes of tokens whose first byte has a transition from `state`.
    fn alive_nodes(&self, state: StateId, vocabulary: &Vocabulary, alphabet: &CharTransitionCache) -> usize {
        if let Some(runs) = self.next.runs(state) {
            let trie = vocabulary.trie();
            return runs.iter().map(|run| trie.count_between(run.first, run.last)).sum();
        }
        let (row, nodes) = (self.row(state), alphabet.weighed(vocabulary).nodes.iter());
        let alive = nodes.filter(|&&(column, _)| row[column as usize] != StateId::DEAD.0);
        alive.map(|&(_, nodes)| nodes as usize).sum()
    }
}

impl TableParts {
    /// The state entered by a byte.
    fn entered_by(&self, state: StateId, byte: u8) -> StateId {
        self.leads_by_runs(state).after(byte)
    }

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

/// A plain state, after the epsilon closure, and the top frame of the stack.
type Place = (StateId, StackTop);

/// Characters that lead to the same configuration.
#[derive(Clone)]
struct CharTransition {
    to: Place,
    /// The configurations between the bytes of these characters.
    amid: Vec<Place>,
    set: CharacterSet,
    /// About the number of tokens with these characters in their rests.
    weight: usize,
    /// The state that all of the characters enter, if it is one state and the stack is unchanged
    /// until then.
    entered: Option<StateId>,
}

/// The transitions of all characters from one configuration.
#[derive(Clone, Default)]
struct CharTransitions {
    to: Vec<CharTransition>,
    /// First bytes of tokens to read: some of their characters are dead, lead to another
    /// configuration, or make calls that exceed the stack.
    split: CharacterSet,
}

impl CharTransitions {
    /// The dead characters.
    fn dead(&self) -> CharacterSet {
        let alive = self.to.iter().fold(self.split, |all, transition| all.or(transition.set));
        CharacterSet::CHARACTERS.without(alive)
    }
}

/// First characters that lead to the same configuration, without a space before them and with one.
struct Family {
    place: Place,
    first: [CharacterSet; 2],
    /// The configurations between the bytes of these characters.
    amid: Vec<Place>,
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
    next: Place,
    /// The characters of each step, and the dead characters.
    sets: [CharacterSet; 2],
    /// Whether the step was not known before.
    is_new: bool,
}

/// The result of [`Reader::follow`].
struct WideEffect {
    begun: Place,
    moved: bool,
    /// The index of the characters in `CharTransitionCache::wide`.
    wide: usize,
    found: Option<(Place, Option<StateId>)>,
    amid: Vec<Place>,
}

/// Follows characters from one position.
struct Reader<'a> {
    parts: &'a TableParts,
    alphabet: &'a CharTransitionCache,
    characters: &'a Characters,
    weighed: &'a Weighed,
    thresholds: &'a Thresholds,
    stacks: Option<StackGraph<'a>>,
    left: &'a mut BudgetInterval,
    known: MutexGuard<'a, Known>,
    /// Scratch memory.
    entered: Vec<Entered>,
    at: Vec<Place>,
    next: Vec<Place>,
    /// Whether an epsilon closure changed the stack: then the result depends on the stack and is
    /// not cached.
    moves_stack: bool,
    /// The distances of the states in which tokens end; `None` after a state in which the budget
    /// ends no token.
    farthest: Option<Vec<(u32, u32)>>,
    /// The transitions of characters that were found for this position.
    seen: Vec<(Place, Rc<CharTransitions>)>,
    /// The non-ASCII characters that were followed after their first bytes.
    followed: Vec<WideEffect>,
}

/// A state entered by first bytes.
#[derive(Clone, Copy)]
struct Entered {
    to: u32,
    set: CharacterSet,
    /// The number of tokens with these characters in their rests.
    weight: usize,
}

impl Reader<'_> {
    fn known_slices(&mut self, start: Place) -> Option<Arc<TokenSlices>> {
        if let Some((runs, farthest)) = self.known.runs.get(&start.0.0).cloned()
            && self.can_end_in_all(&farthest, start.1)
        {
            return Some(runs);
        }
        let runs = Arc::new(self.runs(start)?);
        let max_slices = self.thresholds.max_slices;
        if let Some(farthest) = self.farthest.take().filter(|_| !self.moves_stack && max_slices > 0) {
            if self.known.runs.len() >= max_slices {
                self.known.runs.clear();
            }
            self.known.runs.insert(start.0.0, (Arc::clone(&runs), farthest.into()));
        }
        Some(runs)
    }

    fn runs(&mut self, start: Place) -> Option<TokenSlices> {
        self.enter(start.0);
        if !self.entered.iter().any(|entered| self.is_broad(StateId(entered.to))) {
            return None;
        }
        let bare = self.transitions_by_step(start).unwrap_or_else(|| self.transitions_of_entered(start));
        let behind_space =
            bare.to.iter().find(|transition| transition.set.contains(b' ')).map(|transition| transition.to);
        let spaced = match behind_space {
            Some(place) => self.transitions(place),
            None if bare.split.contains(b' ') => {
                Rc::new(CharTransitions { split: CharacterSet::ALL, ..CharTransitions::default() })
            }
            None => Rc::default(),
        };
        let mut found = TokenSlices { read: [bare.split, spaced.split], ..TokenSlices::default() };
        let mut families: Vec<Family> = Vec::new();
        for (is_spaced, transitions) in [bare, spaced].into_iter().enumerate() {
            for &CharTransition { to, set, ref amid, .. } in &transitions.to {
                let same = families.iter().position(|known| self.are_alike(known.place, to));
                let at = same.unwrap_or_else(|| {
                    families.push(Family { place: to, first: Default::default(), amid: Vec::new() });
                    families.len() - 1
                });
                let family = &mut families[at];
                family.first[is_spaced] = family.first[is_spaced].or(set);
                family.amid.extend(amid);
            }
        }
        // Families of many characters first: smaller families may be exceptions of their slices.
        families.sort_by_cached_key(|family| std::cmp::Reverse(family.count()));
        // The configurations of `stays`, each with the index of its slice.
        let mut lasting: Vec<(Place, usize)> = Vec::new();
        for family in families {
            let beside = self.beside(&family, &lasting);
            let is_settled = beside.is_some() && family.count() <= self.thresholds.few_characters;
            if !is_settled && let Some((run, stays)) = self.run_of(&family) {
                lasting.extend(stays.map(|place| (place, found.runs.len())));
                found.runs.push(run);
                continue;
            }
            let with = |sets: [CharacterSet; 2]| [0, 1].map(|at| sets[at].or(family.first[at]));
            match beside.map(|number| &mut found.runs[number]) {
                Some(run) => (run.beside, run.spelled.first) = (with(run.beside), with(run.spelled.first)),
                None => found.read = with(found.read),
            }
        }
        (!found.runs.is_empty()).then_some(found)
    }

    /// The slice after the first characters of a family, and its configuration of `stays`; `None`
    /// if the tokens must be read.
    fn run_of(&mut self, family: &Family) -> Option<(TokenSlice, Option<Place>)> {
        let (characters, first) = (self.characters, family.first);
        if !characters.begin_more(first, self.thresholds.few_tokens)
            || !self.is_broad(family.place.0)
            || !self.can_end_at(&family.amid)
        {
            return None;
        }
        let (run, stays) = self.run(family.place)?;
        // One trie is read for each open character.
        let is_known = characters.are_few(run.open)
            && characters.begin_more(first, self.thresholds.per_open.saturating_mul(run.open.count()));
        let spelled = Spelled { first, ..run.spelled };
        is_known.then_some((TokenSlice { spelled, ..run }, stays))
    }

    /// The index of a slice that decides these first characters too, except for tokens with a few
    /// next characters: all other characters have the same transitions as from the state of
    /// `stays`.
    fn beside(&mut self, family: &Family, lasting: &[(Place, usize)]) -> Option<usize> {
        let (parts, characters, weighed, place) = (self.parts, self.characters, self.weighed, family.place);
        if !family.first.iter().all(|set| set.is_within(CharacterSet::ASCII)) {
            return None;
        }
        // The number of tokens with a character in their rests that has another transition.
        let except = |other: StateId| match [place.0, other].map(|state| parts.next.runs(state)) {
            [Some(runs), Some(other)] => Differences::new(runs, other)
                .map(|(first, last)| characters.count_rest_between(first, last))
                .sum::<usize>(),
            _ => {
                let [row, other] = [place.0, other].map(|state| parts.row(state));
                let columns =
                    weighed.columns.iter().filter(|column| row[column.column] != other[column.column]);
                columns.map(|column| column.weight).sum()
            }
        };
        let max_except = self.thresholds.max_except;
        let is_beside = |stays: Place| {
            max_except.saturating_mul(except(stays.0)) <= weighed.weight
                && self.are_alike((stays.0, place.1), stays)
        };
        let &(_, number) = lasting.iter().find(|&&(stays, _)| is_beside(stays))?;
        self.can_end(place).then_some(number)
    }

    fn can_end_at(&mut self, places: &[Place]) -> bool {
        places.iter().all(|&place| self.can_end(place))
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

    /// Finds the states entered by the first bytes of characters.
    fn enter(&mut self, state: StateId) {
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
            return columns.for_each(|&Column { column, set, weight }| add(row[column], set, weight));
        };
        for run in runs {
            let set = CharacterSet::between(run.first, run.last).and(CharacterSet::CHARACTERS);
            add(rows::entered(run).0, set, self.characters.count_rest_between(run.first, run.last));
        }
    }

    /// The slice from a configuration, and its configuration of `stays`; `None` if unknown.
    fn run(&mut self, mut place: Place) -> Option<(TokenSlice, Option<Place>)> {
        let longest = self.characters.longest();
        let (mut within, mut most, mut found) = (CharacterSet::default(), 0, 0);
        let (mut dead, mut stays, mut goes_on) = (CharacterSet::ALL, None, false);
        let is_known = loop {
            if !self.can_end(place) {
                return None;
            }
            let among = (most > 0).then_some(within);
            let StepEffect { steps, next, sets: [on, off], is_new } = self.steps(place, among)?;
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
                if most > 0 || on != CharacterSet::default() {
                    return None;
                }
                break true;
            }
            if steps == 1 && next == place {
                (stays, goes_on) = (Some(place), true);
                break true;
            }
            most += steps;
            if most > longest {
                goes_on = true;
                break true;
            }
            // Known steps cost little; each unknown step is one more search.
            if found > LONGEST && most > LONGEST {
                break false;
            }
            place = next;
        };
        let open = CharacterSet::CHARACTERS.without(within).without(dead);
        let reach = if goes_on { usize::MAX } else { most };
        let most = if goes_on { ANY_LENGTH } else { most.min(LONGEST) };
        let run = TokenSlice {
            spelled: Spelled { first: Default::default(), within, most },
            reach: is_known.then_some(reach),
            open,
            stays: stays.map(|(state, _)| state),
            beside: Default::default(),
        };
        Some((run, stays))
    }

    /// The step from a configuration, or all known steps with the same characters.
    fn steps(&mut self, place: Place, among: Option<CharacterSet>) -> Option<StepEffect> {
        if let Some(KnownStep { sets, .. }) = self.known.steps.of(place.0)
            && self.leads(among, sets)
            && let Some(ahead) = self.known.steps.ahead(place.0)
            && ahead.steps >= self.thresholds.worth_at_once
        {
            let all_end = self.can_end_in_all(&ahead.farthest, place.1);
            if let Some(next) =
                all_end.then(|| self.epsilon_closure(ahead.entered.0, place.1, &mut false)).flatten()
            {
                if let Some(all) = &mut self.farthest {
                    widen(all, ahead.farthest.iter().copied());
                }
                return Some(StepEffect { steps: ahead.steps, next, sets, is_new: false });
            }
        }
        let is_new = self.known.steps.of(place.0).is_none();
        let (next, sets) = self.step(place, among)?;
        Some(StepEffect { steps: 1, next, sets, is_new })
    }

    /// Whether a step by the characters `on` is the step by most of the characters `among`, or all
    /// of these are dead.
    fn leads(&self, among: Option<CharacterSet>, [on, off]: [CharacterSet; 2]) -> bool {
        let count = |set: CharacterSet| self.characters.count_rest(set);
        among.is_none_or(|among| {
            among.is_within(on) || among.is_within(off) || 2 * count(among.and(on)) > count(among)
        })
    }

    /// The configuration after most of the characters `among`, with all characters that lead there
    /// and all dead characters; `None` if the budget ends no token between the bytes of such a
    /// character.
    fn step(&mut self, place: Place, among: Option<CharacterSet>) -> Option<(Place, [CharacterSet; 2])> {
        if let Some(KnownStep { entered, sets, amid }) = self.known.steps.of(place.0)
            && self.leads(among, sets)
        {
            let amid = amid.to_vec();
            if let Some(next) = self.epsilon_closure(entered.0, place.1, &mut false) {
                let can_end = amid.iter().all(|&state| self.can_end((state, place.1)));
                return can_end.then_some((next, sets));
            }
        }
        let transitions = self.transitions(place);
        let weigh = |transition: &CharTransition| match among {
            Some(among) if !transition.set.is_within(among) => {
                self.characters.count_rest(transition.set.and(among))
            }
            _ => transition.weight,
        };
        let dead = transitions.dead();
        let Some(main) = transitions.to.iter().max_by_key(|transition| weigh(transition)) else {
            return Some((place, [CharacterSet::default(), dead]));
        };
        let (next, sets) = (main.to, [main.set, dead]);
        if let Some(entered) = main.entered.filter(|_| among.is_none_or(|among| among.is_within(main.set))) {
            let amid = main.amid.iter().map(|&(state, _)| state);
            self.known.steps.keep(self.thresholds.max_steps, self.parts, place.0, entered, sets, amid);
        }
        self.can_end_at(&main.amid).then_some((next, sets))
    }

    /// The transitions of all characters.
    fn transitions(&mut self, place: Place) -> Rc<CharTransitions> {
        if let Some((_, transitions)) = self.seen.iter().find(|(seen, _)| *seen == place) {
            return Rc::clone(transitions);
        }
        self.transitions_by_step(place).unwrap_or_else(|| {
            self.enter(place.0);
            self.transitions_of_entered(place)
        })
    }

    /// The same from a known step, if few other characters are alive.
    fn transitions_by_step(&mut self, place: Place) -> Option<Rc<CharTransitions>> {
        let KnownStep { entered, sets: [on, off], amid } = self.known.steps.of(place.0)?;
        let others = CharacterSet::CHARACTERS.without(on).without(off);
        if !others.is_within(CharacterSet::ASCII) || others.count() > self.thresholds.few_characters {
            return None;
        }
        let amid = amid.iter().map(|&state| (state, place.1)).collect();
        let to = self.epsilon_closure(entered.0, place.1, &mut false)?;
        let mut transitions = CharTransitions::default();
        let weight = self.weighed.weight;
        self.add(&mut transitions, CharTransition { to, amid, set: on, weight, entered: Some(entered) });
        for byte in others.bytes() {
            let (entered, set) = (self.parts.entered_by(place.0, byte), CharacterSet::of([byte]));
            match self.epsilon_closure(entered.0, place.1, &mut false) {
                Some(to) => {
                    let weight = self.characters.count_rest_between(byte, byte);
                    let (amid, entered) = (Vec::new(), Some(entered));
                    self.add(&mut transitions, CharTransition { to, amid, set, weight, entered });
                }
                None => transitions.split = transitions.split.or(set),
            }
        }
        let transitions = Rc::new(transitions);
        self.seen.push((place, Rc::clone(&transitions)));
        Some(transitions)
    }

    /// The same from the states that [`enter`](Self::enter) found.
    fn transitions_of_entered(&mut self, place: Place) -> Rc<CharTransitions> {
        let top = place.1;
        let mut transitions = CharTransitions::default();
        for at in 0..self.entered.len() {
            let Entered { to, set, weight } = self.entered[at];
            let mut moves_stack = false;
            let Some(at) = self.epsilon_closure(to, top, &mut moves_stack) else {
                transitions.split = transitions.split.or(set);
                continue;
            };
            let ascii = set.and(CharacterSet::ASCII);
            let entered = Some(StateId(to));
            self.add(
                &mut transitions,
                CharTransition { to: at, amid: Vec::new(), set: ascii, weight, entered },
            );
            if ascii == set {
                continue;
            }
            for (wide, Wide { first, .. }) in self.alphabet.wide.iter().enumerate() {
                let set = set.and(*first);
                if set.is_empty() {
                    continue;
                }
                let followed = self.follow(at, wide, moves_stack);
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
        self.seen.push((place, Rc::clone(&transitions)));
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
                known.amid.extend(
                    transition.amid.iter().filter(|place| !known.amid.contains(place)).collect::<Vec<_>>(),
                );
            }
            None => transitions.to.push(transition),
        }
    }

    /// Follows the continuation bytes of non-ASCII characters from `begun`, and returns the index
    /// of the result in `followed`. The result is `None` if the characters lead to several
    /// configurations or some are dead. It names the entered state if that is one state and the
    /// stack did not change before; `moved` says whether the stack changed already.
    fn follow(&mut self, begun: Place, wide: usize, moved: bool) -> usize {
        let same = |known: &WideEffect| (known.begun, known.wide, known.moved) == (begun, wide, moved);
        if let Some(known) = self.followed.iter().position(same) {
            return known;
        }
        let followed = self.follow_bytes(begun, wide, moved);
        self.followed.push(followed);
        self.followed.len() - 1
    }

    /// The same without the cache.
    fn follow_bytes(&mut self, begun: Place, wide: usize, was_moved: bool) -> WideEffect {
        let mut moved = was_moved;
        let [mut at, mut next] = [&mut self.at, &mut self.next].map(std::mem::take);
        let mut amid = Vec::new();
        at.clear();
        at.push(begun);
        let (mut all_read, mut entered) = (true, None);
        for bytes in &self.alphabet.wide[wide].behind {
            amid.extend_from_slice(&at);
            next.clear();
            let (mut first, mut is_one) = (None, !moved);
            for &(state, top) in &at {
                let (parts, mut last) = (self.parts, None);
                parts.each_entered(state, bytes, |to| {
                    if last.replace(to) == Some(to) {
                        return;
                    }
                    is_one &= *first.get_or_insert(to) == to;
                    // The first byte has dead and live characters: the tokens are read.
                    if to == StateId::DEAD.0 {
                        all_read = false;
                        return;
                    }
                    match self.epsilon_closure(to, top, &mut moved) {
                        Some(place) if !next.iter().any(|&known| self.are_alike(known, place)) => {
                            next.push(place)
                        }
                        Some(_) => {}
                        None => all_read = false,
                    }
                });
            }
            entered = first.filter(|_| is_one);
            std::mem::swap(&mut at, &mut next);
            if !all_read || at.len() > self.thresholds.max_states() {
                break;
            }
        }
        let found = match at[..] {
            [place] if all_read => Some((place, entered.map(StateId))),
            _ => None,
        };
        (self.at, self.next) = (at, next);
        WideEffect { begun, moved: was_moved, wide, found, amid }
    }

    /// The configuration after the epsilon closure of an entered state; `None` if the stack has no
    /// capacity.
    fn epsilon_closure(&mut self, entered: u32, top: StackTop, moves_stack: &mut bool) -> Option<Place> {
        let Some(stacks) = &mut self.stacks else { return Some((StateId(entered), top)) };
        let place = stacks.epsilon_closure(StateId(entered), top);
        let moves = place != (StateId(entered), top);
        (*moves_stack, self.moves_stack) = (*moves_stack | moves, self.moves_stack | moves);
        (place.0 != StateId::DEAD).then_some(place)
    }

    /// Whether two configurations have the same future. Characters of several lengths make separate
    /// calls with equal returns.
    fn are_alike(&self, (state, top): Place, (other, other_top): Place) -> bool {
        state == other && self.stacks.as_ref().is_none_or(|stacks| stacks.are_alike(top, other_top))
    }

    fn can_end(&mut self, (state, top): Place) -> bool {
        let can_end = match &self.stacks {
            None => self.parts.reach(state, &[], self.left),
            Some(stacks) => stacks.reach(state, top, self.left),
        };
        match &mut self.farthest {
            Some(all) if can_end => add_farthest(self.parts, state, all),
            farthest => *farthest = None,
        }
        can_end
    }

    /// Whether the budget ends a token in all of some states with this top frame.
    fn can_end_in_all(&mut self, farthest: &[(u32, u32)], top: StackTop) -> bool {
        self.left.reach(match &self.stacks {
            None => farthest[0].0,
            Some(stacks) => stacks.to_end_of_all(farthest, top),
        })
    }
}
