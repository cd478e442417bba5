//! The models, the health, the version and the metrics of the server.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;

use crate::app::App;
use crate::error::{ApiError, ErrorBody, Result};
use crate::protocol::models::{ModelCard, ModelList, Version};

/// The models.
#[utoipa::path(get, path = "/v1/models", responses((status = 200, body = ModelList), (status = 401, body = ErrorBody)))]
pub async fn models(State(app): State<Arc<App>>) -> Json<ModelList> {
    Json(ModelList { object: "list", data: vec![card(&app)] })
}

/// A model.
#[utoipa::path(
    get,
    path = "/v1/models/{name}",
    params(("name" = String, Path, description = "The name of a model.")),
    responses((status = 200, body = ModelCard), (status = 401, body = ErrorBody), (status = 404, body = ErrorBody))
)]
pub async fn model(
    State(app): State<Arc<App>>,
    name: std::result::Result<Path<String>, PathRejection>,
) -> Result<Json<ModelCard>> {
    // A name that is not UTF-8 is the name of no model.
    let name = name.map_or_else(|_| char::REPLACEMENT_CHARACTER.to_string(), |Path(name)| name);
    app.check_model(Some(&name))?;
    Ok(Json(card(&app)))
}

fn card(app: &App) -> ModelCard {
    ModelCard {
        id: app.name.clone(),
        object: "model",
        created: app.started,
        owned_by: "burn-dfa",
        max_model_len: app.engine.config().slots,
    }
}

/// Whether requests are answered.
#[utoipa::path(get, path = "/health", responses((status = 200), (status = 503, body = ErrorBody)))]
pub async fn health(State(app): State<Arc<App>>) -> Result<StatusCode> {
    match app.is_ready() {
        true => Ok(StatusCode::OK),
        false => Err(ApiError::overloaded("the server ends, or its engine has failed")),
    }
}

/// The version of the server.
#[utoipa::path(get, path = "/version", responses((status = 200, body = Version)))]
pub async fn version() -> Json<Version> {
    Json(Version { version: env!("CARGO_PKG_VERSION") })
}

/// Metrics in Prometheus' text format.
#[utoipa::path(get, path = "/metrics", responses((status = 200, body = String, content_type = "text/plain")))]
pub async fn metrics(State(app): State<Arc<App>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], app.metrics.render())
}
