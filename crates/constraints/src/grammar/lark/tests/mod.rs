//! Every construct of the syntax: accepted texts and rejected grammars.
//!
//! The tests try all ways to cut a text, so they need no compiler. If a test depends on the
//! terminals of a text, it checks the form instead.

mod definitions;
mod expressions;
mod generic;
mod larks_own;

use burn_dfa_common::{ErrorKind, Limits, Result, limits::Meter};
use std::collections::BTreeSet;

use super::super::form::{Expression, Grammar, Lexing, Node, Terminal};
use super::read;

/// The possible ends of an expression in a text, from a start offset.
struct Matcher<'a> {
    grammar: &'a Grammar,
    text: &'a str,
}

impl Matcher<'_> {
    fn ends(&self, expression: &Expression, from: usize) -> BTreeSet<usize> {
        let rest = &self.text.as_bytes()[from..];
        match &expression.0 {
            Node::Literal(bytes) if rest.starts_with(bytes) => [from + bytes.len()].into(),
            Node::Literal(_) => BTreeSet::new(),
            Node::Class(ranges) => match self.text[from..].chars().next() {
                Some(c) if ranges.iter().any(|&(first, last)| (first..=last).contains(&c)) => {
                    [from + c.len_utf8()].into()
                }
                _ => BTreeSet::new(),
            },
            Node::Regex(regex) => {
                let limits = Limits::default();
                let dfa = regex.lower(&Meter::start(&limits)).unwrap();
                self.positions(from).filter(|&to| dfa.matches(&rest[..to - from])).collect()
            }
            Node::Rule(number) => self.ends(&self.grammar.rules[*number].body, from),
            Node::Sequence(parts) => {
                parts.iter().fold([from].into(), |at, part| self.all(&at, |from| self.ends(part, from)))
            }
            Node::Choice(parts) => parts.iter().flat_map(|part| self.ends(part, from)).collect(),
            Node::Repeat { inner, min, max } => self.times(inner, *min, *max, from),
            Node::And(parts) => {
                let ends = |part| self.ends(part, from);
                parts.iter().map(ends).reduce(|one, other| &one & &other).unwrap()
            }
            Node::Not(inner) => {
                let ends = self.ends(inner, from);
                self.positions(from).filter(|to| !ends.contains(to)).collect()
            }
            Node::Terminal(terminal) => {
                let ends = self.ends(&terminal.body, from);
                match &self.grammar.lexing {
                    Lexing::Longest { ignored: Some(ignored), once, .. } => {
                        let max = once.then_some(1);
                        self.all(&ends, |from| self.times(ignored, 0, max, from))
                    }
                    _ => ends,
                }
            }
            Node::Substring(pieces) => {
                let runs =
                    (0..pieces.len()).flat_map(|first| (first..=pieces.len()).map(move |last| (first, last)));
                let mut runs: Vec<String> = runs.map(|(first, last)| pieces[first..last].concat()).collect();
                runs.push(String::new());
                let found = runs.iter().filter(|run| self.text[from..].starts_with(run.as_str()));
                found.map(|run| from + run.len()).collect()
            }
            Node::Constraint(constraint) => {
                let dfa = constraint.to_byte_dfa(&Limits::default()).unwrap().unwrap();
                self.positions(from).filter(|&to| dfa.matches(&rest[..to - from])).collect()
            }
            Node::Grammar(grammar) => {
                let nested = Matcher { grammar, text: self.text };
                nested.ends(&grammar.rules[grammar.start].body, from)
            }
            Node::Counted(_) => panic!("texts are no tokens"),
            Node::Bounded(_) => panic!("no part of Lark"),
            Node::Token { .. } => panic!("a token has no text"),
        }
    }

    fn positions(&self, from: usize) -> impl Iterator<Item = usize> {
        (from..=self.text.len()).filter(|&to| self.text.is_char_boundary(to))
    }

    fn all(&self, at: &BTreeSet<usize>, ends: impl Fn(usize) -> BTreeSet<usize>) -> BTreeSet<usize> {
        at.iter().flat_map(|&from| ends(from)).collect()
    }

    fn times(&self, inner: &Expression, min: usize, max: Option<usize>, from: usize) -> BTreeSet<usize> {
        let (mut at, mut found) = (BTreeSet::from([from]), BTreeSet::new());
        for time in 0..=max.unwrap_or(min + self.text.len() + 1) {
            if time >= min {
                found.extend(&at);
            }
            at = self.all(&at, |from| self.ends(inner, from));
        }
        found
    }
}

fn matches(grammar: &Grammar, text: &str) -> bool {
    Matcher { grammar, text }.ends(&grammar.rules[grammar.start].body, 0).contains(&text.len())
}

/// Checks that a grammar is read, and checks the texts it accepts and rejects.
fn language(text: &str, accepted: &[&str], rejected: &[&str]) {
    let grammar = checked(text).unwrap();
    for accepted in accepted {
        assert!(matches(&grammar, accepted), "{text}\nrejects {accepted:?}");
    }
    for rejected in rejected {
        assert!(!matches(&grammar, rejected), "{text}\naccepts {rejected:?}");
    }
}

/// Reads a grammar, and runs the checks of its lowering.
fn checked(text: &str) -> Result<Grammar> {
    let grammar = read(text, None)?;
    let limits = Limits::default();
    grammar.check(&Meter::start(&limits))?;
    Ok(grammar)
}

/// Checks that a grammar is rejected at a line and a column, with words in the reason.
fn refused(text: &str, location: (usize, usize), words: &str) {
    let error = checked(text).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Grammar, "{error}");
    assert_eq!(error.location(), Some(location), "{text}\n{error}");
    assert!(error.to_string().contains(words), "{error}");
}

/// The body of the rule of a name.
fn body<'a>(grammar: &'a Grammar, name: &str) -> &'a Node {
    &grammar.rules.iter().find(|rule| rule.name == name).unwrap().body.0
}

fn terminal<'a>(grammar: &'a Grammar, name: &str) -> &'a Terminal {
    match body(grammar, name) {
        Node::Terminal(terminal) => terminal,
        other => panic!("{other:?}"),
    }
}
