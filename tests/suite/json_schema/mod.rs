//! JSON schemas: what their members are, what is refused and where, and how they do on real ones.

mod corpus;
mod hostile;
mod instances;
mod members;
mod oracle;
mod patterns;
mod refused;
mod requests;
mod suite;

use burn_dfa::{ByteDfa, Constraint, Limits};
use serde_json::Value;

/// The automaton of a schema that is honoured.
fn compile(schema: &Value) -> ByteDfa {
    let constraint =
        Constraint::json_schema(schema.clone()).unwrap_or_else(|error| panic!("{schema}: {error}"));
    constraint
        .to_byte_dfa(&Limits::default())
        .unwrap_or_else(|error| panic!("{schema}: {error}"))
        .expect("text")
}
