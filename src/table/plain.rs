//! The states of a walked table that every plain token may follow.

use std::rc::Rc;

use super::{StateId, TableParts, TokenReading};
use crate::automaton::{Csr, FastMap};
use crate::vocabulary::{LONGEST_PLAIN, Plainness, WIDE, is_plain_byte};

impl TableParts {
    /// Finds the states that every plain token may follow: those from which any run of plain characters stays alive
    /// for as long as the longest plain token.
    pub(super) fn find_plain(&mut self) {
        let TokenReading::Bytes { column_of, .. } = &self.reading else { return };
        let columns = |bytes: &mut dyn Iterator<Item = u8>| {
            let mut columns: Vec<u32> = bytes.map(|byte| column_of[byte as usize]).collect();
            columns.sort_unstable();
            columns.dedup();
            columns
        };
        let ascii = columns(&mut (0..=u8::MAX).filter(|&byte| is_plain_byte(byte)));
        let wide = WIDE
            .map(|bytes| bytes.iter().map(|&(first, last)| columns(&mut (first..=last))).collect::<Vec<_>>());
        let states = self.tokens_to_end.len();
        // Of each kind the states that take any character, and edges to them from what follows.
        let mut takes = [vec![false; states], vec![false; states]];
        let mut edges = [Vec::new(), Vec::new()];
        let (mut after, mut next) = (Vec::new(), Vec::new());
        // By sequence and state: what follows the rest of a character that began so, if all of them can be read.
        let mut rests: FastMap<(usize, u32), Option<Rc<[u32]>>> = FastMap::default();
        for state in StateId::RESERVED..states as u32 {
            after.clear();
            after.push(state);
            if !self.follow(&mut after, &mut next, &ascii) || !self.all_rest(&after) {
                continue;
            }
            takes[0][state as usize] = true;
            edges[0].extend(after.iter().map(|&to| (to, state)));
            let begin = edges[1].len();
            edges[1].extend(after.iter().map(|&to| (to, state)));
            takes[1][state as usize] = wide.iter().enumerate().all(|(number, sequence)| {
                after.clear();
                after.push(state);
                self.follow(&mut after, &mut next, &sequence[0])
                    && after.iter().all(|&begun| {
                        let rest = rests.entry((number, begun)).or_insert_with(|| {
                            let mut after = vec![begun];
                            let mut rest = sequence[1..].iter();
                            let is_read = rest.all(|columns| self.follow(&mut after, &mut next, columns));
                            (is_read && self.all_rest(&after)).then(|| after.into())
                        });
                        edges[1].extend(rest.iter().flat_map(|rest| rest.iter()).map(|&to| (to, state)));
                        rest.is_some()
                    })
            });
            if !takes[1][state as usize] {
                edges[1].truncate(begin);
            }
        }
        let [ascii, wide] = takes;
        let [ascii, wide] =
            [(ascii, &edges[0]), (wide, &edges[1])].map(|(takes, edges)| keep_long(takes, edges));
        let takes = ascii.into_iter().zip(wide).map(|(ascii, wide)| match (ascii, wide) {
            (true, true) => Some(Plainness::Wide),
            (true, false) => Some(Plainness::Ascii),
            _ => None,
        });
        let takes = takes.collect();
        let alive = (0..states as u32).map(StateId).filter(|&state| self.has_end(state));
        let most = alive.map(|state| self.tokens_to_end[state.index()]).max().unwrap_or(0);
        if let TokenReading::Bytes { takes_plain, farthest, .. } = &mut self.reading {
            (*takes_plain, *farthest) = (takes, most);
        }
    }

    /// Replaces states by those that the columns lead to; false where one of them leads nowhere.
    fn follow(&self, states: &mut Vec<u32>, next: &mut Vec<u32>, columns: &[u32]) -> bool {
        next.clear();
        for &state in states.iter() {
            let row = self.row(StateId(state));
            for &column in columns {
                match row[column as usize] {
                    to if to == StateId::DEAD.0 => return false,
                    // There are few.
                    to if next.last() == Some(&to) || next.contains(&to) => {}
                    to => next.push(to),
                }
            }
        }
        std::mem::swap(states, next);
        // A token that changes the stack has to be followed.
        self.calls.is_none() || states.iter().all(|&state| self.rests(StateId(state)))
    }

    /// Whether a token may end in each of the states.
    fn all_rest(&self, states: &[u32]) -> bool {
        states.iter().all(|&state| self.has_end(StateId(state)))
    }
}

/// Of the states that take any character (`takes`, with edges from each that follows one to that one), keeps those that take
/// the longest plain token.
fn keep_long(mut takes: Vec<bool>, edges: &[(u32, u32)]) -> Vec<bool> {
    let states = takes.len();
    // A state takes one character less than the worst of those that follow it.
    let backward = Csr::new(states, edges.iter().copied());
    let mut frontier: Vec<u32> = (0..states as u32).filter(|&state| !takes[state as usize]).collect();
    for _ in 1..LONGEST_PLAIN {
        let mut next = Vec::new();
        for state in frontier {
            for &before in backward.of(state) {
                if std::mem::replace(&mut takes[before as usize], false) {
                    next.push(before);
                }
            }
        }
        frontier = next;
    }
    takes
}
