//! Merges two streams of the hub's events into one of `virtualclusters`.
//!
//! A name may have a Secret, a `ManagedCluster`, or both, and then the Secret counts. The reader's
//! selector applies to the merged object, so the hub cannot select. A watch that continues from a
//! version has received no event for most names. It lists all objects once, after it began, and any
//! change before that list still arrives as an event.

mod known;

use std::collections::HashMap;

use api::hub_object::{HubMeta, SecretObject};
use api::list_options::{Selectors, WatchOptions};
use api::managed_cluster::ManagedCluster;
use api::status::Status;
use api::virtual_cluster::{LOCAL, RESOURCE, VirtualCluster};
use api::watch_event::{Change, EventWriter, HubEvent};
use bytes::Bytes;

use self::known::KnownName;
use super::watch::Step;
use super::weight::ENTRY;

pub use self::known::ObjectsAtStart;

/// The source of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Secrets,
    Managed,
}

/// The merged state of one watch.
pub struct Tracker {
    writer: EventWriter,
    selectors: Selectors,
    bookmarks: bool,
    known: ObjectsAtStart,
    /// The version from which the watch continues; 0 if it begins with all objects.
    start: u64,
    names: HashMap<String, KnownName>,
    /// Bytes of the known objects.
    held: usize,
    progress: Progress,
}

/// The progress of both streams.
struct Progress {
    passed: [Option<u64>; 2],
    /// Streams whose initial events have not ended.
    beginning: [bool; 2],
    /// The end of the initial events must still be sent.
    end_due: bool,
    told: u64,
}

/// The rest of a hub's object in its last event, or if it cannot be read.
fn remnant(metadata: &HubMeta) -> VirtualCluster {
    VirtualCluster::remnant(&metadata.name, &metadata.uid, &metadata.resource_version)
}

// === impl Tracker ===

impl Tracker {
    /// `both`: there is a stream of `ManagedCluster`s, too.
    pub fn new(writer: EventWriter, options: WatchOptions, both: bool, known: ObjectsAtStart) -> Self {
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

    /// Bytes kept for all names. The `VirtualCluster` of each `ManagedCluster` is kept, because the
    /// Secret that hides it may go.
    pub fn held(&self) -> usize {
        self.held
    }

    /// The event for the hub itself, which always exists.
    pub fn local(&mut self) -> Option<Bytes> {
        let local = VirtualCluster::local();
        let selected = local.is_selected(&self.selectors);
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

    /// Calls [`Self::change`], and recounts the bytes of the name.
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

    /// `cluster` is the object of the event, if it is valid; `gone` is otherwise the rest of it.
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
        let visible = merged.filter(|cluster| cluster.is_selected(&self.selectors));
        let shown = state.shown.replace(visible.is_some());
        let event = match (visible, shown) {
            (Some(cluster), Some(false)) => Some((Change::Added, cluster)),
            (Some(cluster), None) if own => Some((change, cluster)),
            (Some(cluster), _) => Some((Change::Modified, cluster)),
            (None, Some(false)) => None,
            // Never seen by this watch. The watcher saw it before only if its selector matched the
            // last state.
            (None, None) if change == Change::Deleted && !last.is_selected(&self.selectors) => None,
            (None, None) if change == Change::Added => None,
            (None, _) => Some((Change::Deleted, last.at(&gone.resource_version))),
        };
        event.map_or(Step::Nothing, |(change, cluster)| Step::Send(self.writer.change(change, &cluster)))
    }

    /// Handles events other than changes.
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

    /// Sends a version that both streams have passed.
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
