//! A fast upstream that stands for a member: nginx with TLS, HTTP/2 and HTTP/1.1 by ALPN, answering from memory.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Result, bail};
use kit::pki::Authority;

use crate::usage::Tree;

/// Under which gateways know it.
pub const CLUSTER: &str = "upstream";
/// What it is asked with; it does not look at it.
pub const TOKEN: &str = "upstream-token";
/// 1 KiB of JSON.
pub const SMALL: &str = "/api/v1/namespaces/default/configmaps/small";
/// 100 MiB.
pub const LARGE: &str = "/api/v1/namespaces/default/configmaps/large";
/// Takes a body of any size, says 200 after its end.
pub const SINK: &str = "/api/v1/namespaces/default/configmaps/sink";

pub struct Upstream {
    pub address: SocketAddr,
    pub authority: Authority,
    pub tree: Tree,
}

// === impl Upstream ===

impl Upstream {
    pub fn start(_directory: &Path) -> Result<Self> {
        bail!("not there yet")
    }
}
