//! The names of properties that a schema does not declare.

use std::sync::Arc;

use super::markup::Kinds;
use super::schema::Spot;
use super::value::Writer;
use crate::automaton::{ByteDfa, Expr, Op};
use crate::constraint::json_schema::{Part, Types, quoted};
use crate::constraint::{Constraint, Expression, Regex};
use crate::error::Result;
use crate::limits::{Limits, Meter};

/// The names of XML, where nothing is said of them, and where a pattern or a schema tells.
const USUAL: &str = "[a-zA-Z_][a-zA-Z0-9_]*";
const ALLOWED: &str = "[^\\x00- \"&<>=\\x7f]+";
const ESCAPED: &str = "([^\\x00\"&<>]|&amp;|&lt;|&gt;|&quot;)+";

impl<'s> Writer<'_, 's> {
    /// All names that properties may have, of which nothing was said so far.
    pub(super) fn names(&mut self, spot: &Spot<'s>, json: bool) -> Result<ByteDfa> {
        let limits = Limits::default();
        let meter = &Meter::start(&limits);
        let told = spot.get("propertyNames");
        let patterns = spot.get("patternProperties").is_some();
        if json {
            let any = Spot { json: &super::value::TRUE, at: spot.at.clone() };
            let names = told.unwrap_or(any);
            self.spend(&names)?;
            let place = (self.root, names.at.as_str(), names.json);
            return Part::read(place, Types::STRING, self.free.clone(), self.options)?.lower(meter);
        }
        let universe = match self.markup.kinds {
            Kinds::Nested => ESCAPED,
            _ if told.is_some() || patterns => ALLOWED,
            _ => USUAL,
        };
        let mut names = pattern(universe, meter)?;
        if let Some(free) = &self.free {
            names = names.product(free, Op::Intersection, meter)?;
        }
        if let Some(told) = told {
            self.spend(&told)?;
            let plain = Arc::new(pattern("[^]*", meter)?);
            let told = Part::plain((self.root, &told.at, told.json), plain, self.options)?.lower(meter)?;
            names = names.product(&told, Op::Intersection, meter)?;
        }
        Ok(names)
    }

    /// The names that a pattern matches somewhere.
    pub(super) fn matched(&self, spot: &Spot<'s>, text: &str) -> Result<ByteDfa> {
        let limits = Limits::default();
        let searched = Regex::ecma(&format!("[^]*(?:{text})[^]*"), false);
        let regex = searched.map_err(|(_, reason)| spot.error(reason))?;
        regex.lower(&Meter::start(&limits))
    }

    /// A name as it is written.
    pub(super) fn written(&self, name: &str, json: bool) -> Vec<u8> {
        if json { quoted(name) } else { self.markup.name(name).into_bytes() }
    }
}

/// `names` without some.
pub(super) fn without(names: &ByteDfa, some: &ByteDfa) -> Result<ByteDfa> {
    let limits = Limits::default();
    names.product(some, Op::Difference, &Meter::start(&limits))
}

/// What both are.
pub(super) fn both(names: &ByteDfa, others: &ByteDfa) -> Result<ByteDfa> {
    let limits = Limits::default();
    names.product(others, Op::Intersection, &Meter::start(&limits))
}

/// These names.
pub(super) fn listed(names: Vec<Vec<u8>>) -> Result<ByteDfa> {
    let limits = Limits::default();
    Expr::Literals(names).determinize(&Meter::start(&limits))
}

pub(super) fn expression(names: ByteDfa) -> Expression {
    Expression::constraint(Constraint::dfa(names))
}

fn pattern(pattern: &str, meter: &Meter) -> Result<ByteDfa> {
    let wrong = |(at, reason)| crate::error::Error::pattern(at, reason);
    Regex::ecma(pattern, false).map_err(wrong)?.lower(meter)
}
