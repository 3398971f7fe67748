//! Opens a member's stream for a frontend's `CONNECT` and joins the two: checks the frontend,
//! chooses the cluster, checks the limits, and uses a link.
//!
//! Every attempt is counted once, also one that its frontend abandons: the drop of the future
//! counts it.

mod attempt;
mod origin;

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use net::permit::Permit;
use net::words;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tunnel::bridge::Socket;
use tunnel::{ClusterName, Destination, Gauge, Hop, Reason, Refusal, Stream, Timing};

use self::attempt::Attempt;
pub use self::origin::Origin;
use crate::metrics::Open;
use crate::shared::Shared;

/// An open stream to a member, not yet joined to the frontend's. A drop resets it.
#[derive(Debug)]
pub struct Relayed {
    stream: Stream,
    gauge: Arc<Gauge>,
    cluster: ClusterName,
    to: Destination,
    timing: Timing,
    counted: (Open, Permit<AtomicUsize>),
}

/// Opens a stream to `to` for `origin`, in the cluster `named` or else in the one that [`meant`]
/// chooses. A drop of the future cancels the dial.
pub async fn open(
    shared: &Shared,
    origin: &Origin,
    named: Option<&ClusterName>,
    to: &Destination,
) -> Result<Relayed, Refusal> {
    let mut attempt = Attempt::new(shared, origin, to);
    let opened = async {
        origin.judge()?;
        let cluster = meant(shared, named, to)?;
        attempt.concerns(&cluster);
        if shared.drain.soft_token().is_cancelled() {
            let message = format!(
                "cluster {cluster:?}: this tunnel-server is shutting down, try another",
                cluster = cluster.as_str()
            );
            return Err(Refusal::new(Hop::Server, Reason::Draining, message));
        }
        let permit = origin.permit(shared.limits.streams_per_frontend)?;
        let asked = Instant::now();
        let (stream, gauge) = shared.registry.open(&cluster, to, shared.dial_timeout).await?;
        let timing = stream.timing().with_agent(asked.elapsed());
        let counted = (shared.metrics.open(&cluster, Arc::clone(&gauge)), permit);
        Ok(Relayed { stream, gauge, cluster, to: to.clone(), timing, counted })
    }
    .await;
    attempt.ended(opened.as_ref().err());
    opened
}

/// The cluster of a `CONNECT` to `to`.
fn meant(shared: &Shared, named: Option<&ClusterName>, to: &Destination) -> Result<ClusterName, Refusal> {
    if let Some(named) = named {
        return Ok(named.clone());
    }
    let host = may_be_cluster(to, shared.default_cluster.is_some());
    // As clients of OCM's cluster-proxy do it: the authority names the cluster.
    if let Some(host) = host.as_ref().filter(|host| shared.registry.knows(host)) {
        return Ok(host.clone());
    }
    if let Some(default) = &shared.default_cluster {
        return Ok(default.clone());
    }
    let how =
        "name one in the header Tunnel-Cluster, ask for CLUSTER:443, or start tunnel-server with --default-cluster";
    Err(if host.is_some() {
        let message = format!("no cluster {:?} is known here, and no other is named: {how}", to.host());
        Refusal::new(Hop::Server, Reason::UnknownCluster, message)
    } else {
        Refusal::new(Hop::Server, Reason::Malformed, format!("no cluster is named: {how}"))
    })
}

/// The host of `to` as a cluster's name. An address never is one. With a default cluster, hosts are
/// destinations inside that cluster, and an agent must not get their connections by giving its
/// cluster such a name. There a host is a cluster's name only if it cannot be a service's (which
/// has dots) or a node's (whose port is the kubelet's).
fn may_be_cluster(to: &Destination, has_default: bool) -> Option<ClusterName> {
    if to.host().parse::<IpAddr>().is_ok() || has_default && (to.host().contains('.') || to.port() != 443) {
        return None;
    }
    ClusterName::parse(to.host()).ok()
}

// === impl Relayed ===

impl Relayed {
    /// Cancelled when the stream's agent is leaving.
    pub fn leaving(&self) -> Option<CancellationToken> {
        self.stream.leaving()
    }

    /// How long the opening took, for the frontend.
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// Joins the stream to a frontend's stream until both directions have ended.
    pub fn splice(self, shared: &Shared, frontend: Stream) -> impl Future<Output = ()> + Send + use<> {
        let splice = tunnel::splice::splice(frontend, self.stream, self.gauge, &shared.budget);
        joined(Box::pin(splice), Arc::clone(shared), self.cluster, self.to, self.counted)
    }

    /// Joins the stream to a frontend's socket until both directions have ended.
    pub fn bridge<S: Socket>(self, shared: &Shared, frontend: S) -> impl Future<Output = ()> + Send + use<S> {
        let bridge = tunnel::bridge::bridge_within(self.stream, frontend, self.gauge, false, &shared.budget);
        joined(Box::pin(bridge), Arc::clone(shared), self.cluster, self.to, self.counted)
    }
}

/// Holds only what a stream needs until its end. Boxed twice, so that thousands of these futures
/// hold no memory for values that have moved.
fn joined<F: Future<Output = io::Result<()>> + Send>(
    join: Pin<Box<F>>,
    shared: Shared,
    cluster: ClusterName,
    to: Destination,
    counted: (Open, Permit<AtomicUsize>),
) -> Pin<Box<impl Future<Output = ()> + Send + use<F>>> {
    Box::pin(async move {
        let end = join.await;
        drop(counted);
        report_end(&shared, &cluster, &to, &end);
    })
}

fn report_end(shared: &Shared, cluster: &ClusterName, to: &Destination, end: &io::Result<()>) {
    shared.metrics.ended(cluster, end.as_ref().err().map(io::Error::kind));
    match end {
        Ok(()) => tracing::debug!(%cluster, %to, "stream ended"),
        Err(error) => tracing::debug!(%cluster, %to, error = words::io(error), "stream was cut"),
    }
}
