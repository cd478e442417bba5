//! A flag to end a generation from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the rows of the [`Request`](super::Request)s that share it, from any thread.
///
/// It is looked at whenever the host reads, every [`read_every`](super::GenerationConfig::read_every) steps. The row
/// ends with [`Finish::Cancelled`](super::Finish::Cancelled) and the tokens so far, and the other rows of the batch go
/// on. A cancelled flag stays so.
///
/// ```
/// use burn_dfa::TokenId;
/// use burn_dfa::generation::{Cancel, Request};
///
/// let cancel = Cancel::default();
/// let request = Request::new(vec![TokenId(1)], 64).with_cancel(&cancel);
/// std::thread::spawn(move || cancel.cancel()).join().unwrap();
/// assert!(request.cancel.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    asked: Arc<AtomicBool>,
}

impl Cancel {
    /// Asks the rows to end.
    pub fn cancel(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether the rows were asked to end.
    pub fn is_cancelled(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}
