//! Watches without a hub: what changed from one snapshot to the next.
//!
//! There is no history, so a watch begins with the current snapshot or with what there is; any
//! other version is answered by 410, after which clients list anew. Versions are numbered so that
//! whoever has seen only a part of a snapshot's changes has a version that is not current:
//! deletions first, with numbers that later changes exceed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::cluster_gateway::ClusterGateway;
use api::karmada_cluster::cluster::Cluster;
use api::list_options::{InvalidListOptions, Selectors, WatchOptions};
use api::secret::ClusterSpec;
use api::served::Form;
use api::virtual_cluster::VirtualCluster;
use api::watch_event::{Change, EventWriter};
use bytes::Bytes;
use futures_util::stream::unfold;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::kinds::{Kind as _, Subject};
use super::watch::{self, Events, Queued};
use super::weight::Weight;
use crate::clusters::{Cluster as Registered, Clusters, Snapshot};
use crate::error::Error;
use crate::needs::RequestNeeds;

/// How often a watcher that asked for bookmarks gets one.
const BOOKMARKS: Duration = Duration::from_mins(1);

/// A watch of the snapshots.
pub struct MemoryWatch {
    subject: Subject,
    writer: EventWriter,
    selectors: Selectors,
    clusters: Arc<Clusters>,
    changed: Receiver<()>,
    /// What the watcher has seen, by name.
    seen: BTreeMap<String, Arc<Registered>>,
    version: u64,
    lines: Queued,
    bookmarks: Option<Interval>,
    until: Instant,
}

enum Next {
    Changed,
    Bookmark,
    Over,
}

// === impl MemoryWatch ===

impl MemoryWatch {
    /// What waits for the watcher is of this `weight`.
    pub fn begin(
        gateway: &RequestNeeds,
        subject: Subject,
        options: WatchOptions,
        form: Form,
        weight: Weight,
    ) -> Result<Self, Error> {
        // Subscribed before the first look, so that a change in between is seen.
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
            seen: BTreeMap::new(),
            version: number(snapshot.resource_version()),
            lines: Queued::new(weight),
            bookmarks: options.bookmarks.then(|| {
                let mut ticks = interval_at(Instant::now() + BOOKMARKS, BOOKMARKS);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                ticks
            }),
            until: Instant::now() + watch::lifetime(options.timeout_seconds),
            selectors: options.selectors.clone(),
        };
        watch.seen = watch.selected(&snapshot);
        if initial {
            watch.tell_local();
            watch.tell_all();
        }
        if options.wants_their_end() {
            watch.bookmark(true);
        }
        Ok(watch)
    }

    pub fn stream(self) -> Events {
        Box::pin(unfold(self, |mut watch| async move { watch.next().await.map(|line| (line, watch)) }))
    }

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

    fn selected(&self, snapshot: &Snapshot) -> BTreeMap<String, Arc<Registered>> {
        let ready = snapshot.ready().into_iter();
        let selected = ready.filter(|cluster| self.subject.selects(&self.selectors, cluster.spec()));
        selected.map(|cluster| (cluster.name().to_string(), Arc::clone(cluster))).collect()
    }

    /// The control plane is no cluster of any snapshot.
    fn tell_local(&mut self) {
        let local = VirtualCluster::local();
        let selected = self.selectors.matches(&local.name, &local.labels);
        if matches!(self.subject, Subject::VirtualClusters) && selected {
            self.lines.push(self.writer.change(Change::Added, &local));
        }
    }

    fn tell_all(&mut self) {
        let seen = std::mem::take(&mut self.seen);
        for cluster in seen.values() {
            self.tell(Change::Added, cluster.spec());
        }
        self.seen = seen;
    }

    fn catch_up(&mut self) {
        let snapshot = self.clusters.snapshot();
        let now = self.selected(&snapshot);
        let before = std::mem::take(&mut self.seen);
        let gone = before.values().filter(|cluster| !now.contains_key(cluster.name().as_str()));
        for (version, cluster) in (self.version + 1..).zip(gone) {
            self.tell(
                Change::Deleted,
                &ClusterSpec { resource_version: version.to_string(), ..cluster.spec().clone() },
            );
        }
        let mut changed: Vec<_> = now
            .values()
            .filter_map(|cluster| match before.get(cluster.name().as_str()) {
                None => Some((Change::Added, cluster)),
                Some(old) if old.spec().resource_version != cluster.spec().resource_version => {
                    Some((Change::Modified, cluster))
                }
                Some(_) => None,
            })
            .collect();
        changed.sort_by_key(|(_, cluster)| number(&cluster.spec().resource_version));
        for (change, cluster) in changed {
            self.tell(change, cluster.spec());
        }
        self.seen = now;
        self.version = number(snapshot.resource_version());
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

/// Versions of snapshots are numbers.
fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}
