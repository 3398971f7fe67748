//! Reaches members that cannot be dialled: opens byte streams to them, by tunnel-servers or by this
//! process.
//!
//! A member behind the tunnel is addressed by its own internal name, `kubernetes.default.svc:443`;
//! a header names the member. TLS with the member runs inside the stream, so no hop sees a
//! credential. Layers above the dial do not depend on the tunnel.

mod addresses;
mod attempts;
mod dialer;
mod embedded;
pub mod error;
mod link;
mod reached;
mod remote;
mod replica;
mod stream;

use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use tunnel::{ClusterName, Destination};

pub use self::dialer::TunnelDialer;
pub use self::embedded::{Embedded, EmbeddedConfig};
pub use self::error::TunnelError;
pub use self::remote::{Remote, RemoteConfig};
use crate::metrics::{ClusterMetrics, TunnelMetrics};

/// A member's API server by its name inside its own cluster: its certificate has this name, and its
/// agent accepts it for the API server.
pub const HOST: &str = "kubernetes.default.svc";
pub const PORT: u16 = 443;

/// Outcome of a successful attempt.
const OPENED: &str = "opened";

static API_SERVER: LazyLock<Destination> = LazyLock::new(|| Destination::new(HOST, PORT).expect("a name and a port"));

/// Which parts of the tunnel to use.
#[derive(Debug)]
pub struct TunnelConfig {
    /// Separate tunnel-servers.
    pub remote: Option<RemoteConfig>,
    /// A tunnel-server in this process.
    pub embedded: Option<EmbeddedConfig>,
    /// Settings of links in both directions.
    pub settings: tunnel::Settings,
}

/// Opens streams: by this process for agents that are linked to it, by tunnel-servers for theirs,
/// or both.
pub struct Tunnel {
    embedded: Option<Embedded>,
    remote: Option<Remote>,
    metrics: TunnelMetrics,
}

// === impl Tunnel ===

impl Tunnel {
    /// `None` if there is nothing that opens streams.
    pub fn new(embedded: Option<Embedded>, remote: Option<Remote>, metrics: TunnelMetrics) -> Option<Arc<Self>> {
        let any = embedded.is_some() || remote.is_some();
        any.then(|| Arc::new(Self { embedded, remote, metrics }))
    }

    /// `None` if `cluster` is not a valid name; names of Secrets always are.
    pub fn through(self: &Arc<Self>, cluster: &str, metrics: &Arc<ClusterMetrics>) -> Option<TunnelDialer> {
        let cluster = ClusterName::parse(cluster).ok()?;
        let (tunnel, metrics) = (Arc::clone(self), Arc::clone(metrics));
        let (answered, reached) = (Mutex::default(), Arc::default());
        Some(TunnelDialer { tunnel, cluster, metrics, answered, reached })
    }
}
