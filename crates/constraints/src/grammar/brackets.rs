//! Selects the parts of a recursive grammar that are called.
//!
//! Recursion is *embedded* if the rule reads something before and after the reference. The parts of
//! a sequence around embedded recursion are called as one procedure, from after the opening part to
//! the closing part: in `"[" space (value ("," value)*)? "]" space` the caller reads the first
//! bracket, then calls `space (value ("," value)*)? "]"`, then reads the last space. A part
//! *closes* if none of its texts is a prefix of another, so its last byte begins or ends the
//! procedure. If both the opening and the closing part close, they are *brackets* and always
//! called. The recursion left outside of brackets forms *knots*: a knot is called from after the
//! last required part before it to the last required part after it, even if these parts do not
//! close.

use super::parts::{Part, PartId, Parts};
use burn_dfa_automata::{FastMap, components};

/// Most parts of a sequence with rules put in for their names.
const MAX_EXPANDED: usize = 64;

/// The recursion of a grammar.
pub(super) struct Brackets<'p, 'm> {
    parts: &'p Parts<'m>,
    /// The strongly connected component of each rule by its references; 0 for a non-recursive rule.
    scc_of: Vec<u32>,
    /// The same without references within brackets.
    knot_of: Vec<u32>,
    /// Whether a part refers to a component.
    recursive: FastMap<(PartId, u32), bool>,
    expanded: FastMap<(PartId, u32), Vec<PartId>>,
}

/// The context of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
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
    pub(super) fn new(parts: &'p Parts<'m>) -> Self {
        let count = parts.bodies.len();
        let references = parts.bodies.iter().map(|&body| {
            let mut found = Vec::new();
            parts.rules_of(body, &mut found);
            found
        });
        let scc_of = sccs(count, &references.map(sorted).collect::<Vec<_>>());
        let (recursive, expanded) = (FastMap::default(), FastMap::default());
        let mut brackets = Self { parts, scc_of, knot_of: vec![0; count], recursive, expanded };
        let left: Vec<Vec<usize>> = (0..count)
            .map(|rule| {
                let mut found = Vec::new();
                let place = brackets.place(rule);
                if place.scc != 0 {
                    brackets.left_by_brackets(parts.bodies[rule], place, &mut found);
                }
                sorted(found)
            })
            .collect();
        brackets.knot_of = sccs(count, &left);
        brackets
    }

    /// The context of the body of a rule.
    pub(super) fn place(&self, rule: usize) -> Place {
        Place { scc: self.scc_of[rule], knot: self.knot_of[rule], behind: false, outermost: false }
    }

    /// The parts of a sequence in a rule of a component. Each rule after the first part whose body
    /// is a sequence is inlined if it is non-recursive, or if only the opening bracket is missing
    /// in it.
    pub(super) fn expanded(&mut self, sequence: PartId, scc: u32) -> Vec<PartId> {
        if let Some(known) = self.expanded.get(&(sequence, scc)) {
            return known.clone();
        }
        let mut expanded = Vec::new();
        if let Part::Sequence(parts) = self.parts.get(sequence) {
            for (at, &part) in parts.iter().enumerate() {
                if at == 0 { expanded.push(part) } else { self.expand(part, &mut expanded) }
            }
            for at in (1..expanded.len()).rev() {
                if let Some(closed) = self.closed(&expanded, at, scc) {
                    expanded = closed;
                }
            }
            if expanded.len() > MAX_EXPANDED {
                expanded.clone_from(parts);
            }
        }
        self.expanded.insert((sequence, scc), expanded.clone());
        expanded
    }

    /// Inlines a non-recursive rule.
    fn expand(&self, part: PartId, expanded: &mut Vec<PartId>) {
        if let Part::Rule(rule) = *self.parts.get(part)
            && let Part::Sequence(inner) = self.parts.get(self.parts.bodies[rule])
            && self.scc_of[rule] == 0
            && expanded.len() <= MAX_EXPANDED
        {
            inner.iter().for_each(|&part| self.expand(part, expanded));
        } else {
            expanded.push(part);
        }
    }

    /// The sequence with the rule at `at` inlined, if the rule closes a bracket opened by the
    /// sequence.
    fn closed(&mut self, sequence: &[PartId], at: usize, scc: u32) -> Option<Vec<PartId>> {
        let parts = self.parts;
        let Part::Rule(rule) = *parts.get(sequence[at]) else { return None };
        let Part::Sequence(inner) = parts.get(parts.bodies[rule]) else { return None };
        let place = Place { scc, knot: 0, behind: false, outermost: false };
        if self.scc_of[rule] != scc || self.bracket(inner, place).is_some() {
            return None;
        }
        let closed = [&sequence[..at], inner, &sequence[at + 1..]].concat();
        let (from, to) = self.bracket(&closed, place)?;
        (from <= at && to >= at + inner.len() - 1).then_some(closed)
    }

    /// The range of called parts of an expanded sequence, both ends included.
    pub(super) fn called(&mut self, parts: &[PartId], place: Place) -> Option<(usize, usize)> {
        self.bracket(parts, place).or_else(|| {
            if place.knot == 0 {
                return None;
            }
            let is_recursive = |own: &mut Self, part| {
                let mut rules = Vec::new();
                own.left_by_brackets(part, Place { behind: true, ..place }, &mut rules);
                rules.into_iter().any(|rule| own.knot_of[rule] == place.knot)
            };
            let is_recursive: Vec<bool> = parts.iter().map(|&part| is_recursive(self, part)).collect();
            self.between(parts, place, &is_recursive, |_| true)
        })
    }

    /// The brackets of a sequence.
    fn bracket(&mut self, parts: &[PartId], place: Place) -> Option<(usize, usize)> {
        if place.scc == 0 {
            return None;
        }
        let is_recursive: Vec<bool> = parts.iter().map(|&part| self.is_recursive(part, place.scc)).collect();
        self.between(parts, place, &is_recursive, |part| self.parts.closes(part))
    }

    fn between(
        &self,
        parts: &[PartId],
        place: Place,
        is_recursive: &[bool],
        closes: impl Fn(PartId) -> bool,
    ) -> Option<(usize, usize)> {
        let is_read = |at: usize| !self.parts.is_nullable(parts[at]);
        let begins = |at: usize| is_recursive[at] && (place.behind || (0..at).any(is_read));
        let first = (0..parts.len()).find(|&at| begins(at))?;
        // The call starts right after the last byte of the opening part.
        let opens = |&at: &usize| is_read(at) && closes(parts[at]);
        let from = match (0..first).rev().find(opens) {
            Some(at) => at + 1,
            None if place.behind => 0,
            None => return None,
        };
        let ends = |&at: &usize| !is_recursive[at] && is_read(at) && closes(parts[at]);
        (first + 1..parts.len()).rev().find(ends).map(|to| (from, to))
    }

    fn is_recursive(&mut self, part: PartId, scc: u32) -> bool {
        if let Some(&known) = self.recursive.get(&(part, scc)) {
            return known;
        }
        let mut rules = Vec::new();
        self.parts.rules_of(part, &mut rules);
        let is = rules.into_iter().any(|rule| self.scc_of[rule] == scc);
        self.recursive.insert((part, scc), is);
        is
    }

    /// The rules that a part refers to outside of brackets.
    fn left_by_brackets(&mut self, part: PartId, place: Place, found: &mut Vec<usize>) {
        match self.parts.get(part) {
            Part::Rule(rule) => found.push(*rule),
            Part::Choice(parts) => {
                parts.iter().for_each(|&part| self.left_by_brackets(part, place, found));
            }
            Part::Repeat { inner, max, .. } if *max != Some(0) => {
                self.left_by_brackets(*inner, Place { behind: false, ..place }, found);
            }
            Part::Sequence(_) => {
                let parts = self.expanded(part, place.scc);
                let called = self.bracket(&parts, place);
                for (at, &part) in parts.iter().enumerate() {
                    if called.is_none_or(|(from, to)| at < from || at > to) {
                        let behind = place.behind || at > 0;
                        self.left_by_brackets(part, Place { behind, ..place }, found);
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
