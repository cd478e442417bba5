//! Outcomes of pieces that all calls treat alike are one.

use super::{FastMap, Subsets, Target};

/// The outcomes of pieces, numbered anew.
pub(super) struct Merged {
    /// By piece and outcome; without those from which no call goes on.
    numbers: FastMap<(u32, u32), u32>,
    /// The most of a piece.
    pub(super) most: usize,
}

impl Merged {
    /// The number of an outcome of a piece; `None` where no call goes on from it.
    pub(super) fn number(&self, piece: u32, outcome: u32) -> Option<u32> {
        self.numbers.get(&(piece, outcome)).copied()
    }
}

/// Where a call goes on, with outcomes by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Onward {
    Dead,
    To(Target),
}

impl Subsets<'_, '_> {
    /// The coarsest numbers under which outcomes of one piece that have the same lead every call to the same place.
    pub(super) fn merged(&self) -> Merged {
        let mut numbers = self.alive();
        let mut count = usize::MAX;
        loop {
            let mut refined = FastMap::default();
            let (mut most, mut total) = (0, 0);
            for (piece, of) in (0..).zip(&self.pieces) {
                let mut known: FastMap<(u32, Vec<Onward>), u32> = FastMap::default();
                for &outcome in &of.outcomes {
                    let Some(&number) = numbers.get(&(piece, outcome)) else { continue };
                    let onward =
                        of.callers.iter().map(|&call| self.onward(call, outcome, &numbers)).collect();
                    let next = known.len() as u32;
                    refined.insert((piece, outcome), *known.entry((number, onward)).or_insert(next));
                }
                most = most.max(known.len());
                total += known.len();
            }
            numbers = refined;
            if total == count {
                return Merged { numbers, most };
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

    /// The outcomes from which a call goes on, all with number 0.
    fn alive(&self) -> FastMap<(u32, u32), u32> {
        // By the outcome that a call returns with in its turn: what it returns from.
        let mut from: FastMap<(u32, u32), Vec<(u32, u32)>> = FastMap::default();
        let mut rest = Vec::new();
        for call in &self.calls {
            for (&outcome, &target) in &call.returns {
                match target {
                    Target::Dead => {}
                    Target::Return(outer) => {
                        from.entry((call.within, outer)).or_default().push((call.piece, outcome));
                    }
                    Target::State(_) | Target::Call(_) => rest.push((call.piece, outcome)),
                }
            }
        }
        let mut alive = FastMap::default();
        while let Some(outcome) = rest.pop() {
            if alive.insert(outcome, 0).is_none() {
                rest.extend(from.get(&outcome).into_iter().flatten());
            }
        }
        alive
    }
}
