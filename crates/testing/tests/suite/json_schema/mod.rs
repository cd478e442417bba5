//! JSON schemas: accepted texts, refusals with their locations, and results on real schemas.

mod corpus;
mod drafts;
mod exact;
mod formats;
mod hostile;
mod limits;
mod names;
mod numbers;
mod options;
mod oracle;
mod patterns;
mod peers;
mod pydantic;
mod random;
mod refused;
mod requests;
mod suite;
mod unique;
mod words;

use burn_dfa_tokens::{
    ByteDfa, Constraint, ErrorKind, Limits, Result,
    automaton::ByteAutomaton,
    constraint::{JsonOptions, Whitespace},
};
use serde_json::Value;

/// Options for texts as serde_json writes them.
fn compact() -> JsonOptions {
    JsonOptions::new().with_whitespace(Whitespace::Compact)
}

/// The automaton of the compact texts of a supported schema.
fn compile(schema: &Value) -> ByteAutomaton {
    compile_with(schema, &compact())
}

fn compile_with(schema: &Value, options: &JsonOptions) -> ByteAutomaton {
    let constraint = Constraint::json_schema_with(schema.clone(), options);
    let constraint = constraint.unwrap_or_else(|error| panic!("{schema}: {error}"));
    constraint
        .to_automaton(&Limits::default())
        .unwrap_or_else(|error| panic!("{schema}: {error}"))
        .expect("text")
}

/// A supported schema, and its automaton if it has members.
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
            Err(error) if error.kind() == ErrorKind::Unsatisfiable => None,
            Err(error) => return Err(error),
        };
        Ok(Self { constraint, automaton, limits: limits.clone() })
    }

    /// The automaton without a stack, for drawing members.
    fn finite(&self) -> Option<ByteDfa> {
        match self.automaton.as_ref()? {
            ByteAutomaton::Finite(dfa) => Some(dfa.clone()),
            ByteAutomaton::Pushdown(_) => self.constraint.to_byte_dfa(&self.limits).ok().flatten(),
        }
    }

    /// The text of a value, and whether the automaton accepts it. `json_text` must give the same
    /// verdict.
    fn judge(&self, value: &Value) -> (String, bool) {
        self.judge_all([value]).remove(0)
    }

    /// The same for several values, with one plan of the schema.
    fn judge_all<'v>(&self, values: impl IntoIterator<Item = &'v Value>) -> Vec<(String, bool)> {
        let values: Vec<&Value> = values.into_iter().collect();
        if values.is_empty() {
            return Vec::new();
        }
        let texts = self.constraint.json_texts(values.iter().copied(), &self.limits);
        let texts = texts.unwrap_or_else(|error| panic!("{values:?}: {error}")).expect("a schema");
        let judged = texts.into_iter().map(|(text, member)| {
            let accepted =
                self.automaton.as_ref().is_some_and(|automaton| automaton.matches(text.as_bytes()));
            assert_eq!(member, accepted, "the verdict of the plan and of the automaton on {text}");
            (text, accepted)
        });
        judged.collect()
    }
}
