//! `TagDispatch`: free text with triggers, each followed by a rule.

use std::sync::Arc;

use crate::grammar::form::{Expression, Node};
use crate::grammar::literal::any;

/// Free text without triggers and excluded texts, interrupted by triggers with their rules.
///
/// The first complete trigger counts; if several are complete at once, any of them. After the rule,
/// free text continues if `again`, up to the end of the whole; else the whole ends.
pub(super) fn free_text(calls: &[(String, Expression)], excludes: &[String], again: bool) -> Expression {
    let triggers = calls.iter().map(|(trigger, _)| trigger.as_str());
    let marks: Vec<&str> = triggers.chain(excludes.iter().map(String::as_str)).collect();
    let free = if marks.is_empty() { text() } else { and([text(), not(around(choice(&marks), text()))]) };
    if calls.is_empty() {
        return free;
    }
    // No mark is complete before the last character, and no excluded text at the end.
    let mut conditions = vec![not(around(choice(&marks), Expression::sequence([any(), text()])))];
    if !excludes.is_empty() {
        let excludes: Vec<&str> = excludes.iter().map(String::as_str).collect();
        conditions.push(not(Expression::sequence([text(), choice(&excludes)])));
    }
    let dispatched = calls.iter().map(|(trigger, rule)| {
        let tagged = Expression::sequence([text(), Expression::literal(trigger)]);
        let tagged = and([tagged].into_iter().chain(conditions.iter().cloned()));
        Expression::sequence([tagged, rule.clone()])
    });
    let dispatched: Vec<Expression> = dispatched.collect();
    if again {
        Expression::sequence([Expression::choice(dispatched).repeat(0, None), free])
    } else {
        Expression::choice(dispatched.into_iter().chain([free]))
    }
}

/// Any text.
fn text() -> Expression {
    any().repeat(0, None)
}

/// Any text, then `inner`, then `after`.
fn around(inner: Expression, after: Expression) -> Expression {
    Expression::sequence([text(), inner, after])
}

fn choice(texts: &[&str]) -> Expression {
    Expression::choice(texts.iter().map(|text| Expression::literal(text)))
}

pub(super) fn and(parts: impl IntoIterator<Item = Expression>) -> Expression {
    Expression(Node::And(parts.into_iter().collect()))
}

pub(super) fn not(inner: Expression) -> Expression {
    Expression(Node::Not(Arc::new(inner)))
}
