//! Log-probabilities, with the texts of their tokens.

use std::sync::Arc;

use burn_dfa::TokenId;
use burn_dfa::generation::TokenLogprobs;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::engine::Tokens;
use crate::protocol::chat::{ChatLogprobs, TokenLogprob, TopLogprob};
use crate::protocol::completion::CompletionLogprobs;

/// How log-probabilities are told, where a request asks for them: those of the model, before the constraint.
#[derive(Clone, Debug)]
pub struct Logprobs {
    app: Arc<App>,
    /// How many of the likeliest tokens.
    top: usize,
}

impl Logprobs {
    /// Those of the tokens, and of so many of the likeliest at each place.
    pub fn new(app: Arc<App>, top: usize) -> Self {
        Self { app, top }
    }

    /// As chats have them.
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

    /// Adds tokens to those of a completion, whose text has so many characters.
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
        self.app.text.piece(id)
    }

    fn bytes(&self, id: TokenId) -> Option<Vec<u8>> {
        self.app.text.vocabulary().bytes(id).map(<[u8]>::to_vec)
    }
}

/// JSON has no infinity; OpenAI writes this number for it.
fn finite(logprob: f32) -> f32 {
    logprob.max(-9999.0)
}
