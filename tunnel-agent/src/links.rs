//! The usable links of the process, from all keepers: which servers are linked, and whether that is
//! enough.
//!
//! The connector's keepers make links independently, and check here whether one more is wanted. The
//! lock is never held for long.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use telemetry::readiness::{NotReady, Readiness};
use tokio::sync::watch;
use tunnel::Serving;

/// Name of the readiness condition that waits for the first link.
pub const CONDITION: &str = "links";
/// With fewer servers, the loss of one disconnects the cluster.
pub const FEWEST_SERVERS: usize = 2;

/// The usable links.
#[derive(Debug)]
pub struct Links {
    /// Links to keep to each server.
    per_server: usize,
    inner: Mutex<Inner>,
    /// Counts changes.
    changed: watch::Sender<u64>,
    readiness: Readiness,
}

#[derive(Debug)]
struct Inner {
    next: u64,
    links: BTreeMap<u64, Entry>,
    /// Numbers of links in use, including leaving ones.
    numbers: BTreeSet<u16>,
    /// By keeper, the links it wants to have now.
    wanted: HashMap<u64, usize>,
    not_ready: Option<NotReady>,
}

#[derive(Debug)]
struct Entry {
    server: Arc<str>,
    keeper: u64,
    serving: Serving,
}

/// A usable link, until dropped: before it is asked to leave, or when it has ended.
#[derive(Debug)]
pub struct Usable {
    links: Arc<Links>,
    /// Increases with each link.
    id: u64,
}

/// A link's number within the process, until dropped. No two links share one, so that no server
/// takes one for the other's replacement.
#[derive(Debug)]
pub struct Number {
    links: Arc<Links>,
    number: u16,
}

/// The links in numbers, for people and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    pub links: usize,
    pub wanted: usize,
    pub servers: usize,
    /// The longest round trip.
    pub slowest: Option<Duration>,
}

// === impl Links ===

impl Links {
    pub fn new(per_server: usize, readiness: &Readiness) -> Arc<Self> {
        let not_ready = Some(readiness.block(CONDITION));
        let inner =
            Inner { next: 0, links: BTreeMap::new(), numbers: BTreeSet::new(), wanted: HashMap::new(), not_ready };
        Arc::new(Self {
            per_server,
            inner: Mutex::new(inner),
            changed: watch::Sender::new(0),
            readiness: readiness.clone(),
        })
    }

    pub fn per_server(&self) -> usize {
        self.per_server
    }

    /// Admits a link; none if its server has enough, unless the link replaces another one.
    pub fn admit(
        self: &Arc<Self>,
        keeper: u64,
        server: &Arc<str>,
        serving: &Serving,
        stands_in: bool,
    ) -> Option<Usable> {
        let mut inner = self.inner.lock();
        if !stands_in && inner.to(server) >= self.per_server {
            return None;
        }
        let id = inner.next;
        inner.next += 1;
        inner.links.insert(id, Entry { server: Arc::clone(server), keeper, serving: serving.clone() });
        inner.not_ready = None;
        drop(inner);
        self.changed.send_modify(|count| *count += 1);
        Some(Usable { links: Arc::clone(self), id })
    }

    /// The lowest free number; none if all are taken, which no realistic number of links
    /// approaches.
    pub fn number(self: &Arc<Self>) -> Option<Number> {
        let mut inner = self.inner.lock();
        let number = (0..=u16::MAX).find(|number| !inner.numbers.contains(number))?;
        inner.numbers.insert(number);
        Some(Number { links: Arc::clone(self), number })
    }

    /// Whether one more link through `keeper` may be useful: there are too few servers, or one that
    /// was reached through this keeper has too few links. Behind a load balancer, the only way to
    /// know is to try.
    pub fn wants_more_through(&self, keeper: u64) -> bool {
        let inner = self.inner.lock();
        let here: BTreeSet<_> =
            inner.links.values().filter(|link| link.keeper == keeper).map(|link| &link.server).collect();
        inner.servers() < FEWEST_SERVERS || here.into_iter().any(|server| inner.to(server) < self.per_server)
    }

    /// A point in time, for [`Links::has_other`].
    pub fn mark(&self) -> u64 {
        self.inner.lock().next
    }

    /// Whether there is a usable link to another server, or one that is newer than the mark
    /// `since`.
    pub fn has_other(&self, server: &str, since: u64) -> bool {
        self.inner.lock().links.iter().any(|(id, link)| *id >= since || &*link.server != server)
    }

    /// Sets the number of links that `keeper` wants, for the summary; none when the keeper is gone.
    pub fn wanted_through(&self, keeper: u64, wanted: Option<usize>) {
        let mut inner = self.inner.lock();
        match wanted {
            Some(wanted) => inner.wanted.insert(keeper, wanted),
            None => inner.wanted.remove(&keeper),
        };
    }

    /// Changes whenever a link comes or goes.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub fn summary(&self) -> Summary {
        let inner = self.inner.lock();
        let links = inner.links.len();
        Summary {
            links,
            wanted: inner.wanted.values().sum::<usize>().max(links),
            servers: inner.servers(),
            slowest: inner.links.values().filter_map(|link| link.serving.rtt()).max(),
        }
    }
}

// === impl Inner ===

impl Inner {
    fn to(&self, server: &Arc<str>) -> usize {
        self.links.values().filter(|link| link.server == *server).count()
    }

    fn servers(&self) -> usize {
        self.links.values().map(|link| &link.server).collect::<BTreeSet<_>>().len()
    }
}

// === impl Usable ===

impl Usable {
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Usable {
    fn drop(&mut self) {
        let mut inner = self.links.inner.lock();
        inner.links.remove(&self.id);
        if inner.links.is_empty() {
            inner.not_ready.get_or_insert_with(|| self.links.readiness.block(CONDITION));
        }
        drop(inner);
        self.links.changed.send_modify(|count| *count += 1);
    }
}

// === impl Number ===

impl Number {
    pub fn get(&self) -> u16 {
        self.number
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        self.links.inner.lock().numbers.remove(&self.number);
    }
}

#[cfg(test)]
mod tests;
