//! The edges of nondeterministic automata.

use super::Run;
use burn_dfa_common::{Error, Limit, Result};

/// The edges of all states of a nondeterministic automaton, back to back. A state stores the
/// [`Span`] of its edges.
#[derive(Default)]
pub(super) struct Edges {
    /// Edges that read a byte.
    runs: Vec<Run>,
    /// Targets of edges that read nothing.
    branches: Vec<u32>,
}

/// The edges of one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    from: u32,
    to: u32,
}

impl Span {
    /// No edges.
    pub(super) const EMPTY: Self = Self { from: 0, to: 0 };

    /// The number of edges.
    pub(super) fn len(self) -> usize {
        (self.to - self.from) as usize
    }

    pub(super) fn is_empty(self) -> bool {
        self.from == self.to
    }

    /// The indices of the edges.
    pub(super) fn indices(self) -> std::ops::Range<usize> {
        self.from as usize..self.to as usize
    }
}

impl Edges {
    /// The edges of a state that reads a byte.
    pub(super) fn runs(&self, span: Span) -> &[Run] {
        &self.runs[span.indices()]
    }

    /// All edges that read a byte.
    pub(super) fn all_runs(&self) -> &[Run] {
        &self.runs
    }

    /// The targets of a state that reads nothing.
    pub(super) fn branches(&self, span: Span) -> &[u32] {
        &self.branches[span.indices()]
    }

    /// The first target of a state that reads nothing.
    pub(super) fn first_branch(&mut self, span: Span) -> &mut u32 {
        debug_assert!(!span.is_empty());
        &mut self.branches[span.from as usize]
    }

    /// Adds the edges of a state that reads a byte; they must be in order and disjoint.
    pub(super) fn add_runs(&mut self, runs: impl IntoIterator<Item = impl Into<Run>>) -> Result<Span> {
        let from = self.runs.len();
        self.runs.extend(runs.into_iter().map(Into::into));
        debug_assert!(self.runs[from..].is_sorted_by(|a, b| a.last < b.first));
        span(from, self.runs.len())
    }

    /// Adds the targets of a state that reads nothing.
    pub(super) fn add_branches(&mut self, branches: impl IntoIterator<Item = u32>) -> Result<Span> {
        let from = self.branches.len();
        self.branches.extend(branches);
        span(from, self.branches.len())
    }

    /// Copies the edges of a state that reads a byte, with targets renumbered by `number`.
    pub(super) fn copy_runs(&mut self, of: Span, number: impl Fn(u32) -> u32) -> Result<Span> {
        let from = self.runs.len();
        self.runs.extend_from_within(of.indices());
        self.runs[from..].iter_mut().for_each(|run| run.target = number(run.target));
        span(from, self.runs.len())
    }

    /// Copies the targets of a state that reads nothing, renumbered by `number`.
    pub(super) fn copy_branches(&mut self, of: Span, number: impl Fn(u32) -> u32) -> Result<Span> {
        let from = self.branches.len();
        self.branches.extend_from_within(of.indices());
        self.branches[from..].iter_mut().for_each(|branch| *branch = number(*branch));
        span(from, self.branches.len())
    }

    /// Memory in use.
    pub(super) fn bytes(&self) -> usize {
        self.runs.len() * size_of::<Run>() + self.branches.len() * size_of::<u32>()
    }
}

fn span(from: usize, to: usize) -> Result<Span> {
    Ok(Span { from: index(from)?, to: index(to)? })
}

/// Indices are 32 bits wide under any limits.
pub(super) fn index(at: usize) -> Result<u32> {
    u32::try_from(at).map_err(|_| Error::limit(Limit::States(u32::MAX as usize)))
}
