//! Checks the host of a request, and the origin of the page that sent it.
//!
//! Any web page can make the visitor's browser send requests to a server on the visitor's machine.
//! In DNS rebinding the page points its own host name at this machine. In CSRF the page sends the
//! request across origins: it cannot read the answer, but the model works. Without a key, the
//! server refuses both. With a key, the page does not know the key.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::config::Config;
use crate::error::{ApiError, Result};

/// The value for any host, or any origin.
pub const ANY: &str = "*";

/// Greatest number of bytes of a foreign name in messages.
const MAX_TOLD: usize = 100;

/// Accepts requests for this server that come from no foreign page.
pub async fn own(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match check(&app.config, request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn check(config: &Config, uri: &Uri, headers: &HeaderMap) -> Result<()> {
    let is_open = config.api_keys.is_empty();
    if is_open || !config.allowed_hosts.is_empty() {
        let named = headers.get_all(header::HOST).iter().map(HeaderValue::as_bytes);
        // If the request line has an absolute address, its authority counts.
        let hosts = named.chain(uri.authority().map(|authority| authority.as_str().as_bytes()));
        for host in hosts {
            if !is_own(config, host) {
                let host = told(host);
                return Err(forbidden(
                    format!(
                        "this server does not answer as `{host}`: start it with `--allow-host NAME` for a name of its own, or with `--api-key`"
                    ),
                    "host_not_allowed",
                ));
            }
        }
    }
    if is_open {
        for origin in headers.get_all(header::ORIGIN) {
            if !is_allowed(config, origin, headers) {
                let origin = told(origin.as_bytes());
                return Err(forbidden(
                    format!(
                        "pages of `{origin}` may not call this server: start it with `--allow-origin {origin}`, or with `--api-key`"
                    ),
                    "origin_not_allowed",
                ));
            }
        }
    }
    Ok(())
}

/// Whether a host, with or without a port, belongs to this server.
fn is_own(config: &Config, host: &[u8]) -> bool {
    let authority = std::str::from_utf8(host).ok().filter(|host| !host.contains('@'));
    let Some(authority) = authority.and_then(|host| host.parse::<Authority>().ok()) else { return false };
    let name = plain(authority.host());
    if config.allowed_hosts.iter().any(|allowed| allowed == ANY || plain(allowed) == name) {
        return true;
    }
    match name.parse::<IpAddr>() {
        // DNS rebinding cannot use a number. If the server listens beyond this machine, it may have
        // any address.
        Ok(address) => {
            let address = address.to_canonical();
            address.is_loopback() || address == config.host || !config.host.is_loopback()
        }
        Err(_) => name == "localhost",
    }
}

/// A name in the form for comparisons.
fn plain(name: &str) -> String {
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Whether a page of this origin may call the server: the server's own origin, or a configured one.
fn is_allowed(config: &Config, origin: &HeaderValue, headers: &HeaderMap) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    if config.allowed_origins.iter().any(|allowed| allowed == ANY || allowed == origin) {
        return true;
    }
    let Some((scheme, origin)) = origin.split_once("://") else { return false };
    let usual = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return false,
    };
    let without_usual = |name: &str| name.strip_suffix(usual).unwrap_or(name).to_ascii_lowercase();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    host.is_some_and(|host| without_usual(host) == without_usual(origin))
}

fn forbidden(message: String, code: &'static str) -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, message).code(code)
}

fn told(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(MAX_TOLD)]).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// The code of the refusal, if there is one.
    fn refusal(options: &[&str], headers: &[(&str, &str)]) -> Option<&'static str> {
        let config = Config::parse_from(["burn-dfa-serve"].iter().chain(options));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: axum::http::HeaderName = name.parse().expect("a name");
            map.append(name, value.parse().expect("a value"));
        }
        check(&config, &Uri::from_static("/v1/models"), &map).err().and_then(|error| error.code)
    }

    fn host(options: &[&str], host: &str) -> bool {
        refusal(options, &[("host", host)]).is_none()
    }

    #[test]
    fn hosts_of_this_machine_are_its_own() {
        for own in [
            "localhost",
            "localhost:8000",
            "LocalHost.",
            "127.0.0.1:8000",
            "127.1.2.3",
            "[::1]:8000",
            "[::1]",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(host(&[], own), "{own}");
        }
        for foreign in [
            "evil.example",
            "evil.example:8000",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.168.1.5",
            "localhost@evil.example",
            "evil.example@localhost",
            "",
            "[::2]",
            "0.0.0.0",
            "local host",
        ] {
            assert!(!host(&[], foreign), "{foreign}");
        }
        assert_eq!(refusal(&[], &[]), None);
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(refusal(&[], &two), Some("host_not_allowed"));
    }

    #[test]
    fn other_hosts_are_named() {
        let wide = ["--host", "0.0.0.0"];
        assert!(host(&wide, "192.168.1.5:8000") && host(&wide, "[fd00::1]") && !host(&wide, "evil.example"));
        let one = ["--host", "192.168.1.5"];
        assert!(host(&one, "192.168.1.5") && host(&one, "localhost"));
        let named = ["--allow-host", "llm.internal", "--allow-host", "Other.Example."];
        assert!(
            host(&named, "llm.internal:8000") && host(&named, "other.example") && host(&named, "localhost")
        );
        assert!(!host(&named, "evil.example"));
        assert!(host(&["--allow-host", "*"], "evil.example"));
    }

    #[test]
    fn with_a_key_hosts_are_checked_if_some_are_named() {
        let key = ["--api-key", "secret"];
        assert!(host(&key, "evil.example"));
        assert_eq!(refusal(&key, &[("origin", "http://evil.example")]), None);
        let both = ["--api-key", "secret", "--allow-host", "llm.internal"];
        assert!(host(&both, "llm.internal") && !host(&both, "evil.example"));
    }

    #[test]
    fn pages_of_other_origins_are_foreign() {
        let of = |options: &[&str], host: &str, origin: &str| {
            refusal(options, &[("host", host), ("origin", origin)]).is_none()
        };
        let local = "localhost:8000";
        assert!(of(&[], local, "http://localhost:8000") && of(&[], local, "http://LOCALHOST:8000"));
        assert!(of(&[], "localhost", "http://localhost:80") && of(&[], "localhost:443", "https://localhost"));
        for origin in [
            "http://evil.example",
            "http://localhost:3000",
            "http://127.0.0.1:8000",
            "null",
            "",
            "file://",
            "chrome-extension://localhost:8000",
            "http://localhost:8000.evil.example",
        ] {
            assert!(!of(&[], local, origin), "{origin}");
        }
        let named = ["--allow-origin", "http://localhost:3000"];
        assert!(of(&named, local, "http://localhost:3000") && !of(&named, local, "http://localhost:3001"));
        assert!(of(&["--allow-origin", "*"], local, "null"));
    }
}
