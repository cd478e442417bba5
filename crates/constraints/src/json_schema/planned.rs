//! A schema as plans, for emitters that write values in another way than JSON.
//!
//! Such an emitter follows the [plans](super::plan) of objects and arrays itself. The values of a
//! plan as JSON, and the content of its strings, are automata.

use std::sync::Arc;

use super::calls::Followed;
use super::format::Certainty;
use super::plan::{Labeled, Plan, PlanId, Planner, Preferred};
use super::{Escapes, JsonOptions, Schema, Selection, Types, emit, number, string};
use crate::Unrolled;
use burn_dfa_automata::{ByteDfa, Op, SparseAutomaton, SparseDfa};
use burn_dfa_common::{Result, limits::Meter};

/// A schema with its plans.
pub(crate) struct Planned<'a> {
    schema: &'a Schema,
    planner: Planner<'a>,
    followed: Followed,
    meter: &'a Meter<'a>,
}

impl<'a> Planned<'a> {
    /// Plans a schema.
    ///
    /// # Errors
    /// No value satisfies the schema, or a limit is exceeded.
    pub(crate) fn new(schema: &'a Schema, meter: &'a Meter<'a>) -> Result<Self> {
        let (mut planner, followed) = schema.followed(Preferred::default(), meter)?;
        if planner.get(followed.root()).is_empty() {
            return Err(schema.unsatisfiable(&mut planner));
        }
        Ok(Self { schema, planner, followed, meter })
    }

    /// The plan of the whole value.
    pub(crate) fn root(&self) -> PlanId {
        self.followed.root()
    }

    /// The depth to which the schema is expanded.
    pub(crate) fn unrolled(&self) -> Unrolled {
        self.followed.unrolled()
    }

    pub(crate) fn get(&self, id: PlanId) -> &Plan {
        self.planner.get(id)
    }

    /// The number of outcomes of a plan.
    pub(crate) fn outcome_count(&self, id: PlanId) -> usize {
        self.planner.get(id).outcomes.len()
    }

    /// JSON pointer to the part of the schema of a plan.
    pub(crate) fn origin(&self, id: PlanId) -> String {
        self.planner.origin(id)
    }

    /// The same for the [number](PlanId::number) of a plan.
    pub(crate) fn origin_of(&self, number: u32) -> String {
        self.planner.origin(PlanId::numbered(number))
    }

    /// Whether values of a plan contain values of the same plan.
    pub(crate) fn is_recursive(&self, id: PlanId) -> bool {
        self.followed.is_recursive(id)
    }

    /// The types of some values. Numbers may be fewer.
    pub(crate) fn types(&self, values: Selection) -> Types {
        let plan = self.planner.get(values.plan);
        let has = |outcome: &u32| values.outcomes.is_none_or(|outcomes| outcomes.contains(outcome));
        let listed = plan.values.iter().filter(|(_, outcome)| has(outcome));
        let mut types = listed.map(|(value, _)| Types::of(value)).fold(Types::NONE, Types::or);
        if plan.number.as_ref().is_some_and(|number| number.outcomes().iter().any(has)) {
            let told = self.schema.types_of(self.planner.must(values.plan), &self.planner.formulas);
            types = types.or(told.and(Types::NUMBER));
        }
        let counted = plan.counted.as_ref().map(|(_, outcome)| *outcome);
        let string = plan.string.iter().flat_map(|string| string.outcomes());
        if string.chain(counted).any(|outcome| has(&outcome)) {
            types = types.or(Types::STRING);
        }
        let mut arrays = plan.array.iter().flat_map(|array| &array.states);
        if arrays.any(|state| state.end.as_ref().is_some_and(has)) {
            types = types.or(Types::ARRAY);
        }
        let mut objects = plan.object.iter().flat_map(|object| &object.states);
        if objects.any(|state| state.end.as_ref().is_some_and(has)) {
            types = types.or(Types::OBJECT);
        }
        types.and(values.types)
    }

    /// Whether all strings are values of a plan with these outcomes.
    pub(crate) fn has_all_strings(&self, id: PlanId, outcomes: &[u32]) -> bool {
        let is_selected = match &self.planner.get(id).string {
            Some(Labeled::Alike { outcome, .. }) => outcomes.contains(outcome),
            _ => false,
        };
        is_selected
            && self.schema.options.max_string.is_none()
            && self.schema.has_all_strings(self.planner.must(id), &self.planner.formulas)
    }

    /// Whether the schema claims nothing on the names of a plan.
    pub(crate) fn has_all_names(&self, id: PlanId) -> bool {
        self.planner.has_all_names(id)
    }

    /// The automaton of some values as JSON; `None` if there are none.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(crate) fn json(&self, values: Selection) -> Result<Option<SparseAutomaton>> {
        let all = Selection { types: Types::NUMBER, ..values };
        if values.types != Types::INTEGER || !self.types(all).meets(Types::FRACTION) {
            return self.followed.texts(&self.planner, values);
        }
        let Some(numbers) = emit::emit(&self.planner, values)? else { return Ok(None) };
        let integers = number::integers(self.schema.integers, Certainty::Surely, self.meter)?;
        let integers = numbers.to_dense(self.meter)?.product(&integers, Op::Intersection, self.meter)?;
        Ok((!integers.is_empty()).then(|| SparseAutomaton::Finite(SparseDfa::from(&integers))))
    }

    /// The content of the strings of a plan with these outcomes, without quotes and escapes; `None`
    /// if there are none.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(crate) fn strings(&self, id: PlanId, outcomes: &[u32]) -> Result<Option<ByteDfa>> {
        let strings = match self.schema.options.ascii {
            // The characters beyond ASCII have no shortest spelling.
            true => self.spelled_strings(id, outcomes)?,
            false => {
                let values = Selection { plan: id, outcomes: Some(outcomes), types: Types::STRING };
                emit::emit(&self.planner, values)?
            }
        };
        let Some(strings) = strings else { return Ok(None) };
        string::unquoted(&strings.to_dense(self.meter)?, self.meter).map(Some)
    }

    /// The strings of a plan in the shortest spelling of each character.
    fn spelled_strings(&self, id: PlanId, outcomes: &[u32]) -> Result<Option<SparseDfa>> {
        let (formulas, root) = self.planner.strings_of(id, outcomes);
        let options =
            JsonOptions { escapes: Escapes::Canonical, ascii: false, ..self.schema.options.clone() };
        let schema = Schema { formulas, root, options, ..self.schema.clone() };
        let mut planner = Planner::new(&schema, self.meter);
        let root = planner.root(0)?;
        if planner.get(root).is_empty() { Ok(None) } else { emit::emit(&planner, root) }
    }
}

impl Schema {
    /// The schema of the same values, with other names and strings: without quotes and escapes,
    /// they are words of `free`. Properties come in any order if `is_unordered`. If `is_styled`,
    /// arrays and objects may be written in another way than JSON.
    pub(crate) fn arranged(self, free: Option<Arc<ByteDfa>>, is_unordered: bool, is_styled: bool) -> Self {
        Self { free, is_unordered, is_styled, ..self }
    }
}
