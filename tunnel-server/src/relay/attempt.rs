//! Counts and logs one attempt to open a stream, once: when it has ended, or when it is dropped
//! because its frontend left.

use net::throttle::LogThrottle;
use tokio::time::Instant;
use tunnel::{ClusterName, Destination, Reason, Refusal};

use super::Origin;
use crate::metrics::Outcome;
use crate::shared::Shared;

/// One attempt to open a stream.
pub struct Attempt<'a> {
    shared: &'a Shared,
    origin: &'a Origin,
    to: &'a Destination,
    cluster: Option<ClusterName>,
    since: Instant,
    ended: bool,
}

/// Logs a refused stream: each is worth a line, ten thousand of them are not.
fn log_refusal(lines: &LogThrottle, cluster: &str, to: &Destination, frontend: &Origin, refusal: &Refusal) {
    let (hop, reason) = (refusal.hop.as_str(), refusal.reason.as_str());
    match lines.due() {
        None => tracing::debug!(cluster, %to, %frontend, hop, reason, "{refusal}"),
        Some(0) => tracing::info!(cluster, %to, %frontend, hop, reason, "stream refused: {refusal}"),
        Some(suppressed) => {
            tracing::info!(cluster, %to, %frontend, hop, reason, suppressed, "stream refused: {refusal}");
        }
    }
}

// === impl Attempt ===

impl<'a> Attempt<'a> {
    pub fn new(shared: &'a Shared, origin: &'a Origin, to: &'a Destination) -> Self {
        Self { shared, origin, to, cluster: None, since: Instant::now(), ended: false }
    }

    pub fn concerns(&mut self, cluster: &ClusterName) {
        self.cluster = Some(cluster.clone());
    }

    /// Counts and logs the attempt as opened, or as refused.
    pub fn ended(mut self, refusal: Option<&Refusal>) {
        self.ended = true;
        let name = self.cluster.as_ref().map_or("", ClusterName::as_str);
        match refusal {
            None => {
                tracing::debug!(cluster = name, to = %self.to, frontend = %self.origin, took = ?self.since.elapsed(), "stream opened");
                self.count(Outcome::Opened);
            }
            Some(refusal) => {
                log_refusal(&self.shared.refusals, name, self.to, self.origin, refusal);
                self.count(Outcome::Refused(refusal));
            }
        }
    }

    fn count(&self, outcome: Outcome<'_>) {
        // A name that only this frontend has used makes no series.
        let unknown = matches!(outcome, Outcome::Refused(Refusal { reason: Reason::UnknownCluster, .. }));
        let cluster = self.cluster.as_ref().filter(|cluster| !unknown && self.shared.registry.knows(cluster));
        self.shared.metrics.attempted(cluster, outcome, self.since.elapsed());
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.ended {
            tracing::debug!(to = %self.to, frontend = %self.origin, "the frontend gave up while the stream was being opened");
            self.count(Outcome::Cancelled);
        }
    }
}
