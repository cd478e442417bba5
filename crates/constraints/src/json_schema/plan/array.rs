//! Plans of arrays: automata over the items.

use std::sync::Arc;

use super::claims::{Claims, answer};
use super::frame::{Frame, Opening, State, answers};
use super::{Counts, PlanId, Planner, Step, SubPlan, Task};
use crate::json_schema::formula::{Formula, Leaf};
use burn_dfa_automata::FastMap;
use burn_dfa_common::Result;

/// The states of an array; 0 is the start.
#[derive(Debug)]
pub(crate) struct Array {
    /// The allowed number of items, if the states do not count them. Then all items have one plan,
    /// without probes.
    pub(crate) counts: Option<Counts>,
    pub(crate) states: Vec<ArrayState>,
}

/// A state of an array, between items.
#[derive(Debug, Default)]
pub(crate) struct ArrayState {
    /// The step over one more item, if one is allowed.
    pub(crate) item: Option<Step>,
    /// The outcome of an array that ends here.
    pub(crate) end: Option<u32>,
}

/// The planning state of an array.
pub(super) struct ArrayCourse {
    pub(super) counts: Option<Counts>,
    opening: Opening,
    frame: Frame<Vec<Formula>>,
    pub(super) states: Vec<ArrayState>,
}

impl State for ArrayState {
    fn steps(&mut self) -> Vec<&mut Option<Step>> {
        vec![&mut self.item]
    }

    fn end(&self) -> Option<u32> {
        self.end
    }
}

impl Planner<'_> {
    /// An array before its first item.
    pub(super) fn array(&mut self, id: PlanId, mut opening: Opening) -> Result<ArrayCourse> {
        let counts = self.counted_items(&mut opening);
        let frame = Frame::new(self.with_domains(&opening.residues)?);
        let mut course = ArrayCourse { counts, opening, frame, states: Vec::new() };
        self.new_array_states(id, &mut course)?;
        Ok(course)
    }

    /// Follows one more item from a state, as far as the outcomes of items are known.
    pub(super) fn expand_array(&mut self, id: PlanId, state: u32, course: &mut ArrayCourse) -> Result<()> {
        let residues = course.frame.get(state as usize).expect("a state has a key");
        let item = self.item(&residues, &course.opening, &mut course.frame)?;
        course.states[state as usize].item = item;
        self.new_array_states(id, course)
    }

    fn new_array_states(&mut self, id: PlanId, course: &mut ArrayCourse) -> Result<()> {
        while let Some(residues) = course.frame.get(course.states.len()) {
            self.count()?;
            let ended = self.ended_array(&residues);
            let end = answers(&ended).map(|answers| self.outcome(id, &answers));
            self.queue.fresh.push(Task {
                plan: id,
                sub_plan: SubPlan::Array,
                state: course.states.len() as u32,
            });
            course.states.push(ArrayState { item: None, end });
        }
        Ok(())
    }

    /// The step over one more item.
    fn item(
        &mut self,
        residues: &[Formula],
        opening: &Opening,
        frame: &mut Frame<Vec<Formula>>,
    ) -> Result<Option<Step>> {
        let sure = self.formulas.conjuncts(residues[0]);
        let mut moved: FastMap<Formula, Formula> = FastMap::default();
        let mut claims = Claims::default();
        // The replacement of a leaf if the answer to its probe is no, and if it is yes.
        let mut becomes: FastMap<Formula, (Formula, Formula)> = FastMap::default();
        let mut unique = Vec::new();
        for &leaf in self.leaves_of(residues).iter() {
            let Some(what) = self.formulas.as_leaf(leaf).cloned() else { continue };
            let (below, no, yes) = match what {
                Leaf::Item(0, below) => (below, Formula::FALSE, Formula::TRUE),
                Leaf::Rest(0, below) => (below, Formula::FALSE, leaf),
                Leaf::Contains(below, count) => {
                    (below, leaf, self.formulas.leaf(Leaf::Contains(below, count - 1)))
                }
                Leaf::Item(at, below) => {
                    moved.insert(leaf, self.formulas.leaf(Leaf::Item(at - 1, below)));
                    continue;
                }
                Leaf::Rest(from, below) => {
                    moved.insert(leaf, self.formulas.leaf(Leaf::Rest(from - 1, below)));
                    continue;
                }
                Leaf::Items(count) => {
                    moved.insert(leaf, self.formulas.leaf(Leaf::Items(count - 1)));
                    continue;
                }
                Leaf::Unique { domain, met } => {
                    unique.push((leaf, domain, met));
                    continue;
                }
                _ => continue,
            };
            match below.decided() {
                Some(truth) => {
                    moved.insert(leaf, if truth { yes } else { no });
                }
                None if no == Formula::FALSE && sure.contains(&leaf) => {
                    claims.must.push(below);
                    moved.insert(leaf, yes);
                }
                None => {
                    claims.open.push((leaf, below));
                    becomes.insert(leaf, (no, yes));
                }
            }
        }
        for (_, domain, _) in &unique {
            for value in domain.iter() {
                let is = self.formulas.leaf(Leaf::Values([value.clone()].into()));
                claims.open.push((is, is));
            }
        }
        let ahead = self.assign(residues, &moved);
        if ahead[0] == Formula::FALSE {
            return Ok(None);
        }
        let is_last = self.max_items(ahead[0]) == Some(0);
        let probes = claims.probes();
        let must = self.formulas.and(claims.must.iter().copied());
        let Some(child) = self.below(must, &probes, opening.depth, opening.within_any)? else {
            return Ok(None);
        };
        let outcomes = self.get(child).outcomes.clone();
        let mut next = Vec::with_capacity(outcomes.len());
        for answers in &outcomes {
            let truth = |probe: Formula| answer(&probes, answers, probe);
            let mut values = moved.clone();
            for (&leaf, &(no, yes)) in &becomes {
                let below =
                    claims.open.iter().find(|(open, _)| *open == leaf).map_or(leaf, |(_, below)| *below);
                values.insert(leaf, if truth(below) { yes } else { no });
            }
            for (leaf, domain, met) in &unique {
                let at = domain.iter().position(|value| {
                    let is = self.formulas.leaf(Leaf::Values([value.clone()].into()));
                    truth(is)
                });
                let after = match at {
                    Some(at) => match met.binary_search(&(at as u16)) {
                        Ok(_) => Formula::FALSE,
                        Err(_) if is_last => Formula::TRUE,
                        Err(after) => {
                            let (before, behind) = met.split_at(after);
                            let met = [before, &[at as u16], behind].concat().into();
                            self.formulas.leaf(Leaf::Unique { domain: Arc::clone(domain), met })
                        }
                    },
                    None => Formula::FALSE,
                };
                values.insert(*leaf, after);
            }
            let residues = self.assign(residues, &values);
            next.push((residues[0] != Formula::FALSE).then(|| frame.number(residues)));
        }
        Ok(Some(Step { child, next }))
    }

    /// The residues at the end of an array.
    fn ended_array(&mut self, residues: &[Formula]) -> Vec<Formula> {
        let mut values: FastMap<Formula, Formula> = FastMap::default();
        for &leaf in self.leaves_of(residues).iter() {
            let truth = match self.formulas.as_leaf(leaf) {
                Some(Leaf::Contains(..) | Leaf::Items(_)) => Formula::FALSE,
                _ => Formula::TRUE,
            };
            values.insert(leaf, truth);
        }
        self.assign(residues, &values)
    }
}
