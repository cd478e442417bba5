//! The description of the endpoints.

use axum::Json;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Description;

use crate::error::ErrorBody;

/// The endpoints of the server.
#[derive(OpenApi)]
#[openapi(
    info(title = "burn-dfa-serve", description = "OpenAI's API, with constraints that always hold."),
    paths(
        super::chat::chat,
        super::completions::completions,
        super::responses::responses,
        super::status::models,
        super::status::model,
        super::status::health,
        super::status::version,
        super::status::metrics,
        super::automaton::automaton,
        super::tokens::tokenize,
        super::tokens::detokenize,
    ),
    components(schemas(ErrorBody))
)]
struct Endpoints;

/// The description.
pub async fn description() -> Json<Description> {
    Json(Endpoints::openapi())
}
