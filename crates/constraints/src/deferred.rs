//! Automata that are built when the surrounding constraint is lowered.
//!
//! Readers only parse: a reader has no [`Meter`], and determinization needs one. If a constraint
//! needs an automaton, such as free text without certain strings, the reader makes a [`Deferred`]
//! with the function to determinize it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use burn_dfa_automata::ByteDfa;
use burn_dfa_common::{Result, limits::Meter};

/// An automaton that is built on first use and cached.
#[derive(Clone)]
pub(super) struct Deferred(Arc<Inner>);

/// Makes an automaton within the limits of a meter.
type Make = dyn Fn(&Meter) -> Result<ByteDfa> + Send + Sync;

struct Inner {
    make: Box<Make>,
    made: OnceLock<Arc<ByteDfa>>,
}

impl Deferred {
    /// Defers `make`, which gets the meter of the request.
    pub(super) fn new(make: impl Fn(&Meter) -> Result<ByteDfa> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { make: Box::new(make), made: OnceLock::new() }))
    }

    /// The automaton; its language may be empty.
    ///
    /// # Errors
    /// A limit is exceeded, or `make` fails. The next call then runs `make` again.
    pub(super) fn lower(&self, meter: &Meter) -> Result<Arc<ByteDfa>> {
        if let Some(made) = self.0.made.get() {
            // It was made within other limits.
            meter.states(made.state_count())?;
            return Ok(Arc::clone(made));
        }
        meter.time()?;
        let made = Arc::new((self.0.make)(meter)?);
        Ok(Arc::clone(self.0.made.get_or_init(|| made)))
    }
}

impl fmt::Debug for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferred").finish_non_exhaustive()
    }
}
