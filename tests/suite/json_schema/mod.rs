//! JSON schemas: which texts they accept, what is refused and where, and how they do on real ones.

mod corpus;
mod drafts;
mod exact;
mod formats;
mod hostile;
mod limits;
mod names;
mod options;
mod oracle;
mod patterns;
mod peers;
mod random;
mod refused;
mod requests;
mod suite;
mod words;

use burn_dfa::automaton::ByteAutomaton;
use burn_dfa::constraint::JsonOptions;
use burn_dfa::{ByteDfa, Constraint, Limits, Result};
use serde_json::Value;

/// The automaton of a schema that is honoured.
fn compile(schema: &Value) -> ByteAutomaton {
    compile_with(schema, &JsonOptions::default())
}

fn compile_with(schema: &Value, options: &JsonOptions) -> ByteAutomaton {
    let constraint = Constraint::json_schema_with(schema.clone(), options);
    let constraint = constraint.unwrap_or_else(|error| panic!("{schema}: {error}"));
    constraint
        .to_automaton(&Limits::default())
        .unwrap_or_else(|error| panic!("{schema}: {error}"))
        .expect("text")
}

/// A schema that is honoured, and its automaton, if it has members.
struct Judge {
    constraint: Constraint,
    automaton: Option<ByteAutomaton>,
    limits: Limits,
}

impl Judge {
    fn new(schema: &Value, options: &JsonOptions, limits: &Limits) -> Result<Self> {
        let constraint = Constraint::json_schema_with(schema.clone(), options)?;
        let automaton = match constraint.to_automaton(limits) {
            Ok(automaton) => automaton,
            Err(error) if error.is_unsatisfiable() => None,
            Err(error) => return Err(error),
        };
        Ok(Self { constraint, automaton, limits: limits.clone() })
    }

    /// The automaton without a stack, from which members are drawn.
    fn finite(&self) -> Option<ByteDfa> {
        match self.automaton.as_ref()? {
            ByteAutomaton::Finite(dfa) => Some(dfa.clone()),
            ByteAutomaton::Pushdown(_) => self.constraint.to_byte_dfa(&self.limits).ok().flatten(),
        }
    }

    /// The text of a value, and whether the automaton has it, which `json_text` must have known.
    fn judge(&self, value: &Value) -> (String, bool) {
        let text = self.constraint.json_text(value, &self.limits);
        let (text, member) = text.unwrap_or_else(|error| panic!("{value}: {error}")).expect("a schema");
        let accepted = self.automaton.as_ref().is_some_and(|automaton| automaton.matches(text.as_bytes()));
        assert_eq!(member, accepted, "the verdict of the plan and of the automaton on {text}");
        (text, accepted)
    }
}
