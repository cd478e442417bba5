//! Reads the keywords of arrays.

use std::sync::Arc;

use super::evaluated::Items;
use super::{Gathered, Reader};
use crate::json_schema::draft::Draft;
use crate::json_schema::formula::{Formula, Leaf};
use crate::json_schema::json::{Json, Members};
use crate::json_schema::note::Treatment;
use crate::json_schema::types::Types;
use burn_dfa_common::Result;

impl<'a> Reader<'a> {
    pub(super) fn items(&mut self, map: &'a Members, gathered: &mut Gathered) -> Result<()> {
        let (first, rest) = self.keywords_for_items(map);
        if first == Some("items") && self.document.draft >= Draft::D2020 {
            let reason = "as `prefixItems`: drafts up to 2019-09 have such a list";
            self.note("items", Treatment::Read(reason.to_owned()));
        }
        if rest != Some("additionalItems") && map.contains_key("additionalItems") {
            let reason = "it restricts nothing unless `items` is a list of schemas";
            self.note("additionalItems", Treatment::Ignored(reason.to_owned()));
        }
        let mut count = 0;
        if let Some(name) = first {
            let Some(Json::Array(schemas)) = map.get(name) else {
                return Err(self.error_at(name, format!("`{name}` is a list of schemas")));
            };
            for (i, schema) in schemas.iter().enumerate() {
                let formula = self.below(&[name, &i.to_string()], schema)?;
                let claim = self.formulas.leaf(Leaf::Item(i as u64, formula));
                self.claim(gathered, &[name, &i.to_string()], claim);
            }
            count = schemas.len() as u64;
            gathered.evaluated.item(Items::First(count));
        }
        if let Some((name, schema)) = rest.and_then(|name| Some((name, map.get(name)?))) {
            let formula = self.below(&[name], schema)?;
            let claim = self.formulas.leaf(Leaf::Rest(count, formula));
            self.claim(gathered, &[name], claim);
            gathered.evaluated.item(Items::All);
        }
        self.contains(map, gathered)?;
        for (name, more) in [("minItems", 0), ("maxItems", 1)] {
            if let Some(count) = self.count(map, name)? {
                let claim = self.formulas.leaf(Leaf::Items(count.saturating_add(more)));
                let claim = if more == 1 { self.lacking(claim) } else { claim };
                self.claim(gathered, &[name], claim);
            }
        }
        match map.get("uniqueItems") {
            None | Some(Json::Boolean(false)) => Ok(()),
            Some(Json::Boolean(true)) => {
                let claim = self.formulas.leaf(Leaf::Unique { domain: Arc::new([]), met: Arc::new([]) });
                self.claim(gathered, &["uniqueItems"], claim);
                Ok(())
            }
            Some(other) => Err(self.other_than("uniqueItems", "a boolean", other)),
        }
    }

    /// The keywords for the first items and for the others.
    fn keywords_for_items(&self, map: &Members) -> (Option<&'static str>, Option<&'static str>) {
        let prefix = map.contains_key("prefixItems") && self.document.draft >= Draft::D2020;
        match map.get("items") {
            _ if prefix => (Some("prefixItems"), Some("items")),
            Some(Json::Array(_)) => (Some("items"), Some("additionalItems")),
            _ => (None, Some("items")),
        }
    }

    fn contains(&mut self, map: &'a Members, gathered: &mut Gathered) -> Result<()> {
        let Some(schema) = self.keyword(map, "contains") else { return Ok(()) };
        let formula = self.below(&["contains"], schema)?;
        let min = self.count(map, "minContains")?.unwrap_or(1);
        let claim = self.formulas.leaf(Leaf::Contains(formula, min));
        self.claim(gathered, &["contains"], claim);
        if let Some(max) = self.count(map, "maxContains")? {
            let claim = self.formulas.leaf(Leaf::Contains(formula, max.saturating_add(1)));
            let claim = self.lacking(claim);
            self.claim(gathered, &["maxContains"], claim);
        }
        if self.document.draft >= Draft::D2020 {
            gathered.evaluated.item(Items::Satisfying(formula));
        }
        Ok(())
    }

    /// The negation of `claim` for arrays; true of other values.
    fn lacking(&mut self, claim: Formula) -> Formula {
        let array = self.only(Types::ARRAY);
        let other = self.formulas.not(array);
        let claim = self.formulas.not(claim);
        self.formulas.or([other, claim])
    }
}
