//! The address and the CA of a test's server.

use std::net::SocketAddr;
use std::path::PathBuf;

use kit::pki::{Authority, Issued};

use crate::http::Client;

/// The address and CA of a program that runs or has run.
#[derive(Debug)]
pub struct TlsServer {
    address: SocketAddr,
    authority: Authority,
    authority_file: PathBuf,
}

// === impl TlsServer ===

impl TlsServer {
    /// `authority_file` is the PEM file with `authority`, which signed the server's certificate.
    pub fn new(address: SocketAddr, authority: Authority, authority_file: PathBuf) -> Self {
        Self { address, authority, authority_file }
    }

    /// Its listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The CA of its certificate.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The PEM file with that CA.
    pub fn authority_file(&self) -> PathBuf {
        self.authority_file.clone()
    }

    /// A client for it that presents `identity`.
    pub fn client(&self, identity: Option<&Issued>) -> Client {
        Client::new(self.address, &self.authority, identity)
    }
}
