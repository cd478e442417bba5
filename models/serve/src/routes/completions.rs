//! `/v1/completions`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use super::begin::{PreparedRequest, Prompts, StartedGeneration, begin};
use super::payload::Payload;
use crate::answer::completion::{CompletionFrames, completion};
use crate::answer::logprobs::Logprobs;
use crate::answer::{Head, stream, whole};
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::protocol::completion::{Completion, CompletionFields, CompletionRequest, Prompt};
use crate::protocol::constraint::ConstraintFields;
use crate::protocol::sampling::SamplingFields;

/// Default number of tokens of an answer, like OpenAI.
const USUAL_TOKENS: usize = 16;

/// Continues a text.
#[utoipa::path(
    post,
    path = "/v1/completions",
    request_body = CompletionRequest,
    responses((status = 200, body = Completion), ApiError)
)]
pub async fn completions(
    State(app): State<Arc<App>>,
    Payload(mut body, client): Payload,
) -> Result<Response> {
    let own: CompletionFields = body.take()?;
    let sampling: SamplingFields = body.take()?;
    let constraint: ConstraintFields = body.take()?;
    let constraint = constraint.read(&mut body)?;
    let mut warnings = body.finish()?;
    app.check_model(own.model.as_deref())?;
    let logprobs = Logprobs::requested(&app, own.logprobs, ["logprobs"; 2])?;
    let echoes = own.echo == Some(true);
    if echoes && logprobs.is_some() {
        let message = "`echo` is not offered beside `logprobs`: those of the prompt are not computed; leave one of them out";
        return Err(ApiError::unsupported("echo", message));
    }
    let prompts = prompts(own.prompt, own.add_special_tokens.unwrap_or(true));
    let echo = if echoes { Some(prompts.clone()) } else { None };
    let wanted = PreparedRequest {
        prompts,
        prompt_param: "prompt",
        n: sampling.answers(app.config.max_n)?,
        max_tokens: own.max_tokens,
        usual_tokens: USUAL_TOKENS,
        max_tokens_param: "max_tokens",
        sampling: sampling.read(&mut warnings)?,
        cache_salt: sampling.cache_salt()?,
        interval: app.interval(sampling.streams()),
        constraint,
        tools: None,
        warnings,
    };
    let StartedGeneration { generation, readers, prompt_tokens, param, warnings, .. } =
        begin(&app, client, wanted).await?;
    let echo = match echo {
        Some(prompts) => {
            let own = app.clone();
            app.pool.run(client, move || texts(&own, prompts)).await??
        }
        None => Vec::new(),
    };
    let head = Head::new("cmpl-", &app.name);
    if sampling.streams() {
        let frames =
            CompletionFrames::new(head, readers.len(), prompt_tokens, sampling.includes_usage(), logprobs);
        let frames = frames.with_warnings(warnings).with_echo(echo);
        return Ok(stream::send(generation, readers, param, frames));
    }
    let answers = whole::collect(generation, readers, param).await?;
    let answer = completion(head, prompt_tokens, answers, logprobs.as_ref(), warnings);
    Ok(Json(answer.with_echo(&echo)).into_response())
}

/// The texts of prompts.
fn texts(app: &App, prompts: Prompts) -> Result<Vec<String>> {
    match prompts {
        Prompts::Texts(texts, _) => Ok(texts),
        Prompts::Tokens(tokens) => tokens.iter().map(|tokens| app.text.decode(tokens)).collect(),
        Prompts::Chat(..) => Ok(Vec::new()),
    }
}

fn prompts(prompt: Prompt, with_special: bool) -> Prompts {
    match prompt {
        Prompt::Text(text) => Prompts::Texts(vec![text], with_special),
        Prompt::Texts(texts) => Prompts::Texts(texts, with_special),
        Prompt::Tokens(tokens) => Prompts::Tokens(vec![tokens]),
        Prompt::ManyTokens(tokens) => Prompts::Tokens(tokens),
    }
}
