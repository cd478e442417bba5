//! Small schemas with accepted and rejected texts.

mod scalars;
mod structures;

use serde_json::Value;

use super::compile;

/// Asserts that `schema` accepts and rejects these texts.
fn case(schema: Value, accepted: &[&str], rejected: &[&str]) {
    let dfa = compile(&schema);
    for text in accepted {
        assert!(dfa.matches(text.as_bytes()), "{schema} rejects {text}");
    }
    for text in rejected {
        assert!(!dfa.matches(text.as_bytes()), "{schema} accepts {text}");
    }
}
