//! Requests to the engine, their answers in the queue, and the events of the answers.

use std::time::{Duration, Instant};

use burn_dfa::TokenId;
use burn_dfa::generation::{Cancel, SamplingOptions, TokenLogprobs};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::{Client, Failure, RequestConstraint};

/// A request to the model: one or more answers to each of some prompts.
///
/// [`Engine`](crate::Engine) has an example.
#[derive(Clone, Debug, Default)]
pub struct GenerationRequest {
    /// The prompts.
    pub prompts: Vec<Prompt>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Answers to each prompt, none by default. Answers to the first prompt come first.
    pub n: usize,
    /// How long chunks are held for the next event, zero for none; `None`: one chunk at the end.
    pub interval: Option<Duration>,
    /// Cached prefixes of prompts are shared only with requests of the same salt.
    pub cache_salt: Option<String>,
    /// The client.
    pub client: Client,
}

impl GenerationRequest {
    /// Number of answers to all prompts.
    pub fn answers(&self) -> usize {
        self.prompts.len().saturating_mul(self.n)
    }
}

/// A prompt of a request.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// The tokens, at least one.
    pub tokens: Vec<TokenId>,
    /// Maximum number of tokens of an answer.
    pub max_new_tokens: usize,
    /// The constraint of the answers.
    pub constraint: Option<RequestConstraint>,
}

/// How the tokens of an answer are chosen. The default is greedy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    /// Temperature, truncation, penalties.
    pub options: SamplingOptions,
    /// Texts that end the answer; the answer stops before them.
    pub stop: Vec<String>,
    /// Tokens that end the answer.
    pub stop_tokens: Vec<TokenId>,
    /// Whether the answer's text includes the stop text.
    pub include_stop: bool,
    /// Minimum number of tokens: stops do not count before it. The end of sequence does, unless
    /// `options.min_new_tokens` delays it.
    pub min_tokens: usize,
    /// Whether the answer's text includes special tokens.
    pub special_tokens: bool,
    /// The seed, if tokens are sampled.
    pub seed: u64,
}

impl Sampling {
    /// The same for one of several answers to a prompt, with a different seed.
    pub(crate) fn of_answer(&self, index: usize) -> Self {
        Self { seed: self.seed.wrapping_add(index as u64), ..self.clone() }
    }
}

/// An event of an answer.
#[derive(Debug)]
pub enum Event {
    /// The answer began in a row; if its constraint was still being compiled, at its first token.
    Started,
    /// More of the answer.
    Chunk {
        /// The tokens.
        tokens: Tokens,
        /// The complete characters of the text.
        text: String,
    },
    /// The answer ended.
    Ended {
        /// The reason.
        ending: Ending,
        /// Tokens of its prompt that came from the prefix cache; only the first answer to a prompt
        /// reports them.
        cached_tokens: usize,
        /// Whether the answer is shorter than its minimum: the constraint allowed no more, or
        /// nothing delayed the end of sequence.
        is_short: bool,
    },
    /// The answer was refused or abandoned.
    Failed(Failure),
}

/// Tokens of an answer.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    /// The tokens.
    pub ids: Vec<TokenId>,
    /// The log-probabilities of each token; empty if the engine does not compute them.
    pub logprobs: Vec<TokenLogprobs>,
}

/// The reason for the end of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The answer is complete.
    Complete,
    /// The answer is complete; the constraint allowed more, but the budget did not.
    OutOfTokens,
    /// The answer reached a stop text.
    Stop,
    /// The answer used up its tokens; never under a constraint.
    Length,
    /// The client is gone.
    Canceled,
}

/// The answers to a request, as they come. Dropping it cancels unfinished answers.
#[derive(Debug)]
pub struct Generation {
    events: UnboundedReceiver<(usize, Event)>,
    cancel: Cancel,
}

impl Generation {
    /// The receiver of the events of a request, and the sender.
    pub(crate) fn channel() -> (UnboundedSender<(usize, Event)>, Self) {
        let (sender, events) = unbounded_channel();
        (sender, Self { events, cancel: Cancel::default() })
    }

    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// The next event, with the index of its answer; `None` after the last event.
    pub async fn next(&mut self) -> Option<(usize, Event)> {
        self.events.recv().await
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// The sender of an answer's events.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    pub(crate) index: usize,
    pub(crate) sender: UnboundedSender<(usize, Event)>,
}

impl Events {
    /// Sends an event. A missing receiver has canceled the answer.
    pub(crate) fn send(&self, event: Event) {
        let _ = self.sender.send((self.index, event));
    }
}

/// One answer in the queue.
pub(crate) struct Job {
    pub(crate) prompt: Vec<TokenId>,
    pub(crate) max_new_tokens: usize,
    pub(crate) constraint: Option<RequestConstraint>,
    pub(crate) sampling: Sampling,
    pub(crate) cancel: Cancel,
    pub(crate) events: Events,
    pub(crate) interval: Option<Duration>,
    pub(crate) cache_salt: Option<String>,
    pub(crate) client: Client,
    /// Whether the job failed to start on its turn, since there was no space for its constraint.
    pub(crate) was_refused: bool,
    /// Whether it is the first answer to its prompt.
    pub(crate) is_first: bool,
    /// Its permit of the queue, released at its start.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
    pub(crate) queued: Instant,
}
