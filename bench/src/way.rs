//! A way to the upstream: where to connect, which path and headers to send, and whose processor time counts.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, bail};
use hub_tests::process::Process;

use crate::figure::Target;
use crate::ground::Ground;
use crate::usage::Tree;

/// A running proxy, or none ([`crate::figure::DIRECT`]).
pub struct Way {
    pub address: SocketAddr,
    /// PEM file of the authority of its certificate, which is good for `127.0.0.1` and `localhost`.
    pub authority: PathBuf,
    /// Put before the upstream's paths.
    pub prefix: String,
    /// `Authorization: Bearer …` and the like, as `h2load -H` takes them.
    pub headers: Vec<String>,
    /// Of the proxy; of the upstream itself on the direct way.
    pub tree: Tree,
    _process: Option<Process>,
}

/// Starts `target` and waits until a request through it is answered.
pub fn start(_ground: &mut Ground, target: Target) -> Result<Way> {
    bail!("{target} cannot be started yet")
}

// === impl Way ===

impl Way {
    /// For `path` of the upstream.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{}{path}", self.address, self.prefix)
    }
}
