//! Prompts that are read in pieces, between the steps of the other rows.

use std::collections::VecDeque;

use super::model::SlotLm;
use super::session::SlotSession;
use super::{Occupant, Progress};
use crate::error::Result;
use crate::generation::options::SamplingOptions;
use crate::generation::request::Request;
use crate::vocabulary::TokenId;

/// What a row begins with.
pub(super) struct Prompt {
    pub(super) tokens: Vec<TokenId>,
    pub(super) options: SamplingOptions,
    pub(super) seed: u64,
    pub(super) salt: Option<String>,
}

impl Prompt {
    /// The request's own options, else `sampling`.
    pub(super) fn new(request: &Request, sampling: &SamplingOptions) -> Self {
        Self {
            tokens: request.prompt.clone(),
            options: request.sampling.as_ref().unwrap_or(sampling).clone(),
            seed: request.seed,
            salt: request.cache_salt.clone(),
        }
    }
}

/// The prompts that are not read to their ends, in order of admission.
pub(super) struct Waiting {
    /// The most tokens between two steps.
    chunk: usize,
    prompts: VecDeque<Reading>,
}

struct Reading {
    row: usize,
    prompt: Prompt,
    /// Tokens that were read, or copied.
    read: usize,
}

impl Waiting {
    pub(super) fn new(chunk: usize) -> Self {
        Self { chunk, prompts: VecDeque::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.prompts.is_empty()
    }

    pub(super) fn push(&mut self, row: usize, prompt: Prompt) {
        self.prompts.push_back(Reading { row, prompt, read: 0 });
    }

    /// Forgets the prompt of a row.
    pub(super) fn remove(&mut self, row: usize) {
        self.prompts.retain(|reading| reading.row != row);
    }

    /// Reads as many tokens as may be read between two steps; rows whose prompts end with them begin, `steps` steps after
    /// the host's last read.
    pub(super) fn read<M: SlotLm>(
        &mut self,
        session: &mut SlotSession<M>,
        rows: &mut [Option<Occupant>],
        steps: usize,
    ) {
        let mut left = self.chunk;
        while left > 0
            && let Some(reading) = self.prompts.front_mut()
        {
            let row = reading.row;
            if reading.read == 0 {
                reading.read = session.copy_prefix(row, &reading.prompt);
                if let Some(occupant) = &mut rows[row] {
                    occupant.cached = Some(reading.read);
                }
            }
            let from = reading.read;
            let piece = &reading.prompt.tokens[from..];
            let piece = &piece[..piece.len().min(left)];
            left -= piece.len();
            reading.read += piece.len();
            let logits = session.read_piece(row, from, piece);
            if reading.read < reading.prompt.tokens.len() {
                continue;
            }
            let begun: Result<()> = session.begin(row, &reading.prompt, logits);
            self.prompts.pop_front();
            if let Some(occupant) = &mut rows[row] {
                occupant.progress = Progress::Begun { steps };
                occupant.error = begun.err();
            }
        }
    }
}
