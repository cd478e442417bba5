//! The body of a request, taken in within a time and a size.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;

use crate::app::App;
use crate::error::{ApiError, Result};
use crate::protocol::body::Body;

/// A body that is an object.
#[derive(Debug)]
pub struct Payload(pub Body);

impl FromRequest<Arc<App>> for Payload {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self> {
        let config = &app.config;
        let bytes = tokio::time::timeout(config.client_timeout, Bytes::from_request(request, app));
        let bytes = bytes.await.map_err(|_| {
            ApiError::new(StatusCode::REQUEST_TIMEOUT, "the request did not come in time").code("timeout")
        })?;
        let bytes = bytes.map_err(|rejection| match rejection.status() {
            status @ StatusCode::PAYLOAD_TOO_LARGE => {
                let message = format!("the request has more than {} bytes", config.max_body);
                ApiError::new(status, message).code("request_too_large")
            }
            status => ApiError::new(status, rejection.body_text()),
        })?;
        // Large bodies take their time.
        app.pool.run(move || Body::read(&bytes)).await?.map(Self)
    }
}
