//! A cluster's links in the registry, and the counts of their streams.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::time::Instant;
use tunnel::{Destination, Gauge, Link, OpenError, Stream};

use super::named::Named;
use super::permits::LinkPermit;

/// The links of one cluster, which has at least one. Cheap to clone, so that links are read without
/// the registry's lock: a link's state is behind HTTP/2's own lock, and a list of all streams takes
/// long.
#[derive(Debug, Default, Clone)]
pub(super) struct Cluster {
    pub(super) links: Arc<Vec<Arc<RegisteredLink>>>,
    pub(super) counts: Arc<Counts>,
}

/// A link in the registry.
#[derive(Debug)]
pub(super) struct RegisteredLink {
    pub(super) id: u64,
    pub(super) named: Named,
    pub(super) link: Link,
    pub(super) since: Instant,
    pub(super) streams: AtomicUsize,
    pub(super) open: Mutex<BTreeMap<u64, Open>>,
    pub(super) counts: Arc<Counts>,
    _permit: LinkPermit,
}

/// An open stream, for listings.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) to: Destination,
    pub(super) since: Instant,
    pub(super) gauge: Weak<Gauge>,
}

/// Counts of one cluster. They outlive its entry while streams or dials continue.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Streams open or being opened.
    pub(super) streams: AtomicUsize,
    /// Streams being opened.
    pub(super) dials: AtomicUsize,
    /// Index of the link at which the next choice starts, so that equal links alternate.
    pub(super) turn: AtomicUsize,
}

// === impl Cluster ===

impl Cluster {
    pub(super) fn is_usable(&self) -> bool {
        self.links.iter().any(|held| held.link.is_usable())
    }
}

// === impl RegisteredLink ===

impl RegisteredLink {
    /// A new link without streams.
    pub(super) fn new(id: u64, named: Named, link: Link, counts: Arc<Counts>, permit: LinkPermit) -> Self {
        Self {
            id,
            named,
            link,
            since: Instant::now(),
            streams: AtomicUsize::new(0),
            open: Mutex::default(),
            counts,
            _permit: permit,
        }
    }

    pub(super) async fn open(&self, to: &Destination) -> Result<Stream, OpenError> {
        self.link.open(to, None).await
    }

    pub(super) fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    pub(super) fn is_replaced_by(&self, newer: &Named) -> bool {
        self.named.agent == newer.agent
            && self.named.number == newer.number
            && self.named.credential == newer.credential
    }
}

// === impl Counts ===

impl Counts {
    pub(super) fn is_in_use(&self) -> bool {
        self.streams.load(Ordering::Relaxed) > 0 || self.dials.load(Ordering::Relaxed) > 0
    }
}
