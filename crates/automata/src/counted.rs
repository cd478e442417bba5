//! Parts of networks with counted tokens.
//!
//! A counted part is a deterministic automaton and the maximum number of tokens that may begin
//! within it. A [`TransitionNetwork`] holds a copy of it for each number of tokens left, and one
//! for the text before the first boundary, which belongs to an uncounted token that began before
//! the part. Bytes lead from state to state within a copy, and a boundary leads to the next copy.
//! If a boundary takes the last token, the part must end if it can. If it cannot, it gets one more
//! token, and the condition is tested again at the next boundary: the part ends at the first
//! possible boundary, and every prefix of a text can be completed.
//!
//! A part may itself contain counted parts. Boundaries then also lead from state to state.

use super::network::{Node, TransitionNetwork};
use super::{ByteDfa, Run, SparseDfa};
use burn_dfa_common::Result;

/// A part with counted tokens, in itself or in a nested part.
#[derive(Clone, Debug)]
pub struct CountedPart {
    /// The automaton.
    pub rows: SparseDfa,
    /// The state after a boundary for each state, 0 for none; empty if boundaries do not change the
    /// state.
    pub boundaries: Vec<u32>,
    /// The states in which the part may end incomplete after its last token; empty if there are
    /// none.
    pub cut_short: Vec<bool>,
    /// The maximum number of tokens, at least 1, if the part itself counts them.
    pub max_tokens: Option<u32>,
}

/// The byte that ends a truncated text, in the automaton of complete and truncated texts.
const CUT_SHORT: u8 = u8::MAX;

impl CountedPart {
    /// The part of an automaton.
    pub fn new(rows: SparseDfa, boundaries: Vec<u32>, max_tokens: Option<u32>) -> Self {
        Self { rows, boundaries, cut_short: Vec::new(), max_tokens }
    }

    /// The part of an automaton of complete texts, and of truncated texts followed by
    /// [`CUT_SHORT`].
    pub fn with_cuts(dfa: &ByteDfa, max_tokens: u32) -> Self {
        let rows = SparseDfa::from(dfa);
        let all = 0..rows.rows().state_count() as u32;
        let cut_short = all.map(|state| rows.rows().rows().next(state, CUT_SHORT) != 0).collect();
        Self { rows, boundaries: Vec::new(), cut_short, max_tokens: Some(max_tokens) }
    }

    /// Whether the part accepts the empty text.
    pub fn accepts_nothing_read(&self) -> bool {
        self.rows.rows().is_accepting(1)
    }

    fn past_boundary(&self, state: u32) -> u32 {
        self.boundaries.get(state as usize).copied().unwrap_or(state)
    }

    fn may_be_cut(&self, state: u32) -> bool {
        self.cut_short.get(state as usize).copied().unwrap_or(false)
    }

    /// The copy after a boundary: copy 0 comes before the first boundary, copy `1 + n` has `n`
    /// tokens left.
    fn next_copy(&self, copy: u32) -> u32 {
        match self.max_tokens {
            None => 0,
            Some(max_tokens) if copy == 0 => 1 + max_tokens,
            Some(_) => copy.saturating_sub(1).max(1),
        }
    }
}

impl TransitionNetwork<'_> {
    /// Copies the nonempty texts of a counted part, followed by `next`; if `is_lexed`, a new
    /// division into terminals starts at `next`. Returns the start of the copy.
    ///
    /// # Errors
    /// If a limit is breached.
    pub fn copy_counted(&mut self, part: &CountedPart, next: u32, is_lexed: bool) -> Result<u32> {
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
        let copies = part.max_tokens.map_or(1, |max_tokens| max_tokens as usize + 2);
        self.meter().states(copies.saturating_mul(states))?;
        // For each state of each copy, the reading node.
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
                let runs = runs.map(|run| Run { target: entered[run.target as usize], ..*run });
                if part.cut_short.is_empty() {
                    self.fill_bytes(node, runs)?;
                } else {
                    let texts = runs.filter(|run| run.first != CUT_SHORT);
                    self.fill_bytes(node, texts.map(|run| Run { last: run.last.min(CUT_SHORT - 1), ..run }))?;
                }
                let after = part.past_boundary(state);
                let next_copy = part.next_copy(copy);
                let (may_end, ends) = (rows.is_accepting(after), rows.is_accepting(state));
                let is_spent = part.max_tokens.is_some() && next_copy == 1;
                let mut branches = Vec::new();
                if !(is_spent && (may_end || part.may_be_cut(after))) {
                    branches.push(reading[at(next_copy, after)]);
                }
                // If the part could have ended before the boundary, it already did.
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
    use crate::{Expr, SparseAutomaton};
    use burn_dfa_common::{Limits, limits::Meter};

    /// The byte that stands for a boundary.
    const BOUNDARY: u8 = b'|';

    /// The automaton of a counted part of `a*` or of `(ab)*`, and a dot.
    fn automaton(word: &str, max_tokens: u32, is_lexed: bool, meter: &Meter) -> SparseDfa {
        let word = Expr::Literals(vec![word.into()]);
        let words = Expr::Repeat { expr: word.into(), min: 0, max: None }.determinize(meter).unwrap();
        let part = CountedPart::new(SparseDfa::from(&words), Vec::new(), Some(max_tokens));
        assert!(part.accepts_nothing_read());
        let mut network = TransitionNetwork::new(meter);
        let mut alphabet = [true; 256];
        alphabet[usize::from(BOUNDARY)] = false;
        network.set_alphabet(&alphabet);
        network.set_boundary(BOUNDARY);
        let dot = network.bytes([(b'.', b'.', TransitionNetwork::ACCEPT)]).unwrap();
        let counted = network.copy_counted(&part, dot, is_lexed).unwrap();
        let start = network.union(&[counted, dot]).unwrap();
        let Ok(Some((SparseAutomaton::Finite(rows), _))) = network.determinize(start, 8) else {
            panic!("an automaton")
        };
        rows
    }

    fn accepts(rows: &SparseDfa, text: &str) -> bool {
        let rows = rows.rows().rows();
        rows.is_accepting(text.bytes().fold(1, |state, byte| rows.next(state, byte)))
    }

    #[test]
    fn each_boundary_takes_a_token_until_none_is_left() {
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
