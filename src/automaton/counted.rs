//! Parts of networks whose tokens are counted.
//!
//! A counted part is a deterministic automaton and the most tokens that may begin within it. In a [`Network`] there is a copy of it
//! for each number of tokens that are left, and one for the text before the first boundary: of a token that begins in front of the
//! part, which does not count. Bytes lead from state to state within a copy, and a boundary to the next copy. Where a boundary takes
//! the last token, the part has to end if it can. If it cannot, it goes on for one more token, and then the same is asked again: so
//! it ends at the first boundary where it can, and every beginning of a text has an end.
//!
//! A part may hold counted parts itself. Then boundaries lead from state to state as well.

use super::network::{Network, Node};
use super::{ByteDfa, RowDfa};
use crate::error::Result;

/// A part of which the tokens are counted, here or within.
#[derive(Clone, Debug)]
pub(crate) struct CountedPart {
    pub(crate) rows: RowDfa,
    /// Where a boundary leads from each state, 0 where it leads nowhere; empty where it leaves all of them as they are.
    pub(crate) boundaries: Vec<u32>,
    /// The states in which the part may end where no token is left, though it is not complete; empty where there are none.
    pub(crate) cut_short: Vec<bool>,
    /// The most tokens, from 1 on, if they are counted here.
    pub(crate) most: Option<u32>,
}

/// The byte that ends a text which is cut short, in the automaton of both kinds of texts.
const CUT_SHORT: u8 = u8::MAX;

impl CountedPart {
    /// The part of an automaton.
    pub(crate) fn new(rows: RowDfa, boundaries: Vec<u32>, most: Option<u32>) -> Self {
        Self { rows, boundaries, cut_short: Vec::new(), most }
    }

    /// The part of an automaton that reads whole texts, and such as may be cut short with [`CUT_SHORT`] behind them.
    pub(crate) fn with_cuts(dfa: &ByteDfa, most: u32) -> Self {
        let rows = RowDfa::from(dfa);
        let all = 0..rows.rows().state_count() as u32;
        let cut_short = all.map(|state| rows.rows().rows().next(state, CUT_SHORT) != 0).collect();
        Self { rows, boundaries: Vec::new(), cut_short, most: Some(most) }
    }

    /// Whether the empty text is one of the part.
    pub(crate) fn accepts_nothing_read(&self) -> bool {
        self.rows.rows().is_accepting(1)
    }

    fn past_boundary(&self, state: u32) -> u32 {
        self.boundaries.get(state as usize).copied().unwrap_or(state)
    }

    fn may_be_cut(&self, state: u32) -> bool {
        self.cut_short.get(state as usize).copied().unwrap_or(false)
    }

    /// The copy behind a boundary in a copy: copy 0 is that before the first one, copy `1 + n` that with `n` tokens left.
    fn next_copy(&self, copy: u32) -> u32 {
        match self.most {
            None => 0,
            Some(most) if copy == 0 => 1 + most,
            Some(_) => copy.saturating_sub(1).max(1),
        }
    }
}

impl Network<'_> {
    /// Copies in what a counted part reads, but for the empty text; it is followed by `next`, from where on terminals are cut anew
    /// if `is_lexed`. Where the copy starts.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(crate) fn copy_counted(&mut self, part: &CountedPart, next: u32, is_lexed: bool) -> Result<u32> {
        let rows = part.rows.rows().rows();
        if rows.row(1).is_empty() {
            return Ok(Self::DEAD);
        }
        let past = self.shared(Node::Past { next })?;
        let [end, end_past] = match is_lexed {
            true => [self.shared(Node::Fork { next })?, self.shared(Node::Fork { next: past })?],
            false => [next, past],
        };
        let states = rows.state_count();
        let copies = part.most.map_or(1, |most| most as usize + 2);
        self.meter().states(copies.saturating_mul(states))?;
        // Of each state of each copy the node that reads.
        let mut reading = vec![Self::DEAD; copies * states];
        let at = |copy: u32, state: u32| copy as usize * states + state as usize;
        for copy in 0..copies as u32 {
            for state in 1..states as u32 {
                if !rows.row(state).is_empty() {
                    reading[at(copy, state)] = self.reserve()?;
                }
            }
        }
        for copy in 0..copies as u32 {
            let mut entered = vec![Self::DEAD; states];
            for state in 1..states as u32 {
                let reads = reading[at(copy, state)];
                let branches = match (rows.is_accepting(state), reads) {
                    (true, Self::DEAD) => vec![end],
                    (true, reads) => vec![reads, end],
                    (false, reads) => vec![reads],
                };
                entered[state as usize] = self.union(&branches)?;
            }
            for state in 1..states as u32 {
                let node = reading[at(copy, state)];
                if node == Self::DEAD {
                    continue;
                }
                let runs = rows.row(state).iter();
                let ranges = runs.map(|run| (run.first, run.last, entered[run.target as usize]));
                if part.cut_short.is_empty() {
                    self.fill_bytes(node, ranges)?;
                } else {
                    let texts = ranges.filter(|range| range.0 != CUT_SHORT);
                    self.fill_bytes(
                        node,
                        texts.map(|(first, last, to)| (first, last.min(CUT_SHORT - 1), to)),
                    )?;
                }
                let after = part.past_boundary(state);
                let next_copy = part.next_copy(copy);
                let (may_end, ends) = (rows.is_accepting(after), rows.is_accepting(state));
                let is_spent = part.most.is_some() && next_copy == 1;
                let mut branches = Vec::new();
                if !(is_spent && (may_end || part.may_be_cut(after))) {
                    branches.push(reading[at(next_copy, after)]);
                }
                // Where it could have ended before the boundary, it did.
                if !ends && (may_end || is_spent && part.may_be_cut(after)) {
                    branches.push(end_past);
                }
                branches.retain(|&branch| branch != Self::DEAD);
                let to = self.union(&branches)?;
                self.set_past_boundary(node, to);
            }
        }
        Ok(reading[at(0, 1)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::automaton::{Determinized, Expr};
    use crate::limits::{Limits, Meter};

    /// What stands for a boundary.
    const BOUNDARY: u8 = b'|';

    /// The automaton of a counted part of `a*` or of `(ab)*`, and a dot.
    fn automaton(word: &str, most: u32, is_lexed: bool, meter: &Meter) -> RowDfa {
        let word = Expr::Literals(vec![word.into()]);
        let words = Expr::Repeat { expr: word.into(), min: 0, max: None }.determinize(meter).unwrap();
        let part = CountedPart::new(RowDfa::from(&words), Vec::new(), Some(most));
        assert!(part.accepts_nothing_read());
        let mut network = Network::new(meter);
        let mut alphabet = [true; 256];
        alphabet[usize::from(BOUNDARY)] = false;
        network.set_alphabet(&alphabet);
        network.set_boundary(BOUNDARY);
        let dot = network.bytes([(b'.', b'.', Network::ACCEPT)]).unwrap();
        let counted = network.copy_counted(&part, dot, is_lexed).unwrap();
        let start = network.union(&[counted, dot]).unwrap();
        let Ok(Some((Determinized::Finite(rows), _))) = network.determinize(start, 8) else {
            panic!("an automaton")
        };
        rows
    }

    fn accepts(rows: &RowDfa, text: &str) -> bool {
        let rows = rows.rows().rows();
        rows.is_accepting(text.bytes().fold(1, |state, byte| rows.next(state, byte)))
    }

    #[test]
    fn boundaries_take_tokens() {
        let limits = Limits::default();
        let meter = Meter::start(&limits);
        for is_lexed in [false, true] {
            let rows = automaton("a", 2, is_lexed, &meter);
            for accepted in ["|.", "|a|a|.", "|aaa|a|.|", "|aa.", "aa|a|a|.", "|a|a."] {
                assert!(accepts(&rows, accepted), "{accepted}");
            }
            for refused in ["|a|a|a|.", "|a|a|a.", "a|a|a|a.", "|a|a", "|.."] {
                assert!(!accepts(&rows, refused), "{refused}");
            }
        }
    }

    #[test]
    fn a_part_that_is_not_complete_goes_on() {
        let limits = Limits::default();
        let meter = Meter::start(&limits);
        let rows = automaton("ab", 1, false, &meter);
        for accepted in ["|a|b|.", "|a|ba|b|.", "|ab|."] {
            assert!(accepts(&rows, accepted), "{accepted}");
        }
        for refused in ["|ab|ab|.", "|a|b|ab|.", "|a|."] {
            assert!(!accepts(&rows, refused), "{refused}");
        }
    }
}
