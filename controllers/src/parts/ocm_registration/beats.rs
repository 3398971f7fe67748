//! Follows the Leases of all clusters, and computes when their agents count as silent.
//!
//! A renewal only changes a number here. A cluster is looked at when its agent falls silent, by a
//! timer, or comes back.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::Event;
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use register::csr::CLUSTER_LABEL;
use register::ocm::condition::{self, CLOCK_SYNCED};
use register::ocm::heartbeat::{Beat, LEASE, grace};
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::hub::{now_millis, renewed};
use crate::calls::{paged, watcher};
use crate::feed::follow;
use crate::raw::Bounded;
use crate::wakes::Wakes;

/// Nothing is due.
const LONG: Duration = Duration::from_hours(1);

#[derive(Default)]
pub struct Beats {
    state: Mutex<Timetable>,
    sooner: Notify,
    listed: watch::Sender<bool>,
}

#[derive(Default)]
struct Timetable {
    beats: HashMap<String, Beat>,
    /// Times at which agents fall silent, the earliest first.
    due: BTreeSet<(i64, String)>,
    at: HashMap<String, i64>,
}

// === impl Beats ===

impl Beats {
    pub async fn listed(&self) {
        // The sender lives as long as this receiver.
        let _ = self.listed.subscribe().wait_for(|listed| *listed).await;
    }

    /// State of the Lease of `name`, scheduled anew because its grace may have changed.
    pub fn of(&self, name: &str, grace: i64) -> Option<Beat> {
        let mut state = self.state.lock();
        let beat = *state.beats.get(name)?;
        state.schedule(name, beat.silent_from(grace));
        self.sooner.notify_one();
        Some(beat)
    }

    /// Takes the current Lease of a cluster. Returns whether the cluster must be looked at.
    pub fn see(&self, name: &str, renewed: i64, cluster: Option<&Value>) -> bool {
        let (grace, now) = (cluster.map_or_else(|| grace(&Value::Null), grace), now_millis());
        let was_off = cluster.is_some_and(|cluster| condition::status(cluster, CLOCK_SYNCED) == Some("False"));
        let mut state = self.state.lock();
        let before = state.beats.get(name).copied();
        let beat = match before {
            Some(before) => before.seen(renewed, now, grace),
            None => Beat::found(renewed, now, grace, was_off),
        };
        state.beats.insert(name.to_owned(), beat);
        state.schedule(name, beat.silent_from(grace));
        self.sooner.notify_one();
        before.is_none_or(|before| before.is_synced != beat.is_synced || before.silent_from(grace) <= now)
    }

    /// Takes a Lease that says no time, or cannot be read: it is not renewed. At first sight, the
    /// agent has its whole grace.
    pub fn see_unrenewed(&self, name: &str, cluster: Option<&Value>) -> bool {
        self.see_first(name, now_millis(), cluster)
    }

    /// Takes a Lease of a cluster that has none yet: of another, the watch has seen more.
    pub fn see_first(&self, name: &str, renewed: i64, cluster: Option<&Value>) -> bool {
        let is_known = self.state.lock().beats.contains_key(name);
        !is_known && self.see(name, renewed, cluster)
    }

    pub fn forget(&self, name: &str) {
        let mut state = self.state.lock();
        state.beats.remove(name);
        state.cancel(name);
    }

    /// Puts clusters into `wakes` when they fall silent. Never ends.
    pub async fn keep_time(&self, wakes: &Wakes) {
        loop {
            let wait = loop {
                let now = now_millis();
                let mut state = self.state.lock();
                let Some((at, name)) = state.due.first().cloned() else { break LONG };
                if at > now {
                    break Duration::from_millis(u64::try_from(at - now).unwrap_or(0));
                }
                state.cancel(&name);
                drop(state);
                wakes.push("", &name);
            };
            tokio::select! {
                () = sleep(wait) => {}
                () = self.sooner.notified() => {}
            }
        }
    }

    /// Follows the Leases. Never ends.
    pub async fn follow(&self, client: Client, clusters: (&Store<DynamicObject>, &ApiResource), wakes: &Wakes) {
        let only = paged().fields(&format!("metadata.name={LEASE}")).labels(CLUSTER_LABEL);
        let mut listed = BTreeSet::new();
        let apply = |event: Event<Bounded<Lease>>| match event {
            Event::Init => listed.clear(),
            Event::InitApply(lease) => {
                listed.insert(lease.namespace().unwrap_or_default());
                self.take(&lease.object, clusters, wakes);
            }
            Event::InitDone => {
                self.retain(&listed, wakes);
                self.listed.send_replace(true);
            }
            Event::Apply(lease) => self.take(&lease.object, clusters, wakes),
            Event::Delete(lease) => {
                let name = lease.namespace().unwrap_or_default();
                self.forget(&name);
                wakes.push("", &name);
            }
        };
        let events = watcher(Api::<Bounded<Lease>>::all(client), only);
        follow::each(events, "the Leases of clusters", apply).await;
    }

    fn retain(&self, listed: &BTreeSet<String>, wakes: &Wakes) {
        let gone: Vec<String> = {
            let state = self.state.lock();
            state.beats.keys().filter(|name| !listed.contains(*name)).cloned().collect()
        };
        for name in gone {
            self.forget(&name);
            wakes.push("", &name);
        }
    }

    fn take(&self, lease: &Lease, (store, resource): (&Store<DynamicObject>, &ApiResource), wakes: &Wakes) {
        let name = lease.namespace().unwrap_or_default();
        let cluster = store.get(&ObjectRef::new_with(&name, resource.clone()));
        // Copies no metadata, because this runs for each renewal and needs only fields.
        let cluster = cluster.as_ref().map(|cluster| &cluster.data);
        let is_due = match renewed(lease) {
            Some(renewed) => self.see(&name, renewed, cluster),
            None => self.see_unrenewed(&name, cluster),
        };
        if is_due {
            wakes.push("", &name);
        }
    }
}

// === impl Timetable ===

impl Timetable {
    /// Ignores a time that is past: the caller looks at the cluster now, and a timer would wake it
    /// again and again.
    fn schedule(&mut self, name: &str, at: i64) {
        self.cancel(name);
        if at <= now_millis() {
            return;
        }
        self.due.insert((at, name.to_owned()));
        self.at.insert(name.to_owned(), at);
    }

    fn cancel(&mut self, name: &str) {
        if let Some(at) = self.at.remove(name) {
            self.due.remove(&(at, name.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::reflector::store::Writer;
    use serde_json::json;

    use super::*;
    use crate::parts::hub::managed_clusters;

    #[tokio::test]
    async fn one_that_renews_is_left_alone_and_one_that_does_not_is_looked_at() {
        let (beats, wakes) = (Beats::default(), Wakes::default());
        let cluster = json!({"spec": {"leaseDurationSeconds": 60}});
        assert!(beats.see("quick", now_millis(), Some(&cluster)), "the first sight");
        beats.see("slow", now_millis() - 299_900, Some(&cluster));
        assert!(beats.see("quick", now_millis() + 1, Some(&cluster)), "its clock is told");
        assert!(!beats.see("quick", now_millis() + 2, Some(&cluster)), "nothing new but its life");
        let woken = tokio::select! {
            (_, name) = wakes.next() => name,
            () = beats.keep_time(&wakes) => String::new(),
        };
        assert_eq!(woken, "slow");
        assert!(beats.of("slow", grace(&cluster)).unwrap().silent_from(grace(&cluster)) <= now_millis());
        assert!(!beats.state.lock().at.contains_key("slow"), "who looked at it is not woken again by that");
        assert!(beats.see("slow", now_millis(), Some(&cluster)), "it is back");
        beats.forget("slow");
        assert!(beats.of("slow", grace(&cluster)).is_none());
    }

    /// Its time is one that a hub takes and this program cannot read.
    #[test]
    fn a_lease_that_cannot_be_read_is_not_renewed() {
        let (beats, wakes) = (Beats::default(), Wakes::default());
        let (resource, writer) = (managed_clusters(), Writer::<DynamicObject>::new(managed_clusters()));
        let clusters = (&writer.as_reader(), &resource);
        let lease = |name: &str| -> Bounded<Lease> {
            serde_json::from_value(json!({"metadata": {"name": LEASE, "namespace": name},
                "spec": {"renewTime": "9999-12-31T23:59:59.000000Z"}}))
            .unwrap()
        };
        let (grace, before) = (grace(&json!({})), now_millis());
        beats.take(&lease("new").object, clusters, &wakes);
        let silent = beats.of("new", grace).unwrap().silent_from(grace);
        assert!(silent >= before + grace && silent <= now_millis() + grace, "a grace from its first sight");
        beats.see("old", before - 1000, None);
        let known = beats.of("old", grace).unwrap();
        beats.take(&lease("old").object, clusters, &wakes);
        assert_eq!(beats.of("old", grace).unwrap(), known);
    }
}
