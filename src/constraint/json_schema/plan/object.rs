//! Plans of objects: automata over the properties, declared ones in their order and then all others.
//!
//! No declared name occurs twice. Whether other names are distinct cannot be decided by a finite automaton, so no outcome
//! may depend on it. Where names are equal, implementations of JSON take the last. A claim that holds for *all* other
//! properties therefore holds in any case. A claim that a *name* violates is violated whatever follows. A claim that the
//! *value* of some other property violates is certainly violated only if that is the last property of all; if it is not,
//! the rest of the object must be right both with and without the violation. For a count of properties the first other
//! name certainly counts, further ones may not. Objects that are valid only if their names are distinct are
//! [left out](super::lost).

use std::collections::HashSet;
use std::sync::Arc;

use super::claims::{Claims, answer};
use super::frame::{Frame, Opening, State};
use super::{Plan, PlanId, Planner, Step};
use crate::automaton::FastMap;
use crate::constraint::json_schema::formula::{Formula, Leaf};
use crate::constraint::json_schema::json::Json;
use crate::constraint::json_schema::options::{Additional, Order};
use crate::error::Result;

/// The states of an object; 0 is the start.
#[derive(Debug)]
pub(in super::super) struct Object {
    /// Declared names, in order.
    pub(in super::super) names: Vec<Arc<str>>,
    pub(in super::super) states: Vec<ObjectState>,
}

/// A state of an object, between properties.
#[derive(Debug)]
pub(in super::super) struct ObjectState {
    /// The number of declared names that were taken or skipped.
    pub(in super::super) at: usize,
    /// The step over the next declared property.
    pub(in super::super) take: Option<Step>,
    /// The state without it.
    pub(in super::super) skip: Option<u32>,
    /// After all declared names: the steps over another property.
    pub(in super::super) others: Option<Others>,
    /// After all declared names: the outcome of an object that ends here.
    pub(in super::super) end: Option<u32>,
}

/// Properties that are not declared.
#[derive(Debug)]
pub(in super::super) struct Others {
    /// The plan of the names. Declared names may be among its values; they are removed when it is emitted.
    pub(in super::super) names: PlanId,
    /// For each outcome of the name the step over the value.
    pub(in super::super) steps: Vec<Option<Step>>,
}

/// The key of a state: states with equal keys are one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) at: usize,
    pub(super) residues: Vec<Formula>,
    /// Claims that the value of the last property violated, if that is not a declared one.
    pub(super) violated: Vec<Formula>,
    /// Whether there was a property that is not declared.
    pub(super) more: bool,
    /// Where the names are supposed to be distinct, the claim that is violated only then.
    pub(super) distinct: Option<Formula>,
}

impl Key {
    /// Behind `at` declared names, and no other.
    fn declared(at: usize, residues: Vec<Formula>) -> Self {
        Self { at, residues, violated: Vec::new(), more: false, distinct: None }
    }
}

/// How an object may end.
enum End {
    None,
    /// The residues are decided.
    Residues(Vec<Formula>),
    /// It is valid only if its names are distinct, since the claim depends on that. Such an object is not written.
    Lost(Formula),
}

/// What all states of one object share.
pub(super) struct Course<'o> {
    pub(super) names: Vec<Arc<str>>,
    /// Whether other properties may come.
    open: bool,
    pub(super) opening: &'o Opening,
    pub(super) frame: Frame<Key>,
    /// States of objects that are valid only where names are distinct.
    pub(super) supposed: Frame<Key>,
}

impl State for ObjectState {
    fn steps(&mut self) -> Vec<&mut Option<Step>> {
        let others = self.others.iter_mut().flat_map(|others| &mut others.steps);
        std::iter::once(&mut self.take).chain(others).collect()
    }

    fn skip(&mut self) -> Option<&mut Option<u32>> {
        Some(&mut self.skip)
    }

    fn set_end(&mut self, outcome: Option<u32>) {
        self.end = outcome;
    }
}

impl Planner<'_> {
    pub(super) fn object(&mut self, opening: &Opening, plan: &mut Plan) -> Result<Option<Object>> {
        let residues = opening.residues.clone();
        let (names, speaks) = self.declared(&residues);
        let open = speaks || names.is_empty() || self.options().additional == Additional::Standard;
        let frame = Frame::new(Key::declared(0, residues));
        let mut course = Course { names, open, opening, frame, supposed: Frame::default() };
        let mut states: Vec<ObjectState> = Vec::new();
        let mut ends: Vec<Option<Vec<Formula>>> = Vec::new();
        let mut lost = None;
        while let Some(key) = course.frame.get(states.len()) {
            self.count()?;
            let mut state = ObjectState { at: key.at, take: None, skip: None, others: None, end: None };
            let mut end = None;
            if key.at < course.names.len() {
                state.take = self.take(&key, &mut course)?;
                state.skip = self.skip(&key, &mut course);
            } else {
                match self.ended_object(&key) {
                    End::Residues(residues) => end = Some(residues),
                    End::Lost(claim) => lost = Some(claim),
                    End::None => {}
                }
                if course.open {
                    state.others = self.others(&key, &mut course)?;
                }
            }
            states.push(state);
            ends.push(end);
        }
        // One object that is left out is enough to know.
        let mut supposed = 0;
        while lost.is_none()
            && let Some(key) = course.supposed.get(supposed)
        {
            self.count()?;
            supposed += 1;
            match self.ended_object(&key) {
                End::Lost(claim) => lost = Some(claim),
                _ => drop(self.others(&key, &mut course)?),
            }
        }
        let has_end = self.finish(&mut states, &ends, plan);
        if let Some(claim) = lost {
            self.lost(claim, !has_end)?;
        }
        for state in &mut states {
            state.others.take_if(|others| others.steps.iter().all(Option::is_none));
        }
        Ok(has_end.then_some(Object { names: course.names, states }))
    }

    /// The names that the residues mention, in order, and whether other properties may come.
    fn declared(&mut self, residues: &[Formula]) -> (Vec<Arc<str>>, bool) {
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut seen: HashSet<Arc<str>> = HashSet::new();
        let mut speaks = false;
        let mut excepted: Vec<Arc<str>> = Vec::new();
        let leaves = self.leaves_of(residues);
        let mut add = |name: &Arc<str>| {
            if seen.insert(Arc::clone(name)) {
                names.push(Arc::clone(name));
            }
        };
        let mut required: HashSet<Arc<str>> = HashSet::new();
        if self.options().order == Order::RequiredFirst {
            for part in self.formulas.conjuncts(residues[0]).iter() {
                if let Some(Leaf::Present(name)) = self.formulas.as_leaf(*part) {
                    required.insert(Arc::clone(name));
                }
            }
        }
        // Declared names in their order, then names that are required and not declared.
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
    fn take(&mut self, key: &Key, course: &mut Course) -> Result<Option<Step>> {
        let name = Arc::clone(&course.names[key.at]);
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
                    match self.holds(below, &Json::String(name.to_string()))? {
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
                // A claim on other names as well is not decided yet.
                Some(true) if of_name => values.insert(leaf, Formula::TRUE),
                _ => None,
            };
        }
        if self.assign(&key.residues, &values)[0] == Formula::FALSE {
            return Ok(None);
        }
        let probes = claims.probes();
        let must = self.required(&key.residues, &values, &claims);
        let opening = course.opening;
        let child = self.below(must, &probes, opening.depth, opening.within_any)?;
        let Some(child) = child else { return Ok(None) };
        let mut next = Vec::new();
        for answers in self.get(child).outcomes.clone() {
            let mut values = values.clone();
            for &(leaf, below) in &claims.open {
                if !answer(&probes, &answers, below) {
                    values.insert(leaf, Formula::FALSE);
                } else if matches!(self.formulas.as_leaf(leaf), Some(Leaf::Property(..))) {
                    values.insert(leaf, Formula::TRUE);
                }
            }
            let residues = self.assign(&key.residues, &values);
            let is_open = residues[0] != Formula::FALSE;
            next.push(is_open.then(|| course.frame.number(Key::declared(key.at + 1, residues))));
        }
        Ok(Some(Step { child, next }))
    }

    /// The state without the next declared property.
    fn skip(&mut self, key: &Key, course: &mut Course) -> Option<u32> {
        let name = &course.names[key.at];
        let mut values: FastMap<Formula, Formula> = FastMap::default();
        for leaf in self.leaves_of(&key.residues) {
            match self.formulas.as_leaf(leaf) {
                Some(Leaf::Present(of)) if of == name => values.insert(leaf, Formula::FALSE),
                Some(Leaf::Property(of, _)) if of == name => values.insert(leaf, Formula::TRUE),
                _ => None,
            };
        }
        let residues = self.assign(&key.residues, &values);
        (residues[0] != Formula::FALSE).then(|| course.frame.number(Key::declared(key.at + 1, residues)))
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
        let mut depends = key.distinct;
        for &(leaf, count) in &uncertain {
            values.insert(leaf, Formula::TRUE);
            if depends.is_none() && self.assign(&key.residues, &values) != ended {
                depends = Some(self.formulas.properties(count));
            }
        }
        match depends {
            // Where the names are distinct, all counts are reached.
            Some(claim) if self.assign(&key.residues, &values)[0] == Formula::TRUE => End::Lost(claim),
            None if ended[0] == Formula::TRUE => End::Residues(ended),
            _ => End::None,
        }
    }
}
