//! Converts texts to tokens and back.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use serde_json::json;

use super::chat::read_tools;
use super::payload::Payload;
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::protocol::message::messages;
use crate::protocol::template::{Template, TemplateFields};
use crate::protocol::tokens::{DetokenizeRequest, Detokenized, TokenizeFields, TokenizeRequest, Tokenized};
use crate::protocol::warning::Warnings;

/// The tokens of a text, or of a conversation.
#[utoipa::path(
    post,
    path = "/tokenize",
    request_body = TokenizeRequest,
    responses((status = 200, body = Tokenized), ApiError)
)]
pub async fn tokenize(
    State(app): State<Arc<App>>,
    Payload(mut body, client): Payload,
) -> Result<Json<Tokenized>> {
    let request: TokenizeFields = body.take()?;
    let template: TemplateFields = body.take()?;
    let mut warnings = body.finish()?;
    app.check_model(request.model.as_deref())?;
    let (own, template) = (app.clone(), template.read()?);
    let tokens = app.pool.run(client, move || {
        let tokens = tokens_of(&own, &request, &template, &mut warnings);
        warnings.tell();
        tokens
    });
    Ok(Json(tokens.await??))
}

fn tokens_of(
    app: &App,
    request: &TokenizeFields,
    template: &Template,
    warnings: &mut Warnings,
) -> Result<Tokenized> {
    let tokens = match (&request.prompt, &request.messages) {
        (Some(prompt), None) => {
            app.check_prompt(prompt, "prompt")?;
            app.text.encode(prompt, request.add_special_tokens.unwrap_or(true))?
        }
        (None, Some(given)) => {
            let tools = request.tools.as_deref().unwrap_or_default();
            let tools = read_tools(app, tools, json!({"tools": request.tools}), warnings)?;
            let messages = messages(given, warnings)?;
            let prompt = app.text.render(&messages, tools.as_ref(), template, "messages", warnings)?;
            app.check_prompt(&prompt.text(), "messages")?;
            app.text.encode_chat(&prompt, "messages")?
        }
        _ => return Err(ApiError::invalid("prompt", "one of `prompt` and `messages` is wanted")),
    };
    let texts = request.return_token_strs == Some(true);
    Ok(Tokenized {
        count: tokens.len(),
        max_model_len: app.engine.config().slots,
        token_strs: texts.then(|| tokens.iter().map(|&token| app.text.token_text(token)).collect()),
        tokens: tokens.iter().map(|token| token.0).collect(),
    })
}

/// The text of some tokens.
#[utoipa::path(
    post,
    path = "/detokenize",
    request_body = DetokenizeRequest,
    responses((status = 200, body = Detokenized), ApiError)
)]
pub async fn detokenize(
    State(app): State<Arc<App>>,
    Payload(mut body, client): Payload,
) -> Result<Json<Detokenized>> {
    let request: DetokenizeRequest = body.take()?;
    body.finish()?.tell();
    app.check_model(request.model.as_deref())?;
    let own = app.clone();
    let prompt = app.pool.run(client, move || own.text.decode(&request.tokens)).await??;
    Ok(Json(Detokenized { prompt }))
}
