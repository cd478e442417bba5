//! A table that is being compiled while other work goes on.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::TokenTable;
use crate::constraint::Constraint;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::vocabulary::Vocabulary;

/// A table that another thread compiles: a [`Request`](crate::generation::Request::with_pending) may have it before it is
/// there.
///
/// Clones are of the same table. Dropping them waits for nothing: the thread goes on until it has ended, at the latest at
/// [`Limits::time`].
///
/// ```
/// use burn_dfa::{Constraint, Limits, PendingTable, TokenId, TokenTable, Vocabulary};
///
/// let vocabulary = Vocabulary::from_chars("ab.".chars())?.with_eos([TokenId(2)])?;
/// let (constraint, limits) = (Constraint::regex("ab*")?, Limits::default());
/// let pending = PendingTable::compile(&constraint, &vocabulary, &limits);
/// // … the model reads the prompt …
/// assert_eq!(pending.wait()?, TokenTable::compile(&constraint, &vocabulary, &limits)?);
/// assert!(pending.is_ready());
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone)]
pub struct PendingTable {
    shared: Arc<Shared>,
}

/// The other end of a [`PendingTable`]: says what came of it.
///
/// Where it is dropped without a word, as by a panic, what comes of the table is [`Error::is_table`].
///
/// ```
/// use burn_dfa::{Constraint, Limits, PendingTable, TableCache, TokenId, Vocabulary};
///
/// # let folder = std::env::temp_dir().join(format!("burn-dfa-doc-pending-{}", std::process::id()));
/// let vocabulary = Vocabulary::from_chars("ab.".chars())?.with_eos([TokenId(2)])?;
/// let (constraint, cache) = (Constraint::regex("ab*")?, TableCache::new(&folder, 256 << 20)?);
/// let (sender, pending) = PendingTable::channel();
/// std::thread::spawn(move || sender.send(cache.compile(&constraint, &vocabulary, &Limits::default())));
/// assert_eq!(pending.wait()?.class_count(), 5);
///
/// let (sender, pending) = PendingTable::channel();
/// drop(sender);
/// assert!(pending.wait().unwrap_err().is_table());
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), burn_dfa::Error>(())
/// ```
pub struct TableSender {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// `None`: not known yet.
    outcome: Mutex<Option<Result<TokenTable>>>,
    is_known: Condvar,
}

impl Shared {
    /// Nothing panics while it is held.
    fn outcome(&self) -> MutexGuard<'_, Option<Result<TokenTable>>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingTable {
    /// Compiles a constraint on a thread of its own, as [`TokenTable::compile`] does.
    pub fn compile(constraint: &Constraint, vocabulary: &Vocabulary, limits: &Limits) -> Self {
        let (sender, pending) = Self::channel();
        let (constraint, vocabulary, limits) = (constraint.clone(), vocabulary.clone(), limits.clone());
        let work = move || sender.send(TokenTable::compile(&constraint, &vocabulary, &limits));
        // Where there can be no thread, the work is dropped, and the sender with it.
        let _ = thread::Builder::new().name("compile".into()).spawn(work);
        pending
    }

    /// A table that is compiled elsewhere, and what tells of it.
    pub fn channel() -> (TableSender, Self) {
        let shared = Arc::<Shared>::default();
        (TableSender { shared: shared.clone() }, Self { shared })
    }

    /// Whether [`wait`](Self::wait) returns at once.
    pub fn is_ready(&self) -> bool {
        self.shared.outcome().is_some()
    }

    /// The table, once it is compiled.
    ///
    /// # Errors
    /// As [`TokenTable::compile`]; [`Error::is_table`] where what compiled it ended without a table.
    pub fn wait(&self) -> Result<TokenTable> {
        loop {
            if let Some(outcome) = self.wait_for(Duration::MAX) {
                return outcome;
            }
        }
    }

    /// The table, once it is compiled; `None` where that takes longer than some time.
    pub(crate) fn wait_for(&self, most: Duration) -> Option<Result<TokenTable>> {
        let unknown = |outcome: &mut Option<_>| outcome.is_none();
        let waited = self.shared.is_known.wait_timeout_while(self.shared.outcome(), most, unknown);
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}

impl TableSender {
    /// Says what came of it: a table, or why there is none.
    pub fn send(self, outcome: Result<TokenTable>) {
        *self.shared.outcome() = Some(outcome);
    }
}

impl Drop for TableSender {
    fn drop(&mut self) {
        self.shared.outcome().get_or_insert_with(|| {
            Err(Error::table("what compiled it ended without one: it panicked, or was given up"))
        });
        self.shared.is_known.notify_all();
    }
}

impl fmt::Debug for PendingTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingTable").field("is_ready", &self.is_ready()).finish_non_exhaustive()
    }
}

impl fmt::Debug for TableSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableSender").finish_non_exhaustive()
    }
}
