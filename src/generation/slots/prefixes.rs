//! What the rows hold, so that a prompt that begins as one of them does is not read from its beginning.

use std::cmp::Reverse;

use crate::vocabulary::TokenId;

/// The fewest tokens that are copied; fewer are read as fast.
const LEAST: usize = 16;

/// The tokens that the model has read in each row. They outlive the request, up to the beginning of the next one in the row.
pub(super) struct Prefixes {
    rows: Vec<Held>,
    /// Counts what rows are used for.
    clock: u64,
}

/// What a row holds.
#[derive(Default)]
struct Held {
    salt: Option<String>,
    tokens: Vec<TokenId>,
    /// Without the last token that was generated, which the next step feeds to the model.
    read: usize,
    used: u64,
}

impl Held {
    /// The tokens that it shares with a prompt, from the first on.
    fn shared(&self, prompt: &[TokenId], salt: Option<&str>) -> usize {
        if self.salt.as_deref() != salt {
            return 0;
        }
        self.tokens[..self.read].iter().zip(prompt).take_while(|(own, other)| own == other).count()
    }
}

impl Prefixes {
    /// Of rows that hold nothing.
    pub(super) fn new(rows: usize) -> Self {
        Self { rows: (0..rows).map(|_| Held::default()).collect(), clock: 0 }
    }

    /// The row that holds most of the beginning of a prompt, and how many tokens; among equals `own`. The last token of the
    /// prompt is not among them, since the logits after it are needed. So the last slot of a row is never among them either,
    /// which a row writes that is idle for long.
    pub(super) fn find(&self, own: usize, prompt: &[TokenId], salt: Option<&str>) -> Option<(usize, usize)> {
        let prompt = &prompt[..prompt.len() - 1];
        let shared = |(row, held): (usize, &Held)| (row, held.shared(prompt, salt));
        let found =
            self.rows.iter().enumerate().map(shared).max_by_key(|&(row, shared)| (shared, row == own));
        found.filter(|&(_, shared)| shared >= LEAST)
    }

    /// The row of some in which a prompt begins best: one that holds nothing but its beginning, else the one that was not used
    /// for longest.
    pub(super) fn choose(
        &self,
        rows: impl Iterator<Item = usize>,
        prompt: &[TokenId],
        salt: Option<&str>,
    ) -> Option<usize> {
        rows.min_by_key(|&row| {
            let held = &self.rows[row];
            let shared = held.shared(prompt, salt);
            (Reverse(if shared == held.read { shared } else { 0 }), held.used)
        })
    }

    /// A row begins with the first `length` tokens of the row `from`, or with none.
    pub(super) fn begin(&mut self, row: usize, from: usize, length: usize, salt: Option<&str>) {
        let tokens = self.rows[from].tokens[..length].to_vec();
        self.touch(from);
        self.rows[row] = Held { salt: salt.map(Into::into), tokens, read: length, used: 0 };
        self.touch(row);
    }

    /// The model has read more of the prompt of a row.
    pub(super) fn read(&mut self, row: usize, piece: &[TokenId]) {
        let held = &mut self.rows[row];
        held.tokens.extend_from_slice(piece);
        held.read = held.tokens.len();
    }

    /// The model has chosen more tokens of a row.
    pub(super) fn append(&mut self, row: usize, tokens: &[TokenId]) {
        self.touch(row);
        let held = &mut self.rows[row];
        held.tokens.extend_from_slice(tokens);
        held.read = held.read.max(held.tokens.len() - 1);
    }

    /// A row holds nothing that may be copied.
    pub(super) fn forget(&mut self, row: usize) {
        self.rows[row] = Held::default();
    }

    fn touch(&mut self, row: usize) {
        self.clock += 1;
        self.rows[row].used = self.clock;
    }
}
