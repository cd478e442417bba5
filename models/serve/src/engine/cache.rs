//! Finished and running compilations, by source.

use std::collections::HashMap;

use burn_dfa::generation::Cancel;
use burn_dfa::{Error, PendingConstraint};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::left_out::{LeftOut, place_of_tool};
use super::source::Key;
use super::table::Compiled;
use crate::error::ApiError;

/// The result of a compilation: a compiled constraint, nothing for plain text, or a refusal.
pub(super) type Outcome = Result<Option<Compiled>, Refusal>;

/// The progress of a compilation whose constraint was read.
#[derive(Clone, Debug)]
pub(super) enum Progress {
    /// The compiled constraint will arrive here.
    Compiling(PendingConstraint),
    /// The compilation has ended.
    Done(Outcome),
}

/// The reason why there is no compiled constraint.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// The library refused the constraint.
    Library(Error),
    /// The library refused the parameters of this tool, at this JSON pointer.
    Tool(Error, usize, String),
    /// A keyword cannot be enforced, and the request is strict.
    Strict(LeftOut),
    /// The server refuses the constraint.
    Refused(String),
    /// The compiled constraint does not fit the server.
    TooLarge(String),
    /// The compiler panicked.
    Panic,
}

impl Refusal {
    /// The error for a request with the constraint in the field `param`.
    pub fn error(&self, param: &str) -> ApiError {
        match self {
            Self::Library(error) => ApiError::of_library(error, param),
            Self::Tool(error, number, pointer) => {
                let told = ApiError::of_library(error, "tools");
                let place = place_of_tool(*number, pointer);
                let message = told.message.replacen(error.pointer().unwrap_or_default(), &place, 1);
                ApiError { message, ..told }
            }
            Self::Strict(left_out) => {
                let param = if left_out.tool.is_some() { "tools" } else { param };
                ApiError::invalid(param, left_out.refusal(param)).code("constraint_refused")
            }
            Self::Refused(message) => ApiError::invalid(param, message).code("constraint_refused"),
            Self::TooLarge(message) => ApiError::invalid(param, message).code("constraint_too_large"),
            Self::Panic => ApiError::internal("the compiler panicked on this constraint").at(param),
        }
    }
}

/// Outcomes within a bound of bytes; the least recently used ones are removed first.
#[derive(Debug)]
pub(super) struct Cache {
    entries: HashMap<Key, Entry>,
    /// Approximate bytes of all entries.
    bytes: usize,
    max_bytes: usize,
    /// Counts lookups.
    clock: u64,
}

#[derive(Debug)]
enum Entry {
    Running(Running),
    Done { outcome: Outcome, bytes: usize, used: u64 },
}

/// A compilation with requests that wait for it.
#[derive(Debug)]
struct Running {
    /// The clock at its start, which distinguishes it from other compilations of the same source.
    begun: u64,
    /// Number of waiting requests.
    waiting: usize,
    progress: watch::Receiver<Option<Progress>>,
    cancel: Cancel,
    /// The task, which may be waiting for a thread.
    task: Option<AbortHandle>,
}

/// The result of a lookup.
pub(super) enum Found {
    Done(Outcome),
    /// A compilation runs since `begun`, and reports to `progress`. The request counts as waiting
    /// until [`Cache::leave`].
    Running {
        begun: u64,
        progress: watch::Receiver<Option<Progress>>,
    },
    /// Nothing: the caller compiles the source, and reports to `sender`; otherwise like `Running`.
    Nothing {
        begun: u64,
        progress: watch::Receiver<Option<Progress>>,
        sender: watch::Sender<Option<Progress>>,
        cancel: Cancel,
    },
}

impl Cache {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { entries: HashMap::new(), bytes: 0, max_bytes, clock: 0 }
    }

    /// Looks up a source. If it is unknown, it counts as running from now on.
    pub(super) fn find(&mut self, key: Key) -> Found {
        self.clock += 1;
        match self.entries.get_mut(&key) {
            Some(Entry::Done { outcome, used, .. }) => {
                *used = self.clock;
                Found::Done(outcome.clone())
            }
            Some(Entry::Running(running)) => {
                running.waiting += 1;
                Found::Running { begun: running.begun, progress: running.progress.clone() }
            }
            None => {
                let (sender, progress) = watch::channel(None);
                let (begun, cancel) = (self.clock, Cancel::default());
                let (own, flag) = (progress.clone(), cancel.clone());
                let running = Running { begun, waiting: 1, progress: own, cancel: flag, task: None };
                self.entries.insert(key, Entry::Running(running));
                Found::Nothing { begun, progress, sender, cancel }
            }
        }
    }

    /// Sets the task of a compilation.
    pub(super) fn set_task(&mut self, key: Key, begun: u64, task: AbortHandle) {
        if let Some(running) = self.running(key, begun) {
            running.task = Some(task);
        }
    }

    /// A request stops waiting. If it is the last one, the compilation is canceled.
    pub(super) fn leave(&mut self, key: Key, begun: u64) {
        let Some(running) = self.running(key, begun) else { return };
        running.waiting -= 1;
        if running.waiting == 0 {
            running.cancel.cancel();
            if let Some(task) = &running.task {
                task.abort();
            }
            self.entries.remove(&key);
        }
    }

    fn running(&mut self, key: Key, begun: u64) -> Option<&mut Running> {
        match self.entries.get_mut(&key) {
            Some(Entry::Running(running)) if running.begun == begun => Some(running),
            _ => None,
        }
    }

    /// Removes a compilation without a result.
    pub(super) fn forget(&mut self, key: Key, begun: u64) {
        if self.running(key, begun).is_some() {
            self.entries.remove(&key);
        }
    }

    /// Stores the outcome of a compilation that a request waits for; failures are stored too.
    pub(super) fn keep(&mut self, key: Key, begun: u64, outcome: Outcome) {
        if self.running(key, begun).is_none() {
            return;
        }
        let bytes = size(&outcome);
        if bytes > self.max_bytes {
            return self.forget(key, begun);
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

/// Approximate bytes of an outcome: the numbers of a compiled constraint, and a fixed overhead.
fn size(outcome: &Outcome) -> usize {
    const AROUND: usize = 1024;
    let own = match outcome {
        Ok(Some(Compiled { table, .. })) => {
            table.state_count() * (table.class_count() + 8) * size_of::<u32>()
        }
        Ok(None) => 0,
        Err(Refusal::Library(error) | Refusal::Tool(error, ..)) => error.to_string().len(),
        Err(Refusal::TooLarge(message) | Refusal::Refused(message)) => message.len(),
        Err(Refusal::Strict(_) | Refusal::Panic) => 0,
    };
    AROUND + own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: usize) -> Outcome {
        Err(Refusal::TooLarge("x".repeat(bytes)))
    }

    /// Begins the compilation of a new key.
    fn begin(cache: &mut Cache, key: Key) -> (u64, Cancel) {
        match cache.find(key) {
            Found::Nothing { begun, cancel, .. } => (begun, cancel),
            _ => panic!("it is known"),
        }
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let mut cache = Cache::new(8 * 1024);
        for key in 0..3 {
            let (begun, _) = begin(&mut cache, [key; 32]);
            cache.keep([key; 32], begun, refusal(1024));
        }
        assert!(matches!(cache.find([0; 32]), Found::Done(_)));
        let (begun, _) = begin(&mut cache, [3; 32]);
        cache.keep([3; 32], begun, refusal(2048));
        assert!(cache.bytes() <= 8 * 1024);
        assert!(matches!(cache.find([0; 32]), Found::Done(_)));
        begin(&mut cache, [1; 32]);
    }

    #[test]
    fn what_is_larger_than_the_cache_is_not_kept() {
        let mut cache = Cache::new(2048);
        let (begun, _) = begin(&mut cache, [1; 32]);
        assert!(matches!(cache.find([1; 32]), Found::Running { .. }));
        cache.keep([1; 32], begun, refusal(4096));
        assert_eq!(cache.bytes(), 0);
        begin(&mut cache, [1; 32]);
    }

    #[test]
    fn the_last_that_goes_ends_the_compilation() {
        let mut cache = Cache::new(8 * 1024);
        let key = [1; 32];
        let (first, cancel) = begin(&mut cache, key);
        assert!(matches!(cache.find(key), Found::Running { begun, .. } if begun == first));
        cache.leave(key, first);
        assert!(!cancel.is_cancelled());
        cache.leave(key, first);
        assert!(cancel.is_cancelled());
        // The next lookup starts a new compilation, regardless of the result of the first.
        let (second, other) = begin(&mut cache, key);
        assert_ne!(first, second);
        cache.keep(key, first, refusal(16));
        cache.forget(key, first);
        cache.leave(key, first);
        assert!(matches!(cache.find(key), Found::Running { begun, .. } if begun == second));
        assert!(!other.is_cancelled());
        cache.keep(key, second, refusal(16));
        assert!(matches!(cache.find(key), Found::Done(_)));
        cache.leave(key, second);
        assert!(matches!(cache.find(key), Found::Done(_)) && !other.is_cancelled());
    }
}
