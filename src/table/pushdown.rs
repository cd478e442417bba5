//! Tables with calls: from a pushdown automaton to a walked table, and the tokens that follow in it.

use std::sync::Arc;

use super::build::{RESERVED_TOKENS_TO_END, reserved_rows};
use super::stack::{Calls, Stacks, Top};
use super::{RowPosition, SpecialTokens, StateId, TableParts, TokenReading, TokenTable};
use crate::automaton::{Jump, Pushdown, Way};
use crate::error::{Error, Limit, Result};
use crate::limits::Meter;
use crate::vocabulary::{TokenId, Vocabulary};

/// What is added to a live state of the automaton: its dead state stays, the reserved states come before.
const SHIFT: u32 = StateId::RESERVED - 1;

/// Spreads the rows out, behind the reserved ones. The vocabulary [spells every byte](spells_every_byte) in use: otherwise
/// what is alive would depend on the stack.
///
/// # Errors
/// Where a limit is breached.
pub(super) fn from_pushdown(
    automaton: &Pushdown,
    vocabulary: &Vocabulary,
    meter: &Meter,
) -> Result<TokenTable> {
    let states = automaton.state_count() + SHIFT as usize;
    let (reserved, ends) = (TokenTable::RESERVED_COLUMNS, automaton.ends());
    let columns = automaton.class_count() + reserved;
    meter.states(states)?;
    let cells = states.saturating_mul(columns + 2 + 3 * ends).saturating_mul(4);
    meter.bytes(cells.saturating_add(automaton.bytes()))?;
    let mut next = reserved_rows(states, columns);
    let own = next.chunks_exact_mut(columns).skip(StateId::RESERVED as usize);
    for (state, row) in (1..automaton.state_count() as u32).zip(own) {
        if automaton.is_accepting(state) {
            row[TokenTable::EOS as usize] = StateId::DONE.0;
        }
        automaton.fill(state, &mut row[reserved..], SHIFT);
    }
    meter.time()?;
    let calls = calls(automaton, vocabulary, meter);
    let start = StateId(1 + SHIFT);
    let needed = calls.frames[start.index() * ends];
    if needed > calls.depth {
        return Err(Error::limit(Limit::Frames(calls.depth as usize)));
    }
    let mut parts = TableParts {
        next,
        columns,
        reading: TokenReading::Bytes {
            column_of: Box::new(automaton.classes().map(|class| u32::from(class) + reserved as u32)),
            vocabulary: vocabulary.clone(),
            special: SpecialTokens::of_columns(columns, 0, Vec::new()),
            takes_plain: Vec::new(),
            farthest: 0,
        },
        tokens_to_end: Vec::new(),
        calls: None,
        start,
        vocabulary_len: vocabulary.len(),
        fingerprint: vocabulary.fingerprint(),
    };
    parts.set_calls(calls);
    parts.find_plain(automaton.state_count(), |state| automaton.row(state));
    Ok(TokenTable { parts: Arc::new(parts), unrolled: None })
}

/// What the states do to the stack.
fn calls(automaton: &Pushdown, vocabulary: &Vocabulary, meter: &Meter) -> Calls {
    let ends = automaton.ends();
    let mut jumps = vec![0; StateId::RESERVED as usize * (1 + ends)];
    let mut ways = reserved_ways(ends);
    let mut entered = [false; 256];
    let shifted = |state: u32| if state == 0 { 0 } else { (state + SHIFT) as i32 };
    for state in 1..automaton.state_count() as u32 {
        let from = jumps.len();
        match automaton.jump(state) {
            Jump::None => {}
            Jump::Call(call) => {
                jumps.push(shifted(call.enter));
                jumps.extend(call.returns.iter().map(|&to| shifted(to)));
            }
            Jump::Return(outcome) => jumps.push(-1 - *outcome as i32),
        }
        jumps.resize(from + 1 + ends, 0);
        ways.extend_from_slice(automaton.ways(state));
        for run in automaton.row(state).iter().filter(|run| *automaton.jump(run.target) != Jump::None) {
            entered[run.first as usize..=run.last as usize].fill(true);
        }
    }
    Calls::new(meter.limits().frames, ends, jumps, &ways, &entered, vocabulary)
}

/// The ways of the reserved states.
pub(super) fn reserved_ways(ends: usize) -> Vec<Way> {
    let mut ways = vec![Way::NONE; StateId::RESERVED as usize * ends];
    for (state, bytes) in RESERVED_TOKENS_TO_END.into_iter().enumerate() {
        ways[state * ends] = Way { bytes, frames: 0 };
    }
    ways
}

/// Whether for every byte that a live state takes there is a token of one byte that acts like it there.
pub(super) fn spells_every_byte(automaton: &Pushdown, vocabulary: &Vocabulary) -> bool {
    let mut spelled = vec![false; automaton.class_count()];
    for (byte, &class) in automaton.classes().iter().enumerate() {
        spelled[class as usize] |= vocabulary.spelled_bytes()[byte];
    }
    let mut row = vec![0; automaton.class_count()];
    spelled.iter().all(|&spelled| spelled)
        || (1..automaton.state_count() as u32).all(|state| {
            row.fill(0);
            automaton.fill(state, &mut row, 0);
            row.iter().zip(&spelled).all(|(&to, &spelled)| spelled || to == 0)
        })
}

impl TableParts {
    /// Gives the states what they do to the stack; the distances follow from it.
    pub(super) fn set_calls(&mut self, calls: Calls) {
        let least = |ways: &[u32]| ways.iter().copied().min().unwrap_or(u32::MAX);
        self.tokens_to_end = calls.ways.chunks_exact(calls.ends).map(least).collect();
        self.calls = Some(Arc::new(calls));
    }

    /// Whether a row rests in a state: whether it is no call and no RETURN.
    pub(super) fn rests(&self, state: StateId) -> bool {
        self.calls.as_ref().is_none_or(|calls| calls.is_plain(state))
    }

    /// As [`each_text`](Self::each_text), of a table with calls.
    pub(super) fn each_text_called(
        &self,
        calls: &Calls,
        position: &RowPosition,
        vocabulary: &Vocabulary,
        column_of: &[u32; 256],
        but_plain: bool,
        mut found: impl FnMut(TokenId, StateId),
    ) {
        let trie = vocabulary.trie();
        let plain = if but_plain { vocabulary.plain_subtrees() } else { &[] };
        let left = position.remaining.saturating_sub(1);
        let (mut stacks, top) = Stacks::of(calls, position);
        // `path[d]` is where the row is after the first `d` bytes of the node at hand, and the number of frames then.
        let mut path: Vec<(StateId, Top, usize)> =
            vec![(position.state, top, stacks.mark()); trie.max_depth() + 1];
        let mut node = 0;
        while node < trie.len() {
            if but_plain && plain[node] {
                node = trie.end(node) as usize;
                continue;
            }
            let depth = trie.depth(node);
            let (state, top, mark) = path[depth - 1];
            let column = column_of[trie.byte(node) as usize] as usize;
            let entered = StateId(self.next[state.index() * self.columns + column]);
            stacks.forget(mark);
            let (next, top) =
                if entered == StateId::DEAD { (entered, top) } else { stacks.settle(entered, top) };
            if next == StateId::DEAD {
                node = trie.end(node) as usize;
                continue;
            }
            path[depth] = (next, top, stacks.mark());
            if !trie.tokens(node).is_empty() && stacks.to_end(next, top) <= left {
                trie.tokens(node).iter().for_each(|&id| found(id, next));
            }
            node += 1;
        }
    }
}
