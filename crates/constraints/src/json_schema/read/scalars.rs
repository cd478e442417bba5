//! Reads the keywords of numbers and strings.

use std::sync::Arc;

use super::{Gathered, Reader};
use crate::json_schema::draft::Draft;
use crate::json_schema::ecma::Pattern;
use crate::json_schema::format::{Exactness, Format};
use crate::json_schema::formula::Leaf;
use crate::json_schema::json::{Json, Members};
use crate::json_schema::note::Treatment;
use crate::json_schema::number::Decimal;
use crate::json_schema::options::{Formats, Unknown};
use crate::json_schema::types::Types;
use burn_dfa_common::Result;

impl<'a> Reader<'a> {
    pub(super) fn numbers(&mut self, map: &'a Members, gathered: &mut Gathered) -> Result<()> {
        for (name, exclusive_name, at_least) in
            [("minimum", "exclusiveMinimum", true), ("maximum", "exclusiveMaximum", false)]
        {
            // In draft 4 the exclusive keyword is a boolean next to the bound.
            let flag = map.get(exclusive_name).and_then(Json::as_bool);
            if flag.is_some() && self.document.draft > Draft::D4 && self.document.named {
                return Err(self.error_at(
                    exclusive_name,
                    format!("a boolean `{exclusive_name}` belongs to draft 4; it is a number"),
                ));
            }
            if flag.is_some() && self.document.draft > Draft::D4 {
                let reason = "as draft 4 has it, a boolean beside the bound, since `$schema` names no draft";
                self.note(exclusive_name, Treatment::Read(reason.to_owned()));
            }
            if flag == Some(true) && !map.contains_key(name) {
                let reason = format!("a boolean restricts nothing without `{name}`");
                self.note(exclusive_name, Treatment::Ignored(reason));
            }
            let mut bounds = Vec::new();
            if let Some(value) = map.get(name) {
                bounds.push((name, value, flag == Some(true)));
            }
            if let Some(value) = map.get(exclusive_name).filter(|value| value.as_bool().is_none()) {
                bounds.push((exclusive_name, value, true));
            }
            for (name, value, exclusive) in bounds {
                let Json::Number(number) = value else {
                    return Err(self.other_than(name, "a number", value));
                };
                let bound = number.clone();
                let leaf = if at_least {
                    Leaf::AtLeast { bound, exclusive }
                } else {
                    Leaf::AtMost { bound, exclusive }
                };
                let claim = self.formulas.leaf(leaf);
                self.claim(gathered, &[name], claim);
            }
        }
        match map.get("multipleOf") {
            None => Ok(()),
            Some(Json::Number(step)) if step.is_positive() => {
                let claim = self.formulas.leaf(Leaf::MultipleOf(step.clone()));
                self.claim(gathered, &["multipleOf"], claim);
                Ok(())
            }
            Some(other) => Err(self.other_than("multipleOf", "a number above zero", other)),
        }
    }

    pub(super) fn strings(&mut self, map: &'a Members, gathered: &mut Gathered) -> Result<()> {
        let min = self.count(map, "minLength")?.unwrap_or(0);
        let max = self.count(map, "maxLength")?;
        let claim = self.formulas.leaf(Leaf::Length { min, max });
        let name = if min > 0 { "minLength" } else { "maxLength" };
        self.claim(gathered, &[name], claim);
        if let Some(pattern) = map.get("pattern") {
            let Json::String(text) = pattern else {
                return Err(self.other_than("pattern", "a string", pattern));
            };
            // Lengths are counted separately from the pattern, to avoid the product of their
            // automata.
            let (length, pattern) = self.parsed("pattern", text)?.without_length();
            if let Some((min, max)) = length {
                let claim = self.formulas.leaf(Leaf::Length { min, max });
                self.claim(gathered, &["pattern"], claim);
            }
            let claim = self.formulas.leaf(Leaf::Pattern(pattern.into()));
            self.claim(gathered, &["pattern"], claim);
        }
        self.format(map, gathered)
    }

    fn format(&mut self, map: &'a Members, gathered: &mut Gathered) -> Result<()> {
        let Some(format) = map.get("format") else { return Ok(()) };
        let Json::String(name) = format else {
            return Err(self.other_than("format", "a string", format));
        };
        if self.options.formats == Formats::Annotate {
            self.note("format", Treatment::Ignored("the options take formats for annotations".into()));
            return Ok(());
        }
        let Some(format) = Format::named(name) else {
            if self.options.unknown == Unknown::Refuse {
                return Err(self.error_at("format", format!("{name:?} is no format that is known")));
            }
            self.note("format", Treatment::Ignored(format!("{name:?} is no format that is known")));
            return Ok(());
        };
        if let Some((low, high)) = format.range() {
            let low = self.formulas.leaf(Leaf::AtLeast { bound: Decimal::from(low), exclusive: false });
            let high = self.formulas.leaf(Leaf::AtMost { bound: Decimal::from(high), exclusive: false });
            self.claim(gathered, &["format"], low);
            self.claim(gathered, &["format"], high);
            return Ok(());
        }
        match format.is_exact() {
            Exactness::Annotation => {
                self.note("format", Treatment::Annotation(format!("{name:?} describes values")));
                return Ok(());
            }
            Exactness::Bounded => {
                let reason = format!(
                    "strings are written that surely are valid as {name:?}, or surely are not where it is negated"
                );
                self.note("format", Treatment::Bounded(reason));
            }
            Exactness::Exact => {}
        }
        let claim = self.formulas.leaf(Leaf::Format(format));
        self.claim(gathered, &["format"], claim);
        Ok(())
    }

    /// The pattern `text` of the keyword `name`.
    pub(super) fn pattern(&self, name: &str, text: &str) -> Result<Arc<Pattern>> {
        self.parsed(name, text).map(Arc::new)
    }

    fn parsed(&self, name: &str, text: &str) -> Result<Pattern> {
        Pattern::parse(text).map_err(|refusal| {
            self.error_at(name, format!("the pattern, at byte {}: {}", refusal.offset, refusal.reason))
        })
    }

    /// The claim that the value has one of the given types.
    pub(super) fn only(&mut self, types: Types) -> crate::json_schema::formula::Formula {
        self.formulas.leaf(Leaf::Types(types))
    }
}
