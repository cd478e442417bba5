//! Formulas that only a list of values can satisfy.

use super::Planner;
use crate::constraint::json_schema::formula::{Formula, Leaf, Term};
use crate::constraint::json_schema::json::Json;
use crate::constraint::json_schema::options::{Escapes, JsonOptions, Numbers, Whitespace};
use crate::constraint::json_schema::types::Types;
use crate::error::Result;

impl Planner<'_> {
    /// The values that satisfy `must`, if it lists them and each has one text.
    pub(super) fn finite(&mut self, must: Formula) -> Result<Option<Vec<Json>>> {
        let Some(listed) = self.listed(must) else { return Ok(None) };
        let options = self.options();
        if listed.iter().any(|value| !has_one_text(value, options)) {
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

    /// A list that contains every value which satisfies `formula`, if there is one.
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
        options.escapes == Escapes::Canonical
            && text.chars().all(|c| !c.is_control() && (c.is_ascii() || !options.ascii))
            && options.max_string.is_none_or(|max| text.chars().count() as u64 <= max)
    };
    match value {
        Json::Null | Json::Boolean(_) => true,
        Json::Number(_) => options.numbers == Numbers::Plain && options.max_digits.is_none(),
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
