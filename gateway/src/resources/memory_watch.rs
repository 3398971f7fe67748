//! Watches without a hub: sends the changes from one snapshot to the next.
//!
//! There is no history, so a watch begins with the current snapshot or with all objects. Any other
//! version gets 410, after which clients list again. Versions are numbered so that a client that
//! has seen only a part of a snapshot's changes has a version that is not current: deletions come
//! first, with numbers that later changes exceed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api::cluster_gateway::ClusterGateway;
use api::cluster_name::ClusterName;
use api::karmada_cluster::cluster::Cluster;
use api::list_options::{InvalidListOptions, Selectors, WatchOptions};
use api::secret::ClusterSpec;
use api::served::{Form, ObjectMeta};
use api::virtual_cluster::VirtualCluster;
use api::watch_event::{Change, EventWriter};
use bytes::Bytes;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::kinds::{Gateways, KarmadaClusters, Kind, Subject};
use super::watch::{self, Queued, Watch};
use super::weight::{ENTRY, Weight};
use crate::clusters::{Cluster as Registered, Clusters, Snapshot};
use crate::error::Error;
use crate::hub::WatchPermit;
use crate::needs::RequestNeeds;

/// Interval of bookmarks, for a watcher that asked for them.
const BOOKMARKS: Duration = Duration::from_mins(1);

/// A watch of the snapshots.
pub struct MemoryWatch {
    subject: Subject,
    writer: EventWriter,
    selectors: Selectors,
    clusters: Arc<Clusters>,
    changed: Receiver<()>,
    /// The clusters that the watcher has seen.
    seen: HashMap<ClusterName, ShownVersion>,
    version: u64,
    lines: Queued,
    bookmarks: Option<Interval>,
    until: Instant,
    _permit: WatchPermit,
}

/// Enough of a cluster to detect its changes and its end. Not the cluster itself, which would stay
/// in memory while the watcher does not read.
struct ShownVersion {
    uid: String,
    version: String,
}

enum Next {
    Changed,
    Bookmark,
    Over,
}

// === impl MemoryWatch ===

impl Watch for MemoryWatch {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.lines.pop() {
                return Some(line);
            }
            match self.wait().await {
                Next::Changed => self.catch_up(),
                Next::Bookmark => self.bookmark(false),
                Next::Over => return None,
            }
        }
    }
}

impl MemoryWatch {
    /// `weight` counts the seen clusters and the waiting lines.
    pub fn begin(
        gateway: &RequestNeeds,
        subject: Subject,
        options: WatchOptions,
        form: Form,
        (weight, permit): (Weight, WatchPermit),
    ) -> Result<Self, Error> {
        // Subscribed before the snapshot is read, so that no change in between is missed.
        let mut changed = gateway.clusters.subscribe();
        changed.mark_unchanged();
        let snapshot = gateway.clusters.snapshot();
        let initial = options.wants_initial_events();
        let unset = matches!(&*options.resource_version, "" | "0");
        if !unset && !initial && options.resource_version != snapshot.resource_version() {
            return Err(Error::List(InvalidListOptions::TooOld(options.resource_version)));
        }
        let mut watch = Self {
            subject,
            writer: EventWriter::new(form),
            clusters: Arc::clone(&gateway.clusters),
            changed,
            seen: HashMap::new(),
            version: number(snapshot.resource_version()),
            lines: Queued::new(weight),
            bookmarks: options.bookmarks.then(|| {
                let mut ticks = interval_at(Instant::now() + BOOKMARKS, BOOKMARKS);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                ticks
            }),
            until: Instant::now() + watch::lifetime(options.timeout_seconds),
            selectors: options.selectors.clone(),
            _permit: permit,
        };
        if initial {
            watch.tell_local();
        }
        for cluster in watch.selected(&snapshot) {
            watch.see(cluster.spec());
            if initial {
                watch.tell(Change::Added, cluster.spec());
            }
        }
        watch.weigh();
        if options.wants_their_end() {
            watch.bookmark(true);
        }
        Ok(watch)
    }

    async fn wait(&mut self) -> Next {
        let bookmark = async {
            match &mut self.bookmarks {
                Some(ticks) => drop(ticks.tick().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.changed.changed() => if changed.is_ok() { Next::Changed } else { Next::Over },
            () = bookmark => Next::Bookmark,
            () = tokio::time::sleep_until(self.until) => Next::Over,
        }
    }

    /// Ordered by name.
    fn selected<'a>(&self, snapshot: &'a Snapshot) -> Vec<&'a Arc<Registered>> {
        let mut clusters = snapshot.ready();
        clusters.retain(|cluster| self.subject.selects(&self.selectors, cluster.spec()));
        clusters
    }

    fn see(&mut self, spec: &ClusterSpec) {
        let seen = ShownVersion { uid: spec.uid.clone(), version: spec.resource_version.clone() };
        self.seen.insert(spec.name.clone(), seen);
    }

    fn weigh(&mut self) {
        let seen = self.seen.iter().map(|(name, seen)| seen.held() + name.as_str().len()).sum();
        self.lines.keep(seen);
    }

    /// The control plane is in no snapshot.
    fn tell_local(&mut self) {
        let local = VirtualCluster::local();
        let selected = local.is_selected(&self.selectors);
        if matches!(self.subject, Subject::VirtualClusters) && selected {
            self.lines.push(self.writer.change(Change::Added, &local));
        }
    }

    fn catch_up(&mut self) {
        let snapshot = self.clusters.snapshot();
        let now = self.selected(&snapshot);
        self.tell_gone(&now);
        let is_new = |cluster: &&Arc<Registered>| {
            let version = |seen: &ShownVersion| seen.version == cluster.spec().resource_version;
            !self.seen.get(cluster.name()).is_some_and(version)
        };
        let mut changed: Vec<_> = now.into_iter().filter(is_new).collect();
        changed.sort_by_key(|cluster| number(&cluster.spec().resource_version));
        for cluster in changed {
            let is_known = self.seen.contains_key(cluster.name());
            self.tell(if is_known { Change::Modified } else { Change::Added }, cluster.spec());
            self.see(cluster.spec());
        }
        self.version = number(snapshot.resource_version());
        self.weigh();
    }

    /// Sends the deletion of clusters that are not among `now`, which is ordered.
    fn tell_gone(&mut self, now: &[&Arc<Registered>]) {
        let is_there = |name: &ClusterName| now.binary_search_by(|cluster| cluster.name().cmp(name)).is_ok();
        let mut gone: Vec<_> = self.seen.extract_if(|name, _| !is_there(name)).collect();
        gone.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (version, (name, seen)) in (self.version + 1..).zip(gone) {
            self.tell_remnant(&name, &seen.uid, &version.to_string());
        }
    }

    fn tell(&mut self, change: Change, spec: &ClusterSpec) {
        let line = match &self.subject {
            Subject::ClusterGateways(kind) => {
                self.writer.change(change, &kind.object(spec, kind.view().health_of(spec)))
            }
            Subject::KarmadaClusters(kind) => {
                self.writer.change(change, &kind.object(spec, kind.view().health_of(spec)))
            }
            Subject::VirtualClusters => self.writer.change(change, &VirtualCluster::of_spec(spec)),
        };
        self.lines.push(line);
    }

    fn tell_remnant(&mut self, name: &ClusterName, uid: &str, version: &str) {
        let metadata = ObjectMeta { name: name.as_str(), uid, resource_version: version, ..ObjectMeta::default() };
        let line = match &self.subject {
            Subject::ClusterGateways(_) => self.writer.change(Change::Deleted, &Gateways::remnant(metadata)),
            Subject::KarmadaClusters(_) => self.writer.change(Change::Deleted, &KarmadaClusters::remnant(metadata)),
            Subject::VirtualClusters => {
                self.writer.change(Change::Deleted, &VirtualCluster::remnant(metadata.name, uid, version))
            }
        };
        self.lines.push(line);
    }

    fn bookmark(&mut self, initial_events_end: bool) {
        let version = self.version.to_string();
        let line = match &self.subject {
            Subject::ClusterGateways(_) => self.writer.bookmark::<ClusterGateway<'_>>(&version, initial_events_end),
            Subject::KarmadaClusters(_) => self.writer.bookmark::<Cluster<'_>>(&version, initial_events_end),
            Subject::VirtualClusters => self.writer.bookmark::<VirtualCluster>(&version, initial_events_end),
        };
        self.lines.push(line);
    }
}

// === impl ShownVersion ===

impl ShownVersion {
    fn held(&self) -> usize {
        ENTRY + size_of::<Self>() + self.uid.len() + self.version.len()
    }
}

/// Versions of snapshots are numbers.
fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}
