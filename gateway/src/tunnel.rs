//! The tunnel as a way to members that cannot be dialled: byte streams to them, opened by
//! tunnel-servers or by this process.
//!
//! A member behind the tunnel is asked for by its own name for itself,
//! `kubernetes.default.svc:443`; a header says which member it is. TLS with the member runs inside
//! the stream, so no hop on the way sees a credential. Nothing above the opening of the stream
//! knows of it.

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

/// What a member's API server is called from inside its cluster: the name in its certificate, and
/// what its agent takes to mean it.
pub const HOST: &str = "kubernetes.default.svc";
pub const PORT: u16 = 443;

/// What came of asking for a stream, if it came about.
const OPENED: &str = "opened";

static API_SERVER: LazyLock<Destination> = LazyLock::new(|| Destination::new(HOST, PORT).expect("a name and a port"));

/// What of the tunnel there is to be.
#[derive(Debug)]
pub struct TunnelConfig {
    /// Tunnel-servers elsewhere.
    pub remote: Option<RemoteConfig>,
    /// A tunnel-server in this process.
    pub embedded: Option<EmbeddedConfig>,
    /// Of links both ways.
    pub settings: tunnel::Settings,
}

/// What opens streams: this process for agents that are linked to it, tunnel-servers for theirs, or
/// both.
pub struct Tunnel {
    embedded: Option<Embedded>,
    remote: Option<Remote>,
    metrics: TunnelMetrics,
}

/// The way through the tunnel to one cluster.
pub struct TunnelDialer {
    tunnel: Arc<Tunnel>,
    cluster: ClusterName,
    /// The metrics of the cluster.
    metrics: Arc<ClusterMetrics>,
    /// The tunnel-server that opened the last stream: it is asked first.
    answered: Mutex<Option<SocketAddr>>,
}

// === impl Tunnel ===

impl Tunnel {
    /// `None` without a way to open streams.
    pub fn new(embedded: Option<Embedded>, remote: Option<Remote>, metrics: TunnelMetrics) -> Option<Arc<Self>> {
        let any = embedded.is_some() || remote.is_some();
        any.then(|| Arc::new(Self { embedded, remote, metrics }))
    }

    /// `None` if `cluster` can be no name of one: those of Secrets always are.
    pub fn through(self: &Arc<Self>, cluster: &str, metrics: &Arc<ClusterMetrics>) -> Option<TunnelDialer> {
        let cluster = ClusterName::parse(cluster).ok()?;
        let (tunnel, metrics) = (Arc::clone(self), Arc::clone(metrics));
        Some(TunnelDialer { tunnel, cluster, metrics, answered: Mutex::default() })
    }
}

// === impl TunnelDialer ===

impl TunnelDialer {
    /// A byte stream to the cluster's API server before `deadline`, whose unread bytes `backlog`
    /// has. Dropping the future cancels the dial at the far end.
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

    /// This process first: it knows at once.
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
