//! Plans of objects: automata over the properties, declared ones in their order and then all
//! others; or all properties in any order.
//!
//! No declared name occurs twice. A finite automaton cannot decide whether other names are
//! distinct, so no outcome may depend on it. If names are equal, implementations of JSON take the
//! last one. A claim that holds for *all* other properties therefore holds in any case. A claim
//! violated by a *name* is violated regardless of the rest. A claim violated by the *value* of
//! another property is certainly violated only if this property is the last one of all; otherwise,
//! the rest of the object must be valid both with and without the violation. In a count of
//! properties the first other name certainly counts, further ones may not. Objects that are valid
//! only if their names are distinct are [omitted](super::excluded).
//!
//! In any order, a state remembers the set of declared properties that the object already has. The
//! number of sets is exponential, so only [`MAX_UNORDERED`] properties may be declared.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::claims::{Claims, answer};
use super::frame::{Frame, Opening, State, answers};
use super::{PlanId, Planner, Step, SubPlan, Task};
use crate::json_schema::formula::{Formula, Leaf, Term};
use crate::json_schema::json::Json;
use crate::json_schema::options::{Additional, Order};
use burn_dfa_automata::FastMap;
use burn_dfa_common::{Error, Result};

/// The states of an object; 0 is the start.
#[derive(Debug)]
pub(crate) struct Object {
    /// Declared names, in order.
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) states: Vec<ObjectState>,
    /// Whether the properties come in any order. Otherwise, the states are in the order of their
    /// names.
    pub(crate) is_unordered: bool,
}

impl Object {
    /// Whether undeclared properties and the end of the object may follow a state.
    pub(crate) fn may_end(&self, state: &ObjectState) -> bool {
        self.is_unordered || state.at == self.names.len()
    }

    /// The steps over the next declared properties, with their names.
    pub(crate) fn takes<'o>(
        &'o self,
        state: &'o ObjectState,
    ) -> impl Iterator<Item = (&'o Arc<str>, &'o Step)> {
        let names = self.names.get(state.at..).unwrap_or_default();
        names.iter().zip(&state.takes).filter_map(|(name, step)| Some((name, step.as_ref()?)))
    }
}

/// A state of an object, between properties.
#[derive(Debug)]
pub(crate) struct ObjectState {
    /// The number of declared names taken or skipped; 0 in any order.
    pub(crate) at: usize,
    /// The steps over declared properties, from the name `at` on: the next one, or in any order
    /// each.
    pub(crate) takes: Vec<Option<Step>>,
    /// The state without the next declared property.
    pub(crate) skip: Option<u32>,
    /// If the object [may end](Object::may_end): the steps over another property.
    pub(crate) others: Option<Others>,
    /// The outcome of an object that ends here.
    pub(crate) end: Option<u32>,
}

impl ObjectState {
    /// The steps over the values of properties.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        let others = self.others.iter().flat_map(|others| &others.steps);
        self.takes.iter().chain(others).flatten()
    }
}

/// Undeclared properties.
#[derive(Debug)]
pub(crate) struct Others {
    /// The plan of the names. Its values may contain declared names, which the emitter removes.
    pub(crate) names: PlanId,
    /// For each outcome of the name the step over the value.
    pub(crate) steps: Vec<Option<Step>>,
}

/// The key of a state: states with equal keys are one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) at: usize,
    /// In any order, the set of declared names taken.
    pub(super) taken: u32,
    pub(super) residues: Vec<Formula>,
    /// Claims violated by the value of the last property, if it is undeclared.
    pub(super) violated: Vec<Formula>,
    /// Whether the object has an undeclared property.
    pub(super) more: bool,
    /// If the names are assumed to be distinct, the claim that is violated only then.
    pub(super) distinct: Option<Formula>,
}

impl Key {
    /// The key after `at` declared names, without other names.
    fn declared(at: usize, residues: Vec<Formula>) -> Self {
        Self { at, taken: 0, residues, violated: Vec::new(), more: false, distinct: None }
    }
}

/// How an object may end.
enum End {
    None,
    /// The residues are decided.
    Residues(Vec<Formula>),
    /// The object is valid only if its names are distinct, because the claim depends on it. Such an
    /// object is not written.
    Excluded(Formula),
}

/// The planning state of an object.
pub(super) struct ObjectCourse {
    pub(super) names: Vec<Arc<str>>,
    /// Whether other properties may come.
    open: bool,
    /// Whether the names of other properties match a pattern of the schema.
    pub(super) only_matching: bool,
    /// Whether the properties come in any order.
    pub(super) is_unordered: bool,
    pub(super) opening: Opening,
    pub(super) frame: Frame<Key>,
    pub(super) states: Vec<ObjectState>,
    /// States of objects that are valid only with distinct names, and the number of states handled.
    pub(super) supposed: Frame<Key>,
    met: usize,
    /// The claim that omits some objects.
    pub(super) excluded: Option<Formula>,
    /// The claims on names that occur nowhere else in the residues.
    sole: HashMap<Arc<str>, Sole>,
    /// Number of states with open alternatives.
    undecided: usize,
    /// Whether objects are omitted to stay near [`MAX_UNDECIDED`] such states.
    pub(super) is_narrowed: bool,
}

/// The undeclared properties that claims are about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaks {
    /// Properties whose name matches a pattern.
    OfMatching,
    /// All other properties.
    OfOthers,
}

/// Claims on a property that are independent of the rest of the object. The continuation does not
/// depend on the property.
#[derive(Default)]
struct Sole {
    /// The formulas of its value.
    below: Vec<Formula>,
    is_required: bool,
}

/// Most states of an object with open alternatives. If there are more, the planner omits values
/// that exclude an alternative if another value of the same property keeps it, so the number of
/// states stays near this limit. Otherwise, if each alternative declares a property before the
/// distinguishing property, the number would be exponential in the number of alternatives.
const MAX_UNDECIDED: usize = 512;

/// Most declared properties in any order.
const MAX_UNORDERED: usize = 10;

impl State for ObjectState {
    fn steps(&mut self) -> Vec<&mut Option<Step>> {
        let others = self.others.iter_mut().flat_map(|others| &mut others.steps);
        self.takes.iter_mut().chain(others).collect()
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
        let mut residues = opening.residues.clone();
        let (names, speaks) = self.declared(&residues);
        let is_closed = self.options().additional == Additional::Closed;
        let only_matching = is_closed && speaks == Some(Speaks::OfMatching);
        let sole = self.sole(&mut residues);
        let is_unordered = self.schema.is_unordered;
        if is_unordered && names.len() > MAX_UNORDERED {
            return Err(Error::schema(
                self.origin(id),
                format!(
                    "more than {MAX_UNORDERED} properties that may come in any order; leave `any_order` out"
                ),
            ));
        }
        let mut course = ObjectCourse {
            open: speaks.is_some() || names.is_empty() || !is_closed,
            only_matching,
            is_unordered,
            names,
            opening,
            frame: Frame::new(Key::declared(0, residues)),
            states: Vec::new(),
            supposed: Frame::default(),
            met: 0,
            excluded: None,
            sole,
            undecided: 0,
            is_narrowed: false,
        };
        self.new_object_states(id, &mut course)?;
        Ok(course)
    }

    /// Follows one more property from a state, as far as the outcomes of values are known.
    pub(super) fn expand_object(&mut self, id: PlanId, state: u32, course: &mut ObjectCourse) -> Result<()> {
        let key = course.frame.get(state as usize).expect("a state has a key");
        if course.is_unordered {
            let mut takes = Vec::with_capacity(course.names.len());
            for number in 0..course.names.len() {
                let is_taken = key.taken >> number & 1 == 1;
                takes.push(if is_taken { None } else { self.take(&key, number, course)? });
            }
            course.states[state as usize].takes = takes;
        } else if key.at < course.names.len() {
            let take = self.take(&key, key.at, course)?;
            let skip = self.skip(&key, course);
            let state = &mut course.states[state as usize];
            (state.takes, state.skip) = (vec![take], skip);
        }
        if course.open && (course.is_unordered || key.at == course.names.len()) {
            let others = self.others(&key, course)?;
            course.states[state as usize].others = others;
        }
        self.new_object_states(id, course)
    }

    /// Follows one more property from a state of omitted objects. One such object is sufficient.
    pub(super) fn expand_supposed(
        &mut self,
        id: PlanId,
        state: u32,
        course: &mut ObjectCourse,
    ) -> Result<()> {
        if course.excluded.is_none() {
            let key = course.supposed.get(state as usize).expect("a state has a key");
            self.others(&key, course)?;
        }
        self.new_object_states(id, course)
    }

    /// Moves claims on names that occur nowhere else in the residues out of the residues.
    fn sole(&mut self, residues: &mut [Formula]) -> HashMap<Arc<str>, Sole> {
        let parts = self.formulas.conjuncts(residues[0]);
        let others = parts.iter().copied().filter(|part| self.formulas.as_leaf(*part).is_none());
        let others: Vec<Formula> = others.chain(residues[1..].iter().copied()).collect();
        let leaves = self.leaves_of(&others);
        let shared = leaves.iter().filter_map(|leaf| match self.formulas.as_leaf(*leaf) {
            Some(Leaf::Present(name) | Leaf::Property(name, _)) => Some(name),
            _ => None,
        });
        let shared: HashSet<&Arc<str>> = shared.collect();
        let mut sole: HashMap<Arc<str>, Sole> = HashMap::new();
        let mut rest = Vec::new();
        for &part in parts.iter() {
            match self.formulas.as_leaf(part) {
                Some(Leaf::Present(name)) if !shared.contains(name) => {
                    sole.entry(Arc::clone(name)).or_default().is_required = true;
                }
                Some(Leaf::Property(name, below)) if !shared.contains(name) => {
                    sole.entry(Arc::clone(name)).or_default().below.push(*below);
                }
                _ => rest.push(part),
            }
        }
        residues[0] = self.formulas.and(rest);
        sole
    }

    /// The alternatives of the goal, if more than one is open.
    fn alternatives(&self, residue: Formula) -> HashSet<Formula> {
        let parts = self.formulas.conjuncts(residue);
        let open = parts.iter().filter_map(|&part| match self.formulas.term(part) {
            Term::Or(parts) | Term::One(parts) => Some(parts.iter().copied()),
            _ => None,
        });
        open.flatten().collect()
    }

    /// Omits values that exclude alternatives if another value keeps more of them, unless one
    /// alternative is left.
    fn narrow_outcomes(&self, after: &mut [Option<Vec<Formula>>], course: &mut ObjectCourse) {
        let alternatives: Vec<HashSet<Formula>> = after
            .iter()
            .map(|residues| residues.as_ref().map_or_else(HashSet::new, |of| self.alternatives(of[0])))
            .collect();
        for (residues, own) in after.iter_mut().zip(&alternatives) {
            let keeps_more = |other: &HashSet<Formula>| own.len() < other.len() && own.is_subset(other);
            if own.len() > 1 && alternatives.iter().any(keeps_more) {
                *residues = None;
                course.is_narrowed = true;
            }
        }
    }

    fn new_object_states(&mut self, id: PlanId, course: &mut ObjectCourse) -> Result<()> {
        while let Some(key) = course.frame.get(course.states.len()) {
            self.count()?;
            let is_open = |part: &Formula| matches!(self.formulas.term(*part), Term::Or(_) | Term::One(_));
            course.undecided += usize::from(self.formulas.conjuncts(key.residues[0]).iter().any(is_open));
            let mut end = None;
            if self.may_end(&key, course) {
                match self.ended_object(&key) {
                    End::Residues(residues) => {
                        end = answers(&residues).map(|answers| self.outcome(id, &answers));
                    }
                    End::Excluded(claim) => course.excluded = Some(claim),
                    End::None => {}
                }
            }
            self.queue.fresh.push(Task {
                plan: id,
                sub_plan: SubPlan::Object,
                state: course.states.len() as u32,
            });
            let state = ObjectState { at: key.at, takes: Vec::new(), skip: None, others: None, end };
            course.states.push(state);
        }
        while let Some(key) = course.supposed.get(course.met)
            && course.excluded.is_none()
        {
            self.count()?;
            match self.ended_object(&key) {
                End::Excluded(claim) => course.excluded = Some(claim),
                _ => self.queue.fresh.push(Task {
                    plan: id,
                    sub_plan: SubPlan::HypotheticalObject,
                    state: course.met as u32,
                }),
            }
            course.met += 1;
        }
        Ok(())
    }

    /// Whether an object with these properties has all that [`sole`](Self::sole) requires.
    fn may_end(&self, key: &Key, course: &ObjectCourse) -> bool {
        if !course.is_unordered {
            return key.at == course.names.len();
        }
        let is_taken = |number: usize| key.taken >> number & 1 == 1;
        course.names.iter().enumerate().all(|(number, name)| {
            is_taken(number) || course.sole.get(name).is_none_or(|sole| !sole.is_required)
        })
    }

    /// The names in the residues, in order, and the undeclared properties that residues speak of.
    fn declared(&mut self, residues: &[Formula]) -> (Vec<Arc<str>>, Option<Speaks>) {
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut seen: HashSet<Arc<str>> = HashSet::new();
        let mut speaks = None;
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
        // Declared names in their order, then undeclared required names.
        for pass in 0..3 {
            for &leaf in leaves.iter() {
                match self.formulas.as_leaf(leaf) {
                    Some(Leaf::Property(name, _)) if pass == 1 || (pass == 0 && required.contains(name)) => {
                        add(name);
                    }
                    Some(Leaf::Present(name)) if pass == 2 || (pass == 0 && required.contains(name)) => {
                        add(name)
                    }
                    Some(Leaf::Matching(..)) => speaks = speaks.or(Some(Speaks::OfMatching)),
                    Some(Leaf::Others(except, _)) => {
                        speaks = Some(Speaks::OfOthers);
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

    /// The step over the declared property with this number.
    fn take(&mut self, key: &Key, number: usize, course: &mut ObjectCourse) -> Result<Option<Step>> {
        let name = Arc::clone(&course.names[number]);
        let sure = self.formulas.conjuncts(key.residues[0]);
        let mut values: FastMap<Formula, Formula> = FastMap::default();
        let mut claims = Claims::default();
        for below in course.sole.get(&name).into_iter().flat_map(|sole| &sole.below) {
            match below.decided() {
                Some(false) => return Ok(None),
                Some(true) => {}
                None => claims.must.push(*below),
            }
        }
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
                // A claim on other names too is not decided yet.
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
        let mut after = Vec::new();
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
            after.push((residues[0] != Formula::FALSE).then_some(residues));
        }
        if course.undecided > MAX_UNDECIDED {
            self.narrow_outcomes(&mut after, course);
        }
        let mut next = Vec::with_capacity(after.len());
        for residues in after {
            let key =
                residues.map(|residues| self.after_declared(key, number, residues, course.is_unordered));
            next.push(key.map(|key| course.frame.number(key)));
        }
        Ok(Some(Step { child, next }))
    }

    /// The key after the declared property with this number.
    fn after_declared(
        &mut self,
        key: &Key,
        number: usize,
        residues: Vec<Formula>,
        is_unordered: bool,
    ) -> Key {
        if !is_unordered {
            return Key::declared(number + 1, residues);
        }
        let mut violated = key.violated.clone();
        violated.retain(|leaf| residues.iter().any(|&residue| self.formulas.leaves(residue).contains(leaf)));
        Key { taken: key.taken | 1 << number, residues, violated, ..key.clone() }
    }

    /// The state without the next declared property.
    fn skip(&mut self, key: &Key, course: &mut ObjectCourse) -> Option<u32> {
        let name = &course.names[key.at];
        if course.sole.get(name).is_some_and(|sole| sole.is_required) {
            return None;
        }
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

    /// The residues at the end of an object.
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
            // With distinct names, all counts are reached.
            Some(claim) if self.assign(&key.residues, &values)[0] == Formula::TRUE => {
                match self.counts_as_distinct(claim) {
                    true => End::Residues(self.assign(&key.residues, &values)),
                    false => End::Excluded(claim),
                }
            }
            None if ended[0] == Formula::TRUE => End::Residues(ended),
            _ => End::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::{Map, Value, json};

    use crate::{Constraint, Limits};
    use crate::{JsonOptions, Whitespace};
    use burn_dfa_automata::ByteAutomaton;

    fn compact(schema: &Value) -> Constraint {
        let options = JsonOptions::new().with_whitespace(Whitespace::Compact);
        Constraint::json_schema_with(schema.clone(), &options).unwrap()
    }

    fn compile(schema: &Value) -> ByteAutomaton {
        // A debug build takes many times as long as a release build.
        let limits = Limits::default().with_time(Duration::from_secs(300));
        let constraint = compact(schema);
        constraint.to_automaton(&limits).unwrap_or_else(|error| panic!("{error}")).unwrap()
    }

    fn notes(schema: &Value) -> Vec<String> {
        let constraint = compact(schema);
        let notes = constraint.explain(&Limits::default().with_time(Duration::from_secs(300)));
        notes
            .iter()
            .filter(|note| note.to_string().contains("alternatives"))
            .map(|note| note.pointer.clone())
            .collect()
    }

    /// Open objects. Each declares one property, and then the tag.
    fn union(keyword: &str, count: usize) -> Value {
        let variant = |i: usize| {
            json!({
                "type": "object",
                "properties": {format!("a{i}"): {"type": "integer"}, "kind": {"const": format!("k{i}")}},
                "required": ["kind"]
            })
        };
        json!({ keyword: (0..count).map(variant).collect::<Vec<_>>() })
    }

    #[test]
    fn a_union_whose_tag_is_not_first_has_few_states() {
        for (keyword, count) in [("anyOf", 12), ("oneOf", 12), ("anyOf", 24)] {
            let schema = union(keyword, count);
            let automaton = compile(&schema);
            assert!(automaton.state_count() < 50_000, "{keyword} {count}: {}", automaton.state_count());
            let last = count - 1;
            let right = [
                format!(r#"{{"a{last}":1,"kind":"k{last}"}}"#),
                r#"{"a0":1,"kind":"k0"}"#.to_owned(),
                r#"{"kind":"k3"}"#.to_owned(),
                r#"{"a0":1,"a1":2,"a2":3,"kind":"k1"}"#.to_owned(),
                r#"{"kind":"k1","z":null}"#.to_owned(),
            ];
            let wrong = [
                r#"{"a0":"x","kind":"k0"}"#.to_owned(),
                format!(r#"{{"a{last}":"x","kind":"k{last}"}}"#),
                r#"{"a0":1,"kind":"k"}"#.to_owned(),
                r#"{"a0":1}"#.to_owned(),
                r#"{"a0":1,"a1":"x","kind":"k1"}"#.to_owned(),
            ];
            right
                .iter()
                .for_each(|text| assert!(automaton.matches(text.as_bytes()), "{keyword} {count}: {text}"));
            wrong
                .iter()
                .for_each(|text| assert!(!automaton.matches(text.as_bytes()), "{keyword} {count}: {text}"));
            assert_eq!(notes(&schema), [format!("/{keyword}")]);
        }
    }

    #[test]
    fn few_variants_are_followed_exactly() {
        let schema = union("anyOf", 6);
        let automaton = compile(&schema);
        assert_eq!(notes(&schema), [""; 0]);
        // Every combination of properties with values that their own variants reject.
        for wrong in 0..1_u32 << 6 {
            let member = |i: usize| format!(r#""a{i}":{}"#, if wrong >> i & 1 == 1 { "\"x\"" } else { "1" });
            let members: Vec<String> = (0..6).map(member).collect();
            for kind in 0..6 {
                let text = format!(r#"{{{},"kind":"k{kind}"}}"#, members.join(","));
                assert_eq!(automaton.matches(text.as_bytes()), wrong >> kind & 1 == 0, "{text}");
            }
        }
    }

    /// An object with `count` properties.
    fn many(count: usize) -> Value {
        let properties: Map<String, Value> =
            (0..count).map(|i| (format!("p{i}"), json!({"type": "integer"}))).collect();
        json!({"type": "object", "properties": properties, "required": ["p7"], "additionalProperties": false})
    }

    #[test]
    fn properties_take_time_by_their_number() {
        let time = |count: usize| {
            let schema = many(count);
            let start = Instant::now();
            let automaton = compile(&schema);
            let last = count - 1;
            for text in [format!(r#"{{"p7":1,"p{last}":2}}"#), r#"{"p0":3,"p7":1}"#.to_owned()] {
                assert!(automaton.matches(text.as_bytes()), "{text}");
            }
            for text in [r#"{"p0":3}"#, r#"{"p7":1,"p0":3}"#, r#"{"p7":1,"p7":1}"#, r#"{"p7":1,"q":1}"#] {
                assert!(!automaton.matches(text.as_bytes()), "{text}");
            }
            start.elapsed()
        };
        let (some, more) = (time(1000), time(8000));
        // Eight times as many; their square would be 64 times as much.
        assert!(more < some * 30 + Duration::from_millis(200), "{some:?} {more:?}");
    }

    #[test]
    fn claims_about_one_property_hold_with_the_other_keywords() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {}, "d": false, "e": {"type": "integer"}},
            "required": ["b", "z"],
            "allOf": [{"properties": {"a": {"minimum": 3}}}],
            "patternProperties": {"^[ac]": {"maximum": 9}},
            "minProperties": 3,
            "dependentRequired": {"c": ["e"]},
            "additionalProperties": {"const": 0}
        });
        let automaton = compile(&schema);
        let right = [
            r#"{"a":3,"b":"","z":0}"#,
            r#"{"a":9,"b":"","z":0,"y":0}"#,
            r#"{"b":"","c":9,"e":1,"z":0}"#,
            r#"{"b":"","e":10,"z":0}"#,
        ];
        let wrong = [
            r#"{"a":2,"b":"","z":0}"#,
            r#"{"a":10,"b":"","z":0}"#,
            r#"{"a":3,"z":0,"y":0}"#,
            r#"{"a":3,"b":"","e":1}"#,
            r#"{"b":"","z":0}"#,
            r#"{"b":"","c":1,"z":0}"#,
            r#"{"b":"","c":10,"e":1,"z":0}"#,
            r#"{"b":"","d":1,"e":1,"z":0}"#,
            r#"{"b":"","e":1,"z":1}"#,
            r#"{"b":"","a":3,"z":0}"#,
        ];
        right.iter().for_each(|text| assert!(automaton.matches(text.as_bytes()), "{text}"));
        wrong.iter().for_each(|text| assert!(!automaton.matches(text.as_bytes()), "{text}"));
    }
}
