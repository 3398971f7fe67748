//! One cluster's links and what its streams are counted by.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::link::Held;

/// There for as long as it has links. Cheap to clone: whoever looks at links does it without the registry's lock, for a link is asked
/// under HTTP/2's own, and a listing of all streams takes long.
#[derive(Debug, Default, Clone)]
pub(super) struct Cluster {
    pub(super) links: Arc<Vec<Arc<Held>>>,
    pub(super) counts: Arc<Counts>,
}

/// Outlives the cluster's entry while streams or dials go on.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Streams open or being opened.
    pub(super) streams: AtomicUsize,
    /// Streams being opened.
    pub(super) dials: AtomicUsize,
    /// Where the next choice begins, so that equal links take turns.
    pub(super) turn: AtomicUsize,
}

// === impl Cluster ===

impl Cluster {
    pub(super) fn is_usable(&self) -> bool {
        self.links.iter().any(|held| held.link.is_usable())
    }
}

// === impl Counts ===

impl Counts {
    pub(super) fn is_in_use(&self) -> bool {
        self.streams.load(Ordering::Relaxed) > 0 || self.dials.load(Ordering::Relaxed) > 0
    }
}
