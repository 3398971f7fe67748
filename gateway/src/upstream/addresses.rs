//! A member's addresses: one, or several that serve the same API.
//!
//! Dials start with the address that last answered, so that an unreachable address costs its share
//! of the dial timeout once, and not in every dial.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use net::dial::HostPort;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;

/// One address, and the TLS configuration for it.
pub struct MemberAddress {
    /// DNS name or IP address, IPv6 without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// `None` only for `http` endpoints.
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// Advice for when its certificate is not accepted: empty, or a continuation of the error.
    pub advice: &'static str,
}

/// At least one address.
pub struct MemberAddresses {
    all: Box<[MemberAddress]>,
    /// Index of the address that last answered. Concurrent dials may set different indices; any of
    /// them is fine.
    preferred: AtomicUsize,
}

// === impl MemberAddresses ===

impl MemberAddresses {
    pub fn new(first: MemberAddress, others: impl IntoIterator<Item = MemberAddress>) -> Self {
        Self { all: std::iter::once(first).chain(others).collect(), preferred: AtomicUsize::new(0) }
    }

    /// The address that last answered, or the first.
    pub fn preferred(&self) -> &MemberAddress {
        &self.all[self.preferred.load(Ordering::Relaxed)]
    }

    /// All addresses with their indices, the preferred one first.
    pub fn in_order(&self) -> impl ExactSizeIterator<Item = (usize, &MemberAddress)> {
        let first = self.preferred.load(Ordering::Relaxed);
        (0..self.all.len()).map(move |offset| {
            let index = (first + offset) % self.all.len();
            (index, &self.all[index])
        })
    }

    pub fn prefer(&self, index: usize) {
        self.preferred.store(index, Ordering::Relaxed);
    }
}

// === impl MemberAddress ===

/// `host:port`, IPv6 in brackets.
impl fmt::Display for MemberAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HostPort { host: &self.host, port: self.port }.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: &str) -> MemberAddress {
        MemberAddress { host: host.into(), port: 6443, tls: None, advice: "" }
    }

    #[test]
    fn the_place_that_answered_last_comes_first_and_none_is_left_out() {
        let addresses = MemberAddresses::new(address("a"), [address("b"), address("::1")]);
        let order = || addresses.in_order().map(|(_, address)| address.to_string()).collect::<Vec<_>>();
        assert_eq!(order(), ["a:6443", "b:6443", "[::1]:6443"]);
        addresses.prefer(2);
        assert_eq!(order(), ["[::1]:6443", "a:6443", "b:6443"]);
        assert_eq!(addresses.preferred().host, "::1");
    }
}
