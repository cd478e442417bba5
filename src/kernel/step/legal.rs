//! The tokens that may follow in a row, on the CPU.

use crate::table::{RowPosition, Stacks, StateId, TokenReading, TokenTable};
use crate::tensor::{FreeRow, HostRow};
use crate::vocabulary::{ClassTokens, Plainness, TokenId};

/// The tokens that may follow in a row: all of some classes but for a few, and some more.
///
/// Of a walked table the classes of text are taken where all of it may follow; the rest is walked. In free text all
/// classes of text are taken, without the tokens that have to be walked.
#[derive(Default)]
pub(super) struct Legal {
    /// Whether each class is taken.
    pub(super) classes: Vec<bool>,
    /// Tokens of these classes that are legal only if they are in [`text`](Self::text).
    pub(super) except: Vec<u32>,
    /// The legal tokens of walked text.
    pub(super) text: Vec<u32>,
    /// What was looked up last, and how many tokens are legal there.
    found: Option<(Key, usize)>,
}

/// The address of a table, and a position in it.
type Key = (usize, RowPosition);

impl Legal {
    /// Finds the tokens that may follow in a row; gives their number.
    pub(super) fn look_up(&mut self, at: &HostRow<'_>) -> usize {
        let parts = at.table.parts();
        let RowPosition { state, remaining, .. } = at.position;
        let free = parts.free_text(state);
        // To the budget of no token only the end of the sequence is left, as to that of one.
        if free.is_some() && self.look_up_free(at, remaining.max(1) - 1) {
            return self.count(at.class_tokens);
        }
        let stack = parts.calls.as_ref().map(|calls| Stacks::of(calls, &at.position));
        let remaining = match &parts.reading {
            TokenReading::Classes(_) => remaining.max(1),
            // More than the longest way makes no difference.
            TokenReading::Bytes { farthest, .. } if stack.is_none() => {
                remaining.clamp(1, farthest.saturating_add(1))
            }
            TokenReading::Bytes { .. } => remaining.max(1),
        };
        let left = remaining - 1;
        let position = RowPosition { remaining, ..at.position.clone() };
        // Draft tokens in a string are in one state; so are many rows of a batch.
        let key = (std::ptr::from_ref(parts) as usize, position);
        if let Some((_, count)) = self.found.as_ref().filter(|found| found.0 == key) {
            return *count;
        }
        // Of what leaves the stack as it is.
        let to_end = |next: u32| match &stack {
            None => parts.tokens_to_end[next as usize],
            Some((stacks, top)) => stacks.to_end(StateId(next), *top),
        };
        let can_end = |next: u32| to_end(next) <= left;
        let row = at.table.row(state);
        self.clear();
        match &parts.reading {
            TokenReading::Classes(_) => self.classes.extend(row.iter().map(|&next| can_end(next))),
            TokenReading::Bytes { vocabulary, special, .. } => {
                let reserved = &row[..TokenTable::RESERVED_COLUMNS];
                self.classes.extend(reserved.iter().map(|&next| can_end(next)));
                let free = free.filter(|free| can_end(free.0));
                if let Some(free) = free {
                    self.classes.extend([true; 3]);
                    let farthest = self.walk_free(at, &key.1, free);
                    self.classes.extend(special.of(row).iter().map(|&next| can_end(next)));
                    let alone = reserved.iter().chain(special.of(row)).map(|&next| to_end(next));
                    let alone = alone.filter(|&to_end| to_end <= RowPosition::UNLIMITED);
                    let farthest = alone.fold(farthest.max(to_end(free.0)), u32::max);
                    if farthest <= left {
                        self.keep_free(at, farthest);
                    }
                } else {
                    let is_free = state == StateId::UNCONSTRAINED;
                    let stack = stack.as_ref().map(|(stacks, top)| (stacks, *top));
                    let all_plain = parts.all_plain(state, stack, left);
                    let all = |kind| is_free || all_plain >= Some(kind);
                    self.classes.extend([is_free, all(Plainness::Ascii), all(Plainness::Wide)]);
                    self.classes.extend(special.of(row).iter().map(|&next| can_end(next)));
                    if state.0 >= StateId::RESERVED {
                        let trie =
                            all_plain.map_or(vocabulary.trie(), |kind| vocabulary.less_plain_trie(kind));
                        parts.each_text(&key.1, trie, &[trie.all()], add_to(&mut self.text));
                    }
                }
            }
        }
        let count = self.count(at.class_tokens);
        self.found = Some((key, count));
        count
    }

    fn clear(&mut self) {
        self.found = None;
        self.classes.clear();
        self.except.clear();
        self.text.clear();
    }

    /// How many tokens are legal.
    fn count(&self, class_tokens: &ClassTokens) -> usize {
        let classes = self.classes.iter().enumerate().filter(|&(_, &legal)| legal);
        let classes: usize = classes.map(|(class, _)| class_tokens.of(class).len()).sum();
        classes - self.except.len() + self.text.len()
    }

    /// Takes what is known of a place in free text, where so many tokens are left after the next one; whether it is known.
    fn look_up_free(&mut self, at: &HostRow<'_>, left: u32) -> bool {
        at.free_rows.find(&at.position, left, |row| {
            self.clear();
            self.classes.extend_from_slice(&row.classes);
            self.except.extend_from_slice(&row.except);
        })
    }

    /// Keeps what was found of a place in free text, from which no token leads farther from the end.
    fn keep_free(&mut self, at: &HostRow<'_>, farthest: u32) {
        self.text.sort_unstable();
        self.except.retain(|id| self.text.binary_search(id).is_err());
        self.text.clear();
        let RowPosition { state, ref frames, .. } = at.position;
        let (classes, except) = (self.classes.clone(), self.except.clone());
        at.free_rows.keep(FreeRow { state, frames: frames.clone(), farthest, classes, except });
    }

    /// Walks the tokens of text that need not lead to the state `free` of free text; gives the longest way to the end from behind
    /// one of them.
    fn walk_free(&mut self, at: &HostRow<'_>, position: &RowPosition, free: StateId) -> u32 {
        let parts = at.table.parts();
        let TokenReading::Bytes { vocabulary, special, free: text, .. } = &parts.reading else { return 0 };
        let beyond = at.beyond_free_text.get_or_init(|| vocabulary.trie_beyond(text.characters()));
        let parts_here = |byte| parts.parts_from(position.state, free, byte);
        let mut farthest = 0;
        for (trie, walks_all) in [(&**beyond, false), (vocabulary.trie(), true)] {
            let nodes = trie.by_first_byte().filter(|&(byte, _)| parts_here(byte) == walks_all);
            let nodes: Vec<_> = nodes.map(|(_, nodes)| nodes).collect();
            let tokens = nodes.iter().flat_map(|nodes| trie.tokens_within(nodes));
            let tokens = tokens.filter(|&&id| special.column(id).is_none());
            self.except.extend(tokens.map(|id| id.0));
            farthest = farthest.max(parts.each_text(position, trie, &nodes, add_to(&mut self.text)));
        }
        farthest
    }

    /// The tokens of the classes that are taken.
    pub(super) fn of_classes<'a>(&'a self, class_tokens: &'a ClassTokens) -> impl Iterator<Item = u32> + 'a {
        let classes = self.classes.iter().enumerate().filter(|&(_, &legal)| legal);
        classes.flat_map(|(class, _)| class_tokens.of(class)).copied()
    }

    /// The same and those of walked text: with nothing [excepted](Self::except) all legal tokens.
    pub(super) fn tokens<'a>(&'a self, class_tokens: &'a ClassTokens) -> impl Iterator<Item = u32> + 'a {
        self.of_classes(class_tokens).chain(self.text.iter().copied())
    }
}

fn add_to(text: &mut Vec<u32>) -> impl FnMut(&[TokenId], StateId) {
    |tokens, _| text.extend(tokens.iter().map(|id| id.0))
}
