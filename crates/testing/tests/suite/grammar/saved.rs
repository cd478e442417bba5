//! Compiled constraints of grammars in files.

use burn_dfa_tokens::{CompiledConstraint, Constraint, Limits, Origin, constraint::Syntax};

use burn_dfa_testing::words::vocabulary_of;

#[test]
fn constraints_of_grammars_are_read_as_they_were_saved() {
    let (vocabulary, limits) = (vocabulary_of(&["((", "))", "[[", "]]", "),", "a1", "b"]), Limits::default());
    let grammars = [
        r#"root ::= "(" root* ")" | "a""#,
        // Two frames are open before either is certain.
        r#"root ::= "[[" [ab]* "]]" | c "," root | c
           c ::= "[" c* "]" | "()""#,
        r#"root ::= a "1" | b "+"
           a ::= "(" a ")" | "a"
           b ::= "(" b ")" | "b""#,
        r#"root ::= ("a" | "b")+ "1""#,
    ];
    for text in grammars {
        let constraint = Constraint::grammar(Syntax::Gbnf, text).unwrap();
        let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &limits).unwrap();
        let origin = Origin::new(&constraint, &limits);
        let file = compiled.to_bytes(&origin).unwrap();
        let read = CompiledConstraint::from_bytes(&file, &vocabulary, &limits)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(read.to_bytes(&origin).unwrap(), file, "{text}");
        let definition = constraint.definition().unwrap();
        let again = Constraint::from_request_str(&definition).unwrap().unwrap();
        assert_eq!(again.definition(), Some(definition));
    }
}
