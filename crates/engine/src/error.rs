//! The errors of the engine. Programs convert them to their own errors.

use std::fmt;

use burn_dfa::Error;

/// The compiler refuses a constraint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The library refuses the constraint, or a limit was exceeded.
    Library(Error),
    /// The compiled constraint exceeds the capacity of the engine.
    TooLarge {
        /// States and token classes of the constraint.
        size: [usize; 2],
        /// States and token classes for which the engine has space.
        capacity: [usize; 2],
    },
    /// The compiler panicked.
    Panic,
}

impl Refusal {
    /// The error of the library that caused the refusal, for
    /// [`Frontend::error`](crate::Frontend::error).
    pub fn error(&self) -> Option<&Error> {
        match self {
            Self::Library(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(error) => error.fmt(f),
            Self::TooLarge { size: [states, classes], capacity: [max_states, max_classes] } => write!(
                f,
                "the constraint takes {states} states of {classes} classes, and the engine has space for {max_states} of {max_classes}: simplify it, or raise the capacity"
            ),
            Self::Panic => f.write_str("the compiler panicked on this constraint"),
        }
    }
}

impl std::error::Error for Refusal {}

/// There is no compiled constraint; `R` is the front end's [`Refusal`](crate::Frontend::Refusal).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompileError<R> {
    /// The constraint is refused.
    Refused(R),
    /// The queue of the compile pool is full.
    Overloaded,
    /// The compilation did not end in time, because of other compilations.
    Late,
    /// The compiler has been shut down.
    Shutdown,
}

impl<R: fmt::Display> fmt::Display for CompileError<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Overloaded => f.write_str("the queue of compilations is full: try again later"),
            Self::Late => f.write_str("other compilations delayed this one too long: try again later"),
            Self::Shutdown => f.write_str("the compiler has been shut down"),
        }
    }
}

impl<R: fmt::Debug + fmt::Display> std::error::Error for CompileError<R> {}

/// A [`Pool`](crate::Pool) did not complete some work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoolError {
    /// The queue of the pool is full.
    Overloaded,
    /// The work panicked.
    Panic,
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overloaded => "the queue of the pool is full: try again later",
            Self::Panic => "the work panicked",
        })
    }
}

impl std::error::Error for PoolError {}

/// The engine does not accept a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubmitError {
    /// The queue has too little space for the answers.
    Full {
        /// Answers in the queue.
        waiting: usize,
        /// Maximum number of answers in the queue.
        max_queue: usize,
    },
    /// The engine has ended.
    Shutdown,
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { waiting, max_queue } => {
                write!(f, "{waiting} answers wait already, of {max_queue} that may: try again later")
            }
            Self::Shutdown => f.write_str("the engine has ended"),
        }
    }
}

impl std::error::Error for SubmitError {}

/// The reason for a missing answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The library refused the answer, or the model failed.
    Library(Error),
    /// The compilation of the constraint failed after the answer was queued:
    /// [`Compilation::refusal`](crate::Compilation::refusal) is the reason. Without a refusal, the
    /// compilation was slow and the queue of the compile pool full.
    Constraint,
    /// The model panicked.
    Panic,
    /// The engine has ended.
    Shutdown,
}

impl Failure {
    /// Tokens of the shortest answer, if the budget is too small.
    pub fn tokens_needed(&self) -> Option<usize> {
        match self {
            Self::Library(error) => error.tokens_needed(),
            _ => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(error) => write!(f, "the engine: {error}"),
            Self::Constraint => f.write_str("the constraint was not compiled"),
            Self::Panic => f.write_str("the model panicked; the engine begins anew"),
            Self::Shutdown => f.write_str("the engine has ended"),
        }
    }
}

impl std::error::Error for Failure {}
