//! Plans: which values are written at a place, symbol by symbol of JSON rather than byte by byte.
//!
//! A place is met with a *demand*: a formula that the value must satisfy, and further ones that are asked of
//! it, because what is written around it depends on the answers. A *plan* is a deterministic automaton over
//! the parts of the value (properties in one order, items, the text of scalars) whose ends say the answers:
//! its *outcomes*. So `oneOf`, `not` and `if` are followed exactly, without expanding them, and all branches
//! that meet at an object speak of the same order of its properties. Plans are shared: a demand has one.
//!
//! States are residues of formulas; those from which no end is reached are removed, so an empty plan is
//! an unsatisfiable place.

mod array;
mod list;
mod live;
mod object;
mod scalar;
mod size;
mod truth;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

pub(super) use self::array::Array;
use self::list::List;
pub(super) use self::object::{Object, ObjectState, uncounted};
pub(super) use self::scalar::Labelled;
pub(super) use self::size::Size;
use self::truth::Verdict;
use super::Schema;
use super::format::Certainty;
use super::formula::{Formula, Formulas, Leaf, Term};
use super::options::{Escapes, JsonOptions, Numbers, Whitespace};
use super::types::Types;
use super::value::Json;
use crate::automaton::{ByteDfa, FastMap};
use crate::error::{Error, Limit, Result};
use crate::limits::Meter;

/// A plan of a [`Planner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PlanId(u32);

/// The answers to what was asked of a value, in the order of the questions.
pub(super) type Answers = Arc<[bool]>;

/// What may be written at a place.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The answers that occur.
    pub(super) outcomes: Vec<Answers>,
    /// Single values with their outcomes.
    pub(super) values: Vec<(Json, u32)>,
    pub(super) number: Option<Labelled>,
    pub(super) string: Option<Labelled>,
    pub(super) array: Option<Array>,
    pub(super) object: Option<Object>,
}

impl Plan {
    /// The number of the outcome `answers`.
    fn outcome(&mut self, answers: &[bool]) -> u32 {
        let known = self.outcomes.iter().position(|known| **known == *answers);
        known.unwrap_or_else(|| {
            self.outcomes.push(answers.into());
            self.outcomes.len() - 1
        }) as u32
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outcomes.is_empty()
    }
}

/// A part of a value and where its outcomes lead.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) child: PlanId,
    /// By outcome; `None` where nothing can follow.
    pub(super) next: Vec<Option<u32>>,
}

/// The types that have parts or texts of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Number,
    String,
    Array,
    Object,
}

/// How deep a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Depth {
    /// Recursive references that may still be followed.
    recursion: usize,
    any: Any,
}

/// Where a place is that allows anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Any {
    /// The schema asks nothing of this value; how deep it may be is settled last.
    Asked,
    /// The same of a property that the schema does not name, beside others that it does.
    Unnamed,
    /// What is left for arrays and objects that are nested, and whether an array is right around the place.
    Left(usize, bool),
}

/// What arrays and objects count for where anything goes: one level each, but for arrays right within arrays, which
/// are rare and would double what each level takes.
#[derive(Clone, Copy, Debug)]
struct Nesting {
    /// Levels of an array right within an array.
    arrays: usize,
}

impl Nesting {
    fn of(options: &JsonOptions) -> Self {
        // A depth that is asked for is one of both.
        if options.any_depth.is_some() {
            return Self { arrays: 1 };
        }
        Self { arrays: 2 }
    }

    fn weight(self, kind: Kind, in_array: bool) -> usize {
        match kind {
            Kind::Array if in_array => self.arrays,
            _ => 1,
        }
    }
}

/// What is demanded of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Demand {
    must: Formula,
    asks: Arc<[Formula]>,
    depth: Depth,
}

/// Makes plans, each once.
pub(super) struct Planner<'a> {
    pub(super) formulas: Formulas,
    schema: &'a Schema,
    meter: &'a Meter<'a>,
    plans: Vec<Plan>,
    known: HashMap<Demand, PlanId>,
    narrowed: FastMap<(Formula, u8), Formula>,
    recursive: FastMap<Formula, bool>,
    /// Automata of strings without quotes, by leaf.
    contents: FastMap<(Formula, Certainty), Arc<ByteDfa>>,
    /// Automata of texts, by formula.
    texts: FastMap<(Formula, Certainty), Arc<ByteDfa>>,
    /// The values of leaves that list them.
    lists: FastMap<Formula, Arc<List>>,
    /// Whether a pattern matches a name, by leaf and name.
    names: HashMap<(Formula, Arc<str>), bool>,
    /// Pointers of the counts of properties by which objects were left out, because their names may be equal.
    pub(super) lost: BTreeSet<String>,
    /// Whether the depth of recursion or of any JSON cut something off.
    pub(super) cut: bool,
    nesting: Nesting,
    /// Where anything goes: where a schema asks for that, and where it is of a property that the schema does not name.
    places: [Option<PlanId>; 2],
    /// States of plans so far, and at most.
    states: usize,
    most: usize,
}

impl<'a> Planner<'a> {
    pub(super) fn new(schema: &'a Schema, meter: &'a Meter<'a>) -> Self {
        Self {
            formulas: schema.formulas.clone(),
            schema,
            meter,
            plans: Vec::new(),
            known: HashMap::new(),
            narrowed: FastMap::default(),
            recursive: FastMap::default(),
            contents: FastMap::default(),
            texts: FastMap::default(),
            lists: FastMap::default(),
            names: HashMap::new(),
            lost: BTreeSet::new(),
            cut: false,
            nesting: Nesting::of(&schema.options),
            places: [None; 2],
            states: 0,
            most: usize::MAX,
        }
    }

    pub(super) fn options(&self) -> &'a JsonOptions {
        &self.schema.options
    }

    pub(super) fn meter(&self) -> &'a Meter<'a> {
        self.meter
    }

    pub(super) fn get(&self, id: PlanId) -> &Plan {
        &self.plans[id.0 as usize]
    }

    /// The plan of the whole schema, recursive references followed so often.
    pub(super) fn root(&mut self, recursion: usize) -> Result<PlanId> {
        let depth = Depth { recursion, any: Any::Asked };
        self.plan(Demand { must: self.schema.root, asks: Arc::new([]), depth })
    }

    /// As [`root`](Self::root); `None` where that takes more than `most` further states of plans, or than the limit.
    pub(super) fn root_within(&mut self, recursion: usize, most: usize) -> Result<Option<PlanId>> {
        self.most = self.states.saturating_add(most).min(self.meter.limits().states);
        let found = self.root(recursion);
        let stopped = self.states > self.most;
        self.most = usize::MAX;
        match found {
            Err(error) if stopped && matches!(error.breached(), Some(Limit::States(_))) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Whether nothing satisfies `formula`, recursive references followed once.
    pub(super) fn is_empty(&mut self, formula: Formula) -> Result<bool> {
        let depth = Depth { recursion: 1, any: Any::Asked };
        let id = self.plan(Demand { must: formula, asks: Arc::new([]), depth })?;
        Ok(self.get(id).is_empty())
    }

    /// Where anything goes, lets it go so many levels deep: where a schema asks for that, and in properties that
    /// it does not name.
    pub(super) fn set_any(&mut self, levels: [usize; 2]) -> Result<()> {
        for (place, levels) in self.places.into_iter().zip(levels) {
            let Some(place) = place else { continue };
            let depth = Depth { recursion: 0, any: Any::Left(levels, false) };
            let plan = self.planned(&Demand { must: Formula::TRUE, asks: Arc::new([]), depth }, true)?;
            self.plans[place.0 as usize] = plan;
        }
        Ok(())
    }

    /// The places of [`set_any`](Self::set_any), where there are such.
    pub(super) fn places(&self) -> [Option<PlanId>; 2] {
        self.places
    }

    /// The plan of a part of a value at `depth`; `None` where there is none.
    ///
    /// `within_any`: whether anything goes for the value itself, and what it is.
    fn below(
        &mut self,
        must: Formula,
        asks: &[Formula],
        mut depth: Depth,
        within_any: Option<Kind>,
    ) -> Result<Option<PlanId>> {
        depth.any = match (depth.any, within_any) {
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
        let id = self.plan(Demand { must, asks: asks.into(), depth })?;
        Ok((!self.get(id).is_empty()).then_some(id))
    }

    fn plan(&mut self, mut demand: Demand) -> Result<PlanId> {
        // Recursion: what was put off is looked up now, a level less deep.
        let laters = |planner: &mut Self, formula| {
            let leaves = planner.formulas.leaves(formula);
            leaves.iter().any(|&leaf| matches!(planner.formulas.as_leaf(leaf), Some(Leaf::Later(_))))
        };
        let asks: Vec<Formula> = demand.asks.to_vec();
        if laters(self, demand.must) || asks.iter().any(|&ask| laters(self, ask)) {
            match demand.depth.recursion.checked_sub(1) {
                Some(recursion) => demand.depth.recursion = recursion,
                None => {
                    self.cut = true;
                    demand.must = Formula::FALSE;
                    demand.asks = Arc::new([]);
                }
            }
            demand.must = self.looked_up(demand.must)?;
            let asks: Result<Vec<Formula>> = demand.asks.iter().map(|&ask| self.looked_up(ask)).collect();
            demand.asks = asks?.into();
        }
        if !self.is_recursive(demand.must) && !demand.asks.iter().any(|&ask| self.is_recursive(ask)) {
            demand.depth.recursion = 0;
        }
        let any = demand.must == Formula::TRUE && demand.asks.is_empty();
        if !any {
            demand.depth.any = Any::Asked;
        }
        if let Some(&id) = self.known.get(&demand) {
            return Ok(id);
        }
        let place = any && !matches!(demand.depth.any, Any::Left(..));
        let plan = if place {
            // How deep it goes is settled when the rest is known.
            Plan { outcomes: vec![Arc::new([])], ..Plan::default() }
        } else {
            self.planned(&demand, any)?
        };
        let id = PlanId(self.plans.len() as u32);
        self.plans.push(plan);
        match demand.depth.any {
            Any::Asked if place => self.places[0] = Some(id),
            Any::Unnamed => self.places[1] = Some(id),
            _ => {}
        }
        self.known.insert(demand, id);
        Ok(id)
    }

    fn planned(&mut self, demand: &Demand, any: bool) -> Result<Plan> {
        self.meter.time()?;
        let mut plan = Plan::default();
        self.fill(demand, any, &mut plan)?;
        Ok(plan)
    }

    fn fill(&mut self, demand: &Demand, any: bool, plan: &mut Plan) -> Result<()> {
        let Demand { must, asks, depth } = demand;
        if *must == Formula::FALSE {
            return Ok(());
        }
        if let Some(values) = self.finite(*must)? {
            for value in values {
                self.value(value, asks, plan)?;
            }
            return Ok(());
        }
        for value in [serde_json::Value::Null, false.into(), true.into()] {
            if self.holds(*must, &value)? == Some(true) {
                self.value(Json::scalar(value), asks, plan)?;
            }
        }
        for kind in [Kind::Number, Kind::String, Kind::Array, Kind::Object] {
            let must = self.narrow(*must, kind);
            if must == Formula::FALSE {
                continue;
            }
            let asks: Vec<Formula> = asks.iter().map(|&ask| self.narrow(ask, kind)).collect();
            match kind {
                Kind::Number => plan.number = self.number(must, &asks, plan)?,
                Kind::String => plan.string = self.string(must, &asks, plan)?,
                Kind::Array => plan.array = self.array(must, &asks, *depth, any, plan)?,
                Kind::Object => plan.object = self.object(must, &asks, *depth, any, plan)?,
            }
        }
        Ok(())
    }

    /// Adds a single value, whose answers are known at once; one with an answer that is undecided is left out.
    fn value(&mut self, value: Json, asks: &[Formula], plan: &mut Plan) -> Result<()> {
        let verdicts: Result<Vec<Verdict>> = asks.iter().map(|&ask| self.holds(ask, value.value())).collect();
        let answers: Option<Vec<bool>> = verdicts?.into_iter().collect();
        if let Some(answers) = answers {
            let outcome = plan.outcome(&answers);
            plan.values.push((value, outcome));
        }
        Ok(())
    }

    /// The values that satisfy `must`, where it lists them and each has one text.
    fn finite(&mut self, must: Formula) -> Result<Option<Vec<Json>>> {
        let Some(listed) = self.listed(must) else { return Ok(None) };
        let options = self.options();
        if listed.iter().any(|value| !has_one_text(value.value(), options)) {
            return Ok(None);
        }
        let mut values = Vec::new();
        for (at, value) in listed.into_iter().enumerate() {
            if at % 256 == 0 {
                self.meter.time()?;
            }
            if self.holds(must, value.value())? == Some(true) {
                values.push(value);
            }
        }
        Ok(Some(values))
    }

    /// Values among which all are that satisfy `formula`.
    fn listed(&self, formula: Formula) -> Option<Vec<Json>> {
        match self.formulas.term(formula) {
            Term::Constant(false) => Some(Vec::new()),
            Term::Leaf(Leaf::Values(values)) => Some(values.to_vec()),
            Term::Leaf(Leaf::Types(types))
                if !types.meets(Types::ALL.except(Types::NULL.or(Types::BOOLEAN))) =>
            {
                let all = [serde_json::Value::Null, false.into(), true.into()];
                Some(
                    all.into_iter()
                        .filter(|value| Types::of(value).meets(*types))
                        .map(Json::scalar)
                        .collect(),
                )
            }
            Term::And(parts) => parts.iter().find_map(|&part| self.listed(part)),
            Term::Or(parts) | Term::One(parts) => {
                let mut all: Vec<Json> = Vec::new();
                let mut seen = std::collections::HashSet::new();
                for &part in parts.iter() {
                    all.extend(self.listed(part)?.into_iter().filter(|value| seen.insert(value.clone())));
                }
                Some(all)
            }
            _ => None,
        }
    }

    /// The formula with the schemas that were put off in it.
    fn looked_up(&mut self, formula: Formula) -> Result<Formula> {
        let later = &self.schema.later;
        let mut formula = formula;
        for _ in 0..=later.len() {
            let next = self.formulas.replace(formula, &mut |formulas, leaf| match formulas.as_leaf(leaf) {
                Some(&Leaf::Later(number)) => Some(later[number as usize]),
                _ => None,
            });
            if next == formula {
                return Ok(formula);
            }
            formula = next;
        }
        Err(Error::schema("", "references lead back to themselves without any property or item in between"))
    }

    /// Whether a recursive reference can be met in or below `formula`.
    fn is_recursive(&mut self, formula: Formula) -> bool {
        if let Some(&known) = self.recursive.get(&formula) {
            return known;
        }
        let mut found = false;
        for leaf in self.formulas.leaves(formula).iter() {
            let Some(leaf) = self.formulas.as_leaf(*leaf) else { continue };
            let below = match leaf {
                Leaf::Later(_) => {
                    found = true;
                    break;
                }
                Leaf::Property(_, f)
                | Leaf::Matching(_, f)
                | Leaf::Others(_, f)
                | Leaf::Names(f)
                | Leaf::Item(_, f)
                | Leaf::Rest(_, f)
                | Leaf::Contains(f, _) => *f,
                _ => continue,
            };
            if self.is_recursive(below) {
                found = true;
                break;
            }
        }
        self.recursive.insert(formula, found);
        found
    }

    /// What `formula` says of values of one kind.
    fn narrow(&mut self, formula: Formula, kind: Kind) -> Formula {
        if let Some(&known) = self.narrowed.get(&(formula, kind as u8)) {
            return known;
        }
        let narrowed = self.formulas.replace(formula, &mut |formulas, leaf| {
            let leaf = formulas.as_leaf(leaf)?.clone();
            let of = match &leaf {
                Leaf::Types(types) => return Some(of_kind(formulas, *types, kind)),
                Leaf::Values(values) => return Some(values_of(formulas, values, kind)),
                Leaf::Pattern(_) | Leaf::Length { .. } | Leaf::Format(_) => Kind::String,
                Leaf::Integer | Leaf::AtLeast { .. } | Leaf::AtMost { .. } | Leaf::MultipleOf(_) => {
                    Kind::Number
                }
                Leaf::Present(_)
                | Leaf::Property(..)
                | Leaf::Matching(..)
                | Leaf::Others(..)
                | Leaf::Names(_)
                | Leaf::Properties { .. } => Kind::Object,
                Leaf::Item(..)
                | Leaf::Rest(..)
                | Leaf::Contains(..)
                | Leaf::Items(_)
                | Leaf::Unique { .. } => Kind::Array,
                Leaf::Later(_) => return None,
            };
            (of != kind).then_some(Formula::TRUE)
        });
        self.narrowed.insert((formula, kind as u8), narrowed);
        narrowed
    }

    /// The distinct leaves of several residues.
    fn leaves_of(&mut self, residues: &[Formula]) -> Vec<Formula> {
        match residues {
            [only] => self.formulas.leaves(*only).to_vec(),
            _ => {
                let mut seen: FastMap<Formula, ()> = FastMap::default();
                let mut all = Vec::new();
                for &residue in residues {
                    let leaves = self.formulas.leaves(residue);
                    all.extend(leaves.iter().copied().filter(|leaf| seen.insert(*leaf, ()).is_none()));
                }
                all
            }
        }
    }

    /// The residues with some leaves decided.
    fn assign(&mut self, residues: &[Formula], values: &FastMap<Formula, Formula>) -> Vec<Formula> {
        if values.is_empty() {
            return residues.to_vec();
        }
        residues.iter().map(|&residue| self.formulas.assign(residue, values)).collect()
    }

    /// The outcome of residues that are all decided; `None` where what must hold does not.
    fn outcome(&self, residues: &[Formula], plan: &mut Plan) -> Option<u32> {
        if residues[0] != Formula::TRUE {
            return None;
        }
        let answers: Option<Vec<bool>> = residues[1..].iter().map(|residue| residue.decided()).collect();
        Some(plan.outcome(&answers?))
    }

    /// Counts a state of a plan.
    fn count(&mut self) -> Result<()> {
        self.states += 1;
        if self.states > self.most {
            return Err(Error::limit(Limit::States(self.most)));
        }
        if self.states.is_multiple_of(256) {
            self.meter.time()?;
            self.meter.states(self.states)?;
            self.meter.bytes(self.formulas.count() * 64)?;
        }
        Ok(())
    }
}

/// Claims on the next part of a value: those that must hold and those that are asked.
#[derive(Default)]
struct Claims {
    must: Vec<Formula>,
    /// A leaf, and what decides it.
    open: Vec<(Formula, Formula)>,
}

impl Claims {
    /// The distinct questions.
    fn asks(&self) -> Vec<Formula> {
        let mut asks: Vec<Formula> = Vec::new();
        for &(_, ask) in &self.open {
            if !asks.contains(&ask) {
                asks.push(ask);
            }
        }
        asks
    }
}

/// What is left of `type` for values of one kind.
fn of_kind(formulas: &mut Formulas, types: Types, kind: Kind) -> Formula {
    match kind {
        Kind::Number => match (types.meets(Types::INTEGER), types.meets(Types::FRACTION)) {
            (true, true) => Formula::TRUE,
            (false, false) => Formula::FALSE,
            (integer, _) => {
                let leaf = formulas.leaf(Leaf::Integer);
                if integer { leaf } else { formulas.not(leaf) }
            }
        },
        Kind::String => Formula::constant(types.meets(Types::STRING)),
        Kind::Array => Formula::constant(types.meets(Types::ARRAY)),
        Kind::Object => Formula::constant(types.meets(Types::OBJECT)),
    }
}

/// What is left of `enum` for values of one kind: scalars are listed, others are described.
fn values_of(formulas: &mut Formulas, values: &[Json], kind: Kind) -> Formula {
    let types = match kind {
        Kind::Number => Types::NUMBER,
        Kind::String => Types::STRING,
        Kind::Array => Types::ARRAY,
        Kind::Object => Types::OBJECT,
    };
    let of_kind: Vec<&Json> = values.iter().filter(|value| Types::of(value.value()).meets(types)).collect();
    if matches!(kind, Kind::Number | Kind::String) {
        return formulas.leaf(Leaf::Values(of_kind.into_iter().cloned().collect()));
    }
    let described: Vec<Formula> = of_kind.into_iter().map(|value| described(formulas, value)).collect();
    formulas.or(described)
}

/// An array or object by its parts.
fn described(formulas: &mut Formulas, value: &Json) -> Formula {
    let mut claims = Vec::new();
    match value.value() {
        serde_json::Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let item = formulas.leaf(Leaf::Values([Json::part(item)].into()));
                claims.push(formulas.leaf(Leaf::Item(at as u64, item)));
            }
            let count = items.len() as u64;
            claims.push(formulas.leaf(Leaf::Items(count)));
            let more = formulas.leaf(Leaf::Items(count + 1));
            claims.push(formulas.not(more));
        }
        serde_json::Value::Object(members) => {
            let mut except = super::formula::Except::default();
            for (name, member) in members {
                let name: Arc<str> = name.as_str().into();
                let member = formulas.leaf(Leaf::Values([Json::part(member)].into()));
                claims.push(formulas.leaf(Leaf::Property(Arc::clone(&name), member)));
                claims.push(formulas.leaf(Leaf::Present(Arc::clone(&name))));
                except.names.push(name);
            }
            claims.push(formulas.leaf(Leaf::Others(except.into(), Formula::FALSE)));
        }
        _ => {}
    }
    formulas.and(claims)
}

/// Whether the options leave a value one text, but for white space that is fixed.
fn has_one_text(value: &serde_json::Value, options: &JsonOptions) -> bool {
    use serde_json::Value;
    let plain = |text: &str| {
        options.escapes == Escapes::Canonical
            && text.chars().all(|c| !c.is_control() && (c.is_ascii() || !options.ascii))
            && options.max_string.is_none_or(|max| text.chars().count() as u64 <= max)
    };
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::Number(_) => options.numbers == Numbers::Plain && options.max_digits.is_none(),
        Value::String(text) => plain(text),
        Value::Array(items) => {
            !matches!(options.whitespace, Whitespace::Flexible(_))
                && items.iter().all(|item| has_one_text(item, options))
        }
        Value::Object(members) => {
            !matches!(options.whitespace, Whitespace::Flexible(_))
                && members.iter().all(|(name, member)| plain(name) && has_one_text(member, options))
        }
    }
}
