//! The tokens of the rows, so a prompt can reuse the prefix that it shares with a row.

use std::cmp::Reverse;

use crate::vocabulary::TokenId;

/// The shortest prefix that is copied; reading a shorter one is as fast.
const LEAST: usize = 16;

/// The tokens that the model has read in each row. They stay after the end of the request, until
/// the next request begins in the row.
pub(super) struct Prefixes {
    rows: Vec<Held>,
    /// Counts the uses of rows.
    clock: u64,
}

/// The tokens of a row.
#[derive(Default)]
struct Held {
    salt: Option<String>,
    tokens: Vec<TokenId>,
    /// The number of tokens read by the model: without the last generated token, which the next
    /// step feeds to the model.
    read: usize,
    used: u64,
}

impl Held {
    /// The length of the prefix that the row shares with a prompt.
    fn shared(&self, prompt: &[TokenId], salt: Option<&str>) -> usize {
        if self.salt.as_deref() != salt {
            return 0;
        }
        self.tokens[..self.read].iter().zip(prompt).take_while(|(own, other)| own == other).count()
    }
}

impl Prefixes {
    /// Empty rows.
    pub(super) fn new(rows: usize) -> Self {
        Self { rows: (0..rows).map(|_| Held::default()).collect(), clock: 0 }
    }

    /// The row with the longest shared prefix of a prompt, and the length of the prefix; `own` wins
    /// a tie. The prefix excludes the last token of the prompt, because the logits after it are
    /// needed. So it also excludes the last slot of a row, which a long-idle row overwrites.
    pub(super) fn find(&self, own: usize, prompt: &[TokenId], salt: Option<&str>) -> Option<(usize, usize)> {
        let prompt = &prompt[..prompt.len() - 1];
        let shared = |(row, held): (usize, &Held)| (row, held.shared(prompt, salt));
        let found =
            self.rows.iter().enumerate().map(shared).max_by_key(|&(row, shared)| (shared, row == own));
        found.filter(|&(_, shared)| shared >= LEAST)
    }

    /// The best of `rows` for a prompt: a row that holds only a prefix of the prompt, else the
    /// least recently used row.
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

    /// Begins a row with the first `length` tokens of the row `from`.
    pub(super) fn begin(&mut self, row: usize, from: usize, length: usize, salt: Option<&str>) {
        let tokens = self.rows[from].tokens[..length].to_vec();
        self.touch(from);
        self.rows[row] = Held { salt: salt.map(Into::into), tokens, read: length, used: 0 };
        self.touch(row);
    }

    /// Appends a chunk of the prompt, which the model has read.
    pub(super) fn read(&mut self, row: usize, chunk: &[TokenId]) {
        let held = &mut self.rows[row];
        held.tokens.extend_from_slice(chunk);
        held.read = held.tokens.len();
    }

    /// Appends tokens that the model has chosen.
    pub(super) fn append(&mut self, row: usize, tokens: &[TokenId]) {
        self.touch(row);
        let held = &mut self.rows[row];
        held.tokens.extend_from_slice(tokens);
        held.read = held.read.max(held.tokens.len() - 1);
    }

    /// Clears a row, so nothing of it is copied.
    pub(super) fn forget(&mut self, row: usize) {
        self.rows[row] = Held::default();
    }

    fn touch(&mut self, row: usize) {
        self.clock += 1;
        self.rows[row].used = self.clock;
    }
}
