//! The bytes in order, divided where runs start and end.

use super::Run;

/// A division of the bytes into *intervals*: no added run starts or ends within an interval.
#[derive(Clone)]
pub struct Cuts([bool; 257]);

impl Cuts {
    /// One interval of all bytes.
    #[allow(clippy::new_without_default, reason = "one way to make it")]
    pub fn new() -> Self {
        Self([false; 257])
    }

    /// Divides the bytes before `first` and after `last`.
    pub fn add(&mut self, first: u8, last: u8) {
        self.0[first as usize] = true;
        self.0[last as usize + 1] = true;
    }

    /// The first and the last byte of each interval, in order.
    pub fn intervals(&self) -> impl Iterator<Item = (u8, u8)> {
        let mut first = 0;
        std::iter::from_fn(move || {
            let begin = u8::try_from(first).ok()?;
            let end = (first..255).find(|&byte| self.0[byte + 1]).unwrap_or(255);
            first = end + 1;
            Some((begin, end as u8))
        })
    }
}

/// The runs of several states, read together in order of bytes. Each run has a value of its state.
pub(super) struct Sweep<'a, T> {
    /// The runs that start later.
    pending: &'a [(Run, T)],
    /// The runs that have started and may not have ended.
    open: Vec<(Run, T)>,
}

impl<'a, T: Copy> Sweep<'a, T> {
    /// Reads runs that are sorted by first byte.
    pub(super) fn new(runs: &'a [(Run, T)]) -> Self {
        Self { pending: runs, open: Vec::new() }
    }

    /// The runs with `byte`, which must be greater than in the last call.
    pub(super) fn at(&mut self, byte: u8) -> &[(Run, T)] {
        self.open.retain(|(run, _)| run.last >= byte);
        let started = self.pending.iter().take_while(|(run, _)| run.first <= byte).count();
        let (started, pending) = self.pending.split_at(started);
        self.open.extend(started.iter().filter(|(run, _)| run.last >= byte));
        self.pending = pending;
        &self.open
    }
}
