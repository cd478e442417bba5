//! Attributes that change the language of a rule: `lazy`, `max_chars` and `max_tokens`.
//!
//! The first two are set operations on the language of the rule, which are exact if it is regular.
//! Compilation checks regularity, see [`Bounded`]; a rule that refers to itself is rejected at
//! once, because the attribute could mean any of its texts.
//!
//! - `lazy`: the texts without a proper prefix that is also a text of the rule;
//! - `max_tokens`: the result of the other attributes, limited to a number of tokens;
//! - `max_chars`: the texts up to a number of characters. (XGrammar also cuts longer texts short,
//!   which is not offered.)

use std::collections::HashMap;
use std::sync::Arc;

use super::{Attributes, Restricted};
use crate::grammar::cursor::Cursor;
use crate::grammar::form::{Bounded, Expression, Grammar, Node};
use burn_dfa_automata::FastMap;
use burn_dfa_common::Result;

/// Most expressions visited for all rules with such attributes.
const MAX_SIZE: usize = 1 << 22;

/// Applies the attributes of rules to their bodies.
///
/// # Errors
/// A rule with such attributes refers to itself, contains tokens, or is too large.
pub(super) fn restrict<'t>(
    grammar: &mut Grammar,
    mut cursor: Cursor<'t>,
    rules: &[Restricted<'t>],
) -> Result<()> {
    if rules.is_empty() {
        return Ok(());
    }
    let numbers = grammar.rule_names().enumerate().map(|(number, name)| (name, number));
    let numbers: HashMap<&str, usize> = numbers.collect();
    let restricted: Vec<usize> = rules.iter().map(|rule| numbers[rule.name]).collect();
    let attributes: FastMap<usize, Attributes> =
        restricted.iter().copied().zip(rules.iter().map(|rule| rule.attributes)).collect();
    let mut size = 0;
    for (&number, rule) in restricted.iter().zip(rules).filter(|(_, rule)| rule.attributes.bounds()) {
        check(number, grammar, &attributes, &mut size).map_err(|reason| {
            cursor.rule = Some(rule.name);
            let name = if rule.attributes.lazy { "lazy" } else { "max_chars" };
            cursor.error(rule.offset, format!("`{name}`: the rule {reason}"))
        })?;
    }
    for (number, rule) in restricted.into_iter().zip(rules) {
        let Attributes { lazy, max_chars, max_tokens } = rule.attributes;
        let mut body = grammar.rules[number].body.clone();
        if rule.attributes.bounds() {
            let name = rule.name.to_owned();
            body = Expression(Node::Bounded(Arc::new(Bounded { name, body, lazy, max_chars })));
        }
        grammar.rules[number].body = match max_tokens {
            Some(max_tokens) => body.counted(rule.name.to_owned(), max_tokens),
            None => body,
        };
    }
    Ok(())
}

impl Attributes {
    /// Whether the attributes remove texts.
    fn bounds(&self) -> bool {
        self.lazy || self.max_chars.is_some()
    }
}

/// Checks a rule and the rules it refers to for constructs incompatible with its attributes.
fn check(
    number: usize,
    grammar: &Grammar,
    attributes: &FastMap<usize, Attributes>,
    size: &mut usize,
) -> std::result::Result<(), &'static str> {
    let mut reached = vec![false; grammar.rules.len()];
    *size += reached.len();
    let mut rest = vec![&grammar.rules[number].body];
    while let Some(expression) = rest.pop() {
        *size += 1;
        if *size > MAX_SIZE {
            return Err("is too large for the attribute; leave it out");
        }
        match &expression.0 {
            Node::Rule(rule) if *rule == number => {
                return Err(
                    "refers to itself, and the attribute is for others; give what is recursive a rule of its own",
                );
            }
            Node::Rule(rule) if attributes.get(rule).is_some_and(|of| of.max_tokens.is_some()) => {
                return Err("refers to one with `max_tokens`, which is for others; leave one of the two out");
            }
            Node::Rule(rule) if !std::mem::replace(&mut reached[*rule], true) => {
                rest.push(&grammar.rules[*rule].body);
            }
            Node::Sequence(parts) | Node::Choice(parts) => rest.extend(parts),
            Node::Repeat { inner, .. } => rest.push(inner),
            Node::Token { .. } | Node::Constraint(_) => {
                return Err("contains tokens, and the attribute is for texts only; leave it out");
            }
            _ => {}
        }
    }
    Ok(())
}
