//! The emitter: writes plans as one automaton over bytes.
//!
//! The *exits* of a plan are the states after a value, one for each outcome of the plan. Exits are
//! emitted before the states of the plan, so these lead to the right states at once, and the
//! automaton is deterministic by construction. A plan is emitted once for the same exits.

mod array;
mod calls;
mod characters;
mod items;
mod object;
mod repeated;
mod separators;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use self::calls::{CallKind, Calls};
use self::characters::CharacterBlocks;
use self::items::ItemBlocks;
use self::repeated::repeated;
pub(super) use self::repeated::{copied_characters, reached};
use super::json::Json;
use super::plan::{Labeled, PlanId, Planner, Size};
use super::types::Types;
use super::{MAX_NESTING, string, text};
use burn_dfa_automata::{DfaBuilder, FastMap, Pushdown, Run, SparseDfa};
use burn_dfa_common::{Error, Limit, Result};

/// Some of the values of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection<'s> {
    pub(crate) plan: PlanId,
    /// The outcomes of the values; `None` for all.
    pub(crate) outcomes: Option<&'s [u32]>,
    pub(crate) types: Types,
}

/// All values of a plan.
impl From<PlanId> for Selection<'_> {
    fn from(plan: PlanId) -> Self {
        Self { plan, outcomes: None, types: Types::ALL }
    }
}

/// The automaton of the values `root`; `None` if there are none.
pub(super) fn emit<'s>(planner: &Planner, root: impl Into<Selection<'s>>) -> Result<Option<SparseDfa>> {
    let mut emitter = Emitter::new(planner, usize::MAX);
    let start = emitter.root(root)?;
    emitter.rows.check(planner.meter()).map_err(|error| emitter.located(error))?;
    emitter.rows.finish(start, planner.meter())
}

/// The size of the plan `root` with any JSON at depth 0; `None` if it takes more than `max_states`
/// states, or is too deep.
pub(super) fn size(planner: &Planner, root: PlanId, max_states: usize) -> Result<Option<Size>> {
    let mut emitter = Emitter::new(planner, max_states);
    let start = emitter.root(root);
    let states = emitter.rows.state_count();
    let is_deep = matches!(&start, Err(error) if matches!(error.breached(), Some(Limit::Nesting(_))));
    if states > max_states || is_deep {
        return Ok(None);
    }
    start?;
    let copies = |id: PlanId| emitter.done.keys().filter(|&&(plan, ..)| plan == id).count();
    let any_copies = planner.any_plans().map(|id| id.map_or(0, copies) as u64);
    Ok(Some(planner.size(states as u64, any_copies)))
}

/// Like [`emit`], with everything copied; `None` if it takes more than `max_states` states, or is
/// too deep.
pub(super) fn emit_within(
    planner: &Planner,
    root: Selection,
    max_states: usize,
) -> Result<Option<Option<SparseDfa>>> {
    let max_states = max_states.min(planner.meter().limits().states);
    let mut emitter = Emitter::new(planner, max_states);
    let start = emitter.root(root);
    let is_deep = matches!(&start, Err(error) if matches!(error.breached(), Some(Limit::Nesting(_))));
    if emitter.rows.state_count() > max_states || is_deep {
        return Ok(None);
    }
    emitter.rows.finish(start?, planner.meter()).map(Some)
}

/// The automaton of the values `root`, with calls of the recursive plans `recursive`, and of others
/// if this takes fewer states; `None` if there are none.
pub(super) fn emit_called(
    planner: &Planner,
    root: Selection,
    recursive: FastMap<PlanId, ()>,
) -> Result<Option<Pushdown>> {
    let max_states = planner.preferred_copies().sub_plan;
    let always = repeated(planner, root.plan, &recursive, max_states);
    let mut calls = Calls::new(recursive, max_states, always);
    let mut is_first = true;
    loop {
        let mut emitter = Emitter::new(planner, usize::MAX);
        emitter.calls = Some(calls);
        let start = emitter.root(root)?;
        emitter.finish_procedures()?;
        emitter.rows.check(planner.meter()).map_err(|error| emitter.located(error))?;
        let states = emitter.rows.state_count();
        match emitter.calls.take().and_then(|calls| calls.again(states)) {
            Some(again) if is_first && states > FEW => calls = again,
            _ => return emitter.rows.pushdown(start, planner.meter()),
        }
        is_first = false;
    }
}

/// The initial capacity in states.
const CAPACITY: usize = 1 << 12;

/// An automaton of at most this number of states is not emitted again to become smaller.
const FEW: usize = 1_000;

/// The spellings of one character, or the one spelling of several.
type Spellings = Vec<Vec<u8>>;

/// Texts with their outcomes, in order.
type LabeledTexts = Rc<[(Vec<u8>, u32)]>;

/// Emits plans.
struct Emitter<'p, 'a> {
    planner: &'p Planner<'a>,
    rows: DfaBuilder,
    /// The limit on emitted states.
    max_states: usize,
    /// The calls; `None` if everything is copied.
    calls: Option<Calls>,
    character_blocks: CharacterBlocks,
    item_blocks: ItemBlocks,
    /// The nesting depth of plans being emitted.
    open: usize,
    /// Plans whose copy took at least half of all states when it was finished, and the states it
    /// took. Of nested plans, only the innermost.
    large: Vec<(PlanId, usize)>,
    /// The start states of emitted plans, by plan, exits and level.
    done: FastMap<(PlanId, Vec<u32>, usize), u32>,
    /// The texts of single values, by plan, types and level.
    texts: FastMap<(PlanId, Types, usize), LabeledTexts>,
    /// The spellings of names, quotes included.
    spelled: HashMap<(Arc<str>, bool), Rc<[Spellings]>>,
}

impl<'p, 'a> Emitter<'p, 'a> {
    fn new(planner: &'p Planner<'a>, max_states: usize) -> Self {
        Self {
            planner,
            rows: DfaBuilder::with_capacity(CAPACITY),
            max_states,
            calls: None,
            character_blocks: CharacterBlocks::default(),
            item_blocks: FastMap::default(),
            open: 0,
            large: Vec::new(),
            done: FastMap::with_capacity_and_hasher(CAPACITY / 8, Default::default()),
            texts: FastMap::default(),
            spelled: HashMap::new(),
        }
    }

    /// The start state of the whole output.
    fn root<'s>(&mut self, root: impl Into<Selection<'s>>) -> Result<u32> {
        let Selection { plan, outcomes, types } = root.into();
        let end = self.rows.state(true, &[]);
        let is_selected = |outcome: u32| outcomes.is_none_or(|selected| selected.contains(&outcome));
        let count = self.planner.get(plan).outcomes.len() as u32;
        let exits: Vec<u32> = (0..count).map(|outcome| if is_selected(outcome) { end } else { 0 }).collect();
        if types == Types::ALL {
            return self.plan(plan, &exits, 0);
        }
        self.emitted(plan, types, &exits, 0).map_err(|error| self.located(error))
    }

    /// The start state of a value by the plan. `exits` are the states after it, by outcome; `level`
    /// is its nesting depth.
    fn plan(&mut self, id: PlanId, exits: &[u32], level: usize) -> Result<u32> {
        if exits.iter().all(|&exit| exit == 0) {
            return Ok(0);
        }
        // The text depends on the level only if it is indented.
        let level = if self.is_pretty() { level } else { 0 };
        let key = (id, exits.to_vec(), level);
        if let Some(&state) = self.done.get(&key) {
            return Ok(state);
        }
        let before = self.rows.state_count();
        if self.open == MAX_NESTING {
            return Err(Error::limit(Limit::Nesting(MAX_NESTING)).at(|| self.planner.origin(id)));
        }
        self.open += 1;
        let state = self.emitted(id, Types::ALL, exits, level);
        self.open -= 1;
        let states = self.rows.state_count() - before;
        if states * 2 >= self.rows.state_count() {
            self.large.push((id, states));
        }
        let state = state.map_err(|error| self.located(error))?;
        self.done.insert(key, state);
        Ok(state)
    }

    /// Adds the location of the innermost plan whose copy takes half of all states to a limit
    /// error.
    fn located(&self, error: Error) -> Error {
        let half = self.rows.state_count().div_ceil(2);
        let large = self.large.iter().filter(|(_, states)| *states >= half);
        match large.min_by_key(|(_, states)| *states) {
            Some(&(id, _)) => error.at(|| self.planner.origin(id)),
            None => error,
        }
    }

    /// Fails if `max_states` states or another limit is exceeded.
    fn check(&self) -> Result<()> {
        self.rows.check(self.planner.meter())?;
        if self.rows.state_count() > self.max_states {
            return Err(Error::limit(Limit::States(self.max_states)));
        }
        Ok(())
    }

    /// Like [`plan`](Self::plan), for values of some types of a plan not emitted yet.
    fn emitted(&mut self, id: PlanId, types: Types, exits: &[u32], level: usize) -> Result<u32> {
        self.check()?;
        let plan = self.planner.get(id);
        let mut starts = Vec::new();
        // Strings may be called, even if only strings are listed.
        let may_be_called = self.calls.is_some() && !plan.is_name;
        if !(may_be_called && plan.lists_strings()) {
            starts.push(self.values(id, types, exits, level));
        }
        if !types.meets(Types::STRING) {
            // No strings.
        } else if may_be_called {
            let opened = self.after_opening(id, CallKind::String, exits, level)?;
            starts.push(self.rows.byte(CallKind::String.opening(), opened));
        } else {
            starts.push(self.strings(id, exits)?);
        }
        if types.meets(Types::NUMBER) {
            starts.extend(plan.number.as_ref().map(|number| self.scalar(number, exits)));
        }
        for (kind, of) in [(CallKind::Array, Types::ARRAY), (CallKind::Object, Types::OBJECT)] {
            if !types.meets(of) {
                continue;
            }
            let opened = self.after_opening(id, kind, exits, level)?;
            starts.push(self.rows.byte(kind.opening(), opened));
        }
        starts.retain(|&start| start != 0);
        let state = match starts[..] {
            [] => 0,
            [only] => only,
            _ => {
                let mut row = Vec::new();
                for start in starts {
                    row.extend_from_slice(self.rows.row(start));
                }
                row.sort_unstable();
                self.rows.state(false, &row)
            }
        };
        Ok(state)
    }

    /// The strings of a plan, except the listed ones.
    fn strings(&mut self, id: PlanId, exits: &[u32]) -> Result<u32> {
        let plan = self.planner.get(id);
        match (&plan.string, &plan.counted) {
            (Some(string), _) => Ok(self.scalar(string, exits)),
            (None, Some((counted, outcome))) => self.counted(counted, exits[*outcome as usize]),
            (None, None) => Ok(0),
        }
    }

    /// The listed values of a plan, of some types.
    fn values(&mut self, id: PlanId, types: Types, exits: &[u32], level: usize) -> u32 {
        let options = self.planner.options();
        let values = &self.planner.get(id).values;
        if values.is_empty() {
            return 0;
        }
        let texts = self.texts.entry((id, types, level)).or_insert_with(|| {
            let selected = values.iter().filter(|(value, _)| types.meets(Types::of(value)));
            let write = |(value, outcome): &(Json, u32)| (text::write(value, options, level), *outcome);
            let mut texts: Vec<(Vec<u8>, u32)> = selected.map(write).collect();
            texts.sort_unstable();
            texts.dedup_by(|a, b| a.0 == b.0);
            texts.into()
        });
        let exit = |outcome: u32| exits[outcome as usize];
        self.rows.words(texts.iter().map(|(text, outcome)| (&text[..], exit(*outcome))))
    }

    fn scalar(&mut self, scalar: &Labeled, exits: &[u32]) -> u32 {
        let states = 1..scalar.state_count() as u32;
        // A final state without transitions is the exit itself.
        let exit = |state: u32| scalar.end(state).map_or(0, |outcome| exits[outcome as usize]);
        let goes_on = |state: u32| !scalar.row(state).is_empty();
        let mut next = self.rows.reserve(states.clone().filter(|&state| goes_on(state)).count());
        let mut numbers = vec![0; scalar.state_count()];
        for state in states.clone() {
            numbers[state as usize] = if goes_on(state) { next } else { exit(state) };
            next += u32::from(goes_on(state));
        }
        let mut row = Vec::new();
        for state in states.filter(|&state| goes_on(state)) {
            let runs = scalar.row(state).iter();
            row.clear();
            row.extend(runs.map(|run| Run { target: numbers[run.target as usize], ..*run }));
            let exit = exit(state);
            if exit != 0 {
                row.extend_from_slice(self.rows.row(exit));
                row.sort_unstable();
            }
            let accepting = self.rows.is_accepting(exit);
            self.rows.fill(numbers[state as usize], accepting, &row);
        }
        numbers[scalar.start() as usize]
    }

    /// The spellings of a name, quotes included: the written ones, or all spellings that are read
    /// as the name.
    fn spelled(&mut self, name: &Arc<str>, all: bool) -> Rc<[Spellings]> {
        let options = self.planner.options();
        let spelling = if all { options.free_spelling() } else { options.spelling() };
        let entry = self.spelled.entry((Arc::clone(name), all)).or_insert_with(|| {
            if name.chars().all(|character| spelling.is_plain(character.into())) {
                return [vec![format!("\"{name}\"").into_bytes()]].into();
            }
            let quote = || vec![b"\"".to_vec()];
            let mut all = vec![quote()];
            all.extend(string::spellings(name, spelling));
            all.push(quote());
            // Neighboring characters with one spelling each are merged.
            let mut merged: Vec<Spellings> = Vec::new();
            for spellings in all {
                match (merged.last_mut(), &spellings[..]) {
                    (Some(last), [only]) if last.len() == 1 => last[0].extend_from_slice(only),
                    _ => merged.push(spellings),
                }
            }
            merged.into()
        });
        Rc::clone(entry)
    }

    /// The names of `state` with `name` leading to `to`; to nowhere, it does in all of its
    /// spellings.
    fn named(&mut self, state: u32, name: &Arc<str>, to: u32) -> Result<u32> {
        // A name copies rows along its path, and has a state for every byte.
        self.check()?;
        self.planner.meter().states(name.len())?;
        let is_left_out = to == 0;
        let spelled = self.spelled(name, is_left_out);
        if let [one] = &spelled[..] {
            return Ok(self.rows.redirected(state, &one[0], to));
        }
        let mut along = Vec::with_capacity(spelled.len());
        let mut at = state;
        for spellings in spelled.iter() {
            along.push(at);
            at = spellings[0].iter().fold(at, |at, &byte| self.rows.next(at, byte));
        }
        let mut to = to;
        for (&before, spellings) in along.iter().zip(spelled.iter()).rev() {
            to = spellings.iter().fold(before, |state, spelling| {
                // Removing a name only needs the spellings that the state reads.
                let is_read = spelling.iter().fold(before, |at, &byte| self.rows.next(at, byte)) != 0;
                if is_read || !is_left_out { self.rows.redirected(state, spelling, to) } else { state }
            });
        }
        Ok(to)
    }
}
