//! Log-probabilities, with the texts of their tokens.

use std::sync::Arc;

use burn_dfa::TokenId;
use burn_dfa::generation::TokenLogprobs;
use burn_dfa_engine::Tokens;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::error::{ApiError, Result};
use crate::protocol::chat::{ChatLogprobs, TokenLogprob, TopLogprob};
use crate::protocol::completion::CompletionLogprobs;

/// Writes log-probabilities for requests that ask for them: the model's, before the constraint.
#[derive(Clone, Debug)]
pub struct Logprobs {
    app: Arc<App>,
    /// The number of most likely tokens to report.
    top: usize,
}

impl Logprobs {
    /// Reports each token and the `top` most likely tokens at each position, if a request asks for
    /// them.
    ///
    /// # Errors
    /// 400 if the server does not compute log-probabilities, or only for fewer tokens; `params` are
    /// the fields of the request.
    pub fn requested(app: &Arc<App>, top: Option<usize>, params: [&str; 2]) -> Result<Option<Self>> {
        match (top, app.config.logprobs()) {
            (None, _) => Ok(None),
            (Some(_), None) => {
                let message = "this server computes no log-probabilities: start it without `--no-logprobs`";
                Err(ApiError::unsupported(params[0], message))
            }
            (Some(top), Some(max)) if top > max => Err(ApiError::invalid(
                params[1],
                format!("{top} tokens are more than the {max} that are told"),
            )),
            (Some(top), Some(_)) => Ok(Some(Self { app: app.clone(), top })),
        }
    }

    /// Log-probabilities in the form of chats.
    pub fn chat(&self, tokens: &Tokens) -> ChatLogprobs {
        let content = tokens.ids.iter().zip(&tokens.logprobs).map(|(&id, own)| TokenLogprob {
            token: self.text(id),
            logprob: finite(own.model.chosen),
            bytes: self.bytes(id),
            top_logprobs: self
                .top(own)
                .map(|(id, logprob)| TopLogprob {
                    token: self.text(id),
                    logprob: finite(logprob),
                    bytes: self.bytes(id),
                })
                .collect(),
        });
        ChatLogprobs { content: content.collect() }
    }

    /// Log-probabilities in the form of completions; `offset` is the number of characters so far.
    pub fn completion(&self, tokens: &Tokens, offset: &mut usize) -> CompletionLogprobs {
        let mut told = CompletionLogprobs::default();
        for (&id, own) in tokens.ids.iter().zip(&tokens.logprobs) {
            let text = self.text(id);
            told.text_offset.push(*offset);
            *offset += text.chars().count();
            told.tokens.push(text);
            told.token_logprobs.push(finite(own.model.chosen));
            let top: Map<String, Value> =
                self.top(own).map(|(id, logprob)| (self.text(id), json!(finite(logprob)))).collect();
            told.top_logprobs.push(top);
        }
        told
    }

    fn top<'t>(&self, own: &'t TokenLogprobs) -> impl Iterator<Item = (TokenId, f32)> + 't {
        own.model.top.iter().take(self.top).copied()
    }

    fn text(&self, id: TokenId) -> String {
        self.app.text.token_text(id)
    }

    fn bytes(&self, id: TokenId) -> Option<Vec<u8>> {
        self.app.text.vocabulary().bytes(id).map(<[u8]>::to_vec)
    }
}

/// JSON has no infinity; OpenAI writes this number instead.
fn finite(logprob: f32) -> f32 {
    logprob.max(-9999.0)
}
