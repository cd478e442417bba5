//! Recursive references: schemas deferred by the reader.

use super::Planner;
use crate::json_schema::formula::{Formula, Leaf};
use burn_dfa_common::{Error, Result};

impl Planner<'_> {
    /// The formula with deferred schemas substituted.
    pub(super) fn looked_up(&mut self, formula: Formula) -> Result<Formula> {
        let later = &self.schema.later;
        let mut formula = formula;
        for _ in 0..=later.len() {
            let next = self.formulas.replace(formula, &mut |formulas, leaf| match formulas.as_leaf(leaf) {
                Some(&Leaf::Later(number)) => Some(later[number as usize]),
                _ => None,
            });
            if next == formula {
                return Ok(formula);
            }
            formula = next;
        }
        Err(Error::schema("", "references lead back to themselves without any property or item in between"))
    }

    /// Whether `formula` contains a recursive reference, at any depth.
    pub(super) fn is_recursive(&mut self, formula: Formula) -> bool {
        if let Some(&known) = self.recursive.get(&formula) {
            return known;
        }
        let mut found = false;
        for leaf in self.formulas.leaves(formula).iter() {
            let Some(leaf) = self.formulas.as_leaf(*leaf) else { continue };
            let (is_later, below) = (matches!(leaf, Leaf::Later(_)), leaf.below());
            found = is_later || below.is_some_and(|below| self.is_recursive(below));
            if found {
                break;
            }
        }
        self.recursive.insert(formula, found);
        found
    }
}
