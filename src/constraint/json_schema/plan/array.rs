//! Plans of arrays: automata over the items.

use std::sync::Arc;

use super::claims::{Claims, answer};
use super::frame::{Frame, Opening, State, answers};
use super::{Counts, Part, PlanId, Planner, Step, Task};
use crate::automaton::FastMap;
use crate::constraint::json_schema::formula::{Formula, Leaf, Term};
use crate::constraint::json_schema::json::Json;
use crate::error::{Error, Result};

/// The most values that items may have if `uniqueItems` is to be followed.
const MAX_DOMAIN: usize = 12;

/// The states of an array; 0 is the start.
#[derive(Debug)]
pub(in super::super) struct Array {
    /// How many items there may be, where the states do not tell. Then all items are of one plan, without probes.
    pub(in super::super) counts: Option<Counts>,
    pub(in super::super) states: Vec<ArrayState>,
}

/// A state of an array, between items.
#[derive(Debug, Default)]
pub(in super::super) struct ArrayState {
    /// The step over one more item, if there may be one.
    pub(in super::super) item: Option<Step>,
    /// The outcome of an array that ends here.
    pub(in super::super) end: Option<u32>,
}

/// An array that is being planned.
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
            self.queue.fresh.push(Task { plan: id, part: Part::Array, state: course.states.len() as u32 });
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
        // What a leaf becomes if the answer to its probe is no, and if it is yes.
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
                    Some(at) if met >> at & 1 == 0 => {
                        self.formulas.leaf(Leaf::Unique { domain: Arc::clone(domain), met: met | 1 << at })
                    }
                    _ => Formula::FALSE,
                };
                values.insert(*leaf, after);
            }
            let residues = self.assign(residues, &values);
            next.push((residues[0] != Formula::FALSE).then(|| frame.number(residues)));
        }
        Ok(Some(Step { child, next }))
    }

    /// The residues of an array that ends.
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

    /// Gives `uniqueItems` the values that items can have.
    fn with_domains(&mut self, residues: &[Formula]) -> Result<Vec<Formula>> {
        let mut values: FastMap<Formula, Formula> = FastMap::default();
        for &leaf in self.leaves_of(residues).iter() {
            let Some(Leaf::Unique { domain, .. }) = self.formulas.as_leaf(leaf) else { continue };
            if domain.is_empty() {
                let unique = self.unique(leaf, residues[0])?;
                values.insert(leaf, unique);
            }
        }
        Ok(self.assign(residues, &values))
    }

    fn unique(&mut self, leaf: Formula, must: Formula) -> Result<Formula> {
        let parts = self.formulas.conjuncts(must);
        let mut rest = Vec::new();
        let mut first: Vec<(u64, Formula)> = Vec::new();
        for &part in parts.iter() {
            match self.formulas.term(part) {
                Term::Not(inner) => {
                    if let Some(Leaf::Items(0..=2)) = self.formulas.as_leaf(*inner) {
                        return Ok(Formula::TRUE);
                    }
                }
                Term::Leaf(Leaf::Rest(from, below)) => rest.push((*from, *below)),
                Term::Leaf(Leaf::Item(at, below)) => first.push((*at, *below)),
                _ => {}
            }
        }
        let mut goals: Vec<Vec<Formula>> = vec![rest.iter().map(|(_, below)| *below).collect()];
        let count = rest.iter().map(|(from, _)| *from).max().unwrap_or(0).min(MAX_DOMAIN as u64 + 1);
        for at in 0..count {
            let of_place = first.iter().filter(|(place, _)| *place == at).map(|(_, below)| *below);
            let of_rest = rest.iter().filter(|(from, _)| *from <= at).map(|(_, below)| *below);
            goals.push(of_place.chain(of_rest).collect());
        }
        let mut domain: Vec<Json> = Vec::new();
        for goal in goals {
            let goal = self.formulas.and(goal);
            let goal = self.looked_up(goal)?;
            let values = self.listed(goal);
            let Some(values) = values.filter(|values| values.len() <= 4 * MAX_DOMAIN) else {
                return Err(self.refused_unique(leaf));
            };
            for value in values {
                if self.holds(goal, &value)? == Some(true) && !domain.contains(&value) {
                    domain.push(value);
                }
            }
        }
        if domain.len() > MAX_DOMAIN {
            return Err(self.refused_unique(leaf));
        }
        if domain.is_empty() {
            return Ok(Formula::TRUE);
        }
        Ok(self.formulas.leaf(Leaf::Unique { domain: domain.into(), met: 0 }))
    }

    fn refused_unique(&self, leaf: Formula) -> Error {
        let pointer = self.schema.origins.get(&leaf).cloned().unwrap_or_default();
        Error::schema(
            pointer,
            format!(
                "`uniqueItems`: no finite automaton remembers all items; list at most {MAX_DOMAIN} values for them with `enum`, set `maxItems` to 1, or remove it and check the value afterwards"
            ),
        )
    }
}
