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
//! - recursion and any JSON, which are followed to a depth: as far as is cheap by the states that the plan predicts,
//!   see `Schema::plan` and [`Unrolled`];
//! - counts of properties that depend on the names of undeclared ones being distinct;
//! - the formats that [`Treatment::Bounded`](super::Treatment::Bounded) names;
//! - numbers with an exponent, wherever a schema tells numbers apart.
//!
//! Refused are `uniqueItems` over values that are not listed, references that leave the document or are dynamic,
//! and patterns beyond regular languages.

mod arrange;
mod conflict;
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

use serde_json::Value;

use self::formula::{Formula, Formulas};
pub use self::note::{Note, Treatment};
pub use self::options::{Additional, Escapes, Formats, JsonOptions, Numbers, Order, Unknown, Whitespace};
use self::plan::{PlanId, Planner};
use crate::automaton::{FastMap, RowDfa};
use crate::error::Result;
use crate::limits::Meter;

/// Deepest nesting of schemas, references followed, and of the values in `enum` and `const`.
const MAX_DEPTH: usize = 128;

/// How often recursion is followed at most, where the options leave it open.
const MOST_RECURSION: usize = 8;

/// Predicted states up to which recursion is followed once more.
const CHEAP_RECURSION: u64 = 30_000;

/// Levels of any JSON at least and at most, where the options leave it open.
const LEAST_ANY: usize = 3;
const MOST_ANY: usize = 10;

/// Predicted states up to which any JSON goes a level deeper: those of about a millisecond.
const CHEAP_ANY: u64 = 5_000;

/// Schemas that are larger at the least depth may become so many times larger, up to these states.
const GROWTH: u64 = 6;
const MOST_STATES: u64 = 60_000;

/// A prediction is above the limit for certain where it is so many times as large: pieces that are shared are counted
/// at each place.
const CERTAIN: u64 = 8;

/// How deep a schema was followed where it has no end: see [`JsonOptions::recursion`] and
/// [`JsonOptions::any_depth`].
///
/// ```
/// use burn_dfa::{Constraint, Limits, TokenId, TokenTable, Vocabulary};
/// use serde_json::json;
///
/// let bytes = (b' '..=b'~').map(|byte| Some([byte])).chain([None]);
/// let vocabulary = Vocabulary::from_bytes(bytes)?.with_eos([TokenId(95)])?;
/// let list = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": false});
/// let table = TokenTable::compile(&Constraint::json_schema(list)?, &vocabulary, &Limits::default())?;
/// let unrolled = table.unrolled().unwrap();
/// assert_eq!((unrolled.recursion, unrolled.any), (Some(8), None));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unrolled {
    /// How often recursive references were followed; `None` where there are none.
    pub recursion: Option<usize>,
    /// Levels of any JSON where the schema asks for that; `None` where it does not.
    pub any: Option<usize>,
    /// Levels of any JSON in properties beside others that the schema names; `None` where there are none.
    pub unnamed: Option<usize>,
}

/// A schema that was read and whose keywords are all honoured.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    formulas: Formulas,
    root: Formula,
    /// The schemas that were put off, by number.
    later: Vec<Formula>,
    /// Where claims were met first.
    origins: FastMap<Formula, String>,
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
    /// The automaton of the members' texts, and how deep it goes.
    ///
    /// # Errors
    /// Where nothing satisfies the schema, naming the conflict; where a limit is breached.
    pub(crate) fn lower(&self, meter: &Meter) -> Result<(RowDfa, Unrolled)> {
        let mut planner = Planner::new(self, meter);
        let (root, unrolled) = self.plan(&mut planner)?;
        let rows = if planner.get(root).is_empty() { None } else { lay::lay(&planner, root)? };
        match rows {
            Some(rows) => Ok((rows, unrolled)),
            None => Err(self.unsatisfiable(&mut planner)),
        }
    }

    /// The text of `value` under the schema, and whether it is a member.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(crate) fn arrange(&self, value: &Value, meter: &Meter) -> Result<(Vec<u8>, bool)> {
        let mut planner = Planner::new(self, meter);
        let (root, _) = self.plan(&mut planner)?;
        Ok(arrange::arrange(&planner, root, value))
    }

    /// Plans the schema, as deep as the options say or as is cheap.
    fn plan(&self, planner: &mut Planner) -> Result<(PlanId, Unrolled)> {
        let fixed = self.options.any_depth;
        let (mut asked, mut unnamed) = (fixed.unwrap_or(LEAST_ANY), fixed.unwrap_or(LEAST_ANY));
        let mut recursion = self.options.recursion.unwrap_or(1);
        let mut root = planner.root(recursion)?;
        if self.options.recursion.is_none() && !self.later.is_empty() {
            // Deeper plans are made of shallower ones.
            for more in 2..=MOST_RECURSION {
                let deeper = planner.root(more)?;
                let states = planner.states(planner.size(deeper), asked, unnamed);
                if states > CHEAP_RECURSION && !planner.get(root).is_empty() {
                    break;
                }
                (root, recursion) = (deeper, more);
            }
        }
        let size = planner.size(root);
        if fixed.is_none() {
            let least = planner.states(size, asked, unnamed);
            let most =
                if least <= CHEAP_ANY { CHEAP_ANY } else { least.saturating_mul(GROWTH).min(MOST_STATES) };
            while asked < MOST_ANY && planner.states(size, asked + 1, unnamed) <= most {
                asked += 1;
            }
            while unnamed < asked && planner.states(size, asked, unnamed + 1) <= most {
                unnamed += 1;
            }
        }
        // No need to build what certainly is too large.
        let states = planner.states(size, asked, unnamed) / CERTAIN;
        planner.meter().states(usize::try_from(states).unwrap_or(usize::MAX))?;
        let [any, of_unnamed] = planner.set_any(asked, unnamed)?;
        let recursion = (!self.later.is_empty()).then_some(recursion);
        let unrolled =
            Unrolled { recursion, any: any.then_some(asked), unnamed: of_unnamed.then_some(unnamed) };
        Ok((root, unrolled))
    }

    /// Remarks on keywords that are not honoured to the letter.
    pub(crate) fn notes(&self) -> &[Note] {
        &self.notes
    }
}
