//! The product of the automata of a formula's leaves: it decides which texts satisfy the formula.
//!
//! An automaton in its dead state has decided its leaf. An automaton is dropped when the formula no
//! longer depends on it. A string that is undecided under a `format` is accepted only if the
//! formula does not depend on the undecided leaf.

use super::frame::answers;
use super::labeled::Labeled;
use super::live::live;
use super::{Plan, Planner};
use crate::json_schema::formula::Formula;
use burn_dfa_automata::{ByteDfa, ByteStateId, FastMap, Interner, JointClasses, Rows};
use burn_dfa_common::Result;

/// A leaf with the numbers of two automata: one for the texts for which it surely holds, and one
/// for the texts for which it possibly holds. Usually they are the same.
pub(super) struct Judged {
    pub(super) leaf: Formula,
    pub(super) surely: usize,
    pub(super) possibly: usize,
}

/// The automata, run in parallel.
pub(super) struct Product<'p, 'a, 'b> {
    planner: &'p mut Planner<'a>,
    /// The automaton of all texts, and the automata of the leaves.
    automata: &'b [&'b ByteDfa],
    leaves: &'b [Judged],
    residues: Vec<Formula>,
    /// For each set of dead automata: whether the formula depends on each other automaton, or
    /// `None` if no text can be accepted.
    live: Vec<Option<Vec<bool>>>,
    /// The number of each set of dead automata.
    number_of: FastMap<Vec<bool>, usize>,
    /// The previous set, usually the next one too, and its number.
    dead: Vec<bool>,
    last: usize,
    /// The answers of texts by the verdicts on the leaves at their end.
    answers: FastMap<Vec<u8>, Option<Vec<bool>>>,
}

impl<'p, 'a, 'b> Product<'p, 'a, 'b> {
    pub(super) fn new(
        planner: &'p mut Planner<'a>,
        automata: &'b [&'b ByteDfa],
        leaves: &'b [Judged],
        residues: Vec<Formula>,
    ) -> Self {
        Self {
            planner,
            automata,
            leaves,
            residues,
            live: Vec::new(),
            number_of: FastMap::default(),
            dead: Vec::new(),
            last: 0,
            answers: FastMap::default(),
        }
    }

    pub(super) fn run(mut self, plan: &mut Plan) -> Result<Option<Labeled>> {
        let joint = JointClasses::new(self.automata);
        let mut vectors: Interner<u32> = Interner::new();
        vectors.intern(&vec![0; self.automata.len()]);
        let mut start: Vec<u32> = self.automata.iter().map(|dfa| dfa.start().0).collect();
        self.settle(&mut start);
        let start = vectors.intern(&start).0;
        let mut found: Vec<Option<Vec<bool>>> = vec![None];
        let mut rows = vec![Vec::new()];
        let automata = self.automata;
        let (mut vector, mut next, mut targets) = (Vec::new(), Vec::new(), vec![0; joint.count()]);
        let mut at = 1;
        while at < vectors.len() {
            vector.clear();
            vector.extend_from_slice(vectors.get(at as u32));
            // The dead state leads nowhere but to itself.
            let alive = vector.iter().zip(automata).enumerate().filter(|(_, (state, _))| **state != 0);
            let alive: Vec<(usize, &[u32])> =
                alive.map(|(number, (&state, dfa))| (number, dfa.row(ByteStateId(state)))).collect();
            next.resize(vector.len(), 0);
            for (target, classes) in targets.iter_mut().zip(joint.columns()) {
                next.fill(0);
                alive.iter().for_each(|&(number, row)| next[number] = row[classes[number] as usize]);
                self.settle(&mut next);
                *target = vectors.intern(&next).0;
            }
            let mut row: Vec<(u8, u8, u32)> = Vec::new();
            for &(first, last, class) in &joint.intervals {
                match row.last_mut() {
                    _ if targets[class] == 0 => {}
                    Some(run) if run.2 == targets[class] && run.1 + 1 == first => run.1 = last,
                    _ => row.push((first, last, targets[class])),
                }
            }
            rows.push(row);
            found.push(self.ends(&vector));
            if at % 256 == 0 {
                self.planner.meter.states(vectors.len())?;
                self.planner.meter.bytes(vectors.bytes())?;
                self.planner.meter.time()?;
            }
            at += 1;
        }
        // Removes transitions into states that lead to no end.
        let nexts = rows.iter().map(|row| row.iter().map(|&(_, _, to)| to).collect());
        let live = live(found.iter().map(Option::is_some), nexts);
        if !live[start as usize] {
            return Ok(None);
        }
        let mut kept = Rows::new();
        for row in &rows[1..] {
            kept.push(false, row.iter().copied().filter(|&(_, _, to)| live[to as usize]));
        }
        let ends = found.iter().map(|found| found.as_ref().map(|answers| plan.outcome(answers))).collect();
        Ok(Some(Labeled::Apart { start, rows: kept, ends }))
    }

    /// Sets irrelevant automata to the dead state, so that equal vectors are found.
    fn settle(&mut self, vector: &mut [u32]) {
        let is_dead = |&state: &u32| state == 0;
        if !vector.iter().map(is_dead).eq(self.dead.iter().copied()) {
            self.dead.clear();
            self.dead.extend(vector.iter().map(is_dead));
            self.last = match self.number_of.get(&self.dead) {
                Some(&number) => number,
                None => {
                    let dead = self.dead.clone();
                    let live = self.live_beside(&dead);
                    self.live.push(live);
                    self.number_of.insert(dead, self.live.len() - 1);
                    self.live.len() - 1
                }
            };
        }
        match &self.live[self.last] {
            None => vector.fill(0),
            Some(live) => {
                for (state, live) in vector.iter_mut().zip(live) {
                    *state *= u32::from(*live);
                }
            }
        }
    }

    fn live_beside(&mut self, dead: &[bool]) -> Option<Vec<bool>> {
        if dead[0] {
            return None;
        }
        let decided = self.leaves.iter().filter(|judged| dead[judged.possibly]);
        let values = decided.map(|judged| (judged.leaf, Formula::FALSE)).collect();
        let residues = self.planner.assign(&self.residues, &values);
        if residues[0] == Formula::FALSE {
            return None;
        }
        let left = self.planner.leaves_of(&residues);
        let mut live = vec![true; dead.len()];
        for judged in self.leaves {
            live[judged.surely..=judged.possibly].fill(left.contains(&judged.leaf));
        }
        Some(live)
    }

    /// The answers of a text that ends here.
    fn ends(&mut self, vector: &[u32]) -> Option<Vec<bool>> {
        let accepts = |at: usize| self.automata[at].is_accepting(ByteStateId(vector[at]));
        if !accepts(0) {
            return None;
        }
        let verdict = |judged: &Judged| match (accepts(judged.surely), accepts(judged.possibly)) {
            (true, _) => 2,
            (_, possibly) => u8::from(possibly),
        };
        let verdicts: Vec<u8> = self.leaves.iter().map(verdict).collect();
        if let Some(known) = self.answers.get(&verdicts) {
            return known.clone();
        }
        // Undecided leaves are kept; the text is accepted only if the formula is decided without
        // them.
        let truth = |(judged, verdict): (&Judged, &u8)| match verdict {
            0 => Some((judged.leaf, Formula::FALSE)),
            2 => Some((judged.leaf, Formula::TRUE)),
            _ => None,
        };
        let values = self.leaves.iter().zip(&verdicts).filter_map(truth).collect();
        let answers = answers(&self.planner.assign(&self.residues, &values));
        self.answers.insert(verdicts, answers.clone());
        answers
    }
}
