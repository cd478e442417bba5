//! Whether a value satisfies a formula.

use std::sync::Arc;

use serde_json::Value;

use super::{List, Planner};
use crate::automaton::ByteDfa;
use crate::constraint::json_schema::formula::{Except, Formula, Leaf, Term};
use crate::constraint::json_schema::number::{self, Decimal};
use crate::constraint::json_schema::types::Types;
use crate::constraint::json_schema::value::same;
use crate::error::Result;

impl Planner<'_> {
    /// Whether `value` satisfies `formula`, as the standard has it: the options play no part.
    pub(in super::super) fn holds(&mut self, formula: Formula, value: &Value) -> Result<bool> {
        Ok(match self.formulas.term(formula).clone() {
            Term::Constant(truth) => truth,
            Term::Not(inner) => !self.holds(inner, value)?,
            Term::And(parts) => {
                for &part in parts.iter() {
                    if !self.holds(part, value)? {
                        return Ok(false);
                    }
                }
                true
            }
            Term::Or(parts) => {
                for &part in parts.iter() {
                    if self.holds(part, value)? {
                        return Ok(true);
                    }
                }
                false
            }
            Term::One(parts) => {
                let mut found = 0;
                for &part in parts.iter() {
                    found += usize::from(self.holds(part, value)?);
                }
                found == 1
            }
            Term::Leaf(leaf) => self.leaf_holds(formula, &leaf, value)?,
        })
    }

    fn leaf_holds(&mut self, formula: Formula, leaf: &Leaf, value: &Value) -> Result<bool> {
        Ok(match (leaf, value) {
            (Leaf::Types(types), _) => types.meets(Types::of(value)),
            (Leaf::Values(values), _) => {
                let list = self.lists.entry(formula).or_insert_with(|| List::new(values).into());
                Arc::clone(list).contains(value)
            }
            (Leaf::Later(_), _) => {
                let formula = self.looked_up(formula)?;
                self.holds(formula, value)?
            }

            (Leaf::Length { min, max }, Value::String(text)) => {
                let length = text.chars().count() as u64;
                *min <= length && max.is_none_or(|max| length <= max)
            }
            (Leaf::Pattern(_) | Leaf::Format(_), Value::String(text)) => {
                self.content(formula)?.matches(text.as_bytes())
            }

            (Leaf::Integer, Value::Number(_)) => Types::of(value) == Types::INTEGER,
            (Leaf::AtLeast { bound, exclusive }, Value::Number(number)) => {
                let number = Decimal::new(number);
                number > *bound || (!exclusive && number == *bound)
            }
            (Leaf::AtMost { bound, exclusive }, Value::Number(number)) => {
                let number = Decimal::new(number);
                number < *bound || (!exclusive && number == *bound)
            }
            (Leaf::MultipleOf(step), Value::Number(number)) => {
                let text = Decimal::new(number).text();
                self.multiples(formula, step)?.matches(text.as_bytes())
            }

            (Leaf::Present(name), Value::Object(members)) => members.contains_key(&**name),
            (Leaf::Property(name, below), Value::Object(members)) => match members.get(&**name) {
                Some(member) => self.holds(*below, member)?,
                None => true,
            },
            (Leaf::Matching(pattern, below), Value::Object(members)) => {
                for (name, member) in members {
                    if self.matches(pattern, &name.as_str().into())? && !self.holds(*below, member)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Leaf::Others(except, below), Value::Object(members)) => {
                for (name, member) in members {
                    if self.is_other(except, &name.as_str().into())? && !self.holds(*below, member)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Leaf::Names(below), Value::Object(members)) => {
                for name in members.keys() {
                    if !self.holds(*below, &Value::String(name.clone()))? {
                        return Ok(false);
                    }
                }
                true
            }
            (Leaf::Properties { certain, .. }, Value::Object(members)) => members.len() as u64 >= *certain,

            (Leaf::Item(at, below), Value::Array(items)) => match items.get(*at as usize) {
                Some(item) => self.holds(*below, item)?,
                None => true,
            },
            (Leaf::Rest(from, below), Value::Array(items)) => {
                for item in items.iter().skip(*from as usize) {
                    if !self.holds(*below, item)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Leaf::Contains(below, count), Value::Array(items)) => {
                let mut found = 0;
                for item in items {
                    found += u64::from(self.holds(*below, item)?);
                }
                found >= *count
            }
            (Leaf::Items(count), Value::Array(items)) => items.len() as u64 >= *count,
            (Leaf::Unique { .. }, Value::Array(items)) => {
                !items.iter().enumerate().any(|(at, item)| items[..at].iter().any(|other| same(other, item)))
            }
            _ => true,
        })
    }

    /// Whether `name` is none of the names that `additionalProperties` leaves out.
    pub(super) fn is_other(&mut self, except: &Except, name: &Arc<str>) -> Result<bool> {
        if except.names.contains(name) {
            return Ok(false);
        }
        for pattern in &except.patterns {
            if self.matches(pattern, name)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether `pattern` matches in `name`.
    pub(super) fn matches(
        &mut self,
        pattern: &Arc<crate::constraint::json_schema::ecma::Pattern>,
        name: &Arc<str>,
    ) -> Result<bool> {
        let leaf = self.formulas.leaf(Leaf::Pattern(Arc::clone(pattern)));
        if let Some(&known) = self.names.get(&(leaf, Arc::clone(name))) {
            return Ok(known);
        }
        let matches = self.content(leaf)?.matches(name.as_bytes());
        self.names.insert((leaf, Arc::clone(name)), matches);
        Ok(matches)
    }

    fn multiples(&mut self, formula: Formula, step: &Decimal) -> Result<Arc<ByteDfa>> {
        if let Some(known) = self.texts.get(&formula) {
            return Ok(Arc::clone(known));
        }
        let dfa = Arc::new(number::multiple_of(step, self.meter)?);
        self.texts.insert(formula, Arc::clone(&dfa));
        Ok(dfa)
    }
}
