//! The constraint of a request: compiled, or being compiled while the model reads the prompt.

use std::fmt;
use std::sync::Arc;

use burn_dfa::{CompiledConstraint, PendingConstraint};

use crate::cache::{Progress, Shared};
use crate::frontend::{Frontend, Outcome};

/// The result of [`Compiler::get`](crate::Compiler::get).
pub enum Compilation<F: Frontend> {
    /// The compilation has ended.
    Done(F::Compiled),
    /// The constraint was read and is being compiled.
    Running(Running<F>),
}

/// A compilation that runs. It is canceled after all requests have dropped it.
pub struct Running<F: Frontend> {
    shared: Shared<Outcome<F>>,
    wait: Arc<Wait>,
}

/// The constraint of an answer.
#[derive(Clone, Debug)]
pub enum RequestConstraint {
    /// A compiled constraint.
    Ready(CompiledConstraint),
    /// A constraint that is being compiled.
    Pending(Pending),
}

/// A constraint that is being compiled, from [`Compilation::constraint`].
#[derive(Clone, Debug)]
pub struct Pending {
    pub(crate) constraint: PendingConstraint,
    /// Keeps the compilation running.
    _wait: Arc<Wait>,
}

/// The wait of a request for a compilation. The compilation is canceled when the last wait ends.
pub(crate) struct Wait(Box<dyn Fn() + Send + Sync>);

impl Wait {
    /// Calls `leave` at the end of the wait.
    pub(crate) fn new(leave: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Box::new(leave))
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").finish_non_exhaustive()
    }
}

impl<F: Frontend> Running<F> {
    pub(crate) fn new(shared: Shared<Outcome<F>>, wait: Wait) -> Self {
        Self { shared, wait: Arc::new(wait) }
    }

    pub(crate) fn shared(&mut self) -> &mut Shared<Outcome<F>> {
        &mut self.shared
    }

    /// The result, if the compilation has ended with one.
    pub(crate) fn outcome(&self) -> Option<Outcome<F>> {
        match &*self.shared.progress.borrow() {
            Progress::Done(outcome) => Some(outcome.clone()),
            _ => None,
        }
    }
}

impl<F: Frontend> Compilation<F> {
    /// The compiled constraint, if the compilation has ended.
    pub fn ready(&self) -> Option<F::Compiled> {
        match self {
            Self::Done(compiled) => Some(compiled.clone()),
            Self::Running(running) => running.outcome().and_then(Result::ok),
        }
    }

    /// The reason why the constraint is refused, if it is; `None` also after a slow compilation was
    /// given up because the queue of the compile pool is full.
    pub fn refusal(&self) -> Option<F::Refusal> {
        match self {
            Self::Done(_) => None,
            Self::Running(running) => running.outcome().and_then(Result::err),
        }
    }

    /// The constraint for a request to the engine; `None` for plain text.
    pub fn constraint(&self) -> Option<RequestConstraint> {
        match self {
            Self::Done(compiled) => F::constraint(compiled).cloned().map(RequestConstraint::Ready),
            Self::Running(Running { shared, wait }) => Some(RequestConstraint::Pending(Pending {
                constraint: shared.constraint.clone(),
                _wait: wait.clone(),
            })),
        }
    }
}

impl<F: Frontend> Clone for Compilation<F> {
    fn clone(&self) -> Self {
        match self {
            Self::Done(compiled) => Self::Done(compiled.clone()),
            Self::Running(Running { shared, wait }) => {
                Self::Running(Running { shared: shared.clone(), wait: wait.clone() })
            }
        }
    }
}

impl<F: Frontend> fmt::Debug for Compilation<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compilation").field("is_done", &matches!(self, Self::Done(_))).finish()
    }
}

impl<F: Frontend> fmt::Debug for Running<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

impl RequestConstraint {
    /// Tokens of the shortest answer; 0 if the constraint is not compiled yet.
    pub fn tokens_needed(&self) -> usize {
        match self {
            Self::Ready(constraint) => constraint.tokens_to_end(constraint.start()) as usize,
            Self::Pending(_) => 0,
        }
    }

    /// Whether the compilation has failed.
    pub(crate) fn has_failed(&self) -> bool {
        match self {
            Self::Ready(_) => false,
            Self::Pending(Pending { constraint, .. }) => constraint.is_ready() && constraint.wait().is_err(),
        }
    }
}

impl From<CompiledConstraint> for RequestConstraint {
    fn from(constraint: CompiledConstraint) -> Self {
        Self::Ready(constraint)
    }
}
