//! Attributes that change the language of a rule: `lazy`, `max_chars` and `max_tokens`.
//!
//! The first two are set operations on the rule's language, which are exact where it is regular. So the rules that it refers to are
//! put in their place; a rule that refers to itself is refused.
//!
//! - `lazy`: the texts of which no beginning is a text of the rule too;
//! - `max_tokens`: whatever the rule is then, of at most so many tokens;
//! - `max_chars`: the texts of at most so many characters. (XGrammar also cuts longer ones there, which is not offered.)

use super::dispatch::{and, not};
use super::{Attributes, Restricted};
use crate::automaton::FastMap;
use crate::constraint::grammar::cursor::Cursor;
use crate::constraint::grammar::form::{Expression, Grammar, Node, Rule};
use crate::constraint::grammar::literal::any;
use crate::error::Result;

/// Most expressions that the rules with such attributes are made of, those of other rules included.
const MAX_SIZE: usize = 1 << 18;

/// Deepest nesting of expressions, through rules.
const MAX_DEPTH: usize = 1000;

/// Applies the attributes of rules to their bodies.
///
/// # Errors
/// Where a rule with such attributes refers to itself, contains tokens or other constraints, or is too large.
pub(super) fn restrict<'t>(
    grammar: &mut Grammar,
    mut cursor: Cursor<'t>,
    rules: &[Restricted<'t>],
) -> Result<()> {
    if rules.is_empty() {
        return Ok(());
    }
    let numbers = grammar.rule_names().enumerate().map(|(number, name)| (name, number));
    let numbers: FastMap<&str, usize> = numbers.collect();
    let restricted: Vec<usize> = rules.iter().map(|rule| numbers[rule.name]).collect();
    let attributes = restricted.iter().copied().zip(rules.iter().map(|rule| rule.attributes)).collect();
    let mut inliner = Inliner { rules: &grammar.rules, attributes: &attributes, open: Vec::new(), size: 0 };
    let mut bodies = Vec::new();
    for (&number, rule) in restricted.iter().zip(rules) {
        if !rule.attributes.lazy && rule.attributes.max_chars.is_none() {
            bodies.push(grammar.rules[number].body.clone());
            continue;
        }
        let body = inliner.rule(number, 0).map_err(|refusal| {
            cursor.rule = Some(rule.name);
            let name = if rule.attributes.lazy { "lazy" } else { "max_chars" };
            let reason = match refusal {
                Refusal::Recursion => "refers to itself, and the attribute is for others; write it with `*`",
                Refusal::Counted => {
                    "refers to one with `max_tokens`, which is for others; leave one of the two out"
                }
                Refusal::Tokens => "contains tokens, and the attribute is for texts only; leave it out",
                Refusal::Size => "is too large for the attribute; leave it out",
            };
            cursor.error(rule.offset, format!("`{name}`: the rule {reason}"))
        })?;
        bodies.push(body);
    }
    for ((number, body), rule) in restricted.into_iter().zip(bodies).zip(rules) {
        let most = rule.attributes.max_tokens;
        grammar.rules[number].body = match most {
            Some(most) => body.counted(rule.name.to_owned(), most),
            None => body,
        };
    }
    Ok(())
}

/// Why a rule cannot be written without others.
enum Refusal {
    Recursion,
    Counted,
    Tokens,
    Size,
}

struct Inliner<'g> {
    rules: &'g [Rule],
    attributes: &'g FastMap<usize, Attributes>,
    /// Rules that are being written.
    open: Vec<usize>,
    size: usize,
}

impl Inliner<'_> {
    /// The body of a rule without other rules, with the attributes applied.
    fn rule(&mut self, number: usize, depth: usize) -> std::result::Result<Expression, Refusal> {
        if self.open.contains(&number) {
            return Err(Refusal::Recursion);
        }
        self.open.push(number);
        let before = self.size;
        let mut body = self.expression(&self.rules[number].body, depth)?;
        self.open.pop();
        let attributes = self.attributes.get(&number).copied().unwrap_or_default();
        if attributes.max_tokens.is_some() && !self.open.is_empty() {
            return Err(Refusal::Counted);
        }
        if let Some(most) = attributes.max_chars {
            body = and([body, any().repeat(0, Some(most))]);
        }
        if attributes.lazy {
            self.size += self.size - before;
            let longer = Expression::sequence([body.clone(), any(), any().repeat(0, None)]);
            body = and([body, not(longer)]);
        }
        Ok(body)
    }

    fn expression(&mut self, from: &Expression, depth: usize) -> std::result::Result<Expression, Refusal> {
        self.size += weight(from);
        if self.size > MAX_SIZE || depth > MAX_DEPTH {
            return Err(Refusal::Size);
        }
        Ok(match &from.0 {
            Node::Rule(number) => self.rule(*number, depth + 1)?,
            Node::Sequence(parts) => Expression(Node::Sequence(self.all(parts, depth)?)),
            Node::Choice(parts) => Expression(Node::Choice(self.all(parts, depth)?)),
            Node::Repeat { inner, min, max } => self.expression(inner, depth + 1)?.repeat(*min, *max),
            Node::Token { .. } | Node::Constraint(_) => return Err(Refusal::Tokens),
            // Without rules within.
            _ => from.clone(),
        })
    }

    fn all(&mut self, parts: &[Expression], depth: usize) -> std::result::Result<Vec<Expression>, Refusal> {
        parts.iter().map(|part| self.expression(part, depth + 1)).collect()
    }
}

/// How large an expression is, parts that are walked through on their own left out.
fn weight(expression: &Expression) -> usize {
    match &expression.0 {
        Node::Literal(bytes) => 1 + bytes.len(),
        Node::Class(ranges) => ranges.len(),
        Node::And(parts) => 1 + parts.iter().map(whole_weight).sum::<usize>(),
        Node::Not(inner) => 1 + whole_weight(inner),
        _ => 1,
    }
}

/// How large an expression is, parts included.
fn whole_weight(expression: &Expression) -> usize {
    let parts = match &expression.0 {
        Node::Sequence(parts) | Node::Choice(parts) => parts.iter().map(whole_weight).sum(),
        Node::Repeat { inner, .. } => whole_weight(inner),
        _ => 0,
    };
    weight(expression) + parts
}
