//! The tokens of text that may follow in a walked table.

use super::position::can_end;
use super::stack::{Stacks, Top};
use super::{RowPosition, StateId, TableParts};
use crate::vocabulary::{Plainness, TokenId, Vocabulary};

impl TableParts {
    /// Calls `found` with every token of text that may follow at `position`, and the state after it, but for those of
    /// subtrees that hold no less plain tokens than `but_plain`.
    pub(crate) fn each_text(
        &self,
        position: &RowPosition,
        vocabulary: &Vocabulary,
        column_of: &[u32; 256],
        but_plain: Option<Plainness>,
        found: impl FnMut(TokenId, StateId),
    ) {
        let bytes = Bytes { parts: self, column_of, left: position.remaining.saturating_sub(1) };
        let Some(calls) = &self.calls else {
            return each_token(bytes, position.state, vocabulary, but_plain, found);
        };
        let (stacks, top) = Stacks::of(calls, position);
        let start = (position.state, top, stacks.mark());
        each_token(StackedBytes { bytes, stacks }, start, vocabulary, but_plain, found);
    }
}

/// Follows bytes.
trait Reader {
    /// Where a row is amid a token.
    type At: Copy;

    fn parts(&self) -> &TableParts;

    /// Where it is after one more byte; `None` where that is illegal.
    fn read(&mut self, at: Self::At, byte: u8) -> Option<Self::At>;

    /// Whether a token may end there.
    fn can_end(&self, at: Self::At) -> bool;

    fn state(at: Self::At) -> StateId;
}

/// A table without calls.
struct Bytes<'a> {
    parts: &'a TableParts,
    column_of: &'a [u32; 256],
    /// The tokens that are left after this one.
    left: u32,
}

impl Reader for Bytes<'_> {
    type At = StateId;

    fn parts(&self) -> &TableParts {
        self.parts
    }

    #[inline]
    fn read(&mut self, at: StateId, byte: u8) -> Option<StateId> {
        let column = self.column_of[byte as usize] as usize;
        let next = StateId(self.parts.next[at.index() * self.parts.columns + column]);
        (next != StateId::DEAD).then_some(next)
    }

    #[inline]
    fn can_end(&self, at: StateId) -> bool {
        can_end(&self.parts.tokens_to_end, at, self.left)
    }

    fn state(at: StateId) -> StateId {
        at
    }
}

/// A table with calls. A row is in a state with a stack, and there were so many frames when it came there: those that other
/// tokens pushed since are forgotten.
struct StackedBytes<'a> {
    bytes: Bytes<'a>,
    stacks: Stacks<'a>,
}

impl Reader for StackedBytes<'_> {
    type At = (StateId, Top, usize);

    fn parts(&self) -> &TableParts {
        self.bytes.parts
    }

    #[inline]
    fn read(&mut self, (state, top, mark): Self::At, byte: u8) -> Option<Self::At> {
        let entered = self.bytes.read(state, byte)?;
        self.stacks.forget(mark);
        let (next, top) = self.stacks.settle(entered, top);
        (next != StateId::DEAD).then(|| (next, top, self.stacks.mark()))
    }

    #[inline]
    fn can_end(&self, (state, top, _): Self::At) -> bool {
        self.stacks.to_end(state, top) <= self.bytes.left
    }

    fn state((state, ..): Self::At) -> StateId {
        state
    }
}

/// See [`TableParts::each_text`].
fn each_token<R: Reader>(
    mut reader: R,
    start: R::At,
    vocabulary: &Vocabulary,
    but_plain: Option<Plainness>,
    mut found: impl FnMut(TokenId, StateId),
) {
    let trie = vocabulary.trie();
    let plain = but_plain.map(|kind| (kind, vocabulary.plain_subtrees()));
    // `path[d]` is where the row is after the first `d` bytes of the node at hand.
    let mut path = vec![start; trie.max_depth() + 1];
    let mut node = 0;
    while node < trie.len() {
        if plain.is_some_and(|(kind, subtrees)| subtrees[node] <= kind) {
            node = trie.end(node) as usize;
            continue;
        }
        let depth = trie.depth(node);
        let Some(next) = reader.read(path[depth - 1], trie.byte(node)) else {
            node = trie.end(node) as usize;
            continue;
        };
        path[depth] = next;
        let tokens = trie.tokens(node);
        if !tokens.is_empty() && reader.can_end(next) {
            let special = reader.parts().special();
            for &id in tokens.iter().filter(|&&id| special.column(id).is_none()) {
                found(id, R::state(next));
            }
        }
        node += 1;
    }
}
