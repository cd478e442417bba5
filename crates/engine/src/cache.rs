//! Results of finished and running compilations, by the key of their source.

use std::collections::HashMap;

use burn_dfa::PendingConstraint;
use burn_dfa::generation::Cancel;
use tokio::sync::watch;

/// Identifies a source of constraints, such as a digest of its text.
pub type Key = [u8; 32];

/// The progress of a compilation with a result of type `T`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Progress<T> {
    /// The constraint is queued or being read.
    Reading,
    /// The constraint was read and is being compiled.
    Compiling,
    /// The compilation has ended.
    Done(T),
}

/// Results within a bound of bytes; the least recently used ones are removed first.
#[derive(Debug)]
pub(crate) struct Cache<T> {
    entries: HashMap<Key, Entry<T>>,
    /// Approximate bytes of all entries.
    bytes: usize,
    max_bytes: usize,
    /// Counts lookups.
    clock: u64,
}

#[derive(Debug)]
enum Entry<T> {
    Running(Running<T>),
    Done { result: T, bytes: usize, used: u64 },
}

/// A compilation with requests that wait for it.
#[derive(Debug)]
struct Running<T> {
    shared: Shared<T>,
    /// Number of waiting requests.
    waiting: usize,
    cancel: Cancel,
}

/// A compilation, for a request that waits for it. The request counts as waiting until
/// [`Cache::leave`].
#[derive(Clone, Debug)]
pub(crate) struct Shared<T> {
    /// The clock at the start, which distinguishes this compilation from others of the same source.
    pub(crate) begun: u64,
    /// The constraint, after the compilation has ended.
    pub(crate) constraint: PendingConstraint,
    pub(crate) progress: watch::Receiver<Progress<T>>,
}

/// The result of a lookup.
pub(crate) enum Found<T> {
    Done(T),
    Running(Shared<T>),
    /// The source is unknown: the caller compiles it.
    New(Shared<T>, StartedCompilation<T>),
}

/// What the caller needs to compile an unknown source.
pub(crate) struct StartedCompilation<T> {
    pub(crate) progress: watch::Sender<Progress<T>>,
    pub(crate) constraint: burn_dfa::ConstraintSender,
    pub(crate) cancel: Cancel,
}

impl<T: Clone> Cache<T> {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { entries: HashMap::new(), bytes: 0, max_bytes, clock: 0 }
    }

    /// Looks up a source. If it is unknown, it counts as running from now on.
    pub(crate) fn find(&mut self, key: Key) -> Found<T> {
        self.clock += 1;
        match self.entries.get_mut(&key) {
            Some(Entry::Done { result, used, .. }) => {
                *used = self.clock;
                Found::Done(result.clone())
            }
            Some(Entry::Running(running)) => {
                running.waiting += 1;
                Found::Running(running.shared.clone())
            }
            None => {
                let (progress, receiver) = watch::channel(Progress::Reading);
                let (constraint, pending) = PendingConstraint::channel();
                let (begun, cancel) = (self.clock, Cancel::default());
                let shared = Shared { begun, constraint: pending, progress: receiver };
                let running = Running { shared: shared.clone(), waiting: 1, cancel: cancel.clone() };
                self.entries.insert(key, Entry::Running(running));
                Found::New(shared, StartedCompilation { progress, constraint, cancel })
            }
        }
    }

    /// A request stops waiting. If it is the last one, the compilation is canceled.
    pub(crate) fn leave(&mut self, key: Key, begun: u64) {
        let Some(running) = self.running(key, begun) else { return };
        running.waiting -= 1;
        if running.waiting == 0 {
            running.cancel.cancel();
            self.entries.remove(&key);
        }
    }

    fn running(&mut self, key: Key, begun: u64) -> Option<&mut Running<T>> {
        match self.entries.get_mut(&key) {
            Some(Entry::Running(running)) if running.shared.begun == begun => Some(running),
            _ => None,
        }
    }

    /// Removes a compilation without a result.
    pub(crate) fn forget(&mut self, key: Key, begun: u64) {
        if self.running(key, begun).is_some() {
            self.entries.remove(&key);
        }
    }

    /// Stores the result of a compilation that a request waits for. It has `bytes` bytes.
    pub(crate) fn keep(&mut self, key: Key, begun: u64, result: T, bytes: usize) {
        if self.running(key, begun).is_none() {
            return;
        }
        if bytes > self.max_bytes {
            return self.forget(key, begun);
        }
        self.entries.insert(key, Entry::Done { result, bytes, used: self.clock });
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

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begins the compilation of a new key.
    fn begin(cache: &mut Cache<()>, key: Key) -> (u64, Cancel) {
        match cache.find(key) {
            Found::New(shared, begun) => (shared.begun, begun.cancel),
            _ => panic!("it is known"),
        }
    }

    #[test]
    fn the_least_recently_used_result_is_removed_first() {
        let mut cache = Cache::new(8 * 1024);
        for key in 0..3 {
            let (begun, _) = begin(&mut cache, [key; 32]);
            cache.keep([key; 32], begun, (), 2 * 1024);
        }
        assert!(matches!(cache.find([0; 32]), Found::Done(())));
        let (begun, _) = begin(&mut cache, [3; 32]);
        cache.keep([3; 32], begun, (), 3 * 1024);
        assert!(cache.bytes() <= 8 * 1024);
        assert!(matches!(cache.find([0; 32]), Found::Done(())));
        begin(&mut cache, [1; 32]);
    }

    #[test]
    fn results_larger_than_the_cache_are_not_stored() {
        let mut cache = Cache::new(2048);
        let (begun, _) = begin(&mut cache, [1; 32]);
        assert!(matches!(cache.find([1; 32]), Found::Running(_)));
        cache.keep([1; 32], begun, (), 4096);
        assert_eq!(cache.bytes(), 0);
        begin(&mut cache, [1; 32]);
    }

    #[test]
    fn the_last_waiting_request_cancels_the_compilation() {
        let mut cache = Cache::new(8 * 1024);
        let key = [1; 32];
        let (first, cancel) = begin(&mut cache, key);
        assert!(matches!(cache.find(key), Found::Running(shared) if shared.begun == first));
        cache.leave(key, first);
        assert!(!cancel.is_canceled());
        cache.leave(key, first);
        assert!(cancel.is_canceled());
        // The next lookup starts a new compilation, regardless of the result of the first.
        let (second, other) = begin(&mut cache, key);
        assert_ne!(first, second);
        cache.keep(key, first, (), 16);
        cache.forget(key, first);
        cache.leave(key, first);
        assert!(matches!(cache.find(key), Found::Running(shared) if shared.begun == second));
        assert!(!other.is_canceled());
        cache.keep(key, second, (), 16);
        assert!(matches!(cache.find(key), Found::Done(())));
        cache.leave(key, second);
        assert!(matches!(cache.find(key), Found::Done(())) && !other.is_canceled());
    }
}
