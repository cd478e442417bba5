//! Notes on the schemas within a grammar.

use std::collections::HashSet;
use std::hash::RandomState;
use std::sync::Arc;

use indexmap::IndexSet;

use super::form::{Expression, Grammar, Node};
use crate::Note;
use burn_dfa_common::limits::Meter;

impl Grammar {
    /// The notes on all schemas, without duplicates, with the rule of the schema. Pointers are into
    /// the schema.
    pub(crate) fn notes(&self, meter: &Meter) -> Vec<Note> {
        let mut notes: IndexSet<Note, RandomState> = IndexSet::default();
        for rule in &self.rules {
            // The addresses of visited shared parts.
            let mut met: HashSet<usize> = HashSet::new();
            let mut rest: Vec<&Expression> = vec![&rule.body];
            while let Some(expression) = rest.pop() {
                let found = match &expression.0 {
                    Node::Sequence(parts) | Node::Choice(parts) => {
                        rest.extend(parts);
                        continue;
                    }
                    Node::Repeat { inner, .. } => {
                        rest.extend(met.insert(Arc::as_ptr(inner) as usize).then_some(&**inner));
                        continue;
                    }
                    Node::Counted(counted) => {
                        rest.extend(met.insert(Arc::as_ptr(counted) as usize).then_some(&counted.body));
                        continue;
                    }
                    Node::Bounded(bounded) => {
                        rest.extend(met.insert(Arc::as_ptr(bounded) as usize).then_some(&bounded.body));
                        continue;
                    }
                    Node::Constraint(inner) if met.insert(Arc::as_ptr(inner) as usize) => inner.notes(meter),
                    Node::Grammar(inner) if met.insert(Arc::as_ptr(inner) as usize) => inner.notes(meter),
                    _ => continue,
                };
                notes.extend(found.into_iter().map(|note| within(&rule.name, note)));
            }
        }
        notes.into_iter().collect()
    }
}

/// The note of a schema in a rule.
fn within(rule: &str, mut note: Note) -> Note {
    let reason = note.treatment.reason_mut();
    *reason = format!("in the rule `{rule}`: {reason}");
    note
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Limits;
    use crate::{Constraint, SchemaFormat, StructuralTag, Style, Syntax};

    fn notes(constraint: crate::Result<Constraint>) -> Vec<String> {
        constraint.unwrap().explain(&Limits::default()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn schemas_within_grammars_are_explained() {
        let bounded = "bounded: in the rule";
        let lark = notes(Constraint::grammar(
            Syntax::Lark,
            "start: \"a\" b\nb: %json {\"type\": \"string\", \"format\": \"hostname\"}",
        ));
        assert!(lark.len() == 1 && lark[0].starts_with(&format!("/format: {bounded} `b`")), "{lark:?}");
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "format": "hostname"}}});
        for style in [Style::Json, Style::QwenXml] {
            let tag = StructuralTag::new(SchemaFormat::new(schema.clone()).with_style(style));
            let said = notes(Constraint::structural_tag(&tag));
            assert!(
                said.iter().any(|note| note.starts_with(&format!("/properties/a/format: {bounded}"))),
                "{said:?}"
            );
        }
        assert!(notes(Constraint::grammar(Syntax::Gbnf, "root ::= \"a\" root?")).is_empty());
    }
}
