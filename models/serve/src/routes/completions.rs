//! `/v1/completions`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use super::begin::{Begun, Prompts, Wanted, begin};
use super::payload::Payload;
use crate::answer::completion::{CompletionFrames, completion};
use crate::answer::{Head, stream, whole};
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::protocol::completion::{Completion, CompletionFields, CompletionRequest, Prompt};
use crate::protocol::constraint::ConstraintFields;
use crate::protocol::sampling::SamplingFields;

/// Tokens of an answer where the request does not say how many, as OpenAI has it.
const USUAL_TOKENS: usize = 16;

/// Goes on with a text.
#[utoipa::path(
    post,
    path = "/v1/completions",
    request_body = CompletionRequest,
    responses((status = 200, body = Completion), ApiError)
)]
pub async fn completions(State(app): State<Arc<App>>, Payload(mut body): Payload) -> Result<Response> {
    let own: CompletionFields = body.take()?;
    let sampling: SamplingFields = body.take()?;
    let constraint: ConstraintFields = body.take()?;
    let constraint = constraint.read(&body)?;
    body.finish()?;
    app.check_model(own.model.as_deref())?;
    let logprobs = app.logprobs(own.logprobs, ["logprobs"; 2])?;
    let wanted = Wanted {
        prompts: prompts(own.prompt),
        prompt_param: "prompt",
        n: sampling.answers(app.config.max_n)?,
        max_tokens: own.max_tokens,
        usual_tokens: USUAL_TOKENS,
        max_tokens_param: "max_tokens",
        sampling: sampling.read()?,
        cache_salt: sampling.cache_salt()?,
        interval: app.interval(sampling.streams()),
        constraint,
        tools: None,
    };
    let Begun { generation, readers, prompt_tokens, param, .. } = begin(&app, wanted).await?;
    let head = Head::new("cmpl-", &app.name);
    if sampling.streams() {
        let frames =
            CompletionFrames::new(head, readers.len(), prompt_tokens, sampling.includes_usage(), logprobs);
        return Ok(stream::send(generation, readers, param, frames));
    }
    let wholes = whole::collect(generation, readers, param).await?;
    Ok(Json(completion(head, prompt_tokens, wholes, logprobs.as_ref())).into_response())
}

fn prompts(prompt: Prompt) -> Prompts {
    match prompt {
        Prompt::Text(text) => Prompts::Texts(vec![text]),
        Prompt::Texts(texts) => Prompts::Texts(texts),
        Prompt::Tokens(tokens) => Prompts::Tokens(vec![tokens]),
        Prompt::ManyTokens(tokens) => Prompts::Tokens(tokens),
    }
}
