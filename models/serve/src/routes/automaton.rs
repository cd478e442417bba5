//! `/automaton`: the automaton of a constraint as a picture.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use super::payload::Payload;
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::protocol::constraint::ConstraintFields;

/// Draws the automaton of a constraint, if it is small.
#[utoipa::path(
    post,
    path = "/automaton",
    request_body = ConstraintFields,
    responses((status = 200, body = String, content_type = "image/svg+xml"), ApiError)
)]
pub async fn automaton(
    State(app): State<Arc<App>>,
    Payload(mut body, client): Payload,
) -> Result<impl IntoResponse> {
    let constraint: ConstraintFields = body.take()?;
    let given = constraint.read(&mut body)?;
    body.finish()?.tell();
    let given = given.ok_or_else(|| ApiError::invalid("response_format", "there is no constraint"))?;
    let picture = app.compiler.picture(client, given.source, given.param).await?;
    Ok(([(header::CONTENT_TYPE, "image/svg+xml")], picture))
}
