//! Deletes complete works once their time is over (`ttlSecondsAfterFinished`): in all namespaces,
//! and regardless of who applies them. Works of sets stay, because their sets would create them
//! again.
//!
//! Upstream's work manager does the same on the hub, so this stands by while that one runs.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::time::Duration;

use delivery::condition::Condition;
use delivery::work::replica_set::SET_LABEL;
use delivery::work::{DeleteOption, end};
use futures_util::future::join_all;
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use kube::{Api, ResourceExt as _};
use net::backoff::Backoff;
use parking_lot::Mutex;
use serde::Deserialize;
use time::OffsetDateTime;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::kinds::Of;
use crate::calls::{deleting, paged};
use crate::metrics::{Metrics, Operation, SetObject};
use crate::parts::hub_calls::{LeaderClient, found};
use crate::parts::{watched, worker};
use crate::wakes::Key;

/// Works that are deleted concurrently.
const AT_ONCE: usize = 8;
/// The clock may be set, and nothing else would wake this task then.
const LONGEST_SLEEP: Duration = Duration::from_mins(10);

pub struct Expiry {
    hub: LeaderClient,
    metrics: Metrics,
    ends: Mutex<Ends>,
    more: Notify,
}

/// When works expire.
#[derive(Default)]
struct Ends {
    known: HashMap<Key, ObservedWork>,
    /// The next one comes first.
    line: BTreeSet<(OffsetDateTime, Key)>,
    /// The works in the present list so far.
    listed: Option<HashSet<Key>>,
}

/// The last known UID and version.
type ObservedVersion = (String, String);

struct ObservedWork {
    uid: String,
    /// A work is deleted only at its last known version: a change not seen yet may have postponed
    /// its end.
    version: String,
    end: OffsetDateTime,
    /// Time of its deletion: its end, or the next attempt.
    at: OffsetDateTime,
    failures: u32,
}

/// The fields that are read of a work, whose other fields may be large and deep.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Contents {
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    delete_option: Option<DeleteOption>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<Condition>,
}

/// When a work expires; none if it does not, if it is being deleted, or if the time is unreadable.
fn end_of(work: &DynamicObject) -> Option<OffsetDateTime> {
    let contents: Contents = serde_json::from_str(work.data.as_str()?).ok()?;
    let labels = work.labels().keys().map(String::as_str);
    let end = end(labels, contents.spec.delete_option.as_ref(), &contents.status.conditions);
    end.filter(|_| work.metadata.deletion_timestamp.is_none())
}

// === impl Expiry ===

impl Expiry {
    pub fn new(hub: LeaderClient, metrics: Metrics) -> Self {
        Self { hub, metrics, ends: Mutex::default(), more: Notify::new() }
    }

    /// Follows all works without a set. Never ends.
    pub async fn follow(&self) {
        let config = paged().labels(&format!("!{SET_LABEL}"));
        let take = |event: Event<DynamicObject>| {
            self.ends.lock().take(&event);
            self.more.notify_one();
        };
        watched::follow_packed(Of::Work.kind(), self.hub.client.clone(), config, take).await;
    }

    pub async fn run(&self) -> Infallible {
        loop {
            let (due, next) = self.ends.lock().due(worker::moment());
            if due.is_empty() {
                let rest = next.map_or(LONGEST_SLEEP, worker::until).min(LONGEST_SLEEP);
                tokio::select! {
                    () = sleep(rest) => {}
                    () = self.more.notified() => {}
                }
                continue;
            }
            join_all(due.into_iter().map(|(key, seen)| self.delete(key, seen))).await;
        }
    }

    async fn delete(&self, key: Key, (uid, version): ObservedVersion) {
        let (cluster, name) = &key;
        let api: Api<DynamicObject> = Api::namespaced_with(self.hub.client.clone(), cluster, &Of::Work.resource());
        match found(self.hub.write(api.delete(name, &deleting(&uid, Some(&version)))).await) {
            Ok(deleted) => {
                self.ends.lock().remove(&key);
                if deleted.is_some() {
                    self.metrics.replica_sets.wrote(SetObject::Work, Operation::Delete);
                    tracing::info!(cluster, work = name, "a work that is complete is deleted");
                }
            }
            Err(error) => {
                let after = self.ends.lock().failed(&key, worker::moment());
                // The watch is about to bring the change.
                if error.is_conflict() {
                    return;
                }
                tracing::warn!(cluster, work = name, ?after, "a work that is complete is not deleted: {error}");
            }
        }
    }
}

// === impl Ends ===

impl Ends {
    fn take(&mut self, event: &Event<DynamicObject>) {
        match event {
            Event::Init => self.listed = Some(HashSet::new()),
            Event::InitApply(work) | Event::Apply(work) => self.put(work),
            Event::InitDone => {
                let Some(listed) = self.listed.take() else { return };
                let gone: Vec<Key> = self.known.keys().filter(|key| !listed.contains(*key)).cloned().collect();
                for key in &gone {
                    self.remove(key);
                }
            }
            Event::Delete(work) => self.remove(&worker::key(work)),
        }
    }

    fn put(&mut self, work: &DynamicObject) {
        let (key, uid) = (worker::key(work), work.metadata.uid.as_deref().unwrap_or_default());
        let version = work.metadata.resource_version.clone().unwrap_or_default();
        let end = end_of(work);
        if let (Some(listed), Some(_)) = (&mut self.listed, end) {
            listed.insert(key.clone());
        }
        // Other changes do not make a repeated attempt earlier.
        if let Some(known) = self.known.get_mut(&key).filter(|known| Some(known.end) == end && known.uid == uid) {
            known.version = version;
            return;
        }
        self.remove(&key);
        if let Some(end) = end {
            self.line.insert((end, key.clone()));
            self.known.insert(key, ObservedWork { uid: uid.to_owned(), version, end, at: end, failures: 0 });
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(known) = self.known.remove(key) {
            self.line.remove(&(known.at, key.clone()));
        }
    }

    /// The works whose time is over, and the time of the first in line.
    fn due(&self, now: OffsetDateTime) -> (Vec<(Key, ObservedVersion)>, Option<OffsetDateTime>) {
        let due = self.line.iter().take_while(|(at, _)| *at <= now).take(AT_ONCE);
        let seen = |known: &ObservedWork| (known.uid.clone(), known.version.clone());
        let due = due.filter_map(|(_, key)| Some((key.clone(), seen(self.known.get(key)?))));
        (due.collect(), self.line.first().map(|(at, _)| *at))
    }

    /// Returns the wait before the next attempt.
    fn failed(&mut self, key: &Key, now: OffsetDateTime) -> Option<Duration> {
        let known = self.known.get_mut(key)?;
        let after = Backoff::OBJECT.wait(known.failures);
        known.failures = known.failures.saturating_add(1);
        self.line.remove(&(known.at, key.clone()));
        known.at = now + after;
        self.line.insert((known.at, key.clone()));
        Some(after)
    }
}

#[cfg(test)]
mod tests;
