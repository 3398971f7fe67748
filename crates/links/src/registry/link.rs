//! Adds links to the registry and removes them.

use std::sync::Arc;

use tunnel::register::Registration;
use tunnel::{ClusterName, Link, NotSent};

use super::named::{Credential, Named};
use super::permits::LinkPermit;
use super::registered::{Cluster, Counts, RegisteredLink};
use super::{Core, Registry};

/// Keeps a link in the registry until dropped.
#[derive(Debug)]
pub struct Linked {
    core: Arc<Core>,
    held: Arc<RegisteredLink>,
}

// === impl Registry ===

impl Registry {
    /// Keeps `link` in the registry as long as the returned value exists. Asks an older link with
    /// the same agent, number and credential to leave: the newest one wins, because the agent has
    /// given up the other.
    pub fn add(&self, permit: LinkPermit, named: Named, link: Link) -> Linked {
        let id = self.0.next_id();
        let (held, older) = {
            let mut clusters = self.0.clusters.write();
            let cluster = clusters.entry(named.cluster.clone()).or_insert_with(|| self.0.begun(&named.cluster));
            let older: Vec<_> = cluster.links.iter().filter(|held| held.is_replaced_by(&named)).cloned().collect();
            let held = Arc::new(RegisteredLink::new(id, named, link, Arc::clone(&cluster.counts), permit));
            Arc::make_mut(&mut cluster.links).push(Arc::clone(&held));
            self.0.metrics.link_added(&held.named.cluster);
            (held, older)
        };
        if let Some(older) = older.into_iter().find(|held| held.link.is_usable()) {
            tracing::info!(link = %older.named, id = older.id, "an older link with the same number is asked to leave");
            tokio::spawn(async move { older.link.leave().await });
        }
        self.0.changed();
        Linked { core: Arc::clone(&self.0), held }
    }

    /// Whether this registration would replace a link.
    pub(super) fn replaces(&self, registration: &Registration, credential: &Credential) -> bool {
        self.cluster(&registration.cluster).is_some_and(|cluster| {
            cluster.links.iter().any(|held| {
                *held.named.agent == *registration.agent
                    && held.named.number == registration.link
                    && held.named.credential == *credential
                    && held.link.is_usable()
            })
        })
    }
}

// === impl Core ===

impl Core {
    /// The entry of a cluster that gets its first link.
    fn begun(&self, name: &ClusterName) -> Cluster {
        let counts = self.former.lock().remove(name).and_then(|counts| counts.upgrade());
        Cluster { counts: counts.unwrap_or_default(), ..Cluster::default() }
    }

    /// Keeps the counts of a cluster that has streams or dials left, and forgets those that have
    /// ended, so that there are never more counts than streams and dials.
    fn keep_counts(&self, name: &ClusterName, counts: &Arc<Counts>) {
        let mut former = self.former.lock();
        former.retain(|_, counts| counts.upgrade().is_some_and(|counts| counts.is_in_use()));
        if counts.is_in_use() {
            former.insert(name.clone(), Arc::downgrade(counts));
        }
    }

    pub(super) fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

// === impl RegisteredLink ===

impl RegisteredLink {
    pub(super) fn passed_over(&self, why: &NotSent) {
        tracing::debug!(link = %self.named, id = self.id, %why, "link accepts no stream, trying another");
    }
}

// === impl Linked ===

impl Linked {
    /// Identifier of the link in listings.
    pub fn id(&self) -> u64 {
        self.held.id
    }

    pub fn named(&self) -> &Named {
        &self.held.named
    }

    pub fn link(&self) -> &Link {
        &self.held.link
    }

    pub fn streams(&self) -> usize {
        self.held.streams()
    }

    /// Notifies watchers that the link accepts no new streams.
    pub fn withdrawn(&self) {
        self.core.changed();
    }
}

impl Drop for Linked {
    fn drop(&mut self) {
        let name = &self.held.named.cluster;
        {
            let mut clusters = self.core.clusters.write();
            if let Some(cluster) = clusters.get_mut(name) {
                Arc::make_mut(&mut cluster.links).retain(|held| held.id != self.held.id);
                self.core.metrics.link_removed(name, cluster.links.is_empty());
                if cluster.links.is_empty() {
                    self.core.keep_counts(name, &cluster.counts);
                    clusters.remove(name);
                    self.core.recent.lock().remember(name.clone());
                }
            }
        }
        self.core.changed();
    }
}
