//! The error of a schema that no value satisfies. It names the smallest set of contradictory
//! keywords, as deep in the schema as possible.

use super::Schema;
use super::formula::{Formula, Leaf};
use super::plan::Planner;
use burn_dfa_common::{Error, Result};

impl Schema {
    /// The error of an unsatisfiable schema, from the plans of `planner`.
    pub(super) fn unsatisfiable(&self, planner: &mut Planner) -> Error {
        if let Some(refused) = planner.remarks.refused() {
            return refused;
        }
        let cut = if planner.cut { ", within the depth that the options set" } else { "" };
        // The search for the reason may exceed a limit. The error is correct without the reason.
        let pointers = self.conflict(planner).unwrap_or_default();
        let reason = match &pointers[..] {
            [] if self.root == Formula::FALSE => "no JSON value satisfies the schema `false`".to_owned(),
            [] => format!("no JSON value satisfies the schema{cut}"),
            [only] => format!("no JSON value satisfies the schema{cut}: none satisfies {only}"),
            [first @ .., last] => format!(
                "no JSON value satisfies the schema{cut}: none satisfies {} and {last} together",
                first.join(", ")
            ),
        };
        Error::unsatisfiable(reason)
    }

    /// The pointers of a minimal set of claims that no value satisfies together. If the
    /// contradiction is the absence of a required part of the value, these are the claims on that
    /// part.
    fn conflict(&self, planner: &mut Planner) -> Result<Vec<String>> {
        let mut formula = self.root;
        loop {
            let mut claims = planner.formulas.conjuncts(formula).to_vec();
            // Tries to leave out large parts first.
            let mut size = claims.len().div_ceil(2);
            while size > 0 && claims.len() > 1 {
                let mut at = 0;
                while at < claims.len() && claims.len() > 1 {
                    let end = (at + size).min(claims.len());
                    let rest: Vec<Formula> = claims[..at].iter().chain(&claims[end..]).copied().collect();
                    let together = planner.formulas.and(rest.iter().copied());
                    if planner.is_empty(together)? {
                        claims = rest;
                    } else {
                        at = end;
                    }
                }
                size = if size == 1 { 0 } else { size.div_ceil(2) };
            }
            let mut part = None;
            for &claim in &claims {
                let below = match planner.formulas.as_leaf(claim) {
                    Some(
                        Leaf::Property(_, below)
                        | Leaf::Item(_, below)
                        | Leaf::Rest(_, below)
                        | Leaf::Contains(below, _),
                    ) => *below,
                    _ => continue,
                };
                if below != Formula::FALSE && planner.is_empty(below)? {
                    part = Some(below);
                    break;
                }
            }
            let Some(below) = part else {
                let mut pointers: Vec<String> = Vec::new();
                for claim in &claims {
                    let Some(pointer) = self.origins.get(claim) else { continue };
                    // Two keywords in one claim.
                    if let Some(Leaf::Length { max: Some(_), .. }) = self.formulas.as_leaf(*claim)
                        && let Some(schema) = pointer.strip_suffix("minLength")
                    {
                        pointers.push(format!("{schema}maxLength"));
                    }
                    pointers.push(pointer.clone());
                }
                pointers.sort_unstable();
                pointers.dedup();
                return Ok(pointers);
            };
            formula = below;
        }
    }
}
