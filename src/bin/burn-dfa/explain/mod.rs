//! `burn-dfa explain`: shows the exact, bounded, ignored or refused keywords of a JSON schema, and
//! how a grammar is compiled.

mod grammar;
mod keywords;

use burn_dfa::ErrorKind;
use std::process::ExitCode;

use burn_dfa::Error;
use burn_dfa::automaton::ByteAutomaton;
use burn_dfa::cli::{LimitArgs, message};
use burn_dfa::constraint::Treatment;
use clap::Args;
use serde_json::{Value, json};

use crate::args::ConstraintArgs;
use crate::output::{FOUND, Output, Result};

/// Show the exact, bounded, ignored or refused keywords of a JSON schema, and the called rules and
/// parts of a grammar.
///
/// An exact keyword allows precisely the values that satisfy it, each with its properties in one
/// order and in one spelling. A bounded keyword allows fewer values than the schema, never more; an
/// ignored keyword has no effect. A keyword may be read as in another draft; a name that may be
/// repeated may occur twice in an object. A schema with an unsupported keyword is refused, with its
/// location and a way to fix it. A grammar or a structural tag is compiled exactly or refused,
/// except for the notes on its schemas. Its rules are copied into each other; a rule that is
/// recursive in the middle is called, with a stack. Exit codes: 0, the constraint can be compiled;
/// 1, it is refused; 2, wrong usage, such as a file that is not JSON.
#[derive(Args)]
#[command(after_help = "Examples:
  burn-dfa explain --schema person.json
  burn-dfa explain --grammar c.gbnf --syntax gbnf
  burn-dfa explain --schema person.json --json | jq -r 'select(.treatment == \"ignored\").pointer'")]
pub struct Explain {
    #[command(flatten)]
    constraint: ConstraintArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl Explain {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        let (schema, constraint) = self.constraint.read_with_schema()?;
        let constraint = match constraint {
            Ok(constraint) => constraint,
            Err(error) => return self.refused(out, &error),
        };
        let limits = self.limits.limits();
        let notes = constraint.explain(&limits);
        // Only the automaton reveals contradictions between parts of the schema.
        let automaton = constraint.to_automaton(&limits);
        let frames = automaton.as_ref().ok().and_then(Option::as_ref).map_or(0, ByteAutomaton::frames);
        let conflict = automaton.err();
        let is_honored =
            |treatment: &Treatment| matches!(treatment, Treatment::Read(_) | Treatment::Repeated(_));
        let inexact = notes.iter().filter(|note| !is_honored(&note.treatment));
        let pointers = inexact.map(|note| &*note.pointer);
        let pointers: Vec<&str> = pointers.chain(conflict.as_ref().and_then(Error::pointer)).collect();
        let exact = schema.as_ref().map(|schema| keywords::count(schema, &pointers));
        if out.json {
            let exact: Option<serde_json::Map<String, Value>> =
                exact.map(|exact| exact.into_iter().map(|(name, count)| (name, count.into())).collect());
            writeln!(out.to, "{}", json!({"pointer": null, "treatment": "exact", "keywords": exact}))?;
        } else {
            let good = out.styles.good;
            let all = match notes.is_empty() && conflict.is_none() {
                true if frames > 0 => ", all of it as deep as the stack",
                true => ", all of it",
                false => "",
            };
            let exact = schema.zip(exact).map(|(schema, exact)| format!(": {}", listed(&schema, exact)));
            let exact = exact.unwrap_or_default();
            writeln!(out.to, "{good}exact{good:#}{all}{exact}")?;
        }
        for note in &notes {
            let (treatment, reason) = (note.treatment.name(), note.treatment.reason());
            if out.json {
                let line = json!({"pointer": note.pointer, "treatment": treatment, "reason": reason});
                writeln!(out.to, "{line}")?;
            } else {
                let (strong, location) = (out.styles.strong, location(&note.pointer));
                writeln!(out.to, "{strong}{treatment}{strong:#} {location}: {reason}")?;
            }
        }
        if let (Some(grammar), None) = (constraint.as_grammar(), &conflict) {
            grammar::print(out, &grammar.report(&limits)?)?;
        }
        if frames > 0 {
            if out.json {
                writeln!(out.to, "{}", json!({"pointer": null, "treatment": "stack", "frames": frames}))?;
            } else {
                let strong = out.styles.strong;
                let deep = match constraint.as_grammar() {
                    Some(_) => "calls nest as deep",
                    None => "arrays and objects nest about as deep",
                };
                writeln!(out.to, "{strong}stack{strong:#} of {frames} frames: {deep}")?;
            }
        }
        conflict.map_or(Ok(ExitCode::SUCCESS), |error| self.refused(out, &error))
    }

    /// Prints why a constraint is refused; a contradictory schema is refused too, because it allows
    /// no value.
    fn refused(&self, out: &mut Output, error: &Error) -> Result<ExitCode> {
        if out.json {
            let line = json!({
                "pointer": error.pointer(), "treatment": "refused", "reason": message(error),
                "unsatisfiable": error.kind() == ErrorKind::Unsatisfiable, "line": error.location().map(|(line, _)| line),
                "column": error.location().map(|(_, column)| column),
            });
            writeln!(out.to, "{line}")?;
        } else {
            let bad = out.styles.bad;
            let file =
                self.constraint.grammar().map(|path| format!("{}: ", path.display())).unwrap_or_default();
            writeln!(out.to, "{bad}refused{bad:#} {file}{}", message(error))?;
        }
        Ok(ExitCode::from(FOUND))
    }
}

/// The exact keywords of a schema, in words.
fn listed(schema: &Value, exact: Vec<(String, usize)>) -> String {
    let name = |(name, count)| if count == 1 { name } else { format!("{name} ({count})") };
    match schema {
        Value::Bool(false) => "`false`, which no value fits".to_owned(),
        Value::Bool(true) => "`true`, which every value fits".to_owned(),
        _ if exact.is_empty() => "no keyword".to_owned(),
        _ => exact.into_iter().map(name).collect::<Vec<_>>().join(", "),
    }
}

fn location(pointer: &str) -> &str {
    if pointer.is_empty() { "the root" } else { pointer }
}
