//! The planner: turns the formula of a schema into automata over the parts of values, before any
//! bytes are written.
//!
//! A *position* is the location of a value: the whole output, an item, the value of a property.
//! Each position has a *goal*: a formula that the value must satisfy, and *probes*, which are
//! further formulas whose truth affects the text after the value. A *plan* is a deterministic
//! automaton for one goal. Its symbols are the parts of the value: the properties in one order, the
//! items, the texts of scalars. Each end of a plan has an *outcome*: the answers to the probes,
//! true or false, for the values that end there. With outcomes, `oneOf`, `not` and `if` are
//! followed exactly and without expanding them, and all schemas that apply to an object share one
//! order of its properties. Positions with the same goal share a plan.
//!
//! The states of arrays and objects are *residues*: the remaining formulas of the goal after some
//! of the parts. States from which no end can be reached are removed, so a plan is empty exactly if
//! no value satisfies its goal.
//!
//! The continuation of a part depends on the outcomes of its plan, which depend on the plans of
//! parts within it, and so on. So states not yet expanded wait in a queue. A state is expanded with
//! the known outcomes, and again after a new outcome, until nothing changes. The number of outcomes
//! only grows, so this terminates, with the least plans that are consistent.

mod array;
mod claims;
mod common;
mod counted;
mod excluded;
mod finite;
mod frame;
mod labeled;
mod list;
mod live;
mod narrow;
mod nesting;
mod object;
mod order;
mod others;
mod parts;
mod product;
mod queue;
mod recursion;
mod recursive_plans;
mod remark;
mod scalar;
mod size;
mod truth;
mod unique;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub(crate) use self::array::Array;
pub(super) use self::counted::Counted;
pub(crate) use self::counted::Counts;
use self::frame::Opening;
pub(super) use self::labeled::Labeled;
use self::labeled::Texts;
use self::list::List;
use self::nesting::{Any, Depth, Nesting};
pub(crate) use self::object::{Object, ObjectState, Others};
pub(crate) use self::parts::{Plan, PlanId, Step};
use self::queue::{Draft, Queue, SubPlan, Task};
pub(super) use self::recursive_plans::{MAX_OUTCOMES, Preferred, RecursivePlans};
use self::remark::Remarks;
pub(super) use self::size::Size;
use self::truth::Verdict;
use super::Schema;
use super::format::Certainty;
use super::formula::{Formula, Formulas, Leaf};
use super::json::Json;
use super::number::Notation;
use super::options::JsonOptions;
use super::string::Uncounted;
use super::types::Types;
use burn_dfa_automata::{ByteDfa, FastMap};
use burn_dfa_common::{Error, Limit, Result, limits::Meter};

/// The types with parts or texts of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Number,
    String,
    Array,
    Object,
}

/// The question a plan decides about the value at a position; see the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Goal {
    must: Formula,
    probes: Arc<[Formula]>,
    depth: Depth,
    /// Whether the value is the name of a property.
    is_name: bool,
}

impl Goal {
    /// The goal of a value other than a name.
    fn new(must: Formula, probes: impl Into<Arc<[Formula]>>, depth: Depth) -> Self {
        Self { must, probes: probes.into(), depth, is_name: false }
    }
}

/// Bytes of a state of an array or an object, with its key in the list and in the map, a step and
/// an end.
const STATE_BYTES: usize = size_of::<ObjectState>() + 2 * size_of::<object::Key>() + 128;
/// The work of a state without its formulas, in parts of formulas.
const STATE_WORK: usize = 256;
/// The number of parts of formulas visited between two checks of the limits.
const LOOK: usize = 1 << 16;

/// Makes plans, each once.
pub(super) struct Planner<'a> {
    pub(super) formulas: Formulas,
    schema: &'a Schema,
    meter: &'a Meter<'a>,
    plans: Vec<Plan>,
    /// The remaining work on unfinished plans.
    queue: Queue,
    /// For each plan the formula that its values must satisfy, and its probes.
    goals: Vec<(Formula, Arc<[Formula]>)>,
    known: FastMap<Goal, PlanId>,
    narrowed: FastMap<(Formula, u8), Formula>,
    recursive: FastMap<Formula, bool>,
    /// Automata of strings without quotes, by leaf.
    contents: FastMap<(Formula, Certainty), Arc<ByteDfa>>,
    /// Automata of texts, by formula.
    texts: FastMap<(Formula, Certainty), Arc<Texts>>,
    /// The texts of conjunctions of numbers.
    conjunctions: FastMap<(Formula, Notation), Arc<Texts>>,
    /// Texts of strings before their characters are counted, by the leaves they satisfy; `None` if
    /// they have too many states.
    uncounted: FastMap<Vec<Formula>, Option<Arc<Uncounted>>>,
    /// The values of leaves that list them.
    lists: FastMap<Formula, Arc<List>>,
    /// Whether a pattern matches a name, by leaf and name.
    names: HashMap<(Formula, Arc<str>), bool>,
    /// The names in an [`Except`](super::formula::Except), by its address.
    excepted: FastMap<usize, HashSet<Arc<str>>>,
    pub(super) remarks: Remarks,
    /// Whether values were omitted because they exceed the depth of recursion or of any JSON.
    pub(super) cut: bool,
    nesting: Nesting,
    /// If plans may be recursive, so that nothing is expanded to a depth: the sizes up to which
    /// copies are preferred.
    calls: Option<Preferred>,
    /// Whether a plan had too many outcomes for recursive plans.
    has_many_outcomes: bool,
    /// The plans of any JSON: requested by the schema, and in undeclared properties.
    any_plans: [Option<PlanId>; 2],
    /// The number of states of all plans, and its limit.
    states: usize,
    max_states: usize,
    /// The work of verdicts: the checked claims, and the parts of values read for them.
    judged: usize,
    /// The work at the last check of the limits.
    looked: usize,
}

impl<'a> Planner<'a> {
    pub(super) fn new(schema: &'a Schema, meter: &'a Meter<'a>) -> Self {
        Self {
            formulas: schema.formulas.clone(),
            schema,
            meter,
            plans: Vec::new(),
            queue: Queue::default(),
            goals: Vec::new(),
            known: FastMap::default(),
            narrowed: FastMap::default(),
            recursive: FastMap::default(),
            contents: FastMap::default(),
            texts: FastMap::default(),
            conjunctions: FastMap::default(),
            uncounted: FastMap::default(),
            lists: FastMap::default(),
            names: HashMap::new(),
            excepted: FastMap::default(),
            remarks: Remarks::default(),
            cut: false,
            nesting: Nesting::of(&schema.options),
            calls: None,
            has_many_outcomes: false,
            any_plans: [None; 2],
            states: 0,
            max_states: usize::MAX,
            judged: 0,
            looked: 0,
        }
    }

    pub(super) fn options(&self) -> &'a JsonOptions {
        &self.schema.options
    }

    pub(super) fn meter(&self) -> &'a Meter<'a> {
        self.meter
    }

    /// The sizes up to which copies are preferred to calls, if plans may be recursive.
    pub(super) fn preferred_copies(&self) -> Preferred {
        self.calls.unwrap_or_default()
    }

    pub(super) fn get(&self, id: PlanId) -> &Plan {
        &self.plans[id.0 as usize]
    }

    /// JSON pointer to the part of the schema of a plan.
    pub(super) fn origin(&self, id: PlanId) -> String {
        self.schema.origin(&self.formulas, self.goals[id.0 as usize].0)
    }

    /// The formula that the values of a plan satisfy.
    pub(super) fn must(&self, id: PlanId) -> Formula {
        self.goals[id.0 as usize].0
    }

    /// Whether the names of a plan are all strings, without a claim on any of them.
    pub(super) fn has_all_names(&self, id: PlanId) -> bool {
        let (must, probes) = &self.goals[id.0 as usize];
        probes.is_empty() && self.formulas.as_leaf(*must) == Some(&Leaf::Types(Types::STRING))
    }

    /// The strings of a plan with these outcomes, as a formula.
    pub(super) fn strings_of(&self, id: PlanId, outcomes: &[u32]) -> (Formulas, Formula) {
        let mut formulas = self.formulas.clone();
        let (must, probes) = self.goals[id.0 as usize].clone();
        let mut either = Vec::with_capacity(outcomes.len());
        for &outcome in outcomes {
            let answers = Arc::clone(&self.get(id).outcomes[outcome as usize]);
            let mut claims = Vec::with_capacity(answers.len());
            for (&probe, &answer) in probes.iter().zip(answers.iter()) {
                claims.push(if answer { probe } else { formulas.not(probe) });
            }
            either.push(formulas.and(claims));
        }
        let either = formulas.or(either);
        let string = formulas.leaf(Leaf::Types(Types::STRING));
        let root = formulas.and([must, either, string]);
        (formulas, root)
    }

    /// The plan of the whole schema, with recursive references followed `recursion` times.
    pub(super) fn root(&mut self, recursion: usize) -> Result<PlanId> {
        self.lower_patterns();
        let depth = Depth { recursion, any: Any::Asked };
        self.made(|planner| planner.plan(Goal::new(planner.schema.root, [], depth)))
    }

    /// Like [`root`](Self::root); `None` if this takes more than `max_states` further states of
    /// plans, or exceeds the limit.
    pub(super) fn root_within(&mut self, recursion: usize, max_states: usize) -> Result<Option<PlanId>> {
        self.max_states = self.states.saturating_add(max_states).min(self.meter.limits().states);
        let found = self.root(recursion);
        let stopped = self.states > self.max_states;
        self.max_states = usize::MAX;
        match found {
            Err(error) if stopped && matches!(error.breached(), Some(Limit::States(_))) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Whether no value satisfies `formula`, with recursive references followed once.
    pub(super) fn is_empty(&mut self, formula: Formula) -> Result<bool> {
        let depth = Depth { recursion: 1, any: Any::Asked };
        let id = self.made(|planner| planner.plan(Goal::new(formula, [], depth)))?;
        Ok(self.get(id).is_empty())
    }

    /// The plan of a part of a value at `depth`; `None` if no value satisfies its goal.
    ///
    /// `within_any` is the kind of the containing value, if that value is within any JSON.
    fn below(
        &mut self,
        must: Formula,
        probes: &[Formula],
        mut depth: Depth,
        within_any: Option<Kind>,
    ) -> Result<Option<PlanId>> {
        depth.any = match (depth.any, within_any) {
            _ if self.calls.is_some() => Any::Asked,
            (Any::Left(left, in_array), Some(kind)) => {
                let Some(left) = left.checked_sub(self.nesting.weight(kind, in_array)) else {
                    self.cut = true;
                    return Ok(None);
                };
                Any::Left(left, kind == Kind::Array)
            }
            (Any::Unnamed, _) => Any::Unnamed,
            _ => Any::Asked,
        };
        self.used(Goal::new(must, probes, depth))
    }

    /// The plan of the names of properties; `None` if no name satisfies its goal.
    fn names(&mut self, must: Formula, probes: &[Formula], depth: Depth) -> Result<Option<PlanId>> {
        let depth = Depth { any: Any::Asked, ..depth };
        self.used(Goal { is_name: true, ..Goal::new(must, probes, depth) })
    }

    /// The plan of a part in the current state, which is expanded again after new outcomes of the
    /// plan.
    fn used(&mut self, goal: Goal) -> Result<Option<PlanId>> {
        let id = self.plan(goal)?;
        self.queue.used(id);
        Ok((!self.get(id).is_empty()).then_some(id))
    }

    fn plan(&mut self, mut goal: Goal) -> Result<PlanId> {
        // Recursive references are replaced by the formulas of their schemas, with one level of
        // recursion less.
        let laters = |planner: &mut Self, formula| {
            let leaves = planner.formulas.leaves(formula);
            leaves.iter().any(|&leaf| matches!(planner.formulas.as_leaf(leaf), Some(Leaf::Later(_))))
        };
        let probes: Vec<Formula> = goal.probes.to_vec();
        if laters(self, goal.must) || probes.iter().any(|&probe| laters(self, probe)) {
            match goal.depth.recursion.checked_sub(1) {
                _ if self.calls.is_some() => {}
                Some(recursion) => goal.depth.recursion = recursion,
                None => {
                    self.cut = true;
                    goal.must = Formula::FALSE;
                    goal.probes = Arc::new([]);
                }
            }
            goal.must = self.looked_up(goal.must)?;
            let probes: Result<Vec<Formula>> =
                goal.probes.iter().map(|&probe| self.looked_up(probe)).collect();
            goal.probes = probes?.into();
        }
        if !self.is_recursive(goal.must) && !goal.probes.iter().any(|&probe| self.is_recursive(probe)) {
            goal.depth.recursion = 0;
        }
        let any = goal.must == Formula::TRUE && goal.probes.is_empty();
        if !any {
            goal.depth.any = Any::Asked;
        }
        if let Some(&id) = self.known.get(&goal) {
            return Ok(id);
        }
        let id = if any && self.calls.is_none() && !matches!(goal.depth.any, Any::Left(..)) {
            // The depth of any JSON is chosen when the other plans are known.
            let id = self.add(&goal, Plan { outcomes: vec![Arc::new([])], ..Plan::default() });
            let kind = usize::from(goal.depth.any == Any::Unnamed);
            self.any_plans[kind] = Some(id);
            id
        } else {
            self.begin(&goal, any)?
        };
        self.known.insert(goal, id);
        Ok(id)
    }

    fn add(&mut self, goal: &Goal, plan: Plan) -> PlanId {
        self.plans.push(plan);
        self.queue.drafts.push(Draft::default());
        self.goals.push((goal.must, Arc::clone(&goal.probes)));
        PlanId(self.plans.len() as u32 - 1)
    }

    /// A new plan with its scalars, and with its array and its object before their first parts.
    fn begin(&mut self, goal: &Goal, any: bool) -> Result<PlanId> {
        self.meter.time()?;
        let id = self.add(goal, Plan::default());
        self.fill(id, goal, any).map_err(|error| error.at(|| self.origin(id)))?;
        Ok(id)
    }

    fn fill(&mut self, id: PlanId, goal: &Goal, any: bool) -> Result<()> {
        let Goal { must, probes, depth, is_name } = goal;
        let mut plan = Plan { is_name: *is_name, ..Plan::default() };
        if *must == Formula::FALSE {
            return Ok(());
        }
        if let Some(values) = self.finite(*must)?.filter(|values| self.are_listed(values)) {
            let (numbers, others): (Vec<Json>, Vec<Json>) =
                values.into_iter().partition(|value| matches!(value, Json::Number(_)));
            for value in others {
                self.value(value, probes, &mut plan)?;
            }
            if !numbers.is_empty() {
                self.listed_numbers(numbers, *must, probes, &mut plan)?;
            }
            self.plans[id.0 as usize] = plan;
            return Ok(());
        }
        for value in [Json::Null, Json::Boolean(false), Json::Boolean(true)] {
            if self.holds(*must, &value)? == Some(true) {
                self.value(value, probes, &mut plan)?;
            }
        }
        let mut openings = Vec::new();
        for kind in [Kind::Number, Kind::String, Kind::Array, Kind::Object] {
            let must = self.narrow(*must, kind);
            if must == Formula::FALSE {
                continue;
            }
            let probes: Vec<Formula> = probes.iter().map(|&probe| self.narrow(probe, kind)).collect();
            match kind {
                Kind::Number => plan.number = self.number(must, &probes, &mut plan)?,
                Kind::String => plan.string = self.string(must, &probes, *is_name, &mut plan)?,
                Kind::Array | Kind::Object => {
                    let residues = std::iter::once(must).chain(probes).collect();
                    let within_any = any.then_some(kind);
                    openings.push((kind, Opening { residues, depth: *depth, within_any }));
                }
            }
        }
        self.plans[id.0 as usize] = plan;
        for (kind, opening) in openings {
            match kind {
                Kind::Array => self.queue.draft(id).array = Some(self.array(id, opening)?),
                _ => self.queue.draft(id).object = Some(self.object(id, opening)?),
            }
        }
        Ok(())
    }

    /// Whether a plan lists these values. Arrays and objects are not listed but planned by their
    /// parts if their text is not the one text of JSON.
    fn are_listed(&self, values: &[Json]) -> bool {
        let is_part = |value: &Json| matches!(value, Json::Array(_) | Json::Object(_));
        !(self.schema.is_unordered || self.schema.is_styled) || !values.iter().any(is_part)
    }

    /// Adds the numbers listed by `must`: each in its one text, or in all of its texts.
    fn listed_numbers(
        &mut self,
        numbers: Vec<Json>,
        must: Formula,
        probes: &[Formula],
        plan: &mut Plan,
    ) -> Result<()> {
        let must = self.narrow(must, Kind::Number);
        if self.writes_digits(must) && self.options().max_digits.is_none() {
            return numbers.into_iter().try_for_each(|number| self.value(number, probes, plan));
        }
        let probes: Vec<Formula> = probes.iter().map(|&probe| self.narrow(probe, Kind::Number)).collect();
        plan.number = self.number(must, &probes, plan)?;
        Ok(())
    }

    /// Adds a listed value with its outcome, unless an answer is undecided.
    fn value(&mut self, value: Json, probes: &[Formula], plan: &mut Plan) -> Result<()> {
        let verdicts: Result<Vec<Verdict>> = probes.iter().map(|&probe| self.holds(probe, &value)).collect();
        let answers: Option<Vec<bool>> = verdicts?.into_iter().collect();
        if let Some(answers) = answers {
            let outcome = plan.outcome(&answers);
            plan.values.push((value, outcome));
        }
        Ok(())
    }

    /// Counts a state of a plan.
    fn count(&mut self) -> Result<()> {
        self.states += 1;
        if self.states > self.max_states {
            return Err(Error::limit(Limit::States(self.max_states)));
        }
        self.look()
    }

    /// Checks the limits now and then.
    fn look(&mut self) -> Result<()> {
        let work = self.formulas.work() + self.states * STATE_WORK + self.judged;
        if work - self.looked >= LOOK {
            self.looked = work;
            self.meter.time()?;
            self.meter.states(self.states)?;
            self.meter.bytes(self.formulas.bytes() + self.states * STATE_BYTES)?;
        }
        Ok(())
    }
}
