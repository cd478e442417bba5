//! The key of the API.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::app::App;
use crate::client;
use crate::error::ApiError;

/// Accepts requests with a key of the server, if it has any. All holders of a key are one client.
pub async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let keys = &app.config.api_keys;
    if keys.is_empty() {
        return next.run(request).await;
    }
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer "));
    if let Some(given) = given.filter(|given| is_one_of(given, keys)) {
        let client = client::of_key(given);
        request.extensions_mut().insert(client);
        return next.run(request).await;
    }
    let message = "a key is missing or wrong: send `Authorization: Bearer KEY`";
    ApiError::new(StatusCode::UNAUTHORIZED, message).code("invalid_api_key").into_response()
}

/// Whether a key is known. The time of the check reveals neither the keys nor their lengths.
fn is_one_of(given: &str, keys: &[String]) -> bool {
    let digest = |key: &str| Sha256::digest(key);
    let given = digest(given);
    let equal = |key: &String| digest(key).as_slice().ct_eq(given.as_slice());
    keys.iter().map(equal).fold(Choice::from(0), |any, equal| any | equal).into()
}
