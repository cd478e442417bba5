//! Objects: property by property, declared ones in their order and then all others.
//!
//! No declared name appears twice. That other names are distinct is beyond a finite automaton, so no outcome
//! may depend on it. Readers take the last of two equal names: what holds of *all* other properties holds
//! whichever is taken; that one of them *violates* a claim is certain only of the last of all, and a claim that
//! another violated has to make no difference. Of a count, the first other name is certain and the rest is not.

use std::sync::Arc;

use super::live::{live, reached};
use super::{Any, Claims, Depth, Kind, Plan, PlanId, Planner, Step};
use crate::automaton::FastMap;
use crate::constraint::json_schema::formula::{Except, Formula, Leaf};
use crate::constraint::json_schema::options::{Additional, Order};
use crate::constraint::json_schema::types::Types;
use crate::error::{Error, Result};

/// The ways through an object, from state 0 on.
#[derive(Debug)]
pub(in super::super) struct Object {
    /// Declared names, in order.
    pub(in super::super) names: Vec<Arc<str>>,
    pub(in super::super) states: Vec<ObjectState>,
}

/// A place between properties.
#[derive(Debug)]
pub(in super::super) struct ObjectState {
    /// How many declared names are behind.
    pub(in super::super) at: usize,
    /// With the next declared property.
    pub(in super::super) take: Option<Step>,
    /// Without it.
    pub(in super::super) skip: Option<u32>,
    /// Behind all declared names: another property.
    pub(in super::super) others: Option<Others>,
    /// Behind all declared names: the outcome of an object that ends here.
    pub(in super::super) end: Option<u32>,
}

/// Properties that are not declared.
#[derive(Debug)]
pub(in super::super) struct Others {
    /// The names; declared ones may be among them, and are not meant.
    pub(in super::super) names: PlanId,
    /// By outcome of the name.
    pub(in super::super) steps: Vec<Option<Step>>,
}

/// What tells states apart.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    at: usize,
    residues: Vec<Formula>,
    /// Claims that the last property, not a declared one, violated.
    violated: Vec<Formula>,
    /// Whether there was a property that is not declared.
    more: bool,
}

/// How an object may end.
enum End {
    None,
    /// The residues are decided.
    Residues(Vec<Formula>),
    /// It is valid if its names are distinct, which is not known: a count of properties depends on that.
    Lost(u64),
}

/// States under construction.
struct Building {
    names: Vec<Arc<str>>,
    /// Whether other properties may come.
    open: bool,
    depth: Depth,
    any: bool,
    numbers: FastMap<Key, u32>,
    queue: Vec<Key>,
}

impl Building {
    fn number(&mut self, key: Key) -> u32 {
        let queue = &mut self.queue;
        *self.numbers.entry(key).or_insert_with_key(|key| {
            queue.push(key.clone());
            queue.len() as u32 - 1
        })
    }
}

impl Planner<'_> {
    pub(super) fn object(
        &mut self,
        must: Formula,
        asks: &[Formula],
        depth: Depth,
        any: bool,
        plan: &mut Plan,
    ) -> Result<Option<Object>> {
        let residues: Vec<Formula> = std::iter::once(must).chain(asks.iter().copied()).collect();
        let (names, speaks) = self.declared(&residues);
        let open = speaks || names.is_empty() || self.options().additional == Additional::Standard;
        let mut building =
            Building { names, open, depth, any, numbers: FastMap::default(), queue: Vec::new() };
        building.number(Key { at: 0, residues, violated: Vec::new(), more: false });
        let mut states: Vec<ObjectState> = Vec::new();
        let mut ends: Vec<Option<Vec<Formula>>> = Vec::new();
        let mut lost = None;
        while let Some(key) = building.queue.get(states.len()).cloned() {
            self.count()?;
            let mut state = ObjectState { at: key.at, take: None, skip: None, others: None, end: None };
            let mut end = None;
            if key.at < building.names.len() {
                state.take = self.take(&key, &mut building)?;
                state.skip = self.skip(&key, &mut building);
            } else {
                match self.ended_object(&key) {
                    End::Residues(residues) => end = Some(residues),
                    End::Lost(count) => lost = Some(count),
                    End::None => {}
                }
                state.others = self.others(&key, &mut building)?;
            }
            states.push(state);
            ends.push(end);
        }
        let live = live(ends.iter().map(Option::is_some), states.iter().map(ObjectState::nexts));
        if let Some(count) = lost {
            self.lost(count, !live[0])?;
        }
        if !live[0] {
            return Ok(None);
        }
        let reached = reached(&live, states.iter().map(ObjectState::nexts));
        for (at, state) in states.iter_mut().enumerate() {
            state.prune(&live);
            if reached[at]
                && let Some(ended) = &ends[at]
            {
                state.end = self.outcome(ended, plan);
            }
        }
        Ok(Some(Object { names: building.names, states }))
    }

    /// The names that residues speak of, in order, and whether they speak of others as well.
    fn declared(&mut self, residues: &[Formula]) -> (Vec<Arc<str>>, bool) {
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut seen: std::collections::HashSet<Arc<str>> = std::collections::HashSet::new();
        let mut speaks = false;
        let mut excepted: Vec<Arc<str>> = Vec::new();
        let leaves = self.leaves_of(residues);
        let mut add = |name: &Arc<str>| {
            if seen.insert(Arc::clone(name)) {
                names.push(Arc::clone(name));
            }
        };
        let mut required = Vec::new();
        if self.options().order == Order::RequiredFirst {
            for part in self.formulas.conjuncts(residues[0]).iter() {
                if let Some(Leaf::Present(name)) = self.formulas.as_leaf(*part) {
                    required.push(Arc::clone(name));
                }
            }
        }
        // Declared ones in their order, among those that are required; then what is required and not declared.
        for pass in 0..3 {
            for &leaf in &leaves {
                match self.formulas.as_leaf(leaf) {
                    Some(Leaf::Property(name, _)) if pass == 1 || (pass == 0 && required.contains(name)) => {
                        add(name);
                    }
                    Some(Leaf::Present(name)) if pass == 2 || (pass == 0 && required.contains(name)) => {
                        add(name)
                    }
                    Some(Leaf::Matching(..)) => speaks = true,
                    Some(Leaf::Others(except, _)) => {
                        speaks = true;
                        if pass == 2 {
                            excepted.extend(except.names.iter().cloned());
                        }
                    }
                    _ => {}
                }
            }
        }
        excepted.iter().for_each(add);
        (names, speaks)
    }

    /// The step over the next declared property.
    fn take(&mut self, key: &Key, building: &mut Building) -> Result<Option<Step>> {
        let name = Arc::clone(&building.names[key.at]);
        let sure = self.formulas.conjuncts(key.residues[0]);
        let mut values: FastMap<Formula, Formula> = FastMap::default();
        let mut claims = Claims::default();
        for leaf in self.leaves_of(&key.residues) {
            let Some(what) = self.formulas.as_leaf(leaf).cloned() else { continue };
            let (below, of_name) = match what {
                Leaf::Present(of) if of == name => {
                    values.insert(leaf, Formula::TRUE);
                    continue;
                }
                Leaf::Properties { count, certain, possible } => {
                    let possible = possible.saturating_sub(1);
                    let fewer = Leaf::Properties { count, certain: certain - 1, possible };
                    values.insert(leaf, self.formulas.leaf(fewer));
                    continue;
                }
                Leaf::Names(below) => {
                    match self.holds(below, &serde_json::Value::String(name.to_string()))? {
                        Some(true) => {}
                        Some(false) => {
                            values.insert(leaf, Formula::FALSE);
                        }
                        None => return Ok(None),
                    }
                    continue;
                }
                Leaf::Property(of, below) if of == name => (below, true),
                Leaf::Matching(pattern, below) if self.matches(&pattern, &name)? => (below, false),
                Leaf::Others(except, below) if self.is_other(&except, &name)? => (below, false),
                _ => continue,
            };
            let truth = below.decided().or_else(|| {
                if sure.contains(&leaf) {
                    claims.must.push(below);
                    return Some(true);
                }
                claims.open.push((leaf, below));
                None
            });
            match truth {
                Some(false) => values.insert(leaf, Formula::FALSE),
                // A claim on other names as well stays open.
                Some(true) if of_name => values.insert(leaf, Formula::TRUE),
                _ => None,
            };
        }
        if self.assign(&key.residues, &values)[0] == Formula::FALSE {
            return Ok(None);
        }
        let asks = claims.asks();
        let must = self.demanded(&key.residues, &values, &claims);
        let within = building.any.then_some(Kind::Object);
        let Some(child) = self.below(must, &asks, building.depth, within)? else { return Ok(None) };
        let mut next = Vec::new();
        for answers in self.get(child).outcomes.clone() {
            let mut values = values.clone();
            for &(leaf, below) in &claims.open {
                if !answer(&asks, &answers, below) {
                    values.insert(leaf, Formula::FALSE);
                } else if matches!(self.formulas.as_leaf(leaf), Some(Leaf::Property(..))) {
                    values.insert(leaf, Formula::TRUE);
                }
            }
            let residues = self.assign(&key.residues, &values);
            next.push((residues[0] != Formula::FALSE).then(|| {
                building.number(Key { at: key.at + 1, residues, violated: Vec::new(), more: false })
            }));
        }
        Ok(Some(Step { child, next }))
    }

    /// What must hold of the next value: besides what is claimed outright, that not every question is
    /// answered in the negative, where that would be the end.
    fn demanded(
        &mut self,
        residues: &[Formula],
        values: &FastMap<Formula, Formula>,
        claims: &Claims,
    ) -> Formula {
        let mut must = claims.must.clone();
        if !claims.open.is_empty() {
            let mut values = values.clone();
            values.extend(claims.open.iter().map(|&(leaf, _)| (leaf, Formula::FALSE)));
            if self.assign(&residues[..1], &values)[0] == Formula::FALSE {
                must.push(self.formulas.or(claims.open.iter().map(|&(_, below)| below)));
            }
        }
        self.formulas.and(must)
    }

    /// The state without the next declared property.
    fn skip(&mut self, key: &Key, building: &mut Building) -> Option<u32> {
        let name = &building.names[key.at];
        let mut values: FastMap<Formula, Formula> = FastMap::default();
        for leaf in self.leaves_of(&key.residues) {
            match self.formulas.as_leaf(leaf) {
                Some(Leaf::Present(of)) if of == name => values.insert(leaf, Formula::FALSE),
                Some(Leaf::Property(of, _)) if of == name => values.insert(leaf, Formula::TRUE),
                _ => None,
            };
        }
        let residues = self.assign(&key.residues, &values);
        (residues[0] != Formula::FALSE)
            .then(|| building.number(Key { at: key.at + 1, residues, violated: Vec::new(), more: false }))
    }

    /// The residues of an object that ends.
    fn ended_object(&mut self, key: &Key) -> End {
        let mut values: FastMap<Formula, Formula> = FastMap::default();
        let mut uncertain = Vec::new();
        for leaf in self.leaves_of(&key.residues) {
            let truth = match self.formulas.as_leaf(leaf) {
                Some(Leaf::Present(_)) => false,
                Some(&Leaf::Properties { count, possible, .. }) => {
                    if possible == 0 {
                        uncertain.push((leaf, count));
                    }
                    false
                }
                _ => !key.violated.contains(&leaf),
            };
            values.insert(leaf, Formula::constant(truth));
        }
        let ended = self.assign(&key.residues, &values);
        for &(leaf, count) in &uncertain {
            values.insert(leaf, Formula::TRUE);
            let of_distinct = self.assign(&key.residues, &values);
            if of_distinct != ended {
                // Where the names are distinct, all counts are reached.
                values.extend(uncertain.iter().map(|&(leaf, _)| (leaf, Formula::TRUE)));
                let is_lost = self.assign(&key.residues, &values)[0] == Formula::TRUE;
                return if is_lost { End::Lost(count) } else { End::None };
            }
        }
        if ended[0] == Formula::TRUE { End::Residues(ended) } else { End::None }
    }

    /// What becomes of an object some ends of which are lost: it is refused where no other is left, and noted elsewhere.
    fn lost(&mut self, count: u64, is_empty: bool) -> Result<()> {
        let leaf = self.formulas.properties(count);
        let pointer = self.schema.origins.get(&leaf).cloned().unwrap_or_default();
        // Where recursion is cut off an object may be empty for that alone.
        if is_empty && !self.cut {
            return Err(uncounted(pointer));
        }
        self.lost.insert(pointer);
        Ok(())
    }

    /// The steps over a property that is not declared.
    fn others(&mut self, key: &Key, building: &mut Building) -> Result<Option<Others>> {
        if !building.open {
            return Ok(None);
        }
        let sure = self.formulas.conjuncts(key.residues[0]);
        let leaves = self.leaves_of(&key.residues);
        let mut must = vec![self.formulas.leaf(Leaf::Types(Types::STRING))];
        let mut asks: Vec<Formula> = Vec::new();
        for &leaf in &leaves {
            let Some(what) = self.formulas.as_leaf(leaf).cloned() else { continue };
            let mut ask = |ask: Formula| {
                if !asks.contains(&ask) {
                    asks.push(ask);
                }
            };
            match what {
                Leaf::Names(below) if sure.contains(&leaf) => must.push(below),
                Leaf::Names(below) => ask(below),
                Leaf::Matching(pattern, below) => {
                    let matches = self.formulas.leaf(Leaf::Pattern(pattern));
                    if below == Formula::FALSE && sure.contains(&leaf) {
                        must.push(self.formulas.not(matches));
                    } else {
                        ask(matches);
                    }
                }
                Leaf::Others(except, below) => {
                    let patterns: Vec<Formula> = except
                        .patterns
                        .iter()
                        .map(|pattern| self.formulas.leaf(Leaf::Pattern(Arc::clone(pattern))))
                        .collect();
                    if below == Formula::FALSE && sure.contains(&leaf) {
                        must.push(self.formulas.or(patterns));
                    } else if below != Formula::TRUE {
                        patterns.into_iter().for_each(ask);
                    }
                }
                _ => {}
            }
        }
        let must = self.formulas.and(must);
        let Some(names) = self.below(must, &asks, building.depth, None)? else { return Ok(None) };
        let mut steps = Vec::new();
        for answers in self.get(names).outcomes.clone() {
            let matches = |planner: &mut Self, pattern: &Arc<_>| {
                let leaf = planner.formulas.leaf(Leaf::Pattern(Arc::clone(pattern)));
                answer(&asks, &answers, leaf)
            };
            let is_other = |planner: &mut Self, except: &Except| {
                !except.patterns.iter().any(|pattern| matches(planner, pattern))
            };
            let mut claims = Claims::default();
            let mut violated = Vec::new();
            for &leaf in &leaves {
                let below = match self.formulas.as_leaf(leaf).cloned() {
                    // No name that is left is one of these.
                    Some(Leaf::Matching(_, Formula::FALSE) | Leaf::Others(_, Formula::FALSE))
                        if sure.contains(&leaf) =>
                    {
                        continue;
                    }
                    Some(Leaf::Names(below)) if !sure.contains(&leaf) => {
                        if !answer(&asks, &answers, below) {
                            violated.push(leaf);
                        }
                        continue;
                    }
                    Some(Leaf::Matching(pattern, below)) if matches(self, &pattern) => below,
                    Some(Leaf::Others(except, below)) if is_other(self, &except) => below,
                    _ => continue,
                };
                match below.decided() {
                    Some(true) => {}
                    Some(false) => violated.push(leaf),
                    None if sure.contains(&leaf) => claims.must.push(below),
                    None => claims.open.push((leaf, below)),
                }
            }
            steps.push(self.other(key, claims, &violated, building)?);
        }
        Ok(steps.iter().any(Option::is_some).then_some(Others { names, steps }))
    }

    /// The step over a property with a name that is not declared, by its claims.
    fn other(
        &mut self,
        key: &Key,
        claims: Claims,
        violated: &[Formula],
        building: &mut Building,
    ) -> Result<Option<Step>> {
        let mut counts: FastMap<Formula, Formula> = FastMap::default();
        for leaf in self.leaves_of(&key.residues) {
            if let Some(&Leaf::Properties { count, certain, possible }) = self.formulas.as_leaf(leaf) {
                let fewer = Leaf::Properties {
                    count,
                    certain: if key.more { certain } else { certain - 1 },
                    possible: possible.saturating_sub(1),
                };
                counts.insert(leaf, self.formulas.leaf(fewer));
            }
        }
        let residues = self.assign(&key.residues, &counts);
        let surely: FastMap<Formula, Formula> = violated.iter().map(|&leaf| (leaf, Formula::FALSE)).collect();
        if self.assign(&residues[..1], &surely)[0] == Formula::FALSE {
            return Ok(None);
        }
        let asks = claims.asks();
        let must = self.demanded(&residues, &surely, &claims);
        let mut depth = building.depth;
        if !building.any && !building.names.is_empty() {
            depth.any = Any::Unnamed;
        }
        let within = building.any.then_some(Kind::Object);
        let Some(child) = self.below(must, &asks, depth, within)? else { return Ok(None) };
        let mut next = Vec::new();
        for answers in self.get(child).outcomes.clone() {
            let mut violated = violated.to_vec();
            violated.extend(
                claims
                    .open
                    .iter()
                    .filter(|(_, below)| !answer(&asks, &answers, *below))
                    .map(|(leaf, _)| *leaf),
            );
            next.push(self.after_other(key, &residues, violated).map(|key| building.number(key)));
        }
        Ok(next.iter().any(Option::is_some).then_some(Step { child, next }))
    }

    /// The state after a property that is not declared and that violated some claims.
    fn after_other(&mut self, key: &Key, residues: &[Formula], mut violated: Vec<Formula>) -> Option<Key> {
        let surely = violated.iter().map(|&leaf| (leaf, Formula::FALSE)).collect();
        if self.assign(&residues[..1], &surely)[0] == Formula::FALSE {
            return None;
        }
        let mut residues = residues.to_vec();
        for leaf in key.violated.iter().filter(|leaf| !violated.contains(leaf)) {
            // Not the last of all: it may or may not count.
            let mut either = [Formula::FALSE, Formula::TRUE].map(|truth| {
                let values = [(*leaf, truth)].into_iter().collect();
                self.assign(&residues, &values)
            });
            let must = self.formulas.and([either[0][0], either[1][0]]);
            either[0][0] = must;
            either[1][0] = must;
            if must == Formula::FALSE || either[0] != either[1] {
                return None;
            }
            [residues, _] = either;
        }
        violated.retain(|leaf| residues.iter().any(|&residue| self.formulas.leaves(residue).contains(leaf)));
        violated.sort_unstable();
        violated.dedup();
        Some(Key { at: key.at, residues, violated, more: true })
    }
}

impl ObjectState {
    fn nexts(&self) -> Vec<u32> {
        let steps =
            self.take.iter().chain(self.others.iter().flat_map(|others| others.steps.iter().flatten()));
        steps.flat_map(|step| step.next.iter().flatten().copied()).chain(self.skip).collect()
    }

    /// Removes what leads to no end.
    fn prune(&mut self, live: &[bool]) {
        let alive = |step: &mut Option<Step>| {
            if let Some(taken) = step {
                taken.next.iter_mut().for_each(|next| *next = next.filter(|&to| live[to as usize]));
                if taken.next.iter().all(Option::is_none) {
                    *step = None;
                }
            }
        };
        alive(&mut self.take);
        self.skip = self.skip.filter(|&to| live[to as usize]);
        if let Some(others) = &mut self.others {
            others.steps.iter_mut().for_each(alive);
            if others.steps.iter().all(Option::is_none) {
                self.others = None;
            }
        }
    }
}

/// The error of a count that depends on the names of undeclared properties.
pub(in super::super) fn uncounted(pointer: String) -> Error {
    Error::schema(
        pointer,
        "the count depends on names outside `properties` being distinct, which no finite automaton remembers; list the names under `properties`",
    )
}

fn answer(asks: &[Formula], answers: &[bool], ask: Formula) -> bool {
    match ask.decided() {
        Some(truth) => truth,
        None => asks.iter().position(|known| *known == ask).is_some_and(|at| answers[at]),
    }
}
