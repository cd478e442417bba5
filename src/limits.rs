//! Limits on what a compilation may cost.

use std::time::{Duration, Instant};

use crate::error::{Error, Limit, Result};
use crate::threads;

/// How much a constraint may cost to compile. Breaching one is a typed error
/// ([`Error::is_limit`]), never a smaller or larger language.
///
/// ```
/// use burn_dfa::{Constraint, Limits, TokenId, TokenTable, Vocabulary};
///
/// let vocabulary = Vocabulary::from_chars("abc.".chars())?.with_eos([TokenId(3)])?;
/// let wide = Constraint::regex("[abc]{5000}")?;
/// let limits = Limits::new().with_states(1000);
/// assert!(TokenTable::compile(&wide, &vocabulary, &limits).unwrap_err().is_limit());
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most states of any automaton on the way. Default: 1,000,000.
    pub states: usize,
    /// Most bytes of any one structure on the way (automaton, table). Default: 512 MiB.
    pub bytes: usize,
    /// Most bytes of a table that [`TokenTable::compile`](crate::TokenTable::compile) tabulates; a larger one is
    /// walked. Default: 64 MiB.
    pub tabulated_bytes: usize,
    /// Most entries, one for each state and each token, of a table that [`TokenTable::compile`](crate::TokenTable::compile)
    /// tabulates; a larger one is walked, so that its first mask does not wait for it. Default: 2,000,000, about 40 states
    /// with 50,000 tokens.
    pub tabulated_entries: usize,
    /// Most frames on the stack of a row that follows a recursive JSON schema, or one that allows any JSON: about how deep
    /// its arrays and objects may be nested; at most [`MAX_FRAMES`](Self::MAX_FRAMES). With 0 there is no stack, and such a
    /// schema is copied to a depth, see [`JsonOptions::recursion`](crate::constraint::JsonOptions::recursion). Default: 64.
    pub frames: usize,
    /// Most different stacks by which ways to read one text of a grammar may be apart while it is compiled, from 1 to
    /// [`MAX_STACKS`](Self::MAX_STACKS): they are followed in the states, so that a row has one stack whatever this says.
    /// Default: 8.
    pub stacks: usize,
    /// Longest time of one compilation. Default: 30 s.
    pub time: Duration,
    /// Most threads of one compilation, which share the constraints within a grammar and the rows of a large table; each may hold structures
    /// of [`bytes`](Self::bytes). The table is the same for any number, and 0 is as 1. Default: as many as the machine runs at once.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            states: 1_000_000,
            bytes: 512 << 20,
            tabulated_bytes: 64 << 20,
            tabulated_entries: 2_000_000,
            frames: 64,
            stacks: Self::MAX_STACKS,
            time: Duration::from_secs(30),
            threads: threads::available(),
        }
    }
}

impl Limits {
    /// The greatest [`frames`](Self::frames).
    pub const MAX_FRAMES: usize = 1_024;

    /// The greatest [`stacks`](Self::stacks).
    pub const MAX_STACKS: usize = 8;

    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the most states of any automaton on the way.
    #[must_use]
    pub fn with_states(self, states: usize) -> Self {
        Self { states, ..self }
    }

    /// Sets the most bytes of any one structure on the way.
    #[must_use]
    pub fn with_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// Sets the most bytes of a table that is tabulated without being asked for.
    #[must_use]
    pub fn with_tabulated_bytes(self, bytes: usize) -> Self {
        Self { tabulated_bytes: bytes, ..self }
    }

    /// Sets the most entries of a table that is tabulated without being asked for.
    #[must_use]
    pub fn with_tabulated_entries(self, entries: usize) -> Self {
        Self { tabulated_entries: entries, ..self }
    }

    /// Sets the most frames on the stack of a row.
    #[must_use]
    pub fn with_frames(self, frames: usize) -> Self {
        Self { frames, ..self }
    }

    /// Sets the most different stacks that are followed while a grammar is compiled; more than
    /// [`MAX_STACKS`](Self::MAX_STACKS) are as many.
    #[must_use]
    pub fn with_stacks(self, stacks: usize) -> Self {
        Self { stacks, ..self }
    }

    /// Sets the longest time of one compilation.
    #[must_use]
    pub fn with_time(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// Sets the most threads of one compilation.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }
}

/// Limits with the clock of one compilation running.
#[derive(Clone, Debug)]
pub(crate) struct Meter<'a> {
    limits: &'a Limits,
    deadline: Option<Instant>,
}

impl<'a> Meter<'a> {
    pub(crate) fn start(limits: &'a Limits) -> Self {
        Self { limits, deadline: Instant::now().checked_add(limits.time) }
    }

    /// The same clock under other limits.
    pub(crate) fn with_limits<'b>(&self, limits: &'b Limits) -> Meter<'b> {
        Meter { limits, deadline: self.deadline }
    }

    pub(crate) fn limits(&self) -> &Limits {
        self.limits
    }

    /// Refuses more than the allowed states; `states` is a count so far.
    pub(crate) fn states(&self, states: usize) -> Result<()> {
        if states > self.limits.states {
            return Err(Error::limit(Limit::States(self.limits.states)));
        }
        Ok(())
    }

    /// Refuses a structure of more than the allowed bytes.
    pub(crate) fn bytes(&self, bytes: usize) -> Result<()> {
        if bytes > self.limits.bytes {
            return Err(Error::limit(Limit::Bytes(self.limits.bytes)));
        }
        Ok(())
    }

    /// Refuses to go on past the deadline. Call it in every loop that can be long.
    pub(crate) fn time(&self) -> Result<()> {
        match self.deadline {
            Some(deadline) if Instant::now() > deadline => Err(Error::limit(Limit::Time(self.limits.time))),
            _ => Ok(()),
        }
    }
}
