//! `/v1/responses`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, json};

use super::begin::{PreparedRequest, Prompts, StartedGeneration, begin};
use super::chat::read_tools;
use super::payload::Payload;
use crate::answer::response::ResponseFrames;
use crate::answer::stream::Frames;
use crate::answer::{Head, stream, whole};
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::protocol::constraint::ConstraintFields;
use crate::protocol::response::{ResponseObject, ResponseRequest};
use crate::protocol::sampling::SamplingFields;

/// Answers an input. The server stores nothing.
#[utoipa::path(
    post,
    path = "/v1/responses",
    request_body = ResponseRequest,
    responses((status = 200, body = ResponseObject), ApiError)
)]
pub async fn responses(State(app): State<Arc<App>>, Payload(mut body, client): Payload) -> Result<Response> {
    let own: ResponseRequest = body.take()?;
    let sampling: SamplingFields = body.take()?;
    let constraint: ConstraintFields = body.take()?;
    own.check(&mut body.warnings)?;
    let constraint = own.constraint(&mut body, &constraint)?;
    let mut warnings = body.finish()?;
    app.check_model(own.model.as_deref())?;
    if sampling.n.is_some_and(|n| n != 1) {
        return Err(ApiError::unsupported("n", "a response is one answer"));
    }
    let request = json!({
        "tools": own.tools,
        "tool_choice": own.tool_choice,
        "parallel_tool_calls": own.parallel_tool_calls,
    });
    let tools = read_tools(&app, own.tools.as_deref().unwrap_or_default(), request, &mut warnings)?;
    let wanted = PreparedRequest {
        prompts: Prompts::Chat(own.messages(&mut warnings)?, own.template()?),
        prompt_param: "input",
        n: 1,
        max_tokens: own.max_output_tokens,
        usual_tokens: usize::MAX,
        max_tokens_param: "max_output_tokens",
        sampling: sampling.read(&mut warnings)?,
        cache_salt: sampling.cache_salt()?,
        interval: app.interval(sampling.streams()),
        constraint,
        tools,
        warnings,
    };
    let StartedGeneration { generation, readers, prompt_tokens, param, warnings, .. } =
        begin(&app, client, wanted).await?;
    let response = ResponseObject { warnings, ..in_progress(&app, &own, &sampling) };
    let mut frames = ResponseFrames::new(response, prompt_tokens);
    if sampling.streams() {
        return Ok(stream::send(generation, readers, param, frames));
    }
    whole::follow(generation, readers, param, &mut frames).await?;
    frames.end();
    Ok(Json(frames.into_response()).into_response())
}

/// A response without output.
fn in_progress(app: &App, own: &ResponseRequest, sampling: &SamplingFields) -> ResponseObject {
    let Head { id, created, model } = Head::new("resp_", &app.name);
    let format = own.text.as_ref().and_then(|text| text.format.clone());
    ResponseObject {
        id,
        object: "response",
        created_at: created,
        status: "in_progress",
        error: None,
        incomplete_details: None,
        instructions: own.instructions.clone(),
        max_output_tokens: own.max_output_tokens,
        model,
        output: Vec::new(),
        parallel_tool_calls: own.parallel_tool_calls.unwrap_or(true),
        previous_response_id: None,
        store: false,
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        text: json!({"format": format.unwrap_or_else(|| json!({"type": "text"}))}),
        tool_choice: own.tool_choice.clone().unwrap_or_else(|| json!("auto")),
        tools: own.tools.clone().unwrap_or_default(),
        truncation: "disabled",
        usage: None,
        metadata: Map::new(),
        warnings: Vec::new(),
    }
}
