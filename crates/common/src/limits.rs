//! Limits on the cost of a compilation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Limit, Result};
use crate::threads;

/// The maximum cost of compiling a constraint. Breaching a limit is a typed error
/// ([`ErrorKind::Limit`](crate::ErrorKind::Limit)), never a smaller or larger language.
///
/// ```
/// use burn_dfa_tokens::{CompiledConstraint, Constraint, ErrorKind, Limits, TokenId, Vocabulary};
///
/// let vocabulary = Vocabulary::from_chars("abc.".chars())?.with_eos([TokenId(3)])?;
/// let wide = Constraint::regex("[abc]{5000}")?;
/// let limits = Limits::new().with_states(1000);
/// assert_eq!(
///     CompiledConstraint::compile(&wide, &vocabulary, &limits).unwrap_err().kind(),
///     ErrorKind::Limit
/// );
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of states of any automaton during compilation. Default: 1,000,000.
    pub states: usize,
    /// Maximum bytes of any one structure (automaton, compiled constraint). Default: 512 MiB.
    pub bytes: usize,
    /// Maximum size in bytes of a token-level constraint in `CompiledConstraint::compile`; a larger
    /// constraint has the byte-level form. Default: 64 MiB.
    pub token_level_bytes: usize,
    /// Maximum number of entries, one for each state and each token, of a token-level constraint in
    /// `CompiledConstraint::compile`; a larger constraint has the byte-level form, so that its
    /// first mask is available at once. Default: 2,000,000, about 40 states with 50,000 tokens.
    pub token_level_entries: usize,
    /// Maximum number of frames on the stack of a row with a recursive JSON schema, or a schema
    /// that allows any JSON: roughly the nesting depth of arrays and objects; at most
    /// [`MAX_FRAMES`](Self::MAX_FRAMES). With 0 there is no stack, and such a schema is unrolled to
    /// a depth, see `JsonOptions::recursion`. Default: 64.
    pub frames: usize,
    /// Maximum number of distinct stacks among the readings of one text during the compilation of a
    /// grammar, from 1 to [`MAX_STACKS`](Self::MAX_STACKS). States track these stacks, so a row
    /// always has one stack. Default: 8.
    pub stacks: usize,
    /// The tokens allowed to spell forced text. Default: [`ForcedText::AnyToken`].
    pub forced_text: ForcedText,
    /// Maximum duration of one compilation. Default: 30 s.
    pub time: Duration,
    /// The latest end of the compilation, which several steps may share. A compilation past it has
    /// exceeded [`time`](Self::time). Default: none.
    pub deadline: Option<Instant>,
    /// Maximum number of threads of one compilation, which share the constraints within a grammar
    /// and the rows of a large constraint; each thread may hold structures of
    /// [`bytes`](Self::bytes). The result is the same for any number, and 0 means 1. Default: the
    /// parallelism of the machine.
    pub threads: usize,
    /// Ends the compilation from another thread with
    /// [`ErrorKind::Canceled`](crate::ErrorKind::Canceled). Checked together with the time.
    /// Default: none.
    pub cancel: Option<Cancel>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            states: 1_000_000,
            bytes: 512 << 20,
            token_level_bytes: 64 << 20,
            token_level_entries: 2_000_000,
            frames: 64,
            stacks: Self::MAX_STACKS,
            forced_text: ForcedText::default(),
            time: Duration::from_secs(30),
            deadline: None,
            threads: threads::available(),
            cancel: None,
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

    /// Sets the maximum number of states of any automaton during compilation.
    #[must_use]
    pub fn with_states(self, states: usize) -> Self {
        Self { states, ..self }
    }

    /// Sets the maximum bytes of any one structure during compilation.
    #[must_use]
    pub fn with_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// Sets the maximum size in bytes of an automatically chosen token-level form.
    #[must_use]
    pub fn with_token_level_bytes(self, bytes: usize) -> Self {
        Self { token_level_bytes: bytes, ..self }
    }

    /// Sets the maximum number of entries of an automatically chosen token-level form.
    #[must_use]
    pub fn with_token_level_entries(self, entries: usize) -> Self {
        Self { token_level_entries: entries, ..self }
    }

    /// Sets the maximum number of frames on the stack of a row.
    #[must_use]
    pub fn with_frames(self, frames: usize) -> Self {
        Self { frames, ..self }
    }

    /// Sets the maximum number of distinct stacks during the compilation of a grammar, capped at
    /// [`MAX_STACKS`](Self::MAX_STACKS).
    #[must_use]
    pub fn with_stacks(self, stacks: usize) -> Self {
        Self { stacks, ..self }
    }

    /// Sets the tokens allowed to spell forced text.
    #[must_use]
    pub fn with_forced_text(self, forced_text: ForcedText) -> Self {
        Self { forced_text, ..self }
    }

    /// Sets the maximum duration of one compilation.
    #[must_use]
    pub fn with_time(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// Sets the latest end of the compilation.
    #[must_use]
    pub fn with_deadline(self, deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// Sets the maximum number of threads of one compilation.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Sets the flag that cancels the compilation.
    #[must_use]
    pub fn with_cancel(self, cancel: &Cancel) -> Self {
        Self { cancel: Some(cancel.clone()), ..self }
    }
}

/// The tokens allowed to spell forced text. A byte is forced if the constraint allows no other byte
/// at its position.
///
/// A model with a choice often splits forced text differently from its tokenizer, for instance into
/// `it`, `e`, `m` instead of `item`. Models have rarely read text with such splits. Both settings
/// allow the same texts.
///
/// Measured with SmolLM2-135M-Instruct (Q4_1, greedy) on 80 calls of the Berkeley Function Calling
/// Leaderboard and 30 extraction prompts, in JSON with spaces: with [`Longest`](Self::Longest), 69
/// instead of 0 of the 110 answers were split as the tokenizer splits them, 33 instead of 34 calls
/// were right, and 95 instead of 94 of 120 fields. In compact JSON, 33 instead of 31 calls and 72
/// instead of 75 fields were right. The gain is not clear, so [`AnyToken`](Self::AnyToken) is the
/// default.
///
/// ```
/// use burn_dfa_tokens::{
///     CompiledConstraint, Constraint, ForcedText, Limits, StateId, TokenId, Vocabulary,
/// };
///
/// let vocabulary =
///     Vocabulary::from_bytes([Some("i"), Some("t"), Some("it"), None])?.with_eos([TokenId(3)])?;
/// let constraint = Constraint::regex("it")?;
/// let allows_i = |limits: &Limits| -> Result<bool, burn_dfa_tokens::Error> {
///     let compiled = CompiledConstraint::compile(&constraint, &vocabulary, limits)?;
///     Ok(compiled.next(compiled.start(), TokenId(0)) != StateId::DEAD)
/// };
/// assert!(allows_i(&Limits::new())?);
/// assert!(!allows_i(&Limits::new().with_forced_text(ForcedText::Longest))?); // `it` alone
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForcedText {
    /// Among the tokens made only of forced bytes, only the longest is legal. Tokens that reach
    /// beyond the forced bytes stay legal. In an automaton with a stack, forced text ends at the
    /// first byte that pushes or pops. A constraint that counts tokens, or is over token ids, has
    /// no forced text.
    Longest,
    /// Every token that fits.
    #[default]
    AnyToken,
}

impl ForcedText {
    /// The name in artifacts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Longest => "longest",
            Self::AnyToken => "any",
        }
    }
}

/// A flag that cancels work from any thread: a compilation with the flag in its [`Limits`], and the
/// rows of all requests that share it.
///
/// A compilation checks the flag as often as its time, and ends with
/// [`ErrorKind::Canceled`](crate::ErrorKind::Canceled). A generation checks it each time that the
/// host reads tokens. The row ends with the tokens so far, and the other rows of the batch
/// continue. A canceled flag stays canceled. Two flags are equal if canceling one cancels the
/// other.
///
/// ```
/// use burn_dfa_tokens::{Cancel, Constraint, ErrorKind, Limits};
///
/// let cancel = Cancel::default();
/// let limits = Limits::new().with_cancel(&cancel);
/// std::thread::spawn(move || cancel.cancel()).join().unwrap();
/// let error = Constraint::regex("[ab]{500}")?.to_byte_dfa(&limits).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Canceled);
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    asked: Arc<AtomicBool>,
}

impl Cancel {
    /// Asks the work to end.
    pub fn cancel(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether the work was asked to end.
    pub fn is_canceled(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

impl PartialEq for Cancel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.asked, &other.asked)
    }
}

impl Eq for Cancel {}

/// Limits with the running clock of one compilation.
#[derive(Clone, Debug)]
pub struct Meter<'a> {
    limits: &'a Limits,
    deadline: Option<Instant>,
}

impl<'a> Meter<'a> {
    pub fn start(limits: &'a Limits) -> Self {
        let deadlines = [Instant::now().checked_add(limits.time), limits.deadline];
        Self { limits, deadline: deadlines.into_iter().flatten().min() }
    }

    /// The same clock under other limits.
    pub fn with_limits<'b>(&self, limits: &'b Limits) -> Meter<'b> {
        Meter { limits, deadline: self.deadline }
    }

    pub fn limits(&self) -> &Limits {
        self.limits
    }

    /// Checks a number of states against the limit.
    pub fn states(&self, states: usize) -> Result<()> {
        if states > self.limits.states {
            return Err(Error::limit(Limit::States(self.limits.states)));
        }
        Ok(())
    }

    /// Checks the size of a structure in bytes against the limit.
    pub fn bytes(&self, bytes: usize) -> Result<()> {
        if bytes > self.limits.bytes {
            return Err(Error::limit(Limit::Bytes(self.limits.bytes)));
        }
        Ok(())
    }

    /// Fails after the deadline or a cancellation. Call it in every loop that can be long.
    pub fn time(&self) -> Result<()> {
        if self.limits.cancel.as_ref().is_some_and(Cancel::is_canceled) {
            return Err(Error::compilation_canceled());
        }
        match self.deadline {
            Some(deadline) if Instant::now() > deadline => Err(Error::limit(Limit::Time(self.limits.time))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_equal_if_they_are_one() {
        let cancel = Cancel::default();
        assert_eq!(Limits::new().with_cancel(&cancel), Limits::new().with_cancel(&cancel.clone()));
        assert_ne!(Limits::new().with_cancel(&cancel), Limits::new().with_cancel(&Cancel::default()));
        assert_eq!(Limits::new(), Limits::default());
    }

    #[test]
    fn the_earlier_deadline_counts() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let limits = Limits::new().with_deadline(now + 1_000 * second).with_time(Duration::ZERO);
        let meter = Meter::start(&limits);
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(meter.time().unwrap_err().breached(), Some(Limit::Time(Duration::ZERO)));
        let limits = Limits::new().with_deadline(now).with_time(second);
        assert_eq!(Meter::start(&limits).time().unwrap_err().breached(), Some(Limit::Time(second)));
        assert!(Meter::start(&Limits::new().with_deadline(now + 1_000 * second)).time().is_ok());
    }
}
