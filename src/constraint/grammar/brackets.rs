//! Which parts of a recursive grammar are called.
//!
//! Recursion is *embedded* where there is something to read before and behind the reference. Parts of a sequence that hold it are
//! called as one, from behind what opens them to what closes them: of `"[" space (value ("," value)*)? "]" space` the first
//! bracket is read by the caller, then `space (value ("," value)*)? "]"` is called, and the last space is read by the caller
//! again. A part *closes* if no text of it is the beginning of another, so that its last byte begins or ends the piece. Where
//! both what opens a piece and what closes it do, they are *brackets*, and called wherever they are. What they leave of the
//! recursion, its *knots*, is called from behind the last part before it that has to be read to the last such part behind it,
//! whatever these end with.

use super::parts::{Part, PartId, Parts};
use crate::automaton::{FastMap, components};

/// Most parts of a sequence with rules put in for their names.
const MAX_EXPANDED: usize = 64;

/// The recursion of a grammar.
pub(super) struct Brackets<'p, 'm> {
    parts: &'p Parts<'m>,
    /// For each rule the strongly connected component of the rules that it refers to; 0 where it does not depend on itself.
    circle_of: Vec<u32>,
    /// Likewise without references within brackets.
    knot_of: Vec<u32>,
    /// The components that a part refers to.
    recursive: FastMap<(PartId, u32), bool>,
    expanded: FastMap<(PartId, u32), Vec<PartId>>,
}

/// Where a sequence stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// The component of the rule.
    pub(super) circle: u32,
    /// Its component without references within brackets.
    pub(super) knot: u32,
    /// Whether something was read within the rule.
    pub(super) behind: bool,
    /// Whether the whole text ends with it, so that it is copied rather than called.
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
        let circle_of = circles(count, &references.map(sorted).collect::<Vec<_>>());
        let (recursive, expanded) = (FastMap::default(), FastMap::default());
        let mut brackets = Self { parts, circle_of, knot_of: vec![0; count], recursive, expanded };
        let left: Vec<Vec<usize>> = (0..count)
            .map(|rule| {
                let mut found = Vec::new();
                let place = brackets.place(rule);
                if place.circle != 0 {
                    brackets.left_by_brackets(parts.bodies[rule], place, &mut found);
                }
                sorted(found)
            })
            .collect();
        brackets.knot_of = circles(count, &left);
        brackets
    }

    /// Where the body of a rule stands.
    pub(super) fn place(&self, rule: usize) -> Place {
        Place { circle: self.circle_of[rule], knot: self.knot_of[rule], behind: false, outermost: false }
    }

    /// The parts of a sequence in a rule of a component, with rules that are sequences put in for their names behind the first:
    /// those that do not depend on themselves, and those that lack but an opening part to be brackets.
    pub(super) fn expanded(&mut self, sequence: PartId, circle: u32) -> Vec<PartId> {
        if let Some(known) = self.expanded.get(&(sequence, circle)) {
            return known.clone();
        }
        let mut expanded = Vec::new();
        if let Part::Sequence(parts) = self.parts.get(sequence) {
            for (at, &part) in parts.iter().enumerate() {
                if at == 0 { expanded.push(part) } else { self.expand(part, &mut expanded) }
            }
            for at in (1..expanded.len()).rev() {
                if let Some(closed) = self.closed(&expanded, at, circle) {
                    expanded = closed;
                }
            }
            if expanded.len() > MAX_EXPANDED {
                expanded.clone_from(parts);
            }
        }
        self.expanded.insert((sequence, circle), expanded.clone());
        expanded
    }

    /// Puts in a rule that does not depend on itself.
    fn expand(&self, part: PartId, expanded: &mut Vec<PartId>) {
        if let Part::Rule(rule) = *self.parts.get(part)
            && let Part::Sequence(inner) = self.parts.get(self.parts.bodies[rule])
            && self.circle_of[rule] == 0
            && expanded.len() <= MAX_EXPANDED
        {
            inner.iter().for_each(|&part| self.expand(part, expanded));
        } else {
            expanded.push(part);
        }
    }

    /// A sequence with a rule put in at `at` that closes what the sequence opens; `None` where it does not.
    fn closed(&mut self, sequence: &[PartId], at: usize, circle: u32) -> Option<Vec<PartId>> {
        let parts = self.parts;
        let Part::Rule(rule) = *parts.get(sequence[at]) else { return None };
        let Part::Sequence(inner) = parts.get(parts.bodies[rule]) else { return None };
        let place = Place { circle, knot: 0, behind: false, outermost: false };
        if self.circle_of[rule] != circle || self.bracket(inner, place).is_some() {
            return None;
        }
        let closed = [&sequence[..at], inner, &sequence[at + 1..]].concat();
        let (from, to) = self.bracket(&closed, place)?;
        (from <= at && to >= at + inner.len() - 1).then_some(closed)
    }

    /// The parts of an expanded sequence that are called, from one to another, both included.
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
        if place.circle == 0 {
            return None;
        }
        let is_recursive: Vec<bool> =
            parts.iter().map(|&part| self.is_recursive(part, place.circle)).collect();
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
        // From behind what opens it, so that the call follows the last byte of that.
        let opens = |&at: &usize| is_read(at) && closes(parts[at]);
        let from = match (0..first).rev().find(opens) {
            Some(at) => at + 1,
            None if place.behind => 0,
            None => return None,
        };
        let ends = |&at: &usize| !is_recursive[at] && is_read(at) && closes(parts[at]);
        (first + 1..parts.len()).rev().find(ends).map(|to| (from, to))
    }

    fn is_recursive(&mut self, part: PartId, circle: u32) -> bool {
        if let Some(&known) = self.recursive.get(&(part, circle)) {
            return known;
        }
        let mut rules = Vec::new();
        self.parts.rules_of(part, &mut rules);
        let is = rules.into_iter().any(|rule| self.circle_of[rule] == circle);
        self.recursive.insert((part, circle), is);
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
                let parts = self.expanded(part, place.circle);
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

/// For each rule the number of its strongly connected component, from 1 on; 0 where it does not depend on itself.
pub(super) fn circles(count: usize, references: &[Vec<usize>]) -> Vec<u32> {
    let children = |rule: u32| references[rule as usize].iter().map(|&rule| rule as u32).collect();
    let mut circle_of = vec![0; count];
    for (component, number) in components(count, 0..count as u32, children).iter().zip(1..) {
        let is_circle = match component[..] {
            [one] => references[one as usize].contains(&(one as usize)),
            _ => true,
        };
        if is_circle {
            component.iter().for_each(|&rule| circle_of[rule as usize] = number);
        }
    }
    circle_of
}

fn sorted(mut rules: Vec<usize>) -> Vec<usize> {
    rules.sort_unstable();
    rules.dedup();
    rules
}
