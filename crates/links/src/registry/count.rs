//! Counts streams and dials; a drop uncounts them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use net::permit::{self, Permit};
use tokio::time::Instant;
use tunnel::{ClusterName, Destination, Gauge, Hop, Reason, Refusal};

use super::Core;
use super::registered::{Counts, Open, RegisteredLink};

/// One stream, counted from the choice of its link to the drop of its gauge.
///
/// Its three counts are no [`Permit`]s, because of their order: the last one wakes the drain, which
/// may run only when the stream is in none of them.
#[derive(Debug)]
pub(super) struct Counted {
    core: Arc<Core>,
    held: Arc<RegisteredLink>,
    counts: Arc<Counts>,
    to: Destination,
    id: u64,
    /// Whether the stream is open, and so in the listing.
    listed: bool,
}

// === impl Counted ===

impl Counted {
    pub(super) fn begin(core: &Arc<Core>, held: &Arc<RegisteredLink>, to: &Destination) -> Result<Self, Refusal> {
        let cluster = &held.named.cluster;
        let counts = Arc::clone(&held.counts);
        if !permit::raise(&core.streams, core.limits.streams) {
            return Err(full(format!(
                "this tunnel-server has {} streams open, which is its limit",
                core.limits.streams
            )));
        }
        if !permit::raise(&counts.streams, core.limits.streams_per_cluster) {
            core.lower_streams();
            let most = core.limits.streams_per_cluster;
            return Err(full(format!(
                "cluster \"{cluster}\" has {most} streams open, which is the limit of one cluster"
            )));
        }
        held.streams.fetch_add(1, Ordering::Relaxed);
        let id = core.next_id();
        Ok(Self { core: Arc::clone(core), held: Arc::clone(held), counts, to: to.clone(), id, listed: false })
    }

    /// The gauge of the stream, which is open now. A drop of the gauge means that the stream has
    /// ended.
    pub(super) fn gauge(mut self) -> Arc<Gauge> {
        let gauge = Arc::new(Gauge::default());
        let open = Open { to: self.to.clone(), since: Instant::now(), gauge: Arc::downgrade(&gauge) };
        self.held.open.lock().insert(self.id, open);
        self.listed = true;
        // A new gauge has no value yet, so this cannot fail.
        let _ = gauge.keeps.set(Box::new(self));
        gauge
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if self.listed {
            self.held.open.lock().remove(&self.id);
        }
        self.held.streams.fetch_sub(1, Ordering::Relaxed);
        self.counts.streams.fetch_sub(1, Ordering::Relaxed);
        self.core.lower_streams();
    }
}

/// A permit to open one more stream of `cluster`. `None`: the cluster has no link.
pub(super) fn dialling(core: &Core, cluster: &ClusterName) -> Result<Option<Permit<Counts>>, Refusal> {
    let Some(counts) = core.clusters.read().get(cluster).map(|cluster| Arc::clone(&cluster.counts)) else {
        return Ok(None);
    };
    let most = core.limits.dials_per_cluster;
    let permit = Permit::within(counts, |counts| &counts.dials, most).ok_or_else(|| {
        full(format!(
            "{most} streams of cluster \"{cluster}\" are being opened, which is the limit: its destinations or its agents do not \
             answer"
        ))
    })?;
    Ok(Some(permit))
}

// === impl Core ===

impl Core {
    fn lower_streams(&self) {
        if self.streams.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.fewer.notify_waiters();
        }
    }

    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed) + 1
    }
}

fn full(message: String) -> Refusal {
    Refusal::new(Hop::Server, Reason::Limit, message)
}
