//! The address of a device on a server.

use std::fmt;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use burn_dfa_tokens::{Error, Result};

/// How long to wait for a server to accept a connection.
const ACCEPTS: Duration = Duration::from_secs(5);

/// `ws://host:port`, or `ws://host:port/index` for another device of the server than the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    host: String,
    port: u16,
    pub(super) index: usize,
}

impl Address {
    /// Reads an address.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let malformed = |what: &str| {
            Error::input(format!(
                "remote device {text:?}: {what}; write it as ws://host:port or ws://host:port/index"
            ))
        };
        let Some(rest) = text.strip_prefix("ws://") else {
            return Err(malformed("it does not begin with ws://"));
        };
        let (authority, index) = rest.split_once('/').unwrap_or((rest, ""));
        let index = if index.is_empty() { Some(0) } else { number::<u16>(index).map(usize::from) };
        let index = index.ok_or_else(|| malformed("the index of the device is not a number"))?;
        let (host, port) = authority.rsplit_once(':').ok_or_else(|| malformed("the port is missing"))?;
        let port = number(port)
            .filter(|&port| port > 0)
            .ok_or_else(|| malformed("the port is not a number from 1 to 65535"))?;
        let of_name = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
        let in_brackets = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_host = match in_brackets {
            Some(literal) => literal.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.chars().all(of_name),
        };
        if !is_host {
            return Err(malformed("the host is neither a name nor an address"));
        }
        Ok(Self { host: host.to_owned(), port, index })
    }

    /// Checks quickly whether a server listens; Burn's client takes a quarter of a minute for the
    /// check.
    pub(super) fn reach(&self) -> Result<()> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let addresses = (host, self.port).to_socket_addrs();
        let addresses =
            addresses.map_err(|error| Error::connection(format!("{self}: no such host: {error}")))?;
        let mut failed = "it has no address".to_owned();
        for address in addresses {
            match TcpStream::connect_timeout(&address, ACCEPTS) {
                Ok(_) => return Ok(()),
                Err(error) => failed = error.to_string(),
            }
        }
        Err(Error::connection(format!("{self}: nothing listens there ({failed}): is the server running?")))
    }

    /// The same server under a distinct name: Burn's client keeps one session for each name of a
    /// server, even after the connection is lost. The part before the `@` is not sent to the
    /// server.
    pub(super) fn named(&self, session: u64) -> String {
        format!("ws://{session}@{}:{}", self.host, self.port)
    }
}

/// A number of only digits.
fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ws://{}:{}", self.host, self.port)?;
        if self.index > 0 {
            write!(f, "/{}", self.index)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn addresses_are_read() {
        for (text, index) in [
            ("ws://gpu:3000", 0),
            ("ws://10.0.0.1:80/", 0),
            ("ws://a-b.c_d:65535/3", 3),
            ("ws://[::1]:3000/12", 12),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.index, index, "{text}");
            let shown = address.to_string();
            assert_eq!(Address::parse(&shown).unwrap(), address, "{shown}");
        }
    }

    #[test]
    fn malformed_addresses_are_refused() {
        for text in [
            "",
            "gpu:3000",
            "http://gpu:3000",
            "wss://gpu:3000",
            "ws://",
            "ws://gpu",
            "ws://gpu:",
            "ws://gpu:0",
            "ws://gpu:65536",
            "ws://gpu:+80",
            "ws://:3000",
            "ws://a b:3000",
            "ws://user@gpu:3000",
            "ws://gpu:3000/x",
            "ws://gpu:3000/1/2",
            "ws://[::1:3000",
            "ws://[gpu]:3000",
            "ws://gpu:3000?x",
            "ws://gpu:3000/99999",
        ] {
            let error = Address::parse(text).unwrap_err();
            assert!(
                error.kind() == ErrorKind::Input && error.to_string().contains("ws://host:port"),
                "{text}: {error}"
            );
        }
    }
}
