//! Strings and arrays with characters and items counted at emission.
//!
//! A string of at most n characters takes n copies of the states of one character, and an array of
//! at most n items n states of a plan. If they are emitted with calls, blocks of characters or
//! items are called instead. So they are planned by their bounds, and the current number of
//! characters or items is not part of a state.

use std::sync::Arc;

use super::frame::Opening;
use super::{MAX_OUTCOMES, Planner};
use crate::json_schema::formula::{Formula, Leaf, Term};
use crate::json_schema::string::{self, Uncounted};
use burn_dfa_common::Result;

/// Up to this number, characters and items are counted in the plan instead of at emission.
const FEW: u64 = 8;

/// Contents with more states than this are counted in the plan.
const LARGEST: usize = 4096;

/// The least and the greatest number of characters of a block owned by one state between
/// characters.
const OWN_BLOCK: (u64, u64) = (4, 32);

/// The allowed numbers of characters or items.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
}

impl Counts {
    /// Whether they are many enough to be counted at emission.
    fn are_many(self) -> bool {
        let max = self.max.unwrap_or(self.min);
        max > FEW && max >= self.min
    }

    pub(in super::super) fn contain(self, count: u64) -> bool {
        self.min <= count && self.max.is_none_or(|max| count <= max)
    }
}

/// Strings of a number of characters.
#[derive(Clone, Debug)]
pub(in super::super) struct Counted {
    pub(in super::super) texts: Arc<Uncounted>,
    pub(in super::super) counts: Counts,
    /// The most characters of a block, if each state between characters has its own blocks.
    pub(in super::super) own_block: Option<u64>,
}

impl Counted {
    /// An upper bound on the number of states of all characters without calls.
    pub(in super::super) fn copied_states(&self) -> u64 {
        let max = self.counts.max.unwrap_or(self.counts.min);
        max.saturating_mul(self.texts.rows().state_count() as u64)
    }

    pub(in super::super) fn matches(&self, text: &[u8]) -> bool {
        self.texts.count(text).is_some_and(|count| self.counts.contain(count))
    }
}

impl Planner<'_> {
    /// The strings of `must`, if they are counted at emission. They are never empty.
    pub(super) fn counted(&mut self, must: Formula) -> Result<Option<Counted>> {
        let Some(copies) = self.calls else { return Ok(None) };
        let Some(strings) = self.strings(must) else { return Ok(None) };
        let counts = Counts { min: strings.min, max: strings.max };
        if !counts.are_many() {
            return Ok(None);
        }
        let texts = match self.uncounted.get(&strings.contents) {
            Some(known) => known.clone(),
            None => {
                let content = self.contents(&strings.contents)?;
                let mut texts = None;
                if content.state_count() <= LARGEST {
                    let spelling = self.spelling_of(&strings.contents);
                    texts = Some(string::uncounted(&content, spelling, self.meter)?.into());
                }
                self.uncounted.insert(strings.contents, texts.clone());
                texts
            }
        };
        let Some(texts) = texts else { return Ok(None) };
        // One outcome of a block is that the string was closed.
        let has_few_units = texts.units().len() < MAX_OUTCOMES;
        let preferred = if has_few_units { copies.characters } else { copies.patterned };
        let mut counted = Counted { texts, counts, own_block: None };
        let Counted { texts, .. } = &counted;
        let max = counts.max.unwrap_or(counts.min);
        if counted.copied_states() <= preferred || texts.free_from().is_none_or(|from| from > max) {
            return Ok(None);
        }
        counted.own_block = (!has_few_units).then(|| texts.narrow_for(MAX_OUTCOMES - 1, OWN_BLOCK.1));
        let is_counted = counted.own_block.is_none_or(|characters| characters >= OWN_BLOCK.0);
        Ok(is_counted.then_some(counted))
    }

    /// Removes the number of items from the claims on an array, if all items have one plan and are
    /// counted at emission. A claim on whether the array is empty remains.
    pub(super) fn counted_items(&mut self, opening: &mut Opening) -> Option<Counts> {
        let [must, probes @ ..] = &opening.residues[..] else { return None };
        if self.calls.is_none() || probes.iter().any(|probe| probe.decided().is_none()) {
            return None;
        }
        let mut counts = Counts { min: 0, max: None };
        let mut claims = Vec::new();
        for &claim in self.formulas.conjuncts(*must).iter() {
            match self.formulas.term(claim) {
                Term::Leaf(Leaf::Items(min)) => counts.min = counts.min.max(*min),
                Term::Leaf(Leaf::Rest(0, _)) => claims.push(claim),
                Term::Not(claim) => match self.formulas.as_leaf(*claim) {
                    Some(Leaf::Items(more)) => {
                        let max = more.saturating_sub(1);
                        counts.max = Some(counts.max.map_or(max, |known| known.min(max)));
                    }
                    _ => return None,
                },
                _ => return None,
            }
        }
        if !counts.are_many() {
            return None;
        }
        if counts.min > 0 {
            claims.push(self.formulas.leaf(Leaf::Items(1)));
        }
        opening.residues[0] = self.formulas.and(claims);
        Some(counts)
    }
}
