//! The endpoints.
//!
//! - `payload` receives the body of a request, `begin` prepares and queues it;
//! - `chat`, `completions`, `responses`, `tokens` and `status` answer; `automaton` draws; `page` is
//!   the page at `/`;
//! - `guard` checks the key of the API, `origin` refuses foreign hosts and origins; `openapi`
//!   describes the endpoints.

mod automaton;
mod begin;
mod chat;
mod completions;
mod guard;
mod openapi;
mod origin;
mod page;
mod payload;
mod responses;
mod status;
mod tokens;

use std::any::Any;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};
use tower_http::request_id::{MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer};
use tower_http::trace::{DefaultOnResponse, TraceLayer};

use crate::answer::identifier;
use crate::app::App;
use crate::error::ApiError;

/// The header with the identifier of a request in the log.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Greatest number of bytes of an identifier that a client sets.
const MAX_REQUEST_ID: usize = 128;

/// All endpoints of a server.
pub fn router(app: Arc<App>) -> Router {
    let guarded = Router::new()
        .route("/v1/chat/completions", post(chat::chat))
        .route("/v1/completions", post(completions::completions))
        .route("/v1/responses", post(responses::responses))
        .route("/v1/models", get(status::models))
        .route("/v1/models/{*name}", get(status::model))
        .route("/automaton", post(automaton::automaton))
        .route("/tokenize", post(tokens::tokenize))
        .route("/detokenize", post(tokens::detokenize))
        .route_layer(axum::middleware::from_fn_with_state(app.clone(), guard::guard));
    let open = Router::new()
        .route("/", get(page::page))
        .route("/health", get(status::health))
        .route("/version", get(status::version))
        .route("/metrics", get(status::metrics))
        .route("/openapi.json", get(openapi::description));
    let router = open
        .merge(guarded)
        .fallback(nothing)
        .method_not_allowed_fallback(other_method)
        .layer(DefaultBodyLimit::max(app.config.max_body))
        .layer(CatchPanicLayer::custom(panicked));
    let router = match cors(&app.config.allowed_origins) {
        Some(cors) => router.layer(cors),
        None => router,
    };
    router
        .layer(axum::middleware::from_fn_with_state(app.clone(), origin::own))
        .layer(PropagateRequestIdLayer::new(REQUEST_ID))
        .layer(
            TraceLayer::new_for_http()
                .make_span_with(span)
                .on_response(DefaultOnResponse::new().level(tracing::Level::INFO)),
        )
        .layer(SetRequestIdLayer::new(REQUEST_ID, NewId))
        .layer(axum::middleware::map_request(own_id))
        .with_state(app)
}

async fn nothing(request: Request) -> ApiError {
    let path = request.uri().path();
    ApiError::new(StatusCode::NOT_FOUND, format!("there is nothing at {path}")).code("not_found")
}

async fn other_method(request: Request) -> ApiError {
    let message = format!("{} does not take {}", request.uri().path(), request.method());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, message).code("method_not_allowed")
}

fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("of unknown cause");
    tracing::error!(panic = text, "a handler panicked");
    ApiError::internal("the server failed at this request").into_response()
}

/// Allows pages of the configured origins to call the server.
fn cors(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let named = origins.iter().filter_map(|origin| origin.parse().ok());
    let origins = match origins.iter().any(|origin| origin == origin::ANY) {
        true => AllowOrigin::any(),
        false => AllowOrigin::list(named.collect::<Vec<HeaderValue>>()),
    };
    let headers = [axum::http::header::AUTHORIZATION, axum::http::header::CONTENT_TYPE];
    let methods = [axum::http::Method::GET, axum::http::Method::POST];
    Some(CorsLayer::new().allow_origin(origins).allow_headers(headers).allow_methods(methods))
}

/// Assigns identifiers to requests without one.
#[derive(Clone, Copy)]
struct NewId;

impl MakeRequestId for NewId {
    fn make_request_id<B>(&mut self, _: &axum::http::Request<B>) -> Option<RequestId> {
        HeaderValue::from_str(&identifier("req_")).ok().map(RequestId::new)
    }
}

/// Keeps a client's identifier if it is short and printable.
async fn own_id(mut request: Request) -> Request {
    let is_fine = |id: &HeaderValue| id.len() <= MAX_REQUEST_ID && id.to_str().is_ok();
    if !request.headers().get(&REQUEST_ID).is_none_or(is_fine) {
        request.headers_mut().remove(&REQUEST_ID);
    }
    request
}

fn span<B>(request: &axum::http::Request<B>) -> tracing::Span {
    let id = request.headers().get(&REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
    tracing::info_span!("request", id, method = %request.method(), path = request.uri().path())
}
