//! Prompts that are read between the steps of the other rows: in chunks, or while their constraints
//! are compiled.

use std::collections::VecDeque;
use std::time::Duration;

use super::model::ContinuousLm;
use super::occupant::{Occupant, Progress};
use super::prompt::Prompt;
use super::session::ContinuousSession;
use crate::ErrorKind;
use crate::generation::request::Request;
use burn_dfa_tokens::{Error, PendingConstraint, Result};

/// The prompts that are not read completely, in order of admission.
pub(super) struct Waiting {
    /// The most tokens between two steps; `None`: prompts are read whole.
    chunk: Option<usize>,
    prompts: VecDeque<Reading>,
}

struct Reading {
    row: usize,
    prompt: Prompt,
    /// The number of tokens read or copied.
    read: usize,
    /// The pending constraint; the prompt is read without it as far as possible.
    awaited: Option<Awaited>,
}

/// A constraint that the row does not have yet.
struct Awaited {
    pending: PendingConstraint,
    /// Maximum number of tokens of the output.
    budget: usize,
    /// The error if the constraint is compiled, but there is no space for it.
    full: Option<Error>,
}

impl Reading {
    /// How far the prompt may be read now: while the constraint is pending up to its last token,
    /// because the logits after it choose the first output token.
    fn end(&self, in_chunks: bool) -> usize {
        match self.awaited {
            None => self.prompt.tokens.len(),
            Some(_) if in_chunks => self.prompt.tokens.len() - 1,
            Some(_) => 0,
        }
    }
}

impl Waiting {
    pub(super) fn new(chunk: Option<usize>) -> Self {
        Self { chunk, prompts: VecDeque::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.prompts.is_empty()
    }

    /// Whether the prompt of a request is read between steps, and not at admission.
    pub(super) fn takes(&self, request: &Request) -> bool {
        self.chunk.is_some() || request.pending.is_some()
    }

    pub(super) fn push(&mut self, row: usize, request: &Request, prompt: Prompt) {
        let awaited = |pending: &PendingConstraint| Awaited {
            pending: pending.clone(),
            budget: request.max_new_tokens,
            full: None,
        };
        self.prompts.push_back(Reading {
            row,
            prompt,
            read: 0,
            awaited: request.pending.as_ref().map(awaited),
        });
    }

    /// Forgets the prompt of a row.
    pub(super) fn remove(&mut self, row: usize) {
        self.prompts.retain(|reading| reading.row != row);
    }

    /// The error of a constraint without space; later constraints have to wait as well.
    pub(super) fn full(&self) -> Option<&Error> {
        self.prompts.iter().find_map(|reading| reading.awaited.as_ref()?.full.as_ref())
    }

    /// Waits at most `timeout` until a constraint is compiled; returns whether one was.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        let mut pending = self.prompts.iter().filter_map(|reading| Some(&reading.awaited.as_ref()?.pending));
        pending.find(|pending| !pending.is_ready()).is_some_and(|pending| pending.wait_for(timeout).is_some())
    }

    /// Loads the newly compiled constraints into their rows, first come, first served; a refused
    /// constraint ends its row.
    fn seat<M: ContinuousLm>(&mut self, session: &mut ContinuousSession<M>, rows: &mut [Option<Occupant>]) {
        let mut is_full = false;
        self.prompts.retain_mut(|reading| {
            let (row, Some(awaited)) = (reading.row, &mut reading.awaited) else { return true };
            if is_full || !awaited.pending.is_ready() {
                return true;
            }
            let Some(occupant) = &mut rows[row] else { return false };
            let constraint = awaited.pending.wait();
            let seated = constraint.and_then(|constraint| {
                session.seat(row, Some(&constraint), awaited.budget).map(|()| constraint)
            });
            match seated {
                Ok(constraint) => {
                    occupant.row.constrain(constraint);
                    reading.awaited = None;
                }
                Err(error) if error.kind() == ErrorKind::Full => {
                    is_full = true;
                    awaited.full = Some(error);
                }
                Err(error) => occupant.error = Some(error),
            }
            occupant.error.is_none()
        });
    }

    /// Reads one chunk, the tokens between two steps. Rows with complete prompts begin, `steps`
    /// steps after the host's last read. Returns whether there was anything to read.
    pub(super) fn read<M: ContinuousLm>(
        &mut self,
        session: &mut ContinuousSession<M>,
        rows: &mut [Option<Occupant>],
        steps: usize,
    ) -> bool {
        self.seat(session, rows);
        let max = self.chunk.unwrap_or(usize::MAX);
        let in_chunks = session.model().reads_in_chunks();
        let (mut left, mut next) = (max, 0);
        while left > 0
            && let Some(reading) = self.prompts.get_mut(next)
        {
            let (row, end) = (reading.row, reading.end(in_chunks));
            if reading.read == end {
                next += 1;
                continue;
            }
            if reading.read == 0 {
                reading.read = session.copy_prefix(row, &reading.prompt);
                if let Some(occupant) = &mut rows[row] {
                    occupant.cached = Some(reading.read);
                }
            }
            let from = reading.read;
            let chunk = &reading.prompt.tokens[from..end];
            let chunk = &chunk[..chunk.len().min(left)];
            if chunk.is_empty() {
                continue;
            }
            left -= chunk.len();
            reading.read += chunk.len();
            let logits = session.read_chunk(row, from, chunk);
            if reading.read < reading.prompt.tokens.len() {
                continue;
            }
            let begun: Result<()> = session.begin(row, &reading.prompt, logits);
            self.prompts.remove(next);
            if let Some(occupant) = &mut rows[row] {
                occupant.progress = Progress::Begun { steps };
                occupant.error = begun.err();
            }
        }
        left < max
    }
}
