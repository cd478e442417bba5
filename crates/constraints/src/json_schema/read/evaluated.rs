//! The properties and items evaluated by a schema; `unevaluatedProperties` and `unevaluatedItems`
//! do not apply to these.
//!
//! A keyword evaluates a property or an item on the condition that the schemas around the keyword
//! hold. The condition is a formula. For conditional patterns or `contains`, the cases are written
//! out.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Clock, Gathered, Reader};
use crate::json_schema::ecma::Pattern;
use crate::json_schema::formula::{Except, Formula, Formulas, Leaf};
use crate::json_schema::json::Members;
use burn_dfa_common::Result;

/// Most conditions with written-out cases.
const MAX_CONDITIONS: usize = 4;

/// The evaluated parts, each under a condition.
#[derive(Clone, Default)]
pub(super) struct Evaluated {
    properties: Vec<(Formula, Properties)>,
    items: Vec<(Formula, Items)>,
    /// Whether a recursive reference may evaluate more.
    unknown: bool,
}

/// Properties evaluated by a keyword.
#[derive(Clone)]
pub(super) enum Properties {
    Name(Arc<str>),
    Matching(Arc<Pattern>),
    All,
}

/// Items evaluated by a keyword.
#[derive(Clone)]
pub(super) enum Items {
    /// This number of items from the first one on.
    First(u64),
    All,
    /// The items that satisfy the formula.
    Satisfying(Formula),
}

impl Evaluated {
    pub(super) fn unknown() -> Self {
        Self { unknown: true, ..Self::default() }
    }

    /// Its approximate size in bytes, also after adding a condition.
    pub(super) fn bytes(&self) -> usize {
        (self.properties.len() + self.items.len()).saturating_mul(128)
    }

    pub(super) fn property(&mut self, what: Properties) {
        self.properties.push((Formula::TRUE, what));
    }

    pub(super) fn item(&mut self, what: Items) {
        self.items.push((Formula::TRUE, what));
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.properties.extend(other.properties);
        self.items.extend(other.items);
        self.unknown |= other.unknown;
    }

    /// Adds the parts of `other` under `condition`.
    pub(super) fn extend_if(&mut self, mut other: Self, condition: Formula, formulas: &mut Formulas) {
        for (when, _) in &mut other.properties {
            *when = formulas.and([condition, *when]);
        }
        for (when, _) in &mut other.items {
            *when = formulas.and([condition, *when]);
        }
        self.extend(other);
    }
}

impl<'a> Reader<'a> {
    pub(super) fn unevaluated(&mut self, map: &'a Members, gathered: &mut Gathered) -> Result<()> {
        for name in ["unevaluatedProperties", "unevaluatedItems"] {
            let Some(schema) = self.keyword(map, name) else { continue };
            let formula = self.below(&[name], schema)?;
            if gathered.evaluated.unknown && formula != Formula::TRUE {
                return Err(self.error_at(
                    name,
                    format!("`{name}` beside a recursive reference is not offered; list what the reference evaluates"),
                ));
            }
            let claim = if name == "unevaluatedProperties" {
                let claim = self.unevaluated_properties(formula, &gathered.evaluated.properties)?;
                gathered.evaluated.property(Properties::All);
                claim
            } else {
                let claim = self.unevaluated_items(formula, &gathered.evaluated.items)?;
                gathered.evaluated.item(Items::All);
                claim
            };
            self.claim(gathered, &[name], claim);
        }
        if !self.tracks {
            gathered.evaluated = Evaluated { unknown: gathered.evaluated.unknown, ..Evaluated::default() };
        }
        Ok(())
    }

    fn unevaluated_properties(
        &mut self,
        schema: Formula,
        evaluated: &[(Formula, Properties)],
    ) -> Result<Formula> {
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut conditions: HashMap<Arc<str>, Vec<Formula>> = HashMap::new();
        let mut patterns: Vec<(Formula, Arc<Pattern>)> = Vec::new();
        let mut all = Vec::new();
        for (when, what) in evaluated {
            match what {
                Properties::Name(name) => {
                    let conditions = conditions.entry(Arc::clone(name)).or_default();
                    if conditions.is_empty() {
                        names.push(Arc::clone(name));
                    }
                    conditions.push(*when);
                }
                Properties::Matching(pattern) => patterns.push((*when, Arc::clone(pattern))),
                Properties::All => all.push(*when),
            }
        }
        let all = self.formulas.or(all);
        let lowered = match &self.clock {
            _ if names.is_empty() || patterns.is_empty() => Vec::new(),
            Clock::Of(meter) => {
                let lower = |(when, pattern): &(Formula, Arc<Pattern>)| Ok((*when, pattern.lower(meter)?));
                patterns.iter().map(lower).collect::<Result<Vec<_>>>()?
            }
            Clock::Until(_) => {
                // Matching names against patterns is deferred until the schema is lowered.
                self.is_provisional = true;
                Vec::new()
            }
        };
        let mut claims = Vec::new();
        for name in &names {
            let mut conditions = conditions.remove(name).unwrap_or_default();
            let matching = lowered.iter().filter(|(_, dfa)| dfa.matches(name.as_bytes()));
            conditions.extend(matching.map(|(when, _)| *when));
            self.hold(conditions.len() * size_of::<Formula>())?;
            conditions.push(all);
            conditions.push(self.formulas.leaf(Leaf::Property(Arc::clone(name), schema)));
            claims.push(self.formulas.or(conditions));
        }
        let others = self.cases("unevaluatedProperties", &patterns, |formulas, patterns| {
            let except = Except { names: names.clone(), patterns };
            formulas.leaf(Leaf::Others(except.into(), schema))
        })?;
        claims.push(self.formulas.or([all, others]));
        Ok(self.formulas.and(claims))
    }

    fn unevaluated_items(&mut self, schema: Formula, evaluated: &[(Formula, Items)]) -> Result<Formula> {
        let mut first = 0;
        let mut satisfying: Vec<(Formula, Formula)> = Vec::new();
        let mut all = Vec::new();
        for (when, what) in evaluated {
            match what {
                Items::First(count) => first = first.max(*count),
                Items::Satisfying(formula) => satisfying.push((*when, *formula)),
                Items::All => all.push(*when),
            }
        }
        let all = self.formulas.or(all);
        let mut claims = Vec::new();
        for index in 0..first {
            let mut conditions = vec![all];
            conditions.extend(evaluated.iter().filter_map(|(when, what)| match what {
                Items::First(count) if index < *count => Some(*when),
                _ => None,
            }));
            self.hold((conditions.len() + satisfying.len()) * size_of::<Formula>())?;
            conditions.push(self.cases("unevaluatedItems", &satisfying, |formulas, satisfying| {
                let formula = formulas.or(satisfying.into_iter().chain([schema]));
                formulas.leaf(Leaf::Item(index, formula))
            })?);
            claims.push(self.formulas.or(conditions));
        }
        let rest = self.cases("unevaluatedItems", &satisfying, |formulas, satisfying| {
            let formula = formulas.or(satisfying.into_iter().chain([schema]));
            formulas.leaf(Leaf::Rest(first, formula))
        })?;
        claims.push(self.formulas.or([all, rest]));
        Ok(self.formulas.and(claims))
    }

    /// Applies `claim` to the parts whose conditions hold: a conjunction over all cases of the
    /// conditions.
    fn cases<T: Clone>(
        &mut self,
        name: &str,
        parts: &[(Formula, T)],
        claim: impl Fn(&mut Formulas, Vec<T>) -> Formula,
    ) -> Result<Formula> {
        let mut conditions: Vec<Formula> = Vec::new();
        for (when, _) in parts {
            if *when != Formula::TRUE && !conditions.contains(when) {
                conditions.push(*when);
            }
            if conditions.len() > MAX_CONDITIONS {
                break;
            }
        }
        if conditions.len() > MAX_CONDITIONS {
            return Err(self.error_at(
                name,
                format!(
                    "`{name}` depends on more than {MAX_CONDITIONS} conditions; use `additionalProperties`, or one schema for all `items`"
                ),
            ));
        }
        let mut cases = Vec::new();
        for case in 0..1u32 << conditions.len() {
            let holds = |when: Formula| match conditions.iter().position(|known| *known == when) {
                Some(at) => case >> at & 1 == 1,
                None => true,
            };
            let held = parts.iter().filter(|(when, _)| holds(*when)).map(|(_, part)| part.clone()).collect();
            let claim = claim(&mut self.formulas, held);
            let mut all = vec![claim];
            for (at, &condition) in conditions.iter().enumerate() {
                let negated = self.formulas.not(condition);
                all.push(if case >> at & 1 == 1 { condition } else { negated });
            }
            cases.push(self.formulas.and(all));
        }
        Ok(self.formulas.or(cases))
    }
}
