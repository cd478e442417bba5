//! `/v1/chat/completions`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use burn_dfa::constraint::{ToolChoice, Tools};
use serde_json::{Value, json};

use super::begin::{PreparedRequest, Prompts, StartedGeneration, begin};
use super::payload::Payload;
use crate::answer::chat::{ChatFrames, completion};
use crate::answer::legal::{LegalTokenCounter, MAX_VOCABULARY};
use crate::answer::logprobs::Logprobs;
use crate::answer::{Head, stream, whole};
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::protocol::chat::{ChatCompletion, ChatFields, ChatRequest};
use crate::protocol::constraint::ConstraintFields;
use crate::protocol::message::{echoed, messages};
use crate::protocol::sampling::SamplingFields;
use crate::protocol::template::TemplateFields;
use crate::protocol::tool::known;
use crate::protocol::warning::Warnings;
use crate::protocol::words;

/// Continues a conversation.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    request_body = ChatRequest,
    responses((status = 200, body = ChatCompletion), ApiError)
)]
pub async fn chat(State(app): State<Arc<App>>, Payload(mut body, client): Payload) -> Result<Response> {
    let own: ChatFields = body.take()?;
    let template: TemplateFields = body.take()?;
    let sampling: SamplingFields = body.take()?;
    let constraint: ConstraintFields = body.take()?;
    let constraint = constraint.read(&mut body)?;
    let mut warnings = body.finish()?;
    app.check_model(own.model.as_deref())?;
    let top = own.top_logprobs.unwrap_or(0);
    if top > 0 && own.logprobs != Some(true) {
        return Err(ApiError::invalid("top_logprobs", "`top_logprobs` wants `logprobs` to be true"));
    }
    let top = (own.logprobs == Some(true)).then_some(top);
    let logprobs = Logprobs::requested(&app, top, ["logprobs", "top_logprobs"])?;
    let wants_legal = own.legal_tokens == Some(true);
    if wants_legal && !sampling.streams() {
        return Err(ApiError::invalid("legal_tokens", "`legal_tokens` wants `stream` to be true"));
    }
    if wants_legal && app.text.vocabulary().len() > MAX_VOCABULARY {
        let message = format!("tokens are counted of vocabularies of up to {MAX_VOCABULARY}");
        return Err(ApiError::unsupported("legal_tokens", message));
    }
    let tools = tools(&app, &own, &mut warnings)?;
    let template = template.read()?;
    let messages = messages(&own.messages, &mut warnings)?;
    let echo = if own.echo == Some(true) { echoed(&messages, template.continue_final_message) } else { None };
    let echo = echo.unwrap_or_default();
    let wanted = PreparedRequest {
        prompts: Prompts::Chat(messages, template),
        prompt_param: "messages",
        n: sampling.answers(app.config.max_n)?,
        max_tokens: own.max_completion_tokens.or(own.max_tokens),
        usual_tokens: usize::MAX,
        max_tokens_param: if own.max_completion_tokens.is_some() {
            "max_completion_tokens"
        } else {
            "max_tokens"
        },
        sampling: sampling.read(&mut warnings)?,
        cache_salt: sampling.cache_salt()?,
        // If legal tokens are requested, each token has a separate event.
        interval: app
            .interval(sampling.streams())
            .map(|interval| if wants_legal { Duration::ZERO } else { interval }),
        constraint,
        tools,
        warnings,
    };
    let StartedGeneration { generation, readers, prompt_tokens, param, constraint, budget, warnings } =
        begin(&app, client, wanted).await?;
    let head = Head::new("chatcmpl-", &app.name);
    if sampling.streams() {
        let legal = constraint
            .filter(|_| wants_legal)
            .map(|constraint| LegalTokenCounter::new(constraint, readers.len(), budget));
        let frames = ChatFrames::new(head, readers.len(), prompt_tokens, sampling.includes_usage(), logprobs);
        let frames = frames.with_legal(legal).with_warnings(warnings).with_echo(echo);
        return Ok(stream::send(generation, readers, param, frames));
    }
    let answers = whole::collect(generation, readers, param).await?;
    let answer = completion(head, prompt_tokens, answers, logprobs.as_ref(), warnings);
    Ok(Json(answer.with_echo(&echo)).into_response())
}

/// The tools that may be called.
fn tools(app: &App, own: &ChatFields, warnings: &mut Warnings) -> Result<Option<Tools>> {
    let request = json!({
        "tools": own.tools,
        "tool_choice": own.tool_choice,
        "parallel_tool_calls": own.parallel_tool_calls,
    });
    read_tools(app, own.tools.as_deref().unwrap_or_default(), request, warnings)
}

/// The tools that may be called, with these definitions of the request.
pub fn read_tools(
    app: &App,
    definitions: &[Value],
    mut request: Value,
    warnings: &mut Warnings,
) -> Result<Option<Tools>> {
    let max = app.config.max_tools;
    if definitions.len() > max {
        let message = format!("{} tools are more than the {max} that a request may have", definitions.len());
        return Err(ApiError::invalid("tools", message));
    }
    if !definitions.is_empty() {
        request["tools"] = known(definitions, warnings).into();
    }
    let request = &request;
    let read = |request: &Value, param: &str| {
        Tools::from_request(request).map_err(|error| ApiError::invalid(param, words::of_library(&error)))
    };
    // Each field separately, so that the error names the field.
    for param in ["tools", "tool_choice", "parallel_tool_calls"] {
        read(&json!({ param: request[param] }), param)?;
    }
    let tools = read(request, "tools")?;
    let has_choice = !request["tool_choice"].is_null();
    match tools.choice() {
        ToolChoice::None => Ok(None),
        ToolChoice::Auto if definitions.is_empty() => Ok(None),
        _ if definitions.is_empty() && has_choice => {
            Err(ApiError::invalid("tool_choice", "`tool_choice` wants a call, and there are no `tools`"))
        }
        ToolChoice::Named(name) if tools.tools().iter().all(|tool| tool.name != *name) => {
            Err(ApiError::invalid("tool_choice", format!("there is no tool `{name}`")))
        }
        _ => Ok(Some(app.text.tools(tools))),
    }
}
