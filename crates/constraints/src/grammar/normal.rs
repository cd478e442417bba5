//! A normal form of rules, computed before recursion is analyzed.
//!
//! - Expressions without a text, and expressions with only the empty text, are removed.
//! - The empty text is removed from repetitions: `("" | "a"* | b)*` is `("a" | b)*`.
//! - Rules that derive each other alone are merged: with `a ::= b | "x"` and `b ::= a | "y" a`, `a`
//!   is `"x" | "y" a`, and `b` is `a`. So are rules that derive each other next to nullable
//!   expressions.
//! - An alias is replaced by its rule: with `a ::= b`, `a` is `b`.
//!
//! None of this changes the language of a rule. Without it, a rule could recur with nothing read in
//! between, and its recursion would seem to need a stack.
//!
//! Reference: A. Brüggemann-Klein, *Regular Expressions into Finite Automata*, Theoretical Computer
//! Science 120(2), 1993, for repetitions.

use super::brackets::sccs;
use super::eliminate::Size;
use super::flat::{ExprId, FlatExpr, FlatGrammar};
use burn_dfa_automata::FastMap;
use burn_dfa_common::Result;

/// Greatest size of a result, with each expression counted as often as it occurs.
const MAX_EXPRS: usize = 1 << 16;

/// Greatest height of a result.
const MAX_HEIGHT: usize = 256;

/// Expressions without the empty text.
#[derive(Default)]
struct Filled {
    /// By nullable expression; `None` if it has none, and while its operands are visited.
    of: FastMap<ExprId, Option<ExprId>>,
    /// The sizes of expressions.
    sizes: FastMap<ExprId, (usize, usize)>,
    /// The number of expressions of all results, each counted as often as it occurs.
    exprs: usize,
}

impl FlatGrammar<'_> {
    /// Brings the rules into the normal form.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(super) fn normalize(&mut self) -> Result<()> {
        let bodies = self.bodies.clone();
        let mut rewriter = Rewriter::new(self);
        let bodies: Vec<ExprId> = bodies.into_iter().map(|body| rewriter.rewritten(body)).collect();
        self.bodies = bodies;
        self.merge()?;
        let bodies = self.bodies.clone();
        let mut rewriter = Rewriter::new(self);
        let bodies: Vec<ExprId> = bodies.into_iter().map(|body| rewriter.rewritten(body)).collect();
        self.bodies = bodies;
        Ok(())
    }

    /// Finds equivalent rules, and gives one of them the alternatives of all.
    fn merge(&mut self) -> Result<()> {
        let units: Vec<Vec<usize>> = (self.bodies.iter())
            .map(|&body| {
                let mut found = Vec::new();
                self.units_of(body, &mut found);
                found
            })
            .collect();
        let scc_of = sccs(self.bodies.len(), &units);
        // By component: its first rule, and the alternatives of all of its rules.
        let mut sccs: FastMap<u32, (usize, Vec<ExprId>)> = FastMap::default();
        // The bodies stay the same until all alternatives are known.
        let mut filled = Filled::default();
        for (rule, &scc) in scc_of.iter().enumerate().filter(|&(_, &scc)| scc != 0) {
            let (first, alternatives) = sccs.entry(scc).or_insert((rule, Vec::new()));
            self.stands[rule] = *first;
            let is_own = |other: usize| scc_of[other] == scc;
            self.proper(self.bodies[rule], &is_own, &mut filled, alternatives)?;
        }
        let mut sccs: Vec<(usize, Vec<ExprId>)> = sccs.into_values().collect();
        sccs.sort_unstable_by_key(|&(first, _)| first);
        for (first, alternatives) in sccs {
            self.bodies[first] = self.one_of(alternatives);
        }
        for rule in 0..self.bodies.len() {
            // No rules are in a cycle of units any more.
            let (mut at, mut passed) = (rule, Vec::new());
            loop {
                let next = match *self.get(self.bodies[at]) {
                    FlatExpr::Rule(other) if self.stands[at] == at => other,
                    _ => self.stands[at],
                };
                if next == at {
                    break;
                }
                passed.push(at);
                at = next;
            }
            passed.into_iter().for_each(|rule| self.stands[rule] = at);
        }
        Ok(())
    }

    /// The rules that can make up an expression alone, without text around them.
    fn units_of(&self, expr: ExprId, found: &mut Vec<usize>) {
        match self.get(expr) {
            FlatExpr::Rule(rule) => found.push(*rule),
            FlatExpr::Choice(exprs) => exprs.iter().for_each(|&expr| self.units_of(expr, found)),
            FlatExpr::Sequence(exprs) => {
                let mut needed = exprs.iter().filter(|&&expr| !self.is_nullable(expr));
                match (needed.next(), needed.next()) {
                    (Some(&one), None) => self.units_of(one, found),
                    (None, _) => exprs.iter().for_each(|&expr| self.units_of(expr, found)),
                    _ => {}
                }
            }
            &FlatExpr::Repeat { inner, min, max }
                if max != Some(0) && (min <= 1 || self.is_nullable(inner)) =>
            {
                self.units_of(inner, found);
            }
            _ => {}
        }
    }

    /// The alternatives of a rule, except a single rule of its component.
    fn proper(
        &mut self,
        expr: ExprId,
        is_own: &impl Fn(usize) -> bool,
        filled: &mut Filled,
        found: &mut Vec<ExprId>,
    ) -> Result<()> {
        let exprs = match self.get(expr) {
            FlatExpr::Choice(exprs) => {
                let mut exprs = exprs.clone().into_iter();
                return exprs.try_for_each(|expr| self.proper(expr, is_own, filled, found));
            }
            FlatExpr::Sequence(exprs) => exprs.clone(),
            _ => vec![expr],
        };
        // A rule of the component, or an optional one.
        let own = |own: &Self, expr: ExprId| match *own.get(expr) {
            FlatExpr::Rule(rule) if is_own(rule) => Some((expr, false)),
            FlatExpr::Repeat { inner, min: 0, max: Some(1) } => match *own.get(inner) {
                FlatExpr::Rule(rule) if is_own(rule) => Some((inner, true)),
                _ => None,
            },
            _ => None,
        };
        let Some((at, (rule, is_optional))) =
            exprs.iter().enumerate().find_map(|(at, &expr)| Some((at, own(self, expr)?)))
        else {
            found.push(expr);
            return Ok(());
        };
        if exprs.iter().enumerate().any(|(i, &expr)| i != at && !self.is_nullable(expr)) {
            found.push(expr);
            return Ok(());
        }
        // Both neighbors of the rule may be empty: the sequence of the two neighbors alone is an
        // alternative, too.
        let (before, behind) = (exprs[..at].to_vec(), exprs[at + 1..].to_vec());
        if is_optional {
            let without = self.joined([&before[..], &behind[..]].concat());
            found.push(self.add(without));
        }
        for (neighbor, is_before) in [(before, true), (behind, false)] {
            if neighbor.is_empty() {
                continue;
            }
            let neighbor = self.joined(neighbor);
            let neighbor = self.add(neighbor);
            let neighbor = self.something_of(neighbor, filled)?.unwrap_or(neighbor);
            // Results share expressions, but the recursion of a rule is analyzed without sharing.
            filled.exprs = filled.exprs.saturating_add(self.size(neighbor, &mut filled.sizes).exprs);
            self.meter.bytes(filled.exprs.saturating_mul(size_of::<FlatExpr>()))?;
            let pair = if is_before { vec![neighbor, rule] } else { vec![rule, neighbor] };
            let pair = self.joined(pair);
            found.push(self.add(pair));
        }
        Ok(())
    }

    /// An expression without the empty text, if its kind allows and the result is not large.
    ///
    /// A nullable expression needs the results of all its nullable operands. So if an operand has
    /// no result, because of its kind or its size, or is on the path to itself, no expression on
    /// the path has a result, from wherever it is visited. A result depends on no path either.
    ///
    /// # Errors
    /// A limit is exceeded.
    fn something_of(&mut self, expr: ExprId, filled: &mut Filled) -> Result<Option<ExprId>> {
        if !self.is_nullable(expr) {
            return Ok(Some(expr));
        }
        if let Some(&known) = filled.of.get(&expr) {
            return Ok(known);
        }
        // Each expression on the path, and the number of its visited operands.
        let mut path = vec![(expr, 0)];
        filled.of.insert(expr, None);
        while let Some((last, visited)) = path.last_mut() {
            self.meter.time()?;
            let last = *last;
            if let Some(operand) = self.operand(last, *visited) {
                *visited += 1;
                if self.is_nullable(operand) {
                    match filled.of.get(&operand) {
                        Some(Some(_)) => {}
                        Some(None) => return Ok(None),
                        None => {
                            filled.of.insert(operand, None);
                            path.push((operand, 0));
                        }
                    }
                }
                continue;
            }
            path.pop();
            let something = self.something_from(last, filled);
            self.meter.bytes(self.expr_bytes)?;
            if something.is_none() {
                return Ok(None);
            }
            filled.of.insert(last, something);
        }
        Ok(filled.of.get(&expr).copied().flatten())
    }

    /// An operand of an expression, by its position; the operand of a rule is its body.
    fn operand(&self, expr: ExprId, at: usize) -> Option<ExprId> {
        match self.get(expr) {
            FlatExpr::Sequence(exprs) | FlatExpr::Choice(exprs) => exprs.get(at).copied(),
            FlatExpr::Repeat { inner, max, .. } if *max != Some(0) => (at == 0).then_some(*inner),
            FlatExpr::Rule(rule) => (at == 0).then(|| self.bodies[*rule]),
            _ => None,
        }
    }

    /// A nullable expression without the empty text, from the results of its operands.
    fn something_from(&mut self, expr: ExprId, filled: &mut Filled) -> Option<ExprId> {
        let (of, sizes) = (&filled.of, &mut filled.sizes);
        // Operands that are not nullable have no entry.
        let something = |expr: ExprId| of.get(&expr).copied().unwrap_or(Some(expr));
        let made = match self.get(expr).clone() {
            FlatExpr::Bytes(_) => self.add(FlatExpr::Choice(Vec::new())),
            FlatExpr::Repeat { inner, max, .. } if max != Some(0) => {
                let inner = something(inner)?;
                self.repeated(inner, 1, max)
            }
            FlatExpr::Choice(exprs) => {
                let exprs = exprs.into_iter().map(something).collect::<Option<Vec<ExprId>>>()?;
                let mut total = 0usize;
                for &expr in &exprs {
                    total = total.saturating_add(self.size(expr, sizes).exprs);
                }
                if total > MAX_EXPRS {
                    return None;
                }
                self.one_of(exprs)
            }
            FlatExpr::Sequence(exprs) => {
                // The first non-empty expression, and the expressions after it.
                let firsts = exprs.iter().copied().map(something).collect::<Option<Vec<ExprId>>>()?;
                let (mut total, mut rest) = (0usize, 0usize);
                for (&first, &expr) in firsts.iter().zip(&exprs).rev() {
                    total = total.saturating_add(self.size(first, sizes).exprs).saturating_add(rest);
                    rest = rest.saturating_add(self.size(expr, sizes).exprs);
                }
                if total > MAX_EXPRS {
                    return None;
                }
                let mut alternatives = Vec::with_capacity(exprs.len());
                for (at, &first) in firsts.iter().enumerate() {
                    let alternative = self.joined([&[first][..], &exprs[at + 1..]].concat());
                    alternatives.push(self.add(alternative));
                }
                self.one_of(alternatives)
            }
            FlatExpr::Rule(rule) => return something(self.bodies[rule]),
            _ => return None,
        };
        let Size { exprs, height } = self.size(made, sizes);
        (exprs <= MAX_EXPRS && height <= MAX_HEIGHT).then_some(made)
    }

    /// One of some expressions.
    pub(super) fn one_of(&mut self, exprs: impl IntoIterator<Item = ExprId>) -> ExprId {
        let mut known = FastMap::default();
        let mut flat: Vec<ExprId> = Vec::new();
        for expr in exprs {
            let inner = match self.get(expr) {
                FlatExpr::Choice(inner) => inner.clone(),
                _ => vec![expr],
            };
            flat.extend(inner.into_iter().filter(|&expr| known.insert(expr, ()).is_none()));
        }
        match flat[..] {
            [one] => one,
            _ => self.add(FlatExpr::Choice(flat)),
        }
    }

    /// An expression simplified for the body of an unbounded repetition: the same texts, except
    /// texts that the repetition adds anyway.
    fn starred(&mut self, expr: ExprId) -> ExprId {
        match self.get(expr).clone() {
            FlatExpr::Choice(exprs) => {
                let exprs: Vec<ExprId> = exprs.into_iter().map(|expr| self.starred(expr)).collect();
                self.one_of(exprs)
            }
            FlatExpr::Sequence(exprs) if self.is_nullable(expr) => {
                let exprs: Vec<ExprId> = exprs.into_iter().map(|expr| self.starred(expr)).collect();
                self.one_of(exprs)
            }
            FlatExpr::Repeat { inner, min, .. } if min <= 1 || self.is_nullable(inner) => self.starred(inner),
            FlatExpr::Bytes(bytes) if bytes.is_empty() => self.add(FlatExpr::Choice(Vec::new())),
            _ => expr,
        }
    }

    /// An expression a number of times.
    pub(super) fn repeated(&mut self, inner: ExprId, min: usize, max: Option<usize>) -> ExprId {
        let is_nullable = self.is_nullable(inner);
        let min = if is_nullable { 0 } else { min };
        match max {
            // A nullable rule may owe its empty text to this very expression.
            Some(1) if min == 1 || matches!(self.get(inner), FlatExpr::Repeat { min: 0, .. }) => inner,
            Some(_) => self.add(FlatExpr::Repeat { inner, min, max }),
            None => {
                let inner = self.starred(inner);
                self.add(FlatExpr::Repeat { inner, min, max })
            }
        }
    }
}

/// Rewrites expressions, each once.
struct Rewriter<'r, 'm> {
    flat: &'r mut FlatGrammar<'m>,
    /// Whether each of the original expressions has a non-empty text.
    filled: Vec<bool>,
    /// The rewritten expressions.
    made: Vec<Option<ExprId>>,
}

impl<'r, 'm> Rewriter<'r, 'm> {
    fn new(flat: &'r mut FlatGrammar<'m>) -> Self {
        let filled = flat.filled();
        Self { made: vec![None; filled.len()], filled, flat }
    }

    fn rewritten(&mut self, expr: ExprId) -> ExprId {
        if let Some(made) = self.made[expr] {
            return made;
        }
        let made = if !self.flat.is_productive(expr) {
            self.flat.add(FlatExpr::Choice(Vec::new()))
        } else if !self.filled[expr] {
            self.flat.add(FlatExpr::Bytes(Vec::new()))
        } else {
            match self.flat.get(expr).clone() {
                FlatExpr::Rule(rule) => self.flat.add(FlatExpr::Rule(self.flat.stands[rule])),
                FlatExpr::Choice(inner) => {
                    let inner: Vec<ExprId> = inner.into_iter().map(|expr| self.rewritten(expr)).collect();
                    self.flat.one_of(inner)
                }
                FlatExpr::Sequence(inner) => {
                    let inner: Vec<ExprId> = inner.into_iter().map(|expr| self.rewritten(expr)).collect();
                    let joined = self.flat.joined(inner);
                    self.flat.add(joined)
                }
                FlatExpr::Repeat { inner, min, max } if max.is_none_or(|max| max >= min) => {
                    let inner = self.rewritten(inner);
                    self.flat.repeated(inner, min, max)
                }
                _ => expr,
            }
        };
        self.made[expr] = Some(made);
        made
    }
}
