//! The page at `/`.

use axum::http::header;
use axum::response::{Html, IntoResponse};

/// The page, which is one file.
const PAGE: &str = include_str!("../page/index.html");

/// A page that asks the model, and shows each token with its probability and the automaton of the
/// constraint. It loads nothing from other hosts.
pub async fn page() -> impl IntoResponse {
    let policy = "default-src 'none'; connect-src 'self'; img-src data:; style-src 'unsafe-inline'; \
                  script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(PAGE))
}
