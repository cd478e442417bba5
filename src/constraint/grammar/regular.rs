//! Parts of grammars that are regular by their kind, as automata.

use std::sync::Arc;

use super::form::{Expression, Node};
use crate::automaton::{ByteDfa, Expr, Op};
use crate::error::{Error, Result};
use crate::limits::Meter;

/// The automaton of an expression without rules.
///
/// # Errors
/// Where a limit is breached, or there is something in it that is not regular by its kind.
pub(super) fn lower(expression: &Expression, meter: &Meter) -> Result<ByteDfa> {
    match &expression.0 {
        Node::Regex(regex) => regex.lower(meter),
        Node::Terminal(terminal) => {
            let dfa = lower(&terminal.body, meter)?;
            if terminal.lazy { lazy(&dfa, meter) } else { Ok(dfa) }
        }
        Node::And(parts) => {
            let mut parts = parts.iter();
            let Some(first) = parts.next() else { return any_text(meter) };
            parts.try_fold(lower(first, meter)?, |all, part| {
                all.product(&lower(part, meter)?, Op::Intersection, meter)
            })
        }
        Node::Not(inner) => any_text(meter)?.product(&lower(inner, meter)?, Op::Difference, meter),
        _ => tree(expression, meter)?.determinize(meter),
    }
}

/// The words of a language that have no shorter word of it at their beginning.
///
/// # Errors
/// Where a limit is breached.
pub(super) fn lazy(dfa: &ByteDfa, meter: &Meter) -> Result<ByteDfa> {
    // Words with something behind a word.
    let any = Expr::Chars(vec![(char::MIN, char::MAX)]);
    let longer = Expr::Concat(vec![
        Expr::Dfa(Arc::new(dfa.clone())),
        Expr::Repeat { expr: Arc::new(any), min: 1, max: None },
    ]);
    dfa.product(&longer.determinize(meter)?, Op::Difference, meter)
}

/// Any text: UTF-8.
pub(super) fn any_text(meter: &Meter) -> Result<ByteDfa> {
    let any = Expr::Chars(vec![(char::MIN, char::MAX)]);
    Expr::Repeat { expr: Arc::new(any), min: 0, max: None }.determinize(meter)
}

fn tree(expression: &Expression, meter: &Meter) -> Result<Expr> {
    let trees = |parts: &[Expression]| parts.iter().map(|part| tree(part, meter)).collect::<Result<Vec<_>>>();
    Ok(match &expression.0 {
        Node::Literal(bytes) => Expr::Literals(vec![bytes.clone()]),
        Node::Class(ranges) => Expr::Chars(ranges.clone()),
        Node::Substring(words) => Expr::Run(words.iter().map(|word| word.as_bytes().to_vec()).collect()),
        Node::Sequence(parts) => Expr::Concat(trees(parts)?),
        Node::Choice(parts) => Expr::Union(trees(parts)?),
        Node::Repeat { inner, min, max } => {
            Expr::Repeat { expr: Arc::new(tree(inner, meter)?), min: *min, max: *max }
        }
        Node::Regex(_) | Node::And(_) | Node::Not(_) | Node::Terminal(_) => {
            Expr::Dfa(Arc::new(lower(expression, meter)?))
        }
        Node::Rule(_) | Node::Constraint(_) | Node::Grammar(_) | Node::Counted(_) | Node::Token { .. } => {
            return Err(Error::grammar_as_a_whole(
                "a terminal, an intersection or a complement holds a rule, a token or another constraint",
            ));
        }
    })
}
