//! Reaches members that cannot be dialled: opens byte streams to them, by tunnel-servers or by this
//! process.
//!
//! A member behind the tunnel is addressed by its own internal name, `kubernetes.default.svc:443`;
//! a header names the member. TLS with the member runs inside the stream, so no hop sees a
//! credential. Layers above the dial do not depend on the tunnel.

mod addresses;
mod attempts;
mod embedded;
pub mod error;
mod link;
mod remote;
mod replica;
mod stream;

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use net::proxy::Opened;
use parking_lot::Mutex;
use tokio::time::Instant;
use traces::Trace;
use tunnel::{ClusterName, Destination, Timing};

use self::attempts::OpenRequest;
pub use self::embedded::{Embedded, EmbeddedConfig};
pub use self::error::TunnelError;
use self::error::{Cause, Missing};
pub use self::remote::{Remote, RemoteConfig};
use self::stream::Tunnelled;
use crate::holding::Backlog;
use crate::metrics::{ClusterMetrics, TunnelHop, TunnelMetrics, TunnelOpen};
use crate::spans;

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

/// Dials one cluster through the tunnel.
pub struct TunnelDialer {
    tunnel: Arc<Tunnel>,
    cluster: ClusterName,
    /// The cluster's metrics.
    metrics: Arc<ClusterMetrics>,
    /// The tunnel-server that opened the last stream, which is asked first.
    answered: Mutex<Option<SocketAddr>>,
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
        Some(TunnelDialer { tunnel, cluster, metrics, answered: Mutex::default() })
    }
}

// === impl TunnelDialer ===

impl TunnelDialer {
    /// Opens a byte stream to the cluster's API server before `deadline`. `backlog` counts its
    /// unread bytes. Dropping the future cancels the dial at the far end.
    pub async fn open(
        &self,
        backlog: Option<&Arc<Backlog>>,
        deadline: Instant,
        trace: Option<&Trace>,
    ) -> Result<Opened, TunnelError> {
        let started = Instant::now();
        let mut attempt = TunnelOpen::default();
        let outcome = self.open_somewhere(deadline, trace, &mut attempt).await;
        let took = started.elapsed();
        match &outcome {
            Ok(_) => self.tunnel.metrics.opened(took),
            Err(error) => self.tunnel.metrics.failed(error.outcome(), error.hop(), took),
        }
        self.metrics.tunnel_open_ended(attempt, took);
        outcome.map(|stream| {
            let leaving = stream.leaving();
            Opened::other(stream.observed_by(backlog), leaving)
        })
    }

    /// Asks this process first, because it answers at once.
    async fn open_somewhere(
        &self,
        deadline: Instant,
        trace: Option<&Trace>,
        attempt: &mut TunnelOpen,
    ) -> Result<Tunnelled, TunnelError> {
        let mut missing = Missing::default();
        if let Some(embedded) = &self.tunnel.embedded {
            let span = spans::tunnel_hop(trace, self.cluster.as_str(), None);
            let asked = Instant::now();
            let opened = embedded.open(&self.cluster, &API_SERVER, deadline).await;
            spans::ended(span, &opened, |refusal| refusal.reason.as_str());
            let word = opened.as_ref().map_or_else(|refusal| refusal.reason.as_str(), |_| OPENED);
            let timing = opened.as_ref().map_or_else(|_| Timing::default(), Tunnelled::timing);
            attempt.asked(TunnelHop { server: None, outcome: word, took: asked.elapsed(), round_trip: None, timing });
            match opened {
                Ok(stream) => return Ok(stream),
                Err(refusal) if refusal.reason.is_worth_another_try() => missing.refused_here(refusal),
                Err(refusal) => return Err(Cause::Refused(refusal).into()),
            }
        }
        let Some(remote) = &self.tunnel.remote else { return Err(missing.into()) };
        let preferred = *self.answered.lock();
        let wanted = OpenRequest { cluster: &self.cluster, to: &API_SERVER, deadline, trace };
        let (stream, address) = remote.open(wanted, preferred, missing, attempt).await?;
        *self.answered.lock() = Some(address);
        Ok(stream)
    }
}
