//! Steps over undeclared properties of an object.

use std::sync::Arc;

use super::claims::{Claims, answer};
use super::frame::Opening;
use super::nesting::Any;
use super::object::{Key, ObjectCourse, Others};
use super::remark::Remark;
use super::{Planner, Step};
use crate::json_schema::formula::{Except, Formula, Leaf};
use crate::json_schema::types::Types;
use burn_dfa_automata::FastMap;
use burn_dfa_common::Result;

impl Planner<'_> {
    /// The steps over an undeclared property.
    pub(super) fn others(&mut self, key: &Key, course: &mut ObjectCourse) -> Result<Option<Others>> {
        let sure = self.formulas.conjuncts(key.residues[0]);
        let leaves = self.leaves_of(&key.residues);
        let mut must = vec![self.formulas.leaf(Leaf::Types(Types::STRING))];
        let mut probes: Vec<Formula> = Vec::new();
        let mut allowed = Vec::new();
        for &leaf in leaves.iter() {
            let Some(what) = self.formulas.as_leaf(leaf).cloned() else { continue };
            let mut probe = |probe: Formula| {
                if !probes.contains(&probe) {
                    probes.push(probe);
                }
            };
            match what {
                Leaf::Names(below) if sure.contains(&leaf) => must.push(below),
                Leaf::Names(below) => probe(below),
                Leaf::Matching(pattern, below) => {
                    let matches = self.formulas.leaf(Leaf::Pattern(pattern));
                    allowed.push(matches);
                    if below == Formula::FALSE && sure.contains(&leaf) {
                        must.push(self.formulas.not(matches));
                    } else if below != Formula::TRUE {
                        probe(matches);
                    }
                }
                Leaf::Others(except, below) => {
                    let patterns: Vec<Formula> = except
                        .patterns
                        .iter()
                        .map(|pattern| self.formulas.leaf(Leaf::Pattern(Arc::clone(pattern))))
                        .collect();
                    if below == Formula::FALSE && sure.contains(&leaf) {
                        must.push(self.formulas.or(patterns));
                    } else if below != Formula::TRUE {
                        patterns.into_iter().for_each(&mut probe);
                    }
                }
                _ => {}
            }
        }
        if course.only_matching {
            must.push(self.formulas.or(allowed));
        }
        probes.sort_unstable();
        let must = self.formulas.and(must);
        let Some(names) = self.names(must, &probes, course.opening.depth)? else { return Ok(None) };
        let mut steps = Vec::new();
        for answers in self.get(names).outcomes.clone() {
            let matches = |planner: &mut Self, pattern: &Arc<_>| {
                let leaf = planner.formulas.leaf(Leaf::Pattern(Arc::clone(pattern)));
                answer(&probes, &answers, leaf)
            };
            let is_other = |planner: &mut Self, except: &Except| {
                !except.patterns.iter().any(|pattern| matches(planner, pattern))
            };
            let mut claims = Claims::default();
            // Violations by the name, independent of its value and of the rest.
            let mut violated: FastMap<Formula, Formula> = FastMap::default();
            for &leaf in leaves.iter() {
                let below = match self.formulas.as_leaf(leaf).cloned() {
                    // Such a claim forbids its names, which are already excluded from the plan of
                    // names.
                    Some(Leaf::Matching(_, Formula::FALSE) | Leaf::Others(_, Formula::FALSE))
                        if sure.contains(&leaf) =>
                    {
                        continue;
                    }
                    Some(Leaf::Names(below)) if !sure.contains(&leaf) => {
                        if !answer(&probes, &answers, below) {
                            violated.insert(leaf, Formula::FALSE);
                        }
                        continue;
                    }
                    Some(Leaf::Matching(pattern, below)) if matches(self, &pattern) => below,
                    Some(Leaf::Others(except, below)) if is_other(self, &except) => below,
                    _ => continue,
                };
                match below.decided() {
                    Some(true) => {}
                    Some(false) => {
                        violated.insert(leaf, Formula::FALSE);
                    }
                    None if sure.contains(&leaf) => claims.must.push(below),
                    None => claims.open.push((leaf, below)),
                }
            }
            steps.push(self.other(key, claims, violated, course)?);
        }
        if steps.iter().all(Option::is_none) {
            return Ok(None);
        }
        self.may_repeat(&leaves);
        Ok(Some(Others { names, steps }))
    }

    /// Notes that names may occur twice in an object with these claims.
    fn may_repeat(&mut self, leaves: &[Formula]) {
        let about = |leaf: &&Formula| match self.formulas.as_leaf(**leaf) {
            Some(Leaf::Names(_)) => true,
            Some(Leaf::Matching(_, below)) => *below != Formula::FALSE,
            _ => false,
        };
        let origins = leaves.iter().filter(about).filter_map(|leaf| self.schema.origins.get(leaf));
        let mut origins = origins.map(String::as_str).peekable();
        if origins.peek().is_none() {
            self.remarks.add("", Remark::Repeated);
        }
        origins.for_each(|origin| self.remarks.add(origin, Remark::Repeated));
    }

    /// The step over a property with an undeclared name, by its claims; some claims may be
    /// violated.
    fn other(
        &mut self,
        key: &Key,
        claims: Claims,
        mut decided: FastMap<Formula, Formula>,
        course: &mut ObjectCourse,
    ) -> Result<Option<Step>> {
        for &leaf in self.leaves_of(&key.residues).iter() {
            if let Some(&Leaf::Properties { count, certain, possible }) = self.formulas.as_leaf(leaf) {
                let fewer = Leaf::Properties {
                    count,
                    certain: if key.more { certain } else { certain - 1 },
                    possible: possible.saturating_sub(1),
                };
                decided.insert(leaf, self.formulas.leaf(fewer));
            }
        }
        let residues = self.assign(&key.residues, &decided);
        if residues[0] == Formula::FALSE {
            return Ok(None);
        }
        let probes = claims.probes();
        let must = self.required(&residues, &FastMap::default(), &claims);
        let Opening { mut depth, within_any, .. } = course.opening;
        if within_any.is_none() && !course.names.is_empty() && self.calls.is_none() {
            depth.any = Any::Unnamed;
        }
        let Some(child) = self.below(must, &probes, depth, within_any)? else { return Ok(None) };
        let mut next = Vec::new();
        for answers in self.get(child).outcomes.clone() {
            let violated = claims.open.iter().filter(|(_, below)| !answer(&probes, &answers, *below));
            let violated: Vec<Formula> = violated.map(|(leaf, _)| *leaf).collect();
            next.push(self.after_other(key, &residues, violated, course));
        }
        Ok(next.iter().any(Option::is_some).then_some(Step { child, next }))
    }

    /// The state after an undeclared property with a value that violated some claims.
    fn after_other(
        &mut self,
        key: &Key,
        residues: &[Formula],
        mut violated: Vec<Formula>,
        course: &mut ObjectCourse,
    ) -> Option<u32> {
        let surely = violated.iter().map(|&leaf| (leaf, Formula::FALSE)).collect();
        let of_distinct = self.assign(residues, &surely);
        if of_distinct[0] == Formula::FALSE {
            return None;
        }
        if key.distinct.is_some() {
            course.supposed.number(Key { residues: of_distinct, ..key.clone() });
            return None;
        }
        let mut residues = residues.to_vec();
        for &leaf in key.violated.iter().filter(|leaf| !violated.contains(leaf)) {
            // Not the last of all: it may or may not count.
            let mut either = [Formula::FALSE, Formula::TRUE].map(|truth| {
                let values = [(leaf, truth)].into_iter().collect();
                self.assign(&residues, &values)
            });
            let must = self.formulas.and([either[0][0], either[1][0]]);
            let differ = either[0][1..] != either[1][1..];
            if must != either[0][0] || differ {
                self.suppose_distinct(key, &of_distinct, leaf, course);
            }
            if must == Formula::FALSE || differ {
                return None;
            }
            either[0][0] = must;
            [residues, _] = either;
        }
        violated.retain(|leaf| residues.iter().any(|&residue| self.formulas.leaves(residue).contains(leaf)));
        violated.sort_unstable();
        violated.dedup();
        Some(course.frame.number(Key { residues, violated, more: true, ..key.clone() }))
    }

    /// Continues as if names were distinct, to detect whether `claim` omits objects. In any order,
    /// it is assumed to.
    fn suppose_distinct(
        &mut self,
        key: &Key,
        residues: &[Formula],
        claim: Formula,
        course: &mut ObjectCourse,
    ) {
        if course.is_unordered {
            course.excluded.get_or_insert(claim);
            return;
        }
        let all = key.violated.iter().map(|&leaf| (leaf, Formula::FALSE)).collect();
        let residues = self.assign(residues, &all);
        if residues[0] != Formula::FALSE {
            let distinct = Some(claim);
            course.supposed.number(Key {
                residues,
                violated: Vec::new(),
                more: true,
                distinct,
                ..key.clone()
            });
        }
    }
}
