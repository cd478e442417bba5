//! The values of elements: strings as they are, other values as JSON or as elements again.

use std::rc::Rc;

use super::markup::{Kinds, Markup, TYPES};
use super::network::{Container, DEAD, Emitter};
use crate::json_schema::{PlanId, Selection, Types};
use burn_dfa_automata::{Op, Rows};
use burn_dfa_common::Result;

/// Types other than arrays and objects.
const SCALARS: Types = Types::ALL.except(Types::ARRAY).except(Types::OBJECT);

impl Emitter<'_, '_> {
    /// A value after the name of its element, through the end of the element.
    pub(super) fn value(&mut self, id: PlanId, exits: &[u32]) -> Result<u32> {
        let key = (id, exits.to_vec());
        if let Some(&known) = self.values.get(&key) {
            return Ok(known);
        }
        let Markup { named, value, .. } = self.markup;
        let mut cases = self.cases(id, exits)?;
        if let Some(value) = value {
            let begun = self.word(value, cases)?;
            cases = self.space(begun)?;
        }
        let start = self.word(named, cases)?;
        self.values.insert(key, start);
        Ok(start)
    }

    /// An element without a name.
    pub(super) fn element(&mut self, id: PlanId, exits: &[u32]) -> Result<u32> {
        let cases = self.cases(id, exits)?;
        self.word("<cofl:value type=\"", cases)
    }

    /// The cases of a value: each begins with its type information.
    fn cases(&mut self, id: PlanId, exits: &[u32]) -> Result<u32> {
        let mut cases = Vec::new();
        // The outcomes before the same exit.
        let mut groups: Vec<(u32, Vec<u32>)> = Vec::new();
        for (outcome, &exit) in (0..).zip(exits) {
            match groups.iter_mut().find(|(known, _)| *known == exit) {
                _ if exit == DEAD => {}
                Some((_, outcomes)) => outcomes.push(outcome),
                None => groups.push((exit, vec![outcome])),
            }
        }
        for (exit, outcomes) in groups {
            self.scalars(id, &outcomes, exit, &mut cases)?;
        }
        if self.markup.kinds == Kinds::Nested {
            let mut closed = Vec::with_capacity(exits.len());
            for &exit in exits {
                closed.push(self.close(exit)?);
            }
            for (container, kind) in [(Container::Object, "dict\">"), (Container::List, "list\">")] {
                let body = self.container(id, container, &closed, exits)?;
                cases.push(self.word(kind, body)?);
            }
        }
        self.union(cases)
    }

    /// The cases of values with these outcomes, except lists and objects that are elements again.
    fn scalars(&mut self, id: PlanId, outcomes: &[u32], exit: u32, cases: &mut Vec<u32>) -> Result<()> {
        let values = Selection { plan: id, outcomes: Some(outcomes), types: Types::ALL };
        let types = self.planned.types(values);
        let others = types.except(Types::STRING);
        let kinds = self.markup.kinds;
        let close = self.close(exit)?;
        let end = self.space(close)?;
        if types.meets(Types::STRING) {
            let (kind, is_spaced) = match kinds {
                Kinds::String => ("true\">", false),
                Kinds::Type => ("string\"<|sep|>", true),
                Kinds::Nested => ("raw\">", true),
                Kinds::None => ("", true),
            };
            let strings = self.strings(id, outcomes, if is_spaced { end } else { close })?;
            let strings = if is_spaced { self.space(strings)? } else { strings };
            cases.push(self.word(kind, strings)?);
        }
        match kinds {
            // No value contains the text that closes it, and all JSON without this text is a string
            // too.
            Kinds::None if self.planned.has_all_strings(id, outcomes) => {}
            Kinds::None => cases.push(self.json_of(id, outcomes, others, end)?),
            Kinds::String => {
                let json = self.json_of(id, outcomes, others, end)?;
                cases.push(self.word("false\">", json)?);
            }
            Kinds::Type => {
                // An integer counts as a number if all values are numbers.
                let is_number = self.planned.types(id.into()).except(Types::NUMBER) == Types::NONE;
                for (name, of) in TYPES.into_iter().skip(1) {
                    if name != "integer" || !is_number {
                        let json = self.json_of(id, outcomes, types.and(of), end)?;
                        cases.push(self.word(&format!("{name}\"<|sep|>"), json)?);
                    }
                }
            }
            Kinds::Nested => {
                let json = self.json_of(id, outcomes, others.and(SCALARS), end)?;
                cases.push(self.word("json\">", json)?);
            }
        }
        Ok(())
    }

    /// The unquoted strings of a plan with these outcomes.
    fn strings(&mut self, id: PlanId, outcomes: &[u32], next: u32) -> Result<u32> {
        let key = (id, outcomes.to_vec());
        let known = match self.strings.get(&key) {
            Some(known) => known.clone(),
            None => {
                let mut found = None;
                if let Some(strings) = self.planned.strings(id, outcomes)? {
                    let plain = strings.product(&self.plain, Op::Intersection, self.meter)?;
                    if !plain.is_empty() {
                        found = Some(Rc::new((Rows::from(&plain), plain.start().0)));
                    }
                }
                self.strings.insert(key, found.clone());
                found
            }
        };
        let Some(strings) = known else { return Ok(DEAD) };
        let (rows, start) = &*strings;
        let read = self.network.copy(rows, *start, next)?;
        if rows.is_accepting(*start) { self.union(vec![read, next]) } else { Ok(read) }
    }

    /// The values of some types with these outcomes as JSON, after white space.
    fn json_of(&mut self, id: PlanId, outcomes: &[u32], types: Types, next: u32) -> Result<u32> {
        if types == Types::NONE {
            return Ok(DEAD);
        }
        let key = (id, outcomes.to_vec(), types);
        let known = match self.json.get(&key) {
            Some(known) => known.clone(),
            None => {
                let values = Selection { plan: id, outcomes: Some(outcomes), types };
                let number = self.json.len();
                let nested = self.planned.json(values)?.map(|texts| Rc::new((number, texts)));
                self.json.insert(key, nested.clone());
                nested
            }
        };
        let Some(json) = known else { return Ok(DEAD) };
        let read = self.copies.copy(&mut self.network, json.0, &json.1, next)?;
        self.space(read)
    }
}
