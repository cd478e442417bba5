//! Formulas satisfied only by a list of values.

use super::Planner;
use crate::json_schema::formula::{Formula, Leaf, Term};
use crate::json_schema::json::Json;
use crate::json_schema::options::{Escapes, JsonOptions, Whitespace};
use crate::json_schema::types::Types;
use burn_dfa_common::Result;

impl Planner<'_> {
    /// The values that satisfy `must`, if it lists them and each is a number or has one text.
    pub(super) fn finite(&mut self, must: Formula) -> Result<Option<Vec<Json>>> {
        let Some(listed) = self.listed(must) else { return Ok(None) };
        let options = self.options();
        let is_told = |value: &Json| matches!(value, Json::Number(_)) || has_one_text(value, options);
        if !listed.iter().all(is_told) {
            return Ok(None);
        }
        let mut values = Vec::new();
        for value in listed {
            if self.holds(must, &value)? == Some(true) {
                values.push(value);
            }
        }
        Ok(Some(values))
    }

    /// A list with every value that satisfies `formula`, if one exists.
    pub(super) fn listed(&self, formula: Formula) -> Option<Vec<Json>> {
        match self.formulas.term(formula) {
            Term::Constant(false) => Some(Vec::new()),
            Term::Leaf(Leaf::Values(values)) => Some(values.to_vec()),
            Term::Leaf(Leaf::Types(types))
                if !types.meets(Types::ALL.except(Types::NULL.or(Types::BOOLEAN))) =>
            {
                let all = [Json::Null, Json::Boolean(false), Json::Boolean(true)];
                Some(all.into_iter().filter(|value| Types::of(value).meets(*types)).collect())
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
}

/// Whether the options allow exactly one text of a value, fixed white space included.
fn has_one_text(value: &Json, options: &JsonOptions) -> bool {
    let plain = |text: &str| {
        matches!(options.escapes, Escapes::Canonical | Escapes::NumberedFree)
            && text.chars().all(|c| !c.is_control() && (c.is_ascii() || !options.ascii))
            && options.max_string.is_none_or(|max| text.chars().count() as u64 <= max)
    };
    match value {
        Json::Null | Json::Boolean(_) => true,
        Json::Number(_) => false,
        Json::String(text) => plain(text),
        Json::Array(items) => {
            !matches!(options.whitespace, Whitespace::Flexible(_))
                && items.iter().all(|item| has_one_text(item, options))
        }
        Json::Object(members) => {
            !matches!(options.whitespace, Whitespace::Flexible(_))
                && members.iter().all(|(name, member)| plain(name) && has_one_text(member, options))
        }
    }
}
