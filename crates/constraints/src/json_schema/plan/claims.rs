//! Claims on the next part of an array or an object.

use super::Planner;
use crate::json_schema::formula::Formula;
use burn_dfa_automata::FastMap;

/// The claims of the residues on the next part: claims that must hold, and claims that the residues
/// depend on.
#[derive(Default)]
pub(super) struct Claims {
    pub(super) must: Vec<Formula>,
    /// Leaves of the residues, each with the probe that decides it.
    pub(super) open: Vec<(Formula, Formula)>,
}

impl Claims {
    /// The distinct probes.
    pub(super) fn probes(&self) -> Vec<Formula> {
        let mut probes: Vec<Formula> = Vec::new();
        for &(_, probe) in &self.open {
            if !probes.contains(&probe) {
                probes.push(probe);
            }
        }
        // Sorted, so that equal sets of probes are one goal.
        probes.sort_unstable();
        probes
    }
}

/// The answer to `probe`, by the answers to `probes`.
pub(super) fn answer(probes: &[Formula], answers: &[bool], probe: Formula) -> bool {
    match probe.decided() {
        Some(truth) => truth,
        None => probes.iter().position(|known| *known == probe).is_some_and(|at| answers[at]),
    }
}

impl Planner<'_> {
    /// The formula for the next value: all claims that must hold and, if the residues would be
    /// false with every probe answered no, the disjunction of the probes.
    pub(super) fn required(
        &mut self,
        residues: &[Formula],
        values: &FastMap<Formula, Formula>,
        claims: &Claims,
    ) -> Formula {
        let mut must = claims.must.clone();
        if !claims.open.is_empty() {
            let mut values = values.clone();
            values.extend(claims.open.iter().map(|&(leaf, _)| (leaf, Formula::FALSE)));
            if self.assign(&residues[..1], &values)[0] == Formula::FALSE {
                must.push(self.formulas.or(claims.open.iter().map(|&(_, below)| below)));
            }
        }
        self.formulas.and(must)
    }
}
