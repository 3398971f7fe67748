//! One cluster's links.

use std::sync::Arc;

use super::registered::{Counts, RegisteredLink};

/// There for as long as it has links. Cheap to clone: whoever looks at links does it without the
/// registry's lock, for a link is asked under HTTP/2's own, and a listing of all streams takes
/// long.
#[derive(Debug, Default, Clone)]
pub(super) struct Cluster {
    pub(super) links: Arc<Vec<Arc<RegisteredLink>>>,
    pub(super) counts: Arc<Counts>,
}

// === impl Cluster ===

impl Cluster {
    pub(super) fn is_usable(&self) -> bool {
        self.links.iter().any(|held| held.link.is_usable())
    }
}
