//! A compiled constraint under compilation on another thread.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::CompiledConstraint;
use burn_dfa_common::{Error, Limits, Result};
use burn_dfa_constraints::Constraint;
use burn_dfa_vocabulary::Vocabulary;

/// A constraint being compiled by another thread: a `Request` may hold it before compilation ends.
///
/// Clones share one result. Dropping all clones does not block: the thread runs until it has
/// finished, at the latest at [`Limits::time`].
///
/// ```
/// use burn_dfa_tokens::{
///     CompiledConstraint, Constraint, Limits, PendingConstraint, TokenId, Vocabulary,
/// };
///
/// let vocabulary = Vocabulary::from_chars("ab.".chars())?.with_eos([TokenId(2)])?;
/// let (constraint, limits) = (Constraint::regex("ab*")?, Limits::default());
/// let pending = PendingConstraint::compile(&constraint, &vocabulary, &limits);
/// // … the model reads the prompt …
/// assert_eq!(pending.wait()?, CompiledConstraint::compile(&constraint, &vocabulary, &limits)?);
/// assert!(pending.is_ready());
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone)]
pub struct PendingConstraint {
    shared: Arc<Shared>,
}

/// The sending half of a [`PendingConstraint`]: delivers the result.
///
/// If it is dropped without a result, as by a panic, the result is
/// [`ErrorKind::Artifact`](crate::ErrorKind::Artifact).
///
/// ```
/// use burn_dfa_tokens::{
///     Constraint, ConstraintCache, ErrorKind, Limits, PendingConstraint, TokenId, Vocabulary,
/// };
///
/// # let folder = std::env::temp_dir().join(format!("burn-dfa-doc-pending-{}", std::process::id()));
/// let vocabulary = Vocabulary::from_chars("ab.".chars())?.with_eos([TokenId(2)])?;
/// let (constraint, cache) =
///     (Constraint::regex("ab*")?, ConstraintCache::new(&folder, 256 << 20)?);
/// let (sender, pending) = PendingConstraint::channel();
/// std::thread::spawn(move || {
///     sender.send(cache.compile(&constraint, &vocabulary, &Limits::default()))
/// });
/// assert_eq!(pending.wait()?.class_count(), 5);
///
/// let (sender, pending) = PendingConstraint::channel();
/// drop(sender);
/// assert_eq!(pending.wait().unwrap_err().kind(), ErrorKind::Artifact);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
pub struct ConstraintSender {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// `None`: no result yet.
    outcome: Mutex<Option<Result<CompiledConstraint>>>,
    is_known: Condvar,
}

impl Shared {
    /// No code panics while holding the lock.
    fn outcome(&self) -> MutexGuard<'_, Option<Result<CompiledConstraint>>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingConstraint {
    /// Compiles a constraint on a new thread, as [`CompiledConstraint::compile`] does.
    pub fn compile(constraint: &Constraint, vocabulary: &Vocabulary, limits: &Limits) -> Self {
        let (sender, pending) = Self::channel();
        let (constraint, vocabulary, limits) = (constraint.clone(), vocabulary.clone(), limits.clone());
        let work = move || sender.send(CompiledConstraint::compile(&constraint, &vocabulary, &limits));
        // If no thread can start, the closure is dropped together with the sender.
        let _ = thread::Builder::new().name("compile".into()).spawn(work);
        pending
    }

    /// A pending constraint compiled elsewhere, and the sender for its result.
    pub fn channel() -> (ConstraintSender, Self) {
        let shared = Arc::<Shared>::default();
        (ConstraintSender { shared: shared.clone() }, Self { shared })
    }

    /// Whether [`wait`](Self::wait) returns at once.
    pub fn is_ready(&self) -> bool {
        self.shared.outcome().is_some()
    }

    /// The compiled constraint; blocks until compilation ends.
    ///
    /// # Errors
    /// As [`CompiledConstraint::compile`]; [`ErrorKind::Artifact`](crate::ErrorKind::Artifact) if
    /// the sender was dropped without a result.
    pub fn wait(&self) -> Result<CompiledConstraint> {
        loop {
            if let Some(outcome) = self.wait_for(Duration::MAX) {
                return outcome;
            }
        }
    }

    /// The compiled constraint; `None` if compilation takes longer than `timeout`.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_for(&self, timeout: Duration) -> Option<Result<CompiledConstraint>> {
        let unknown = |outcome: &mut Option<_>| outcome.is_none();
        let waited = self.shared.is_known.wait_timeout_while(self.shared.outcome(), timeout, unknown);
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}

impl ConstraintSender {
    /// Delivers the result: a compiled constraint, or an error.
    pub fn send(self, outcome: Result<CompiledConstraint>) {
        *self.shared.outcome() = Some(outcome);
    }
}

impl Drop for ConstraintSender {
    fn drop(&mut self) {
        self.shared.outcome().get_or_insert_with(|| {
            Err(Error::artifact("what compiled it ended without one: it panicked, or was given up"))
        });
        self.shared.is_known.notify_all();
    }
}

impl fmt::Debug for PendingConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingConstraint").field("is_ready", &self.is_ready()).finish_non_exhaustive()
    }
}

impl fmt::Debug for ConstraintSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConstraintSender").finish_non_exhaustive()
    }
}
