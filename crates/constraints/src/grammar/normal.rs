//! A normal form of rules, computed before recursion is analyzed.
//!
//! - Parts without a text, and parts with only the empty text, are removed.
//! - The empty text is removed from repetitions: `("" | "a"* | b)*` is `("a" | b)*`.
//! - Rules that derive each other alone are merged: with `a ::= b | "x"` and `b ::= a | "y" a`, `a`
//!   is `"x" | "y" a`, and `b` is `a`. So are rules that derive each other next to nullable parts.
//! - An alias is replaced by its rule: with `a ::= b`, `a` is `b`.
//!
//! None of this changes the language of a rule. Without it, a rule could recur with nothing read in
//! between, and its recursion would seem to need a stack.
//!
//! Reference: A. Brüggemann-Klein, *Regular Expressions into Finite Automata*, Theoretical Computer
//! Science 120(2), 1993, for repetitions.

use super::brackets::sccs;
use super::parts::{Part, PartId, Parts};
use burn_dfa_automata::FastMap;

impl Parts<'_> {
    /// Brings the rules into the normal form.
    pub(super) fn normalize(&mut self) {
        let bodies = self.bodies.clone();
        let mut rewriter = Rewriter::new(self);
        let bodies: Vec<PartId> = bodies.into_iter().map(|body| rewriter.rewritten(body)).collect();
        self.bodies = bodies;
        self.merge();
        let bodies = self.bodies.clone();
        let mut rewriter = Rewriter::new(self);
        let bodies: Vec<PartId> = bodies.into_iter().map(|body| rewriter.rewritten(body)).collect();
        self.bodies = bodies;
    }

    /// Finds equivalent rules, and gives one of them the alternatives of all.
    fn merge(&mut self) {
        let units: Vec<Vec<usize>> = (self.bodies.iter())
            .map(|&body| {
                let mut found = Vec::new();
                self.units_of(body, &mut found);
                found
            })
            .collect();
        let scc_of = sccs(self.bodies.len(), &units);
        // By component: its first rule, and the alternatives of all of its rules.
        let mut sccs: FastMap<u32, (usize, Vec<PartId>)> = FastMap::default();
        for (rule, &scc) in scc_of.iter().enumerate().filter(|&(_, &scc)| scc != 0) {
            let (first, alternatives) = sccs.entry(scc).or_insert((rule, Vec::new()));
            self.stands[rule] = *first;
            let is_own = |other: usize| scc_of[other] == scc;
            self.proper(self.bodies[rule], &is_own, alternatives);
        }
        let mut sccs: Vec<(usize, Vec<PartId>)> = sccs.into_values().collect();
        sccs.sort_unstable_by_key(|&(first, _)| first);
        for (first, alternatives) in sccs {
            self.bodies[first] = self.one_of(alternatives);
        }
        for rule in 0..self.bodies.len() {
            // No rules are in a cycle of units any more.
            let (mut at, mut passed) = (rule, Vec::new());
            loop {
                let next = match *self.get(self.bodies[at]) {
                    Part::Rule(other) if self.stands[at] == at => other,
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
    }

    /// The rules that can make up a part alone, without text around them.
    fn units_of(&self, part: PartId, found: &mut Vec<usize>) {
        match self.get(part) {
            Part::Rule(rule) => found.push(*rule),
            Part::Choice(parts) => parts.iter().for_each(|&part| self.units_of(part, found)),
            Part::Sequence(parts) => {
                let mut needed = parts.iter().filter(|&&part| !self.is_nullable(part));
                match (needed.next(), needed.next()) {
                    (Some(&one), None) => self.units_of(one, found),
                    (None, _) => parts.iter().for_each(|&part| self.units_of(part, found)),
                    _ => {}
                }
            }
            &Part::Repeat { inner, min, max } if max != Some(0) && (min <= 1 || self.is_nullable(inner)) => {
                self.units_of(inner, found);
            }
            _ => {}
        }
    }

    /// The alternatives of a rule, except a single rule of its component.
    fn proper(&mut self, part: PartId, is_own: &impl Fn(usize) -> bool, found: &mut Vec<PartId>) {
        let parts = match self.get(part) {
            Part::Choice(parts) => {
                return parts.clone().into_iter().for_each(|part| self.proper(part, is_own, found));
            }
            Part::Sequence(parts) => parts.clone(),
            _ => vec![part],
        };
        // A rule of the component, or an optional one.
        let own = |own: &Self, part: PartId| match *own.get(part) {
            Part::Rule(rule) if is_own(rule) => Some((part, false)),
            Part::Repeat { inner, min: 0, max: Some(1) } => match *own.get(inner) {
                Part::Rule(rule) if is_own(rule) => Some((inner, true)),
                _ => None,
            },
            _ => None,
        };
        let Some((at, (rule, is_optional))) =
            parts.iter().enumerate().find_map(|(at, &part)| Some((at, own(self, part)?)))
        else {
            return found.push(part);
        };
        if parts.iter().enumerate().any(|(i, &part)| i != at && !self.is_nullable(part)) {
            return found.push(part);
        }
        // Both neighbors of the rule may be empty: the sequence of the two neighbors alone is an
        // alternative, too.
        let (before, behind) = (parts[..at].to_vec(), parts[at + 1..].to_vec());
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
            let neighbor = self.something_of(neighbor, &mut Vec::new()).unwrap_or(neighbor);
            let pair = if is_before { vec![neighbor, rule] } else { vec![rule, neighbor] };
            let pair = self.joined(pair);
            found.push(self.add(pair));
        }
    }

    /// A part without the empty text, if its kind allows; `open` are the rules on the call path.
    fn something_of(&mut self, part: PartId, open: &mut Vec<usize>) -> Option<PartId> {
        if !self.is_nullable(part) {
            return Some(part);
        }
        match self.get(part).clone() {
            Part::Bytes(_) => Some(self.add(Part::Choice(Vec::new()))),
            Part::Repeat { inner, max, .. } if max != Some(0) => {
                let inner = self.something_of(inner, open)?;
                Some(self.repeated(inner, 1, max))
            }
            Part::Choice(parts) => {
                let parts: Option<Vec<PartId>> =
                    parts.into_iter().map(|part| self.something_of(part, open)).collect();
                Some(self.one_of(parts?))
            }
            Part::Sequence(parts) => {
                // The first non-empty part, and the parts after it.
                let mut alternatives = Vec::with_capacity(parts.len());
                for (at, &part) in parts.iter().enumerate() {
                    let something = self.something_of(part, open)?;
                    let rest = self.joined([&[something][..], &parts[at + 1..]].concat());
                    alternatives.push(self.add(rest));
                }
                Some(self.one_of(alternatives))
            }
            Part::Rule(rule) if !open.contains(&rule) => {
                open.push(rule);
                let something = self.something_of(self.bodies[rule], open);
                open.pop();
                something
            }
            _ => None,
        }
    }

    /// One of some parts.
    pub(super) fn one_of(&mut self, parts: impl IntoIterator<Item = PartId>) -> PartId {
        let mut known = FastMap::default();
        let mut flat: Vec<PartId> = Vec::new();
        for part in parts {
            let inner = match self.get(part) {
                Part::Choice(inner) => inner.clone(),
                _ => vec![part],
            };
            flat.extend(inner.into_iter().filter(|&part| known.insert(part, ()).is_none()));
        }
        match flat[..] {
            [one] => one,
            _ => self.add(Part::Choice(flat)),
        }
    }

    /// A part simplified for the body of an unbounded repetition: the same texts, except texts that
    /// the repetition adds anyway.
    fn starred(&mut self, part: PartId) -> PartId {
        match self.get(part).clone() {
            Part::Choice(parts) => {
                let parts: Vec<PartId> = parts.into_iter().map(|part| self.starred(part)).collect();
                self.one_of(parts)
            }
            Part::Sequence(parts) if self.is_nullable(part) => {
                let parts: Vec<PartId> = parts.into_iter().map(|part| self.starred(part)).collect();
                self.one_of(parts)
            }
            Part::Repeat { inner, min, .. } if min <= 1 || self.is_nullable(inner) => self.starred(inner),
            Part::Bytes(bytes) if bytes.is_empty() => self.add(Part::Choice(Vec::new())),
            _ => part,
        }
    }

    /// A part a number of times.
    pub(super) fn repeated(&mut self, inner: PartId, min: usize, max: Option<usize>) -> PartId {
        let is_nullable = self.is_nullable(inner);
        let min = if is_nullable { 0 } else { min };
        match max {
            // A nullable rule may owe its empty text to this very part.
            Some(1) if min == 1 || matches!(self.get(inner), Part::Repeat { min: 0, .. }) => inner,
            Some(_) => self.add(Part::Repeat { inner, min, max }),
            None => {
                let inner = self.starred(inner);
                self.add(Part::Repeat { inner, min, max })
            }
        }
    }
}

/// Rewrites parts, each once.
struct Rewriter<'r, 'm> {
    parts: &'r mut Parts<'m>,
    /// Whether each of the original parts has a non-empty text.
    filled: Vec<bool>,
    /// The rewritten parts.
    made: Vec<Option<PartId>>,
}

impl<'r, 'm> Rewriter<'r, 'm> {
    fn new(parts: &'r mut Parts<'m>) -> Self {
        let filled = parts.filled();
        Self { made: vec![None; filled.len()], filled, parts }
    }

    fn rewritten(&mut self, part: PartId) -> PartId {
        if let Some(made) = self.made[part] {
            return made;
        }
        let made = if !self.parts.is_productive(part) {
            self.parts.add(Part::Choice(Vec::new()))
        } else if !self.filled[part] {
            self.parts.add(Part::Bytes(Vec::new()))
        } else {
            match self.parts.get(part).clone() {
                Part::Rule(rule) => self.parts.add(Part::Rule(self.parts.stands[rule])),
                Part::Choice(inner) => {
                    let inner: Vec<PartId> = inner.into_iter().map(|part| self.rewritten(part)).collect();
                    self.parts.one_of(inner)
                }
                Part::Sequence(inner) => {
                    let inner: Vec<PartId> = inner.into_iter().map(|part| self.rewritten(part)).collect();
                    let joined = self.parts.joined(inner);
                    self.parts.add(joined)
                }
                Part::Repeat { inner, min, max } if max.is_none_or(|max| max >= min) => {
                    let inner = self.rewritten(inner);
                    self.parts.repeated(inner, min, max)
                }
                _ => part,
            }
        };
        self.made[part] = Some(made);
        made
    }
}
