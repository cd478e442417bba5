//! Grammars that are meant to take long, or much memory, or to overflow the stack.

use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::constraint::Syntax;
use crate::{Constraint, Limits};

/// Limits that a test can wait for.
fn limits() -> Limits {
    Limits::new().with_time(Duration::from_secs(2)).with_bytes(128 << 20)
}

/// Reads and compiles on a small stack. Whatever comes of it has to come soon.
fn attacked(name: &str, syntax: Syntax, text: String) -> String {
    let name = name.to_owned();
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let work = move || {
        let begun = Instant::now();
        let done = Constraint::grammar(syntax, &text).and_then(|grammar| grammar.to_automaton(&limits()));
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(30), "{name}: {took:?}");
        let said = match done {
            Ok(automaton) => format!("{} states", automaton.unwrap().state_count()),
            Err(error) => {
                assert!(
                    error.is_grammar() || error.is_limit() || error.is_unsatisfiable(),
                    "{name}: {error}"
                );
                error.to_string()
            }
        };
        eprintln!("{name}: {took:?}: {}", said.lines().next().unwrap_or_default());
        said
    };
    thread.spawn(work).unwrap().join().unwrap()
}

fn gbnf(name: &str, text: impl Into<String>) -> String {
    attacked(name, Syntax::Gbnf, text.into())
}

#[test]
fn what_reads_nothing_ends() {
    assert!(gbnf("itself", "root ::= root").contains("nothing satisfies"));
    assert!(gbnf("two", "root ::= a\na ::= root").contains("nothing satisfies"));
    assert!(gbnf("or nothing", "root ::= root | \"\"").contains("states"));
    gbnf("nullable loops", "root ::= (a* b*)* root?\na ::= b* \"\"\nb ::= (a? \"x\"?)+");
    gbnf("hidden", "root ::= n root \"x\" | \"y\"\nn ::= m*\nm ::= n | \"\" | \"z\"");
    gbnf("optional of optional", format!("root ::= {}\"a\"{}", "(".repeat(150), "?)*".repeat(150)));
}

#[test]
fn many_rules_are_within_the_limits() {
    let mut chain = String::from("root ::= r0\n");
    for rule in 0..100_000 {
        writeln!(chain, "r{rule} ::= \"a\" r{} | \"b\"", rule + 1).unwrap();
    }
    chain.push_str("r100000 ::= \"c\"\n");
    gbnf("100,000 rules in a chain", chain);
    let mut ring = String::from("root ::= r0\n");
    for rule in 0..2_000 {
        writeln!(
            ring,
            "r{rule} ::= r{} \"a\" | \"(\" r{} \")\" | \"b\"",
            (rule + 1) % 2_000,
            (rule * 7) % 2_000
        )
        .unwrap();
    }
    gbnf("2,000 rules in a ring", ring);
    let mut doubled = String::from("root ::= r0 r0\n");
    for rule in 0..200 {
        writeln!(doubled, "r{rule} ::= r{} \"x\" r{}", rule + 1, rule + 1).unwrap();
    }
    doubled.push_str("r200 ::= \"c\"\n");
    gbnf("doubled at each level", doubled);
}

#[test]
fn repetitions_and_long_texts_are_within_the_limits() {
    gbnf("a million", "root ::= \"a\"{0,1000000}");
    gbnf("a million of a million", "root ::= ((\"ab\"){0,1000000}){0,1000000}");
    gbnf("recursive", "root ::= (\"(\" root \")\"){0,1000000}");
    gbnf("10 MB of alternatives", {
        let mut text = String::from("root ::= \"a\"");
        while text.len() < 10 << 20 {
            write!(text, " | \"{}\"", text.len()).unwrap();
        }
        text
    });
    gbnf("10 MB of a literal", format!("root ::= \"{}\"", "a".repeat(10 << 20)));
}

#[test]
fn ambiguity_is_within_the_limits() {
    gbnf("exponential", "root ::= root root root | root root | \"a\" | \"\"");
    gbnf("exponential brackets", "root ::= root root | \"(\" root \")\" | \"(\" root \"]\" | \"\"");
    gbnf("subsets", format!("root ::= [ab]* \"a\" {}", "[ab] ".repeat(24)));
    gbnf("palindromes", "root ::= \"a\" root \"a\" | \"b\" root \"b\" | [ab]?");
    gbnf("leads", "root ::= \"(\" root \")\" | \"(\" root | \"x\"");
    let mut pairs = String::from("root ::= ");
    for pair in 0..64 {
        write!(pairs, "{}a{pair} \"{pair:02}\"", if pair == 0 { "" } else { " | " }).unwrap();
    }
    for pair in 0..64 {
        write!(pairs, "\na{pair} ::= \"(\" a{pair} \")\" | \"x\"").unwrap();
    }
    gbnf("sixty-four outcomes", pairs);
}

#[test]
fn terminals_are_within_the_limits() {
    let lark = |name: &str, text: &str| attacked(name, Syntax::Lark, text.to_owned());
    lark("complement", "start: A\nA: /[ab]*a[ab]{18}/ & ~/(a|b)*b[ab]{18}/");
    lark("many terminals", &{
        let words: Vec<String> = (0..2000).map(|word| format!("\"w{word}\"")).collect();
        format!("start: ({})*\n%ignore / +/", words.join(" | "))
    });
    lark("ignored nothing", "start: \"a\"*\n%ignore /x*/");
}
