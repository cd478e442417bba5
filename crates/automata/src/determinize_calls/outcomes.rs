//! Merges exits of procedures that every call treats alike.

use super::{FastMap, Subsets, Target};
use burn_dfa_common::Result;

/// The renumbered exits of procedures.
pub(super) struct Merged {
    /// By procedure and exit; exits that no call continues from are absent.
    numbers: FastMap<(u32, u32), u32>,
    /// The maximum number of exits of one procedure.
    pub(super) max_exits: usize,
}

impl Merged {
    /// The number of an exit of a procedure; `None` if no call continues from it.
    pub(super) fn number(&self, procedure: u32, outcome: u32) -> Option<u32> {
        self.numbers.get(&(procedure, outcome)).copied()
    }
}

/// The target of a call, with renumbered exits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Onward {
    Dead,
    To(Target),
}

impl Subsets<'_, '_> {
    /// The coarsest renumbering: exits of a procedure share a number if every call has the same
    /// target for both.
    ///
    /// # Errors
    /// The time limit is exceeded.
    pub(super) fn merged(&self) -> Result<Merged> {
        let meter = self.network.meter();
        let mut numbers = self.alive()?;
        let mut count = usize::MAX;
        loop {
            let mut refined = FastMap::default();
            let (mut max_exits, mut total) = (0, 0);
            for (procedure, of) in (0..).zip(&self.procedures) {
                meter.time()?;
                let mut known: FastMap<(u32, Vec<Onward>), u32> = FastMap::default();
                for &outcome in &of.outcomes {
                    let Some(&number) = numbers.get(&(procedure, outcome)) else { continue };
                    meter.time()?;
                    let onward =
                        of.callers.iter().map(|&call| self.onward(call, outcome, &numbers)).collect();
                    let next = known.len() as u32;
                    refined.insert((procedure, outcome), *known.entry((number, onward)).or_insert(next));
                }
                max_exits = max_exits.max(known.len());
                total += known.len();
            }
            numbers = refined;
            if total == count {
                return Ok(Merged { numbers, max_exits });
            }
            count = total;
        }
    }

    fn onward(&self, call: u32, outcome: u32, numbers: &FastMap<(u32, u32), u32>) -> Onward {
        let call = &self.calls[call as usize];
        match call.returns.get(&outcome) {
            None | Some(Target::Dead) => Onward::Dead,
            Some(Target::Return(outer)) => match numbers.get(&(call.within, *outer)) {
                Some(&number) => Onward::To(Target::Return(number)),
                None => Onward::Dead,
            },
            Some(&target) => Onward::To(target),
        }
    }

    /// The exits that some call continues from, all with number 0.
    fn alive(&self) -> Result<FastMap<(u32, u32), u32>> {
        // By an exit of the caller: the exits of the callee that lead to it.
        let mut from: FastMap<(u32, u32), Vec<(u32, u32)>> = FastMap::default();
        let mut rest = Vec::new();
        for call in &self.calls {
            self.network.meter().time()?;
            for (&outcome, &target) in &call.returns {
                match target {
                    Target::Dead => {}
                    Target::Return(outer) => {
                        from.entry((call.within, outer)).or_default().push((call.procedure, outcome));
                    }
                    Target::State(_) | Target::Call(_) => rest.push((call.procedure, outcome)),
                }
            }
        }
        let mut alive = FastMap::default();
        while let Some(outcome) = rest.pop() {
            if alive.insert(outcome, 0).is_none() {
                rest.extend(from.get(&outcome).into_iter().flatten());
            }
        }
        Ok(alive)
    }
}
