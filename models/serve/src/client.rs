//! Clients of the server, which queues serve in turn.

use std::net::IpAddr;

use burn_dfa_engine::Client;
use sha2::{Digest, Sha256};

/// The holders of a key.
pub fn of_key(key: &str) -> Client {
    Client::new(Sha256::digest(key).into())
}

/// The client at an address, if no key is required. For IPv6 the network, since a host has all its
/// addresses.
pub fn of_address(address: IpAddr) -> Client {
    let network = match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address => address,
    };
    Client::new(Sha256::digest(network.to_string()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let of = |text: &str| of_address(text.parse().expect("an address"));
        assert_eq!(of("2001:db8:1:2:3::4"), of("2001:db8:1:2::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
