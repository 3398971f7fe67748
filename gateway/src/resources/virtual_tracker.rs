//! Two streams of the hub's events merged into one about `virtualclusters`.
//!
//! A name may have a Secret, a `ManagedCluster`, or both, of which the Secret counts; and the
//! reader's labels are those of the merged object, so the hub cannot select by them. A watch that
//! goes on from a version has heard nothing of most names: it has looked at everything once, after
//! it began, and what was different before that look is still to come as an event.

use std::collections::{HashMap, HashSet};

use api::hub_object::{HubMeta, SecretObject};
use api::list_options::{Selectors, WatchOptions};
use api::managed_cluster::ManagedCluster;
use api::status::Status;
use api::virtual_cluster::{LOCAL, RESOURCE, VirtualCluster};
use api::watch_event::{Change, EventWriter, HubEvent};
use bytes::Bytes;

use super::watch::Step;
use super::weight::ENTRY;

/// Where an event comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Secrets,
    Managed,
}

/// What there was when a watch that goes on from a version had begun. Nothing for watches that
/// begin with all there is: what they have not heard of is not there.
#[derive(Default)]
pub struct Known {
    /// Names whose Secret decides.
    pub secrets: HashSet<String>,
    pub managed: HashMap<String, VirtualCluster>,
}

/// The merge of one watch.
pub struct Tracker {
    writer: EventWriter,
    selectors: Selectors,
    bookmarks: bool,
    known: Known,
    /// The version the watch goes on from; 0 if it begins with all there is.
    start: u64,
    names: HashMap<String, KnownName>,
    /// Bytes of what is known.
    held: usize,
    progress: Progress,
}

/// What is known of a name. `None` is what was not heard of.
#[derive(Default)]
struct KnownName {
    /// A Secret decides.
    secret: Option<bool>,
    managed: Managed,
    /// The watcher sees the object.
    shown: Option<bool>,
}

/// A name's `ManagedCluster`.
#[derive(Default)]
enum Managed {
    #[default]
    Unheard,
    /// There is none that could be shown.
    Absent,
    There(VirtualCluster),
}

/// How far both streams have come.
struct Progress {
    passed: [Option<u64>; 2],
    /// Streams whose initial events have not ended.
    beginning: [bool; 2],
    /// The end of the initial events is still to be sent.
    end_due: bool,
    told: u64,
}

/// What is left of an object of the hub in an event that is its end, or that cannot be read.
fn remnant(metadata: &HubMeta) -> VirtualCluster {
    VirtualCluster::remnant(&metadata.name, &metadata.uid, &metadata.resource_version)
}

// === impl Tracker ===

impl Tracker {
    /// `both`: there is a stream of `ManagedCluster`s too.
    pub fn new(writer: EventWriter, options: WatchOptions, both: bool, known: Known) -> Self {
        let end_due = options.wants_their_end();
        let progress = Progress {
            passed: [None, if both { None } else { Some(u64::MAX) }],
            beginning: [end_due, end_due && both],
            end_due,
            told: 0,
        };
        let WatchOptions { selectors, bookmarks, resource_version, .. } = options;
        let start = resource_version.parse().unwrap_or(0);
        let held = known.held();
        Self { writer, selectors, bookmarks, known, start, names: HashMap::new(), held, progress }
    }

    /// Bytes that it keeps of all names: of each `ManagedCluster` the whole object, for the day on
    /// which no Secret hides it.
    pub fn held(&self) -> usize {
        self.held
    }

    /// The hub itself, which is there from the beginning.
    pub fn local(&mut self) -> Option<Bytes> {
        let local = VirtualCluster::local();
        let selected = self.selectors.matches(&local.name, &local.labels);
        selected.then(|| self.writer.change(Change::Added, &local))
    }

    pub fn line(&mut self, source: Source, line: &[u8]) -> Step {
        match source {
            Source::Secrets => match HubEvent::<SecretObject>::parse(line) {
                Ok(HubEvent::Change(change, secret)) => {
                    let cluster = VirtualCluster::of_secret(&secret.view()).ok();
                    self.counted(source, change, cluster, &remnant(&secret.metadata))
                }
                other => self.rest(source, other.map(|event| event.map(|_| ()))),
            },
            Source::Managed => match HubEvent::<ManagedCluster>::parse(line) {
                Ok(HubEvent::Change(change, managed)) => {
                    let cluster = VirtualCluster::of_managed(&managed).ok();
                    self.counted(source, change, cluster, &remnant(&managed.metadata))
                }
                other => self.rest(source, other.map(|event| event.map(|_| ()))),
            },
        }
    }

    /// [`Self::change`], after which what is known of the name counts as it is then.
    fn counted(
        &mut self,
        source: Source,
        change: Change,
        cluster: Option<VirtualCluster>,
        gone: &VirtualCluster,
    ) -> Step {
        let before = self.held_of(&gone.name);
        let step = self.change(source, change, cluster, gone);
        self.held = self.held - before + self.held_of(&gone.name);
        step
    }

    fn held_of(&self, name: &str) -> usize {
        let unheard = self.known.managed.get(name).map_or(0, VirtualCluster::held);
        unheard + self.names.get(name).map_or(0, |known| ENTRY + name.len() + known.held())
    }

    /// `cluster`: the object of the event, if it is one; `gone` is what is left of it otherwise.
    fn change(
        &mut self,
        source: Source,
        change: Change,
        cluster: Option<VirtualCluster>,
        gone: &VirtualCluster,
    ) -> Step {
        self.progress.passed(source, &gone.resource_version);
        if gone.name == LOCAL || !self.selectors.matches_name(&gone.name) {
            return Step::Nothing;
        }
        let last = cluster.clone().unwrap_or_else(|| gone.clone());
        let there = cluster.filter(|_| change != Change::Deleted);
        let state = self.names.entry(gone.name.clone()).or_default();
        let own = there.is_some();
        let merged = match source {
            Source::Secrets => {
                if change == Change::Added && state.shown.is_none() {
                    state.shown = self.known.shown_at(self.start, &gone.name, &self.selectors);
                }
                state.secret = Some(own);
                there.or_else(|| state.managed(&mut self.known, &gone.name))
            }
            Source::Managed => {
                state.managed = there.clone().into();
                if *state.secret.get_or_insert_with(|| self.known.secrets.contains(&gone.name)) {
                    return Step::Nothing;
                }
                there
            }
        };
        let visible = merged.filter(|cluster| self.selectors.matches(&cluster.name, &cluster.labels));
        let shown = state.shown.replace(visible.is_some());
        let event = match (visible, shown) {
            (Some(cluster), Some(false)) => Some((Change::Added, cluster)),
            (Some(cluster), None) if own => Some((change, cluster)),
            (Some(cluster), _) => Some((Change::Modified, cluster)),
            (None, Some(false)) => None,
            // Never seen by this watch: seen before only if what it was then was selected.
            (None, None) if change == Change::Deleted && !self.selectors.matches(&last.name, &last.labels) => None,
            (None, None) if change == Change::Added => None,
            (None, _) => Some((Change::Deleted, last.at(&gone.resource_version))),
        };
        event.map_or(Step::Nothing, |(change, cluster)| Step::Send(self.writer.change(change, &cluster)))
    }

    /// What is no change of an object.
    fn rest(&mut self, source: Source, event: Result<HubEvent<()>, api::watch_event::InvalidEvent>) -> Step {
        match event {
            Ok(HubEvent::Bookmark { resource_version, initial_events_end }) => {
                self.progress.passed(source, &resource_version);
                if initial_events_end {
                    self.progress.beginning[source as usize] = false;
                }
                self.bookmark()
            }
            Ok(HubEvent::Error(status)) => {
                let theirs = if source == Source::Secrets { "secrets" } else { "managedclusters" };
                Step::Last(EventWriter::error(&status.into_status(theirs, RESOURCE)))
            }
            Ok(HubEvent::Change(..)) => Step::Nothing,
            Err(error) => Step::Last(EventWriter::error(&Status::internal_error(&error.to_string()))),
        }
    }

    /// Tells a version that both streams have passed.
    fn bookmark(&mut self) -> Step {
        let progress = &mut self.progress;
        let Some(version) = progress.version() else { return Step::Nothing };
        let ends = progress.end_due && progress.beginning == [false, false];
        let due = ends || (self.bookmarks && !progress.end_due && version > progress.told);
        if !due {
            return Step::Nothing;
        }
        progress.told = version;
        progress.end_due = false;
        Step::Send(self.writer.bookmark::<VirtualCluster>(&version.to_string(), ends))
    }
}

// === impl Known ===

impl Known {
    fn held(&self) -> usize {
        let secrets = self.secrets.iter().map(|name| ENTRY + name.len()).sum::<usize>();
        secrets + self.managed.values().map(VirtualCluster::held).sum::<usize>()
    }

    /// Whether a watcher from `start` saw the `ManagedCluster` of this name, which a first Secret
    /// now hides. `None` if it was written since: then it may be new as well.
    fn shown_at(&self, start: u64, name: &str, selectors: &Selectors) -> Option<bool> {
        let cluster = self.managed.get(name)?;
        let version: u64 = cluster.resource_version.parse().ok()?;
        (version <= start).then(|| selectors.matches(&cluster.name, &cluster.labels))
    }
}

// === impl KnownName ===

impl KnownName {
    fn held(&self) -> usize {
        let object = if let Managed::There(cluster) = &self.managed { cluster.held() } else { 0 };
        size_of::<Self>() + object
    }

    fn managed(&mut self, known: &mut Known, name: &str) -> Option<VirtualCluster> {
        if matches!(self.managed, Managed::Unheard) {
            self.managed = known.managed.remove(name).into();
        }
        match &self.managed {
            Managed::There(cluster) => Some(cluster.clone()),
            Managed::Unheard | Managed::Absent => None,
        }
    }
}

// === impl Managed ===

impl From<Option<VirtualCluster>> for Managed {
    fn from(cluster: Option<VirtualCluster>) -> Self {
        cluster.map_or(Self::Absent, Self::There)
    }
}

// === impl Progress ===

impl Progress {
    fn passed(&mut self, source: Source, version: &str) {
        let passed = &mut self.passed[source as usize];
        *passed = version.parse().ok().max(*passed);
    }

    fn version(&self) -> Option<u64> {
        let [secrets, managed] = self.passed;
        Some(secrets?.min(managed?))
    }
}

#[cfg(test)]
mod tests;
