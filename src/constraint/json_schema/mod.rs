//! JSON schemas as automata.
//!
//! A schema is read once into typed nodes, where all that cannot be honoured is refused with its JSON
//! pointer, and lowered later, under limits, to the automaton of its members' texts. Nothing is widened and,
//! with one exception, nothing narrowed: an object whose `additionalProperties` is silent is closed.
//!
//! # Texts
//! One text per member, nearly: no white space; properties in the order of `properties`, optional ones left
//! out or not; strings with the escapes that JSON demands and no other (see `string`); integers without
//! fraction, exponent or `-0`; other numbers in any spelling, with at most two digits of exponent; the values of `enum` and `const` in their compact form, members in
//! the order given.
//!
//! # Keywords
//! - honoured: `type`, `enum`, `const`, `anyOf`, `properties`, `required`, `additionalProperties: false`,
//!   `items`, `minItems`, `maxItems`, `minLength`, `maxLength`, `pattern` (ECMA-262, searched for), and `$ref` to
//!   a place in the same schema that does not lead back to itself;
//! - ignored: annotations such as `description`, names that begin with `x-` or `_`, and keywords for types
//!   that the schema leaves out (`minLength` beside `type: integer`);
//! - refused: every other keyword, known or not; any JSON (`true`, `{}`, no `type`, an array without `items`, an
//!   object without `properties`); lists of `items`; siblings of `$ref`; `anyOf` beside keywords for objects and
//!   arrays.
//!
//! Beside `enum` and `const` the honoured keywords pick the values, with the standard's own reading of what
//! they leave open. Beside `anyOf`, `type` narrows every branch, and keywords for strings are intersected.
//!
//! ```
//! use burn_dfa::{Constraint, Limits};
//! use serde_json::json;
//!
//! let schema = json!({
//!     "type": "object",
//!     "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer"}},
//!     "required": ["name"],
//!     "additionalProperties": false
//! });
//! let dfa = Constraint::json_schema(schema)?.to_byte_dfa(&Limits::default())?.unwrap();
//! assert!(dfa.matches(br#"{"name":"Ada","age":36}"#));
//! assert!(!dfa.matches(br#"{"age":36,"name":"Ada"}"#));
//!
//! let error = Constraint::json_schema(json!({"type": "integer", "minimum": 1})).unwrap_err();
//! assert_eq!(error.pointer(), Some("/minimum"));
//! # Ok::<(), burn_dfa::Error>(())
//! ```

mod admit;
mod ecma;
#[allow(dead_code)]
mod format;
mod keywords;
mod lower;
mod node;
#[allow(dead_code)]
mod number;
mod read;
mod reference;
mod shapes;
mod string;
mod value;

use serde_json::Value;

use self::node::{NodeId, Nodes};
use crate::automaton::ByteDfa;
use crate::error::Result;
use crate::limits::Meter;

/// Deepest nesting of schemas, references followed, and of the values in `enum` and `const`.
const MAX_DEPTH: usize = 128;

/// A schema that was read and whose keywords are all honoured.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    nodes: Nodes,
    root: NodeId,
}

/// Reads a schema.
///
/// # Errors
/// A schema error with the JSON pointer of what is malformed or cannot be honoured.
pub(crate) fn parse(schema: &Value) -> Result<Schema> {
    let (nodes, root) = read::read(schema)?;
    Ok(Schema { nodes, root })
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
        lower::lower(&self.nodes, self.root, meter).map(std::sync::Arc::unwrap_or_clone)
    }
}
