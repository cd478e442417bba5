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
use super::frame::{Frame, Opening, State, answers};
use super::{Part, PlanId, Planner, Step, Task};
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

/// An object that is being planned.
pub(super) struct ObjectCourse {
    pub(super) names: Vec<Arc<str>>,
    /// Whether other properties may come.
    open: bool,
    pub(super) opening: Opening,
    pub(super) frame: Frame<Key>,
    pub(super) states: Vec<ObjectState>,
    /// States of objects that are valid only where names are distinct, and how many of them were met.
    pub(super) supposed: Frame<Key>,
    met: usize,
    /// The claim by which some objects are left out.
    pub(super) lost: Option<Formula>,
}

impl State for ObjectState {
    fn steps(&mut self) -> Vec<&mut Option<Step>> {
        let others = self.others.iter_mut().flat_map(|others| &mut others.steps);
        std::iter::once(&mut self.take).chain(others).collect()
    }

    fn skip(&mut self) -> Option<&mut Option<u32>> {
        Some(&mut self.skip)
    }

    fn end(&self) -> Option<u32> {
        self.end
    }
}

impl Planner<'_> {
    /// An object before its first property.
    pub(super) fn object(&mut self, id: PlanId, opening: Opening) -> Result<ObjectCourse> {
        let residues = opening.residues.clone();
        let (names, speaks) = self.declared(&residues);
        let mut course = ObjectCourse {
            open: speaks || names.is_empty() || self.options().additional == Additional::Standard,
            names,
            opening,
            frame: Frame::new(Key::declared(0, residues)),
            states: Vec::new(),
            supposed: Frame::default(),
            met: 0,
            lost: None,
        };
        self.new_object_states(id, &mut course)?;
        Ok(course)
    }

    /// Follows one more property from a state, as far as the outcomes of values are known.
    pub(super) fn expand_object(&mut self, id: PlanId, state: u32, course: &mut ObjectCourse) -> Result<()> {
        let key = course.frame.get(state as usize).expect("a state has a key");
        if key.at < course.names.len() {
            let take = self.take(&key, course)?;
            let skip = self.skip(&key, course);
            let state = &mut course.states[state as usize];
            (state.take, state.skip) = (take, skip);
        } else if course.open {
            let others = self.others(&key, course)?;
            course.states[state as usize].others = others;
        }
        self.new_object_states(id, course)
    }

    /// Follows one more property from a state of objects that are left out. One such object is enough to know.
    pub(super) fn expand_supposed(
        &mut self,
        id: PlanId,
        state: u32,
        course: &mut ObjectCourse,
    ) -> Result<()> {
        if course.lost.is_none() {
            let key = course.supposed.get(state as usize).expect("a state has a key");
            self.others(&key, course)?;
        }
        self.new_object_states(id, course)
    }

    fn new_object_states(&mut self, id: PlanId, course: &mut ObjectCourse) -> Result<()> {
        while let Some(key) = course.frame.get(course.states.len()) {
            self.count()?;
            let mut end = None;
            if key.at == course.names.len() {
                match self.ended_object(&key) {
                    End::Residues(residues) => {
                        end = answers(&residues).map(|answers| self.outcome(id, &answers));
                    }
                    End::Lost(claim) => course.lost = Some(claim),
                    End::None => {}
                }
            }
            self.queue.fresh.push(Task { plan: id, part: Part::Object, state: course.states.len() as u32 });
            course.states.push(ObjectState { at: key.at, take: None, skip: None, others: None, end });
        }
        while let Some(key) = course.supposed.get(course.met)
            && course.lost.is_none()
        {
            self.count()?;
            match self.ended_object(&key) {
                End::Lost(claim) => course.lost = Some(claim),
                _ => self.queue.fresh.push(Task { plan: id, part: Part::Supposed, state: course.met as u32 }),
            }
            course.met += 1;
        }
        Ok(())
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
            for &leaf in leaves.iter() {
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
        if self.options().order == Order::Declared {
            names = self.agreed(names, residues);
        }
        (names, speaks)
    }

    /// The step over the next declared property.
    fn take(&mut self, key: &Key, course: &mut ObjectCourse) -> Result<Option<Step>> {
        let name = Arc::clone(&course.names[key.at]);
        let sure = self.formulas.conjuncts(key.residues[0]);
        let mut values: FastMap<Formula, Formula> = FastMap::default();
        let mut claims = Claims::default();
        for &leaf in self.leaves_of(&key.residues).iter() {
            let what = match self.formulas.as_leaf(leaf) {
                // Most leaves are of other properties.
                Some(Leaf::Present(of) | Leaf::Property(of, _)) if *of != name => continue,
                Some(what) => what.clone(),
                None => continue,
            };
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
        let Opening { depth, within_any, .. } = course.opening;
        let child = self.below(must, &probes, depth, within_any)?;
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
    fn skip(&mut self, key: &Key, course: &mut ObjectCourse) -> Option<u32> {
        let name = &course.names[key.at];
        let mut values: FastMap<Formula, Formula> = FastMap::default();
        for &leaf in self.leaves_of(&key.residues).iter() {
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
        for &leaf in self.leaves_of(&key.residues).iter() {
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
