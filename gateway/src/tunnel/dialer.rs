//! Dials members through the tunnel.

use std::net::SocketAddr;
use std::sync::Arc;

use net::proxy::Opened;
use parking_lot::Mutex;
use tokio::time::Instant;
use traces::Trace;
use tunnel::{ClusterName, Timing};

use super::attempts::OpenRequest;
use super::error::{Cause, Missing, TunnelError};
use super::reached::Reached;
use super::stream::Tunnelled;
use super::{API_SERVER, OPENED, Tunnel};
use crate::holding::Backlog;
use crate::metrics::{ClusterMetrics, TunnelHop, TunnelOpen};
use crate::spans;

/// Dials one cluster through the tunnel.
pub struct TunnelDialer {
    pub(super) tunnel: Arc<Tunnel>,
    pub(super) cluster: ClusterName,
    /// The cluster's metrics.
    pub(super) metrics: Arc<ClusterMetrics>,
    /// The tunnel-server that opened the last stream, which is asked first.
    pub(super) answered: Mutex<Option<SocketAddr>>,
    pub(super) reached: Arc<Reached>,
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
            Opened::other(stream.observed_by(backlog).reaching(&self.reached), leaving)
        })
    }

    /// Asks this process first, because it answers at once.
    async fn open_somewhere(
        &self,
        deadline: Instant,
        trace: Option<&Trace>,
        attempt: &mut TunnelOpen,
    ) -> Result<Tunnelled, TunnelError> {
        let mut missing = Missing::of(self.reached.is_recent());
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
