//! The body of a request, received within limits of time and size.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use burn_dfa_engine::Client;

use crate::app::App;
use crate::error::{ApiError, Result};
use crate::protocol::body::Body;

/// A body that is an object, and its client.
#[derive(Debug)]
pub struct Payload(pub Body, pub Client);

impl FromRequest<Arc<App>> for Payload {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self> {
        check_type(request.headers())?;
        let config = &app.config;
        let client = request.extensions().get().copied().unwrap_or_default();
        let bytes = tokio::time::timeout(config.client_timeout, Bytes::from_request(request, app));
        let bytes = bytes.await.map_err(|_| {
            ApiError::new(StatusCode::REQUEST_TIMEOUT, "the request did not come in time").code("timeout")
        })?;
        let bytes = bytes.map_err(|rejection| match rejection.status() {
            status @ StatusCode::PAYLOAD_TOO_LARGE => {
                let message = format!("the request has more than {} bytes", config.max_body);
                ApiError::new(status, message).code("request_too_large")
            }
            // Chunks of the body are malformed, or the connection broke.
            status => ApiError::new(status, rejection.body_text()).code("invalid_json"),
        })?;
        // Parsing a large body takes time.
        let body = app.pool.run(client, move || Body::read(&bytes)).await??;
        Ok(Self(body, client))
    }
}

/// Refuses a body whose type is not JSON. Pages of other origins can send texts and forms without a
/// preflight request.
fn check_type(headers: &HeaderMap) -> Result<()> {
    let is_json = |kind: &str| {
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        kind == "application/json" || kind.starts_with("application/") && kind.ends_with("+json")
    };
    match headers.get(header::CONTENT_TYPE) {
        Some(kind) if !kind.to_str().is_ok_and(is_json) => {
            let message = "the body is JSON: send it with `Content-Type: application/json`";
            Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).code("unsupported_media_type"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_json() {
        let is_fine = |kind: &str| {
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, kind.parse().expect("a value"))]);
            check_type(&headers).is_ok()
        };
        for kind in ["application/json", "Application/JSON; charset=utf-8", "application/vnd.api+json"] {
            assert!(is_fine(kind), "{kind}");
        }
        for kind in
            ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "json"]
        {
            assert!(!is_fine(kind), "{kind}");
        }
        assert!(check_type(&HeaderMap::new()).is_ok());
    }
}
