//! Measurements of the engine.

use std::time::Duration;

use crate::Ending;

/// Receives measurements. Every method does nothing by default; `()` ignores all measurements.
///
/// The threads of the engine and of the compiler call these methods, so they should be fast.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use burn_dfa_engine::Metrics;
///
/// /// Counts the tokens of all answers.
/// #[derive(Default)]
/// struct Count(AtomicUsize);
///
/// impl Metrics for Count {
///     fn generated(&self, count: usize) {
///         self.0.fetch_add(count, Ordering::Relaxed);
///     }
/// }
///
/// let count = Count::default();
/// count.generated(3);
/// assert_eq!(count.0.into_inner(), 3);
/// ```
pub trait Metrics: Send + Sync + 'static {
    /// The load changed.
    fn load(&self, _load: Load) {}
    /// An answer got a row after it had `waited` in the queue; its prompt has `prompt` tokens.
    fn admitted(&self, _waited: Duration, _prompt: usize) {}
    /// The first tokens of an answer were generated, with this time since it was queued.
    fn first_token(&self, _elapsed: Duration) {}
    /// `count` tokens were generated after earlier ones, each in `each`.
    fn next_tokens(&self, _count: usize, _each: Duration) {}
    /// `count` tokens were generated.
    fn generated(&self, _count: usize) {}
    /// The prefix cache held `cached` tokens of a prompt of `prompt` tokens.
    fn prefix(&self, _prompt: usize, _cached: usize) {}
    /// An answer ended, or failed with `None`, with this time since it was queued.
    fn ended(&self, _ending: Option<Ending>, _elapsed: Duration) {}
    /// An answer was lost because the model failed.
    fn lost(&self) {}
    /// The engine continues after a failure of the model.
    fn restarted(&self) {}
    /// A compilation ended after this time.
    fn compiled(&self, _time: Duration) {}
    /// A constraint was looked up in the cache; if it was not found, its compilation begins.
    fn looked_up(&self, _found: bool) {}
    /// The cached constraints have this approximate size.
    fn cache_bytes(&self, _bytes: usize) {}
}

impl Metrics for () {}

/// The load of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Answers in rows.
    pub running: usize,
    /// Answers that wait for a row.
    pub waiting: usize,
    /// The used fraction of the tokens of all rows.
    pub tokens: f64,
    /// The used fraction of the states for constraints.
    pub states: f64,
}
