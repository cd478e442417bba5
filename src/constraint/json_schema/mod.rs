//! JSON schemas as automata, exactly.
//!
//! ```text
//! Value ──read──▶ Formula ──plan──▶ Plan ──lay──▶ ByteDfa
//!        keywords   Boolean   values by    bytes
//!                   algebra   their parts
//! ```
//!
//! A schema is read once: keywords become the leaves of a Boolean formula ([`formula`]), and what cannot be honoured is
//! refused with its JSON pointer. A [`plan`] is a deterministic automaton over properties, items and scalars; its
//! states are residues of formulas, so `allOf`, `oneOf`, `not`, `if` and `unevaluatedProperties` need no case of
//! their own. Plans are shared by all places of one demand, and [`lay`] copies them, in front of what
//! follows, into one automaton over bytes. Nothing as large as the whole is ever determinised.
//!
//! # The language
//! Exactly the values that satisfy the schema, each in the texts that [`JsonOptions`] leave it: one order of
//! properties (of all schemas that meet at an object, as they are met; then required ones that no one
//! declares; then others), white space by policy, strings with the escapes that JSON demands and no other,
//! integers by their digits. Smaller than the schema are
//! - recursion and any JSON, which are followed to a depth;
//! - counts of properties that depend on the names of undeclared ones being distinct;
//! - the formats that [`Treatment::Bounded`](super::Treatment::Bounded) names;
//! - numbers with an exponent, wherever a schema tells numbers apart.
//!
//! Refused are `uniqueItems` over values that are not listed, references that leave the document or are dynamic,
//! and patterns beyond regular languages.

mod arrange;
mod document;
mod ecma;
mod format;
mod formula;
mod keywords;
mod lay;
mod note;
mod number;
mod options;
mod plan;
mod read;
mod string;
mod text;
mod types;
mod value;

use std::collections::HashMap;

use serde_json::Value;

use self::formula::{Formula, Formulas};
pub use self::note::{Note, Treatment};
pub use self::options::{Additional, Escapes, Formats, JsonOptions, Numbers, Order, Unknown, Whitespace};
use self::plan::{PlanId, Planner};
use crate::automaton::ByteDfa;
use crate::error::{Error, Result};
use crate::limits::Meter;

/// Deepest nesting of schemas, references followed, and of the values in `enum` and `const`.
const MAX_DEPTH: usize = 128;

/// How often recursion is followed at most, where the options leave it open.
const MOST_RECURSION: usize = 8;

/// States up to which recursion is followed once more.
const CHEAP_RECURSION: u64 = 30_000;

/// Levels of any JSON at least and at most, where the options leave it open.
const LEAST_ANY: usize = 3;
const MOST_ANY: usize = 8;

/// States up to which any JSON goes a level deeper.
const CHEAP_ANY: u64 = 2_000;

/// A schema that was read and whose keywords are all honoured.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    formulas: Formulas,
    root: Formula,
    /// The schemas that were put off, by number.
    later: Vec<Formula>,
    /// Where claims that may be refused in the end were met.
    origins: HashMap<Formula, String>,
    notes: Vec<Note>,
    options: JsonOptions,
}

/// Reads a schema.
///
/// # Errors
/// A schema error with the JSON pointer of what is malformed or cannot be honoured.
pub(crate) fn parse(schema: &Value, options: &JsonOptions) -> Result<Schema> {
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
    /// The automaton of the members' texts.
    ///
    /// # Errors
    /// Where nothing satisfies the schema, naming the conflict; where a limit is breached.
    pub(crate) fn lower(&self, meter: &Meter) -> Result<ByteDfa> {
        let mut planner = Planner::new(self, meter);
        let root = self.plan(&mut planner)?;
        let dfa = if planner.get(root).is_empty() { None } else { Some(lay::lay(&planner, root)?) };
        match dfa {
            Some(dfa) if !dfa.is_empty() => Ok(dfa),
            _ => Err(self.unsatisfiable(&planner)),
        }
    }

    /// The text of `value` under the schema, and whether it is a member.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(crate) fn arrange(&self, value: &Value, meter: &Meter) -> Result<(Vec<u8>, bool)> {
        let mut planner = Planner::new(self, meter);
        let root = self.plan(&mut planner)?;
        Ok(arrange::arrange(&planner, root, value))
    }

    /// Plans the schema, as deep as the options say or as is cheap.
    fn plan(&self, planner: &mut Planner) -> Result<PlanId> {
        let fixed = self.options.any_depth;
        let (mut asked, mut unnamed) = (fixed.unwrap_or(LEAST_ANY), fixed.unwrap_or(LEAST_ANY));
        let mut root = planner.root(self.options.recursion.unwrap_or(1))?;
        if self.options.recursion.is_none() && !self.later.is_empty() {
            // Deeper plans are made of shallower ones.
            for recursion in 2..=MOST_RECURSION {
                let deeper = planner.root(recursion)?;
                let size = planner.size(deeper).with_any(asked, unnamed);
                if size > CHEAP_RECURSION && !planner.get(root).is_empty() {
                    break;
                }
                root = deeper;
            }
        }
        if fixed.is_none() {
            let size = planner.size(root);
            while asked < MOST_ANY && size.with_any(asked + 1, unnamed) <= CHEAP_ANY {
                asked += 1;
            }
            while unnamed < asked && size.with_any(asked, unnamed + 1) <= CHEAP_ANY {
                unnamed += 1;
            }
        }
        planner.set_any(asked, unnamed)?;
        Ok(root)
    }

    /// Remarks on keywords that are not honoured to the letter.
    pub(crate) fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn unsatisfiable(&self, planner: &Planner) -> Error {
        if planner.counted {
            let origin = self.origins.values().find(|pointer| pointer.ends_with("Properties"));
            return Error::schema(
                origin.cloned().unwrap_or_default(),
                "the count depends on names outside `properties` being distinct, which no finite automaton remembers; list the names under `properties`",
            );
        }
        let cut = if planner.cut { ", within the depth that the options set" } else { "" };
        Error::unsatisfiable(format!("no JSON value satisfies the schema{cut}"))
    }
}
