//! TLS on both sides: a server whose certificate reloads while it runs, and clients with the trust
//! of one member each.

pub mod client;
pub mod client_files;
pub mod end;
pub mod keypair;
mod pinned;
pub mod policy;
pub mod server;
mod verifier;

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// ALPN name of HTTP/2 (RFC 9113 §3.1).
pub const H2: &[u8] = b"h2";
/// ALPN name of HTTP/1.1 (RFC 7301 §6).
pub const HTTP_11: &[u8] = b"http/1.1";

/// The cryptography provider of all our TLS, chosen here so that no process-wide default decides.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}
