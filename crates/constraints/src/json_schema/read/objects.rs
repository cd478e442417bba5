//! Reads the keywords of objects.

use std::sync::Arc;

use super::evaluated::Properties;
use super::{Gathered, Reader};
use crate::json_schema::draft::Draft;
use crate::json_schema::formula::{Except, Formula, Leaf};
use crate::json_schema::json::{Json, Members};
use crate::json_schema::options::Additional;
use crate::json_schema::types::Types;
use burn_dfa_common::Result;

impl<'a> Reader<'a> {
    pub(super) fn properties(&mut self, map: &'a Members, gathered: &mut Gathered) -> Result<()> {
        let mut except = Except::default();
        if let Some(properties) = self.members(map, "properties")? {
            for (name, schema) in properties {
                let formula = self.below(&["properties", name], schema)?;
                let shared: Arc<str> = name.as_str().into();
                let claim = self.formulas.leaf(Leaf::Property(Arc::clone(&shared), formula));
                self.claim(gathered, &["properties", name], claim);
                gathered.evaluated.property(Properties::Name(Arc::clone(&shared)));
                except.names.push(shared);
            }
        }
        if let Some(properties) = self.members(map, "patternProperties")? {
            for (text, schema) in properties {
                let formula = self.below(&["patternProperties", text], schema)?;
                let pattern = self.pattern("patternProperties", text)?;
                let leaf = Leaf::Matching(Arc::clone(&pattern), formula);
                // In a closed object, the pattern allows names even if it restricts nothing.
                let claim = match self.options.additional {
                    Additional::Closed => self.formulas.kept_leaf(leaf),
                    Additional::Standard => self.formulas.leaf(leaf),
                };
                self.claim(gathered, &["patternProperties", text], claim);
                gathered.evaluated.property(Properties::Matching(Arc::clone(&pattern)));
                except.patterns.push(pattern);
            }
        }
        if let Some(schema) = map.get("additionalProperties") {
            let formula = self.below(&["additionalProperties"], schema)?;
            if formula != Formula::TRUE || self.options.additional == Additional::Closed {
                let claim = self.formulas.leaf(Leaf::Others(except.into(), formula));
                self.claim(gathered, &["additionalProperties"], claim);
            }
            gathered.evaluated.property(Properties::All);
        }
        if let Some(schema) = self.keyword(map, "propertyNames") {
            let formula = self.below(&["propertyNames"], schema)?;
            let claim = self.formulas.leaf(Leaf::Names(formula));
            self.claim(gathered, &["propertyNames"], claim);
        }
        self.required(map, gathered)?;
        for (name, more) in [("minProperties", 0), ("maxProperties", 1)] {
            let Some(count) = self.count(map, name)? else { continue };
            let count = count.saturating_add(more);
            let mut claim = self.formulas.properties(count);
            self.origin(claim, &[name]);
            if more == 1 {
                // The claim concerns objects only, and so must its negation.
                claim = self.formulas.not(claim);
                let object = self.only(Types::OBJECT);
                let other = self.formulas.not(object);
                claim = self.formulas.or([other, claim]);
            }
            self.claim(gathered, &[name], claim);
        }
        self.dependent(map, gathered)
    }

    fn required(&mut self, map: &'a Members, gathered: &mut Gathered) -> Result<()> {
        let Some(required) = map.get("required") else { return Ok(()) };
        for name in self.names(&["required"], required)? {
            let claim = self.formulas.leaf(Leaf::Present(name));
            self.claim(gathered, &["required"], claim);
        }
        Ok(())
    }

    /// `dependentRequired`, `dependentSchemas`, and `dependencies`, which combines both in older
    /// drafts.
    fn dependent(&mut self, map: &'a Members, gathered: &mut Gathered) -> Result<()> {
        for keyword in ["dependentRequired", "dependentSchemas", "dependencies"] {
            if self.keyword(map, keyword).is_none() {
                continue;
            }
            for (name, what) in self.members(map, keyword)?.into_iter().flatten() {
                let there = self.formulas.leaf(Leaf::Present(name.as_str().into()));
                let there = {
                    // The dependency is about objects only.
                    let object = self.only(Types::OBJECT);
                    self.formulas.and([object, there])
                };
                let lacking = self.formulas.not(there);
                let of_names = match keyword {
                    "dependentRequired" => true,
                    "dependentSchemas" => false,
                    _ => matches!(what, Json::Array(_) | Json::String(_)),
                };
                let then = if of_names {
                    // Draft 3, and schemas in practice, write a list of one name as a string.
                    let list = match what {
                        Json::String(name) => vec![name.as_str().into()],
                        _ => self.names(&[keyword, name], what)?,
                    };
                    let names: Vec<_> =
                        list.into_iter().map(|name| self.formulas.leaf(Leaf::Present(name))).collect();
                    self.formulas.and(names)
                } else {
                    let read = self.beside(&[keyword, name], what)?;
                    gathered.evaluated.extend_if(read.evaluated, there, &mut self.formulas);
                    read.formula
                };
                let claim = self.formulas.or([lacking, then]);
                self.claim(gathered, &[keyword, name], claim);
            }
        }
        Ok(())
    }

    /// The members of a keyword with an object value.
    fn members(&self, map: &'a Members, name: &str) -> Result<Option<&'a Members>> {
        match map.get(name) {
            None => Ok(None),
            Some(Json::Object(members)) => Ok(Some(members)),
            Some(other) => Err(self.other_than(name, "an object", other)),
        }
    }

    fn names(&self, tokens: &[&str], value: &Json) -> Result<Vec<Arc<str>>> {
        let Json::Array(list) = value else {
            let advice = match (tokens, self.document.draft) {
                (["required"], Draft::D4) if value.as_bool().is_some() => "; a boolean belongs to draft 3",
                _ => "",
            };
            return Err(self.error_below(tokens, format!("it is a list of names{advice}")));
        };
        let name = |(i, value): (usize, &Json)| {
            let index = i.to_string();
            let location: Vec<&str> = tokens.iter().copied().chain([index.as_str()]).collect();
            value.as_str().map(Arc::from).ok_or_else(|| self.error_below(&location, "a name is a string"))
        };
        list.iter().enumerate().map(name).collect()
    }
}
