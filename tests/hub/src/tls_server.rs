//! Where a server of a test listens, and by what it is known.

use std::net::SocketAddr;
use std::path::PathBuf;

use kit::pki::{Authority, Issued};

use crate::http::Client;

/// Of a program that is running, or was.
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The authority that signed its certificate.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The PEM file with that authority.
    pub fn authority_file(&self) -> PathBuf {
        self.authority_file.clone()
    }

    /// Requests straight to it, presenting `identity`.
    pub fn client(&self, identity: Option<&Issued>) -> Client {
        Client::new(self.address, &self.authority, identity)
    }
}
