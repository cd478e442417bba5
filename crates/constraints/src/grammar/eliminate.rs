//! Removes rules from recursion, for grammars that are otherwise rejected.
//!
//! Two steps repeat in each component of mutually recursive rules, until one rule is left or
//! neither applies:
//! - A rule without a reference to itself is inlined into the other rules of the component.
//! - If all rules refer to themselves, one that begins or ends with itself is solved. The texts of
//!   `b ::= γ | b α | β b | b δ b` are the texts of `c (δ c)*` with `c ::= β* γ α*`, for any
//!   expressions `α` to `δ`.
//!
//! With `root ::= t | "y"` and `t ::= "x" | root t`, the first step makes
//! `t ::= "x" | t t | "y" t`; the second step then makes `t ::= ("y"* "x")+`. The method is
//! Gaussian elimination, with Arden's rule for one variable, extended to both ends.
//!
//! Neither step changes the language of a rule. Rules grow, and the grammar may need more calls, so
//! elimination runs only if the grammar is rejected without it.
//!
//! Reference: D. N. Arden, *Delayed-Logic and Finite-State Machines*, 2nd Annual Symposium on
//! Switching Circuit Theory and Logical Design, 1961.

use super::brackets::sccs;
use super::flat::{ExprId, FlatExpr, FlatGrammar};
use burn_dfa_automata::FastMap;
use burn_dfa_common::Result;

/// Most rules in a component.
const MAX_RULES: usize = 128;

/// Most expressions of a rule, each counted as often as the rule has it.
const MAX_EXPRS: usize = 4_096;

/// Most expressions within each other in a rule.
const MAX_HEIGHT: usize = 200;

/// Most alternatives a rule is split into.
const MAX_ALTERNATIVES: usize = 256;

/// The size of an expression.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// The number of its expressions, each counted as often as it occurs.
    pub(super) exprs: usize,
    /// The most expressions within each other.
    pub(super) height: usize,
}

impl FlatGrammar<'_> {
    /// Removes rules from recursion while rules stay small; returns whether any body changed.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(super) fn eliminate(&mut self) -> Result<bool> {
        let before = self.bodies.clone();
        let references: Vec<Vec<usize>> = before.iter().map(|&body| self.references_of(body)).collect();
        let mut rules_of: FastMap<u32, Vec<usize>> = FastMap::default();
        for (rule, scc) in sccs(before.len(), &references).into_iter().enumerate() {
            if scc != 0 {
                rules_of.entry(scc).or_default().push(rule);
            }
        }
        let mut sccs: Vec<Vec<usize>> = rules_of.into_values().filter(|scc| scc.len() <= MAX_RULES).collect();
        sccs.sort_unstable();
        for scc in sccs {
            self.eliminate_scc(scc)?;
        }
        let is_changed = self.bodies != before;
        if is_changed {
            self.normalize()?;
        }
        Ok(is_changed)
    }

    fn eliminate_scc(&mut self, mut rules: Vec<usize>) -> Result<()> {
        while rules.len() > 1 {
            self.meter.time()?;
            // Inlines the smallest rule without a reference to itself; else solves a rule,
            // preferably one whose repetitions refer to no rule of the component.
            let size = |own: &Self, rule: usize| own.size(own.bodies[rule], &mut FastMap::default()).exprs;
            let free = rules.iter().copied().filter(|&rule| !self.refers(self.bodies[rule], &[rule]));
            if let Some(chosen) = free.min_by_key(|&rule| size(self, rule)) {
                rules.retain(|&rule| rule != chosen);
                if !self.put_in(chosen, &rules) {
                    return Ok(());
                }
                continue;
            }
            let solved: Vec<(bool, usize, usize, ExprId)> = (rules.iter())
                .filter_map(|&rule| {
                    let (body, repeated) = self.solved(rule)?;
                    let refers = self.refers(repeated, &rules);
                    Some((refers, size(self, rule), rule, body))
                })
                .collect();
            let Some((_, _, rule, body)) = solved.into_iter().min() else { return Ok(()) };
            self.bodies[rule] = body;
        }
        for rule in rules {
            if let Some((body, _)) = self.solved(rule) {
                self.bodies[rule] = body;
            }
        }
        Ok(())
    }

    /// Inlines a rule into other rules, if they stay small.
    fn put_in(&mut self, chosen: usize, rules: &[usize]) -> bool {
        let (mut known, mut sizes) = (FastMap::default(), FastMap::default());
        let bodies: Vec<ExprId> =
            rules.iter().map(|&rule| self.with(self.bodies[rule], chosen, &mut known)).collect();
        let are_small = bodies.iter().all(|&body| {
            let Size { exprs, height } = self.size(body, &mut sizes);
            exprs <= MAX_EXPRS && height <= MAX_HEIGHT
        });
        if are_small {
            rules.iter().zip(bodies).for_each(|(&rule, body)| self.bodies[rule] = body);
        }
        are_small
    }

    /// Whether an expression refers to one of some rules.
    fn refers(&self, expr: ExprId, rules: &[usize]) -> bool {
        self.references_of(expr).iter().any(|rule| rules.contains(rule))
    }

    fn references_of(&self, expr: ExprId) -> Vec<usize> {
        let mut found = Vec::new();
        self.rules_of(expr, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The size of an expression; `known` are the sizes of expressions so far.
    pub(super) fn size(&self, expr: ExprId, known: &mut FastMap<ExprId, (usize, usize)>) -> Size {
        if let Some(&(exprs, height)) = known.get(&expr) {
            return Size { exprs, height };
        }
        let inner: &[ExprId] = match self.get(expr) {
            FlatExpr::Sequence(inner) | FlatExpr::Choice(inner) => inner,
            FlatExpr::Repeat { inner, .. } => std::slice::from_ref(inner),
            _ => &[],
        };
        let size = inner.iter().fold(Size { exprs: 1, height: 1 }, |size, &inner| {
            let Size { exprs, height } = self.size(inner, known);
            Size { exprs: size.exprs.saturating_add(exprs), height: size.height.max(height + 1) }
        });
        known.insert(expr, (size.exprs, size.height));
        size
    }

    /// An expression with the body of a rule substituted for its name.
    fn with(&mut self, expr: ExprId, rule: usize, known: &mut FastMap<ExprId, ExprId>) -> ExprId {
        if let Some(&made) = known.get(&expr) {
            return made;
        }
        let made = match self.get(expr).clone() {
            FlatExpr::Rule(other) if other == rule => self.bodies[rule],
            FlatExpr::Choice(inner) => {
                let inner: Vec<ExprId> = inner.into_iter().map(|expr| self.with(expr, rule, known)).collect();
                self.one_of(inner)
            }
            FlatExpr::Sequence(inner) => {
                let inner: Vec<ExprId> = inner.into_iter().map(|expr| self.with(expr, rule, known)).collect();
                self.sequence_of(inner)
            }
            FlatExpr::Repeat { inner, min, max } => {
                let inner = self.with(inner, rule, known);
                self.add(FlatExpr::Repeat { inner, min, max })
            }
            _ => expr,
        };
        known.insert(expr, made);
        made
    }

    fn sequence_of(&mut self, exprs: Vec<ExprId>) -> ExprId {
        let joined = self.joined(exprs);
        self.add(joined)
    }

    /// The body of a rule rewritten without the rule at the beginnings and ends of its
    /// alternatives, and the repeated expressions; `None` if the rule never begins or ends an
    /// alternative, or has too many alternatives. The texts of `b ::= c | b b b` are the texts of
    /// `c (c c)*`.
    fn solved(&mut self, rule: usize) -> Option<(ExprId, ExprId)> {
        let alternatives = self.alternatives(self.bodies[rule], rule)?;
        let name = self.add(FlatExpr::Rule(rule));
        let (mut alone, mut behind, mut before, mut between) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut times = Vec::new();
        for alternative in alternatives {
            match alternative[..] {
                // The alternative `b` of a rule `b` adds no text.
                [one] if one == name => {}
                // The rule three times and more, alone.
                [_, _, _, ..] if alternative.iter().all(|&expr| expr == name) => {
                    times.push(alternative.len())
                }
                [first, ref middle @ .., last] if first == name && last == name => {
                    between.push(self.sequence_of(middle.to_vec()));
                }
                [first, ref rest @ ..] if first == name => behind.push(self.sequence_of(rest.to_vec())),
                [ref rest @ .., last] if last == name => before.push(self.sequence_of(rest.to_vec())),
                _ => alone.push(self.sequence_of(alternative)),
            }
        }
        if behind.is_empty() && before.is_empty() && between.is_empty() && times.is_empty() {
            return None;
        }
        if !between.is_empty() {
            // Alternatives that consist of the rule alone repeat the rule between two copies of it.
            between.extend(times.drain(..).map(|times| self.sequence_of(vec![name; times - 2])));
        }
        let repeated = self.one_of([&before[..], &behind, &between].concat());
        let mut exprs = Vec::with_capacity(3);
        if !before.is_empty() {
            let before = self.one_of(before);
            exprs.push(self.repeated(before, 0, None));
        }
        exprs.push(self.one_of(alone));
        if !behind.is_empty() {
            let behind = self.one_of(behind);
            exprs.push(self.repeated(behind, 0, None));
        }
        let once = self.sequence_of(exprs);
        let mut more: Vec<ExprId> =
            times.iter().map(|times| self.sequence_of(vec![once; times - 1])).collect();
        if !between.is_empty() {
            let between = self.one_of(between);
            more.push(self.sequence_of(vec![between, once]));
        }
        if more.is_empty() {
            return Some((once, repeated));
        }
        let more = self.one_of(more);
        let again = self.repeated(more, 0, None);
        Some((self.sequence_of(vec![once, again]), repeated))
    }

    /// The alternatives of an expression as sequences; choices with the rule at the beginning or
    /// end are split. `None` if there are too many.
    fn alternatives(&self, expr: ExprId, rule: usize) -> Option<Vec<Vec<ExprId>>> {
        let (mut rest, mut found) = (vec![vec![expr]], Vec::new());
        while let Some(sequence) = rest.pop() {
            if rest.len() + found.len() > MAX_ALTERNATIVES {
                return None;
            }
            let ends = [0, sequence.len().saturating_sub(1)];
            let apart = ends.into_iter().find_map(|at| Some((at, self.apart(*sequence.get(at)?, rule)?)));
            let Some((at, exprs)) = apart else {
                found.push(sequence);
                continue;
            };
            let with = |expr: Vec<ExprId>| [&sequence[..at], &expr, &sequence[at + 1..]].concat();
            rest.extend(exprs.into_iter().rev().map(with));
        }
        Some(found)
    }

    /// The alternatives of an expression that contains the rule, unless the expression is the rule
    /// itself.
    fn apart(&self, expr: ExprId, rule: usize) -> Option<Vec<Vec<ExprId>>> {
        let alternatives = match self.get(expr) {
            FlatExpr::Choice(inner) => inner.iter().map(|&expr| vec![expr]).collect(),
            FlatExpr::Sequence(inner) => vec![inner.clone()],
            &FlatExpr::Repeat { inner, min: 0, max: Some(1) } => vec![Vec::new(), vec![inner]],
            _ => return None,
        };
        self.refers(expr, &[rule]).then_some(alternatives)
    }
}
