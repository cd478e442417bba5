//! Selects the expressions of a recursive grammar that are called.
//!
//! Recursion is *embedded* if the rule reads something before and after the reference. The
//! expressions of a sequence around embedded recursion are called as one procedure, from after the
//! opening expression to the closing expression: in `"[" space (value ("," value)*)? "]" space` the
//! caller reads the first bracket, then calls `space (value ("," value)*)? "]"`, then reads the
//! last space. An expression *closes* if none of its texts is a prefix of another, so its last byte
//! begins or ends the procedure. If both the opening and the closing expression close, they are
//! *brackets* and always called. The recursion left outside of brackets forms *knots*: a knot is
//! called from after the last required expression before it to the last required expression after
//! it, even if these expressions do not close.

use super::flat::{ExprId, FlatExpr, FlatGrammar};
use burn_dfa_automata::{FastMap, components};

/// Most expressions of a sequence with rules put in for their names.
const MAX_EXPANDED: usize = 64;

/// The recursion of a grammar.
pub(super) struct Brackets<'p, 'm> {
    flat: &'p FlatGrammar<'m>,
    /// The strongly connected component of each rule by its references; 0 for a non-recursive rule.
    scc_of: Vec<u32>,
    /// The same without references within brackets.
    knot_of: Vec<u32>,
    /// Whether an expression refers to a component.
    recursive: FastMap<(ExprId, u32), bool>,
    expanded: FastMap<(ExprId, u32), Vec<ExprId>>,
}

/// The position of a sequence in the recursion of a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Position {
    /// The component of the rule.
    pub(super) scc: u32,
    /// Its component without references within brackets.
    pub(super) knot: u32,
    /// Whether something was read within the rule.
    pub(super) behind: bool,
    /// Whether the whole text ends with it, so it is copied rather than called.
    pub(super) outermost: bool,
}

impl<'p, 'm> Brackets<'p, 'm> {
    pub(super) fn new(flat: &'p FlatGrammar<'m>) -> Self {
        let count = flat.bodies.len();
        let references = flat.bodies.iter().map(|&body| {
            let mut found = Vec::new();
            flat.rules_of(body, &mut found);
            found
        });
        let scc_of = sccs(count, &references.map(sorted).collect::<Vec<_>>());
        let (recursive, expanded) = (FastMap::default(), FastMap::default());
        let mut brackets = Self { flat, scc_of, knot_of: vec![0; count], recursive, expanded };
        let left: Vec<Vec<usize>> = (0..count)
            .map(|rule| {
                let mut found = Vec::new();
                let position = brackets.position(rule);
                if position.scc != 0 {
                    brackets.left_by_brackets(flat.bodies[rule], position, &mut found);
                }
                sorted(found)
            })
            .collect();
        brackets.knot_of = sccs(count, &left);
        brackets
    }

    /// The position of the body of a rule.
    pub(super) fn position(&self, rule: usize) -> Position {
        Position { scc: self.scc_of[rule], knot: self.knot_of[rule], behind: false, outermost: false }
    }

    /// The expressions of a sequence in a rule of a component. Each rule after the first expression
    /// whose body is a sequence is inlined if it is non-recursive, or if only the opening bracket
    /// is missing in it.
    pub(super) fn expanded(&mut self, sequence: ExprId, scc: u32) -> Vec<ExprId> {
        if let Some(known) = self.expanded.get(&(sequence, scc)) {
            return known.clone();
        }
        let mut expanded = Vec::new();
        if let FlatExpr::Sequence(exprs) = self.flat.get(sequence) {
            for (at, &expr) in exprs.iter().enumerate() {
                if at == 0 { expanded.push(expr) } else { self.expand(expr, 0, &mut expanded) }
            }
            for at in (1..expanded.len()).rev() {
                if let Some(closed) = self.closed(&expanded, at, scc) {
                    expanded = closed;
                }
            }
            if expanded.len() > MAX_EXPANDED {
                expanded.clone_from(exprs);
            }
        }
        self.expanded.insert((sequence, scc), expanded.clone());
        expanded
    }

    /// Inlines a non-recursive rule within `levels` other rules. Each of these rules adds another
    /// expression, so below [`MAX_EXPANDED`] levels the sequence is too long.
    fn expand(&self, expr: ExprId, levels: usize, expanded: &mut Vec<ExprId>) {
        if let FlatExpr::Rule(rule) = *self.flat.get(expr)
            && let FlatExpr::Sequence(inner) = self.flat.get(self.flat.bodies[rule])
            && self.scc_of[rule] == 0
            && levels < MAX_EXPANDED
            && expanded.len() <= MAX_EXPANDED
        {
            inner.iter().for_each(|&expr| self.expand(expr, levels + 1, expanded));
        } else {
            expanded.push(expr);
        }
    }

    /// The sequence with the rule at `at` inlined, if the rule closes a bracket opened by the
    /// sequence.
    fn closed(&mut self, sequence: &[ExprId], at: usize, scc: u32) -> Option<Vec<ExprId>> {
        let flat = self.flat;
        let FlatExpr::Rule(rule) = *flat.get(sequence[at]) else { return None };
        let FlatExpr::Sequence(inner) = flat.get(flat.bodies[rule]) else { return None };
        let position = Position { scc, knot: 0, behind: false, outermost: false };
        if self.scc_of[rule] != scc || self.bracket(inner, position).is_some() {
            return None;
        }
        let closed = [&sequence[..at], inner, &sequence[at + 1..]].concat();
        let (from, to) = self.bracket(&closed, position)?;
        (from <= at && to >= at + inner.len() - 1).then_some(closed)
    }

    /// The range of called expressions of an expanded sequence, both ends included.
    pub(super) fn called(&mut self, exprs: &[ExprId], position: Position) -> Option<(usize, usize)> {
        self.bracket(exprs, position).or_else(|| {
            if position.knot == 0 {
                return None;
            }
            let is_recursive = |own: &mut Self, expr| {
                let mut rules = Vec::new();
                own.left_by_brackets(expr, Position { behind: true, ..position }, &mut rules);
                rules.into_iter().any(|rule| own.knot_of[rule] == position.knot)
            };
            let is_recursive: Vec<bool> = exprs.iter().map(|&expr| is_recursive(self, expr)).collect();
            self.between(exprs, position, &is_recursive, |_| true)
        })
    }

    /// The brackets of a sequence.
    fn bracket(&mut self, exprs: &[ExprId], position: Position) -> Option<(usize, usize)> {
        if position.scc == 0 {
            return None;
        }
        let is_recursive: Vec<bool> =
            exprs.iter().map(|&expr| self.is_recursive(expr, position.scc)).collect();
        self.between(exprs, position, &is_recursive, |expr| self.flat.closes(expr))
    }

    fn between(
        &self,
        exprs: &[ExprId],
        position: Position,
        is_recursive: &[bool],
        closes: impl Fn(ExprId) -> bool,
    ) -> Option<(usize, usize)> {
        let is_read = |at: usize| !self.flat.is_nullable(exprs[at]);
        let begins = |at: usize| is_recursive[at] && (position.behind || (0..at).any(is_read));
        let first = (0..exprs.len()).find(|&at| begins(at))?;
        // The call starts right after the last byte of the opening expression.
        let opens = |&at: &usize| is_read(at) && closes(exprs[at]);
        let from = match (0..first).rev().find(opens) {
            Some(at) => at + 1,
            None if position.behind => 0,
            None => return None,
        };
        let ends = |&at: &usize| !is_recursive[at] && is_read(at) && closes(exprs[at]);
        (first + 1..exprs.len()).rev().find(ends).map(|to| (from, to))
    }

    fn is_recursive(&mut self, expr: ExprId, scc: u32) -> bool {
        if let Some(&known) = self.recursive.get(&(expr, scc)) {
            return known;
        }
        let mut rules = Vec::new();
        self.flat.rules_of(expr, &mut rules);
        let is = rules.into_iter().any(|rule| self.scc_of[rule] == scc);
        self.recursive.insert((expr, scc), is);
        is
    }

    /// The rules that an expression refers to outside of brackets.
    fn left_by_brackets(&mut self, expr: ExprId, position: Position, found: &mut Vec<usize>) {
        match self.flat.get(expr) {
            FlatExpr::Rule(rule) => found.push(*rule),
            FlatExpr::Choice(exprs) => {
                exprs.iter().for_each(|&expr| self.left_by_brackets(expr, position, found));
            }
            FlatExpr::Repeat { inner, max, .. } if *max != Some(0) => {
                self.left_by_brackets(*inner, Position { behind: false, ..position }, found);
            }
            FlatExpr::Sequence(_) => {
                let exprs = self.expanded(expr, position.scc);
                let called = self.bracket(&exprs, position);
                for (at, &expr) in exprs.iter().enumerate() {
                    if called.is_none_or(|(from, to)| at < from || at > to) {
                        let behind = position.behind || at > 0;
                        self.left_by_brackets(expr, Position { behind, ..position }, found);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The number of the strongly connected component of each rule, from 1; 0 for a non-recursive rule.
pub(super) fn sccs(count: usize, references: &[Vec<usize>]) -> Vec<u32> {
    let children = |rule: u32| references[rule as usize].iter().map(|&rule| rule as u32).collect();
    let mut scc_of = vec![0; count];
    for (component, number) in components(count, 0..count as u32, children).iter().zip(1..) {
        let is_cyclic = match component[..] {
            [one] => references[one as usize].contains(&(one as usize)),
            _ => true,
        };
        if is_cyclic {
            component.iter().for_each(|&rule| scc_of[rule as usize] = number);
        }
    }
    scc_of
}

fn sorted(mut rules: Vec<usize>) -> Vec<usize> {
    rules.sort_unstable();
    rules.dedup();
    rules
}
