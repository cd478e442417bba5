//! The JSON Schema compiler: from a schema to an automaton of the texts of its values.
//!
//! ```text
//! Value ──read──▶ Formula ──plan──▶ Plan ──emit──▶ SparseDfa, or Pushdown with calls
//!        keywords   Boolean   values by    bytes
//!                   algebra   their parts
//! ```
//!
//! 1. [`read`] reads the schema once. Keywords become the leaves of a Boolean formula
//!    ([`formula`]). A keyword that cannot be honored is rejected with its JSON pointer.
//! 2. [`plan`] makes plans of the formula. A plan is a deterministic automaton over the parts of a
//!    value: properties, items and scalars. Its states are *residues*, the formulas that remain
//!    after some parts, so `allOf`, `oneOf`, `not`, `if` and `unevaluatedProperties` need no
//!    special cases. Positions with the same formula share a plan.
//! 3. [`emit`] copies the plans into one automaton over bytes, each copy before the states that
//!    follow it. Some plans are emitted once and [called](calls): recursive plans, large plans with
//!    several uses, and blocks of the characters of long strings and of the items of long arrays.
//!    The result is deterministic by construction, so the automaton of the whole schema is never
//!    determinized.
//!
//! The styles of structural tags have another emitter: it follows the plans of a [`planned`]
//! schema.
//!
//! # The language
//! The words are the texts of exactly the values that satisfy the schema. [`JsonOptions`] choose
//! the white space, the escapes in strings, the spelling of integers and the order of properties.
//! By default, strings have only the escapes that JSON requires, integers are plain digits, and
//! properties have the order of all schemas that apply to the object, one after the other; then
//! undeclared required properties, then others. The language is smaller than the schema in five
//! cases:
//! - recursion and any JSON are expanded as deep as the stack, or to a [`depth`] if they are
//!   copied: see [`calls`];
//! - counts of properties, and negated claims on their values, may depend on whether undeclared
//!   names are distinct, which an automaton cannot detect;
//! - some formats are bounded, as [`Treatment::Bounded`](super::Treatment::Bounded) describes for
//!   each;
//! - an exponent has at most two digits, and if the schema restricts the value of the number, the
//!   exponent follows one digit before the point: see [`number`];
//! - some objects are omitted if the schema leaves many sets of alternatives open, such as a union
//!   whose tag comes last.
//!
//! Names outside `properties` may occur twice in the text of an object; readers take the last one.
//!
//! References that leave the document and patterns that are not regular are rejected. `uniqueItems`
//! over too many values is rejected unless [`JsonOptions::unenforceable`] ignores it.

mod calls;
mod conflict;
mod depth;
mod document;
mod draft;
pub(super) mod ecma;
mod emit;
mod facts;
mod format;
mod formula;
mod json;
mod keywords;
mod note;
mod number;
mod options;
mod plan;
mod planned;
mod read;
mod string;
mod text;
mod types;
mod uri;
mod write;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use self::calls::Followed;
pub use self::depth::Unrolled;
pub(super) use self::emit::Selection;
pub(super) use self::facts::Values;
use self::formula::{Formula, Formulas, Leaf};
pub(crate) use self::json::{Json, Malformed};
pub use self::note::{Note, Treatment};
use self::number::Notation;
pub use self::options::{
    Additional, Escapes, Formats, JsonOptions, Numbers, Order, Separators, Unenforceable, Unknown, Whitespace,
};
pub(super) use self::plan::{Array, Object, ObjectState, Others, PlanId, Step};
use self::plan::{Planner, Preferred};
pub(super) use self::planned::Planned;
use self::read::Clock;
pub(super) use self::read::MAX_SPACES;
pub(super) use self::types::Types;
use burn_dfa_automata::{ByteDfa, FastMap, SparseDfa};
use burn_dfa_common::{Result, limits::Meter};

/// Deepest nesting of schemas, references followed, and of the values in `enum` and `const`.
const MAX_DEPTH: usize = 128;

/// Greatest [height](Formulas::height) of the formula of a schema. Referenced schemas that were
/// read earlier add to the height without nesting in the text.
const MAX_HEIGHT: u32 = 8 * MAX_DEPTH as u32;

/// Deepest nesting of arrays and objects, for expanded recursion and any JSON: the emitter is
/// recursive.
const MAX_NESTING: usize = 500;

/// A parsed schema, as a formula.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    formulas: Formulas,
    root: Formula,
    /// The formulas of recursive schemas, by the numbers in [`Leaf::Later`].
    later: Vec<Formula>,
    /// For each claim the JSON pointer to its first occurrence.
    origins: FastMap<Formula, String>,
    notes: Vec<Note>,
    /// Pointers of the recursive schemas.
    recursive: Vec<String>,
    options: JsonOptions,
    /// How integers are written: by their digits, or as other numbers.
    integers: Notation,
    /// The language of strings and names, without quotes; `None` if unrestricted.
    free: Option<Arc<ByteDfa>>,
    /// Whether properties come in any order.
    is_unordered: bool,
    /// Whether arrays and objects may be written in another syntax than JSON.
    is_styled: bool,
    /// Whether the reader did not match names against patterns, because matching takes automata.
    is_provisional: bool,
}

/// Deepest nesting of a value written by a schema, because the writer is recursive.
pub(crate) const MAX_WRITTEN: usize = 512;

/// Parses a schema.
///
/// # Errors
/// A schema error with the JSON pointer of the part that is malformed or cannot be honored.
pub(crate) fn parse(schema: &Json, options: &JsonOptions) -> Result<Schema> {
    read::read(schema, options, Clock::start())
}

/// The text of a string in JSON.
pub(crate) fn quoted(string: &str) -> Vec<u8> {
    text::quoted(string, &JsonOptions::default())
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
    /// The schema with names matched against its patterns. `given` and `options` are the inputs of
    /// the original [`parse`].
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(crate) fn settled(
        &self,
        given: &Json,
        options: &JsonOptions,
        meter: &Meter,
    ) -> Result<Cow<'_, Self>> {
        match self.is_provisional {
            true => read::read(given, options, Clock::Of(meter)).map(Cow::Owned),
            false => Ok(Cow::Borrowed(self)),
        }
    }

    /// JSON pointer of a formula: for one claim the keyword of its first occurrence, for several
    /// claims the innermost schema around all of them. Type claims are ignored, because many
    /// positions share them.
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

    /// The automaton of the texts of the schema's values, and the depth of the expansion.
    ///
    /// # Errors
    /// No value satisfies the schema (the error names the conflict), or a limit is exceeded.
    pub(crate) fn lower(&self, meter: &Meter) -> Result<(SparseDfa, Unrolled)> {
        self.lower_part(meter).map_err(|error| error.at(String::new))
    }

    fn lower_part(&self, meter: &Meter) -> Result<(SparseDfa, Unrolled)> {
        let mut planner = Planner::new(self, meter);
        let (root, unrolled) = self.plan(&mut planner)?;
        let rows = if planner.get(root).is_empty() { None } else { emit::emit(&planner, root)? };
        match rows {
            Some(rows) => Ok((rows, unrolled)),
            None => Err(self.unsatisfiable(&mut planner)),
        }
    }

    /// The texts of `values` under the schema, and whether each is a word of the schema's language,
    /// given a deep enough stack.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(crate) fn write(&self, values: &[Json], meter: &Meter) -> Result<Vec<(Vec<u8>, bool)>> {
        let (planner, followed) = self.followed(Preferred::default(), meter)?;
        Ok(values.iter().map(|value| write::write(&planner, followed.root(), value)).collect())
    }

    /// Remarks on keywords that are bounded or ignored. If the schema cannot be planned, which its
    /// compilation reports, these are the remarks of parsing alone.
    pub(crate) fn explain(&self, meter: &Meter) -> Vec<Note> {
        let followed = self.followed(Preferred::default(), meter);
        let (remarks, unrolled, is_called) = match followed {
            Ok((planner, followed)) => {
                let is_called = matches!(followed, Followed::Called(_));
                (planner.remarks, Some(followed.unrolled()), is_called)
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
        let JsonOptions { additional, max_string, max_digits, .. } = self.options;
        if let Some(max) = max_string {
            let max = counted(max as usize, "character");
            bounded(
                "",
                format!("strings that the schema does not bound have at most {max}, as the options say"),
            );
        }
        if let Some(max) = max_digits {
            let max = counted(max, "digit");
            bounded(
                "",
                format!("numbers have at most {max} on either side of the point, as the options say"),
            );
        }
        if additional == Additional::Closed {
            bounded(
                "",
                "objects that declare properties have no others where the schema is silent, as the options say"
                    .to_owned(),
            );
        }
        notes.extend(remarks.notes());
        notes
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
