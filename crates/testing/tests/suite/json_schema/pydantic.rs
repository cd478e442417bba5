//! Pydantic classes: each compiles with a server's options, and generated texts are values of the
//! class.

use std::io::Write;
use std::path::Path;

use burn_dfa_tokens::{
    CompiledConstraint, Constraint, Limits,
    constraint::{JsonOptions, Unenforceable},
};
use serde_json::{Value, json};

use burn_dfa_testing::{data, input, python};

const CLASSES: usize = 37;
const SAMPLES: usize = 20;

#[test]
fn generated_texts_are_values_of_their_class() {
    let modules = "email_validator, pydantic";
    let Some(mut python) = python::with(modules) else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/json_schema/pydantic_classes.py");
    let schemas = python.arg(&script).arg("schemas").output().unwrap();
    assert!(schemas.status.success(), "{}", String::from_utf8_lossy(&schemas.stderr));
    let vocabulary = data::tiny().vocabulary();
    let options = JsonOptions { unenforceable: Unenforceable::Ignore, ..JsonOptions::default() };
    let (mut lines, mut classes) = (Vec::new(), 0);
    for line in String::from_utf8(schemas.stdout).unwrap().lines() {
        let [name, schema] = serde_json::from_str::<[Value; 2]>(line).unwrap();
        let compiled = Constraint::json_schema_with(schema, &options)
            .and_then(|constraint| CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default()));
        let compiled = compiled.unwrap_or_else(|error| panic!("{name}: {error}"));
        classes += 1;
        let least = compiled.tokens_to_end(compiled.start());
        let budgets = [least, least + 20, least + 100, least + 400];
        for (seed, budget) in budgets.into_iter().enumerate() {
            for tokens in compiled.samples(&vocabulary, seed as u64, budget).take(SAMPLES / budgets.len()) {
                let text = vocabulary.decode(&tokens);
                let text = String::from_utf8(text).unwrap();
                writeln!(lines, "{}", json!([name, text])).unwrap();
            }
        }
    }
    assert_eq!(classes, CLASSES);
    let mut python = python::with(modules).unwrap();
    let output = input::fed(python.arg(&script).arg("validate"), lines);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.trim(), format!("{} texts of {CLASSES} classes", CLASSES * SAMPLES));
}
