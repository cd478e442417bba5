//! What was compiled, and what is being compiled, by source.

use std::collections::HashMap;

use burn_dfa::{Error, PendingTable, TokenTable};
use tokio::sync::watch;

use super::source::Key;
use crate::error::ApiError;

/// What came of a compilation: a table, nothing where there is no constraint, or why there is none.
pub(super) type Outcome = Result<Option<TokenTable>, Refusal>;

/// How far a compilation is whose constraint was read.
#[derive(Clone, Debug)]
pub(super) enum Progress {
    /// The table is to come here.
    Compiling(PendingTable),
    /// It has ended.
    Done(Outcome),
}

/// Why there is no table.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// The library refused the constraint.
    Library(Error),
    /// There is nothing to draw.
    Undrawn(String),
    /// The table does not fit the server.
    TooLarge(String),
    /// The compiler panicked.
    Panic,
}

impl Refusal {
    /// What the request is told that has the constraint in the field `param`.
    pub fn error(&self, param: &str) -> ApiError {
        match self {
            Self::Library(error) => ApiError::of_library(error, param),
            Self::Undrawn(message) => ApiError::invalid(param, message).code("constraint_refused"),
            Self::TooLarge(message) => ApiError::invalid(param, message).code("constraint_too_large"),
            Self::Panic => ApiError::internal("the compiler panicked on this constraint").at(param),
        }
    }
}

/// Outcomes within a bound of bytes, of which those go first that were not asked for longest.
#[derive(Debug)]
pub(super) struct Cache {
    entries: HashMap<Key, Entry>,
    /// Bytes of all entries, about.
    bytes: usize,
    max_bytes: usize,
    /// Counts what is asked for.
    clock: u64,
}

#[derive(Debug)]
enum Entry {
    Running(watch::Receiver<Option<Progress>>),
    Done { outcome: Outcome, bytes: usize, used: u64 },
}

/// What the cache has of a source.
pub(super) enum Found {
    Done(Outcome),
    /// Another request has asked for it; what becomes of it is told here.
    Running(watch::Receiver<Option<Progress>>),
    /// Nothing: whoever asked compiles it, and says so here.
    Nothing(watch::Sender<Option<Progress>>, watch::Receiver<Option<Progress>>),
}

impl Cache {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { entries: HashMap::new(), bytes: 0, max_bytes, clock: 0 }
    }

    /// What there is; where that is nothing, it is running from now on.
    pub(super) fn find(&mut self, key: Key) -> Found {
        self.clock += 1;
        match self.entries.get_mut(&key) {
            Some(Entry::Done { outcome, used, .. }) => {
                *used = self.clock;
                Found::Done(outcome.clone())
            }
            Some(Entry::Running(receiver)) => Found::Running(receiver.clone()),
            None => {
                let (sender, receiver) = watch::channel(None);
                self.entries.insert(key, Entry::Running(receiver.clone()));
                Found::Nothing(sender, receiver)
            }
        }
    }

    /// Forgets what is running, because it was not taken on.
    pub(super) fn forget(&mut self, key: Key) {
        self.entries.remove(&key);
    }

    /// Keeps an outcome; failures are kept too.
    pub(super) fn keep(&mut self, key: Key, outcome: Outcome) {
        let bytes = size(&outcome);
        if bytes > self.max_bytes {
            return self.forget(key);
        }
        self.entries.insert(key, Entry::Done { outcome, bytes, used: self.clock });
        self.bytes += bytes;
        while self.bytes > self.max_bytes {
            let done = self.entries.iter().filter_map(|(other, entry)| match entry {
                Entry::Done { bytes, used, .. } if *other != key => Some((*used, *other, *bytes)),
                _ => None,
            });
            let Some((_, oldest, bytes)) = done.min() else { return };
            self.entries.remove(&oldest);
            self.bytes -= bytes;
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Bytes of an outcome, about: the numbers of a table, and what lies around them.
fn size(outcome: &Outcome) -> usize {
    const AROUND: usize = 1024;
    let own = match outcome {
        Ok(Some(table)) => table.state_count() * (table.class_count() + 8) * size_of::<u32>(),
        Ok(None) => 0,
        Err(Refusal::Library(error)) => error.to_string().len(),
        Err(Refusal::TooLarge(message) | Refusal::Undrawn(message)) => message.len(),
        Err(Refusal::Panic) => 0,
    };
    AROUND + own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: usize) -> Outcome {
        Err(Refusal::TooLarge("x".repeat(bytes)))
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let mut cache = Cache::new(8 * 1024);
        for key in 0..3 {
            assert!(matches!(cache.find([key; 32]), Found::Nothing(..)));
            cache.keep([key; 32], refusal(1024));
        }
        assert!(matches!(cache.find([0; 32]), Found::Done(_)));
        assert!(matches!(cache.find([3; 32]), Found::Nothing(..)));
        cache.keep([3; 32], refusal(2048));
        assert!(cache.bytes() <= 8 * 1024);
        assert!(matches!(cache.find([0; 32]), Found::Done(_)));
        assert!(matches!(cache.find([1; 32]), Found::Nothing(..)));
    }

    #[test]
    fn what_is_larger_than_the_cache_is_not_kept() {
        let mut cache = Cache::new(2048);
        assert!(matches!(cache.find([1; 32]), Found::Nothing(..)));
        assert!(matches!(cache.find([1; 32]), Found::Running(_)));
        cache.keep([1; 32], refusal(4096));
        assert_eq!(cache.bytes(), 0);
        assert!(matches!(cache.find([1; 32]), Found::Nothing(..)));
    }
}
