//! The JSON Schema compiler: from a schema to an automaton of the texts of its values.
//!
//! ```text
//! Value ──read──▶ Formula ──plan──▶ Plan ──emit──▶ RowDfa, or Pushdown with calls
//!        keywords   Boolean   values by    bytes
//!                   algebra   their parts
//! ```
//!
//! 1. [`read`] reads the schema once. Keywords become the leaves of a Boolean formula ([`formula`]). A keyword that cannot
//!    be honoured is refused with its JSON pointer.
//! 2. [`plan`] makes plans of the formula. A plan is a deterministic automaton over the parts of a value: properties,
//!    items and scalars. Its states are *residues*, the formulas that remain after some parts, so `allOf`, `oneOf`, `not`,
//!    `if` and `unevaluatedProperties` need no cases of their own. Places with the same formula share a plan.
//! 3. [`emit`] copies the plans into one automaton over bytes, each copy in front of the states that follow it, or writes them
//!    once and [calls](calls) them: plans that depend on themselves, large ones that stand in several places, and blocks of
//!    the characters of long strings and of the items of long arrays. The result is deterministic as it is built, so the
//!    automaton of the whole schema is never determinised.
//!
//! # The language
//! The words are the texts of exactly the values that satisfy the schema, written as [`JsonOptions`] say: with properties
//! in one order (that of all schemas which apply to the object, in the order in which they are met; then required
//! properties that none of them declares; then others), with white space as chosen, with only the escapes in strings that
//! JSON requires, and with integers as plain digits. The language is smaller than the schema in four cases:
//! - recursion and any JSON are followed as deep as the stack goes, or to a [`depth`] where they are copied: [`calls`] says when;
//! - counts of properties, and negated claims on their values, may depend on whether undeclared names are distinct, which
//!   an automaton cannot tell;
//! - some formats are bounded, as [`Treatment::Bounded`](super::Treatment::Bounded) says of each;
//! - numbers have no exponent where the schema restricts their value.
//!
//! Refused are `uniqueItems` over values that are not listed, references that leave the document,
//! and patterns that are not regular.

mod calls;
mod conflict;
mod depth;
mod document;
mod draft;
pub(super) mod ecma;
mod emit;
mod format;
mod formula;
mod json;
mod keywords;
mod note;
mod number;
mod options;
mod part;
mod plan;
mod property_order;
mod read;
mod string;
mod text;
mod types;
mod uri;

use std::sync::Arc;

use serde_json::Value;

pub(crate) use self::calls::Texts;
use self::calls::{Followed, Preferred};
pub use self::depth::Unrolled;
use self::formula::{Formula, Formulas, Leaf};
pub(crate) use self::json::{Json, Malformed};
pub use self::note::{Note, Treatment};
pub use self::options::{
    Additional, Escapes, Formats, JsonOptions, Numbers, Order, Separators, Unknown, Whitespace,
};
pub(super) use self::part::{Part, quoted};
use self::plan::Planner;
pub(super) use self::read::MAX_SPACES;
pub(super) use self::types::Types;
use crate::automaton::{ByteDfa, FastMap, RowDfa};
use crate::error::Result;
use crate::limits::Meter;

/// Deepest nesting of schemas, references followed, and of the values in `enum` and `const`.
const MAX_DEPTH: usize = 128;

/// Greatest [height](Formulas::height) of the formula of a schema. Schemas that were read before the one around them add
/// to it, though they do not nest.
const MAX_HEIGHT: u32 = 8 * MAX_DEPTH as u32;

/// Deepest nesting of arrays and objects, as far as recursion and any JSON are followed: they are emitted by recursion.
const MAX_NESTING: usize = 500;

/// A schema that was read, as a formula.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    formulas: Formulas,
    root: Formula,
    /// The formulas of recursive schemas, which [`Leaf::Later`] names by number.
    later: Vec<Formula>,
    /// For each claim the JSON pointer to where it was met first.
    origins: FastMap<Formula, String>,
    notes: Vec<Note>,
    /// Pointers of the schemas that lead back to themselves.
    recursive: Vec<String>,
    options: JsonOptions,
    /// What strings and names are words of, without quotes; `None` where they may be any.
    free: Option<Arc<ByteDfa>>,
}

/// Deepest nesting of a value that is written by a schema, since the writer recurses.
pub(crate) const MAX_WRITTEN: usize = 512;

/// Reads a schema.
///
/// # Errors
/// A schema error with the JSON pointer of what is malformed or cannot be honoured.
pub(crate) fn parse(schema: &Json, options: &JsonOptions) -> Result<Schema> {
    read::read(schema, options)
}

/// Drops a value without recursion, however deep it is nested.
pub(crate) fn discard(value: Value) {
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        match value {
            Value::Array(items) => rest.extend(items),
            Value::Object(members) => rest.extend(members.into_iter().map(|(_, member)| member)),
            _ => {}
        }
    }
}

impl Schema {
    /// JSON pointer of a formula: for one claim the keyword where it was met first, for several claims the innermost
    /// schema around all of them. Claims of types are left out, since many places share them.
    fn origin(&self, formulas: &Formulas, claim: Formula) -> String {
        let claims = formulas.conjuncts(claim);
        let is_type = |claim: &&Formula| matches!(formulas.as_leaf(**claim), Some(Leaf::Types(_)));
        let only_types = claims.iter().all(|claim| is_type(&claim));
        let telling = claims.iter().filter(|claim| only_types || !is_type(claim));
        let mut origins = telling.filter_map(|claim| self.origins.get(claim));
        let Some(first) = origins.next() else {
            return self.origins.get(&claim).cloned().unwrap_or_default();
        };
        let mut common = first.as_str();
        for origin in origins {
            while !(origin.starts_with(common)
                && matches!(origin.as_bytes().get(common.len()), None | Some(b'/')))
            {
                common = common.rfind('/').map_or("", |end| &common[..end]);
            }
        }
        common.to_owned()
    }

    /// The automaton of the texts of the schema's values, and the depth to which the schema was followed.
    ///
    /// # Errors
    /// Where nothing satisfies the schema, naming the conflict; where a limit is breached.
    pub(crate) fn lower(&self, meter: &Meter) -> Result<(RowDfa, Unrolled)> {
        self.lower_part(meter).map_err(|error| error.at(String::new))
    }

    fn lower_part(&self, meter: &Meter) -> Result<(RowDfa, Unrolled)> {
        let mut planner = Planner::new(self, meter);
        let (root, unrolled) = self.plan(&mut planner)?;
        let rows = if planner.get(root).is_empty() { None } else { emit::emit(&planner, root)? };
        match rows {
            Some(rows) => Ok((rows, unrolled)),
            None => Err(self.unsatisfiable(&mut planner)),
        }
    }

    /// The text of `value` under the schema, and whether it is a word of the schema's language, where the stack is deep
    /// enough.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(crate) fn write(&self, value: &Json, meter: &Meter) -> Result<(Vec<u8>, bool)> {
        let (planner, followed) = self.followed(Preferred::default(), meter)?;
        Ok(property_order::write(&planner, followed.root(), value))
    }

    /// Remarks on keywords that are bounded or ignored. If the schema cannot be planned, which its compilation reports,
    /// these are the remarks of reading alone.
    pub(crate) fn explain(&self, meter: &Meter) -> Vec<Note> {
        let followed = self.followed(Preferred::default(), meter);
        let (lost, unrolled, is_called) = match followed {
            Ok((planner, followed)) => {
                let is_called = matches!(followed, Followed::Called(_));
                (planner.lost, Some(followed.unrolled()), is_called)
            }
            Err(_) => Default::default(),
        };
        let mut notes = self.notes.clone();
        let mut bounded = |pointer: &str, reason: String| {
            notes.push(Note { pointer: pointer.to_owned(), treatment: Treatment::Bounded(reason) });
        };
        for pointer in self.recursive.iter().filter(|_| !is_called) {
            bounded(
                pointer,
                match unrolled.and_then(|unrolled| unrolled.recursion) {
                    Some(times) => format!("recursion is followed {}", counted(times, "time")),
                    None => "recursion is followed to a depth".to_owned(),
                },
            );
        }
        for (pointer, lost) in &lost {
            bounded(pointer, lost.note().to_owned());
        }
        let Unrolled { any, unnamed, .. } = unrolled.unwrap_or_default();
        if let Some(levels) = any {
            bounded("", format!("any JSON is followed {} deep", counted(levels, "level")));
        }
        if let Some(levels) = unnamed {
            let levels = counted(levels, "level");
            bounded(
                "",
                format!("any JSON in properties that the schema does not name is followed {levels} deep"),
            );
        }
        notes
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
