//! Watches of the kinds that a choice depends on. They update the world and fill the queue.

use std::borrow::Cow;
use std::collections::HashSet;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use kube::{Api, ResourceExt as _};
use net::words::causes;
use placement::objects::SET_LABEL;
use register::ocm::taints::{UNAVAILABLE, UNREACHABLE};
use serde_json::{Value, json};
use telemetry::readiness::Readiness;
use time::OffsetDateTime;
use tokio::time::timeout;

use super::kinds::Of;
use super::scheduler::Scheduler;
use super::world::{Woken, World, key};
use super::{Shared, UNLISTED, watched, worker};
use crate::calls::{paged, value};
use crate::feed::crd::{self, Presence};
use crate::parts;
use crate::parts::catch_up::{Followed, WATCH};
use crate::raw::{self, RawObject, large};
use crate::wakes::Key;

/// Taints that count of a cluster that is too large.
const MOST_TAINTS: usize = 64;
/// Interval of the checks whether an optional kind is served.
const LOOKS: Duration = Duration::from_secs(2);

/// Completes when every required kind is listed, and scores too unless the hub lacks that kind.
pub async fn listed(shared: &Shared, readiness: &Readiness) {
    for of in Of::ALL {
        tokio::select! {
            () = watched::listed(&shared.listed[of.index()], of.kind(), readiness, UNLISTED) => {}
            () = absent(shared, of), if of == Of::Score => {}
        }
    }
}

/// Completes when a kind is known to be absent: its definition does not exist, or, if the
/// definition cannot be read, discovery says that the hub does not serve the kind.
async fn absent(shared: &Shared, of: Of) {
    let mut presence = crd::follow(of.kind(), shared.hub.client.clone());
    loop {
        let known = *presence.borrow_and_update();
        if known == Presence::Leaving {
            return;
        }
        if known == Presence::Unknown && crd::is_absent(of.kind(), &shared.hub.client).await {
            return;
        }
        // Checks again after the interval even without an event.
        let _ = timeout(LOOKS, presence.changed()).await;
    }
}

/// Versions that each kind's watch has seen, by [`Of::index`].
pub type AllFollowed = [Followed; Of::ALL.len()];

/// Completes when everything that was listed is as current as the hub.
pub async fn catch_up(shared: &Shared, all: &AllFollowed) {
    let moving = Of::ALL.into_iter().filter(|of| of.moves());
    join_all(moving.map(|of| async move {
        all[of.index()].catch_up(&Api::all_with(shared.hub.client.clone(), &of.resource())).await;
    }))
    .await;
}

/// Follows all kinds. Never ends.
pub async fn follow(shared: &Shared, scheduler: &Scheduler, all: &AllFollowed, writer: Writer<DynamicObject>) {
    let mut writer = Some(writer);
    join_all(Of::ALL.map(|of| {
        let (followed, placements) = (&all[of.index()], if of == Of::Placement { writer.take() } else { None });
        Follower { shared, scheduler, of, followed, placements, listing: HashSet::new(), was_leaving: false }.run()
    }))
    .await;
}

/// Follows one kind.
struct Follower<'a> {
    shared: &'a Shared,
    scheduler: &'a Scheduler,
    of: Of,
    followed: &'a Followed,
    /// Store that the queue reads Placements from.
    placements: Option<Writer<DynamicObject>>,
    /// Keys of the current list so far.
    listing: HashSet<Key>,
    /// The definition was being deleted, and the kind has not been listed since.
    was_leaving: bool,
}

// === impl Follower ===

impl Follower<'_> {
    async fn run(mut self) {
        let (kind, client) = (self.of.kind(), self.shared.hub.client.clone());
        let mut presence = crd::follow(kind, client.clone());
        loop {
            // The sender lives as long as this receiver.
            let _ = presence.wait_for(|presence| *presence != Presence::Leaving).await;
            let resource = tokio::select! {
                resource = crd::served(kind, &client) => resource,
                () = crd::leaves(&mut presence) => {
                    self.leave();
                    continue;
                }
            };
            let followed = self.followed;
            tokio::select! {
                biased;
                () = followed.again() => continue,
                () = self.watch(&resource) => {}
                () = crd::leaves(&mut presence) => {}
            }
            self.leave();
        }
    }

    async fn watch(&mut self, resource: &ApiResource) {
        let api: Api<RawObject> = Api::all_with(self.shared.hub.client.clone(), resource);
        let config = paged().timeout(WATCH);
        let mut events = pin!(raw::watcher(api, config).default_backoff());
        while let Some(event) = events.next().await {
            match event {
                // Deletions of objects may arrive before the deletion of their kind's definition.
                Ok(Event::Delete(_)) if self.of.is_guarded() && self.is_leaving().await => return,
                Ok(event) => self.take(event),
                Err(error) => tracing::warn!(error = causes(&error), "cannot watch {}", self.of.kind().name),
            }
        }
    }

    async fn is_leaving(&self) -> bool {
        crd::is_leaving(self.of.kind(), &self.shared.hub.client).await
    }

    /// Handles the deletion of the kind's definition. A kind that was never listed has no known
    /// objects.
    fn leave(&mut self) {
        if *self.shared.listed[self.of.index()].borrow() {
            self.was_leaving = true;
            self.hold();
        }
    }

    fn hold(&self) {
        if self.of.is_guarded() {
            let kind = self.of.kind().name;
            tracing::error!(
                kind,
                "a definition was being deleted: for 10 minutes decisions keep the clusters that left"
            );
            self.shared.world.write().hold(worker::moment());
        }
    }

    fn take(&mut self, event: Event<DynamicObject>) {
        self.followed.see(&event);
        match &event {
            Event::Init => {
                self.listing.clear();
                self.shared.world.write().begin_list(self.of);
            }
            Event::InitApply(object) => {
                self.listing.insert(worker::key(object));
                self.put(object, World::put_listed);
            }
            Event::Apply(object) => self.put(object, World::put),
            Event::InitDone => {
                if std::mem::take(&mut self.was_leaving) {
                    self.hold();
                }
                let listing = std::mem::take(&mut self.listing);
                let unlisted = self.shared.world.read().unlisted(self.of, &listing);
                for key in &unlisted {
                    self.remove(key, None);
                }
            }
            Event::Delete(object) => self.remove(&worker::key(object), object.resource_version().as_deref()),
        }
        let is_listed = matches!(event, Event::InitDone);
        if let Some(writer) = &mut self.placements {
            writer.apply_watcher_event(&event.modify(watched::name_only));
        }
        if is_listed {
            self.shared.listed[self.of.index()].send_replace(true);
        }
    }

    fn put(&self, object: &DynamicObject, put: fn(&mut World, Of, Value, OffsetDateTime) -> Woken) {
        let small = if self.of == Of::Cluster { small(object) } else { Ok(Cow::Borrowed(object)) };
        let small = match small {
            Ok(small) => small,
            Err(why) => {
                parts::tell_too_large(&self.scheduler.events, object, &why);
                let decided = decided(object);
                let woken = self.change("", |world, now| world.put_large_cluster(decided, now));
                return self.wake(woken);
            }
        };
        let mut object = value(&small);
        if !matches!(self.of, Of::Decision | Of::Placement) {
            forget_writers(&mut object);
        }
        let (namespace, _) = key(&object);
        let woken = self.change(&namespace, |world, now| put(world, self.of, object, now));
        self.wake(woken);
    }

    fn remove(&self, key: &Key, version: Option<&str>) {
        let woken = self.change(&key.0, |world, now| world.remove(self.of, key, version, now));
        if self.of == Of::Placement && self.shared.world.read().placement(key).is_none() {
            self.scheduler.forget(key);
        }
        self.wake(woken);
    }

    /// Applies `change`. Logs an error if that begins a hold, in `namespace` or, for kinds without
    /// namespaces, everywhere.
    fn change(&self, namespace: &str, change: impl FnOnce(&mut World, OffsetDateTime) -> Woken) -> Woken {
        let now = worker::moment();
        let mut world = self.shared.world.write();
        let was_held = world.holds(namespace, now).is_some();
        let woken = change(&mut world, now);
        let is_held = world.holds(namespace, now).is_some();
        drop(world);
        if is_held && !was_held {
            let kind = self.of.kind().name;
            tracing::error!(
                kind,
                namespace,
                "many disappeared at once: for 10 minutes decisions keep the clusters that left"
            );
        }
        woken
    }

    fn wake(&self, woken: Woken) {
        for (namespace, name) in woken {
            self.shared.wakes.push(&namespace, &name);
        }
    }
}

/// A cluster, without its certificates if they make it more than is kept of one. An error says why
/// it is that all the same.
fn small(cluster: &DynamicObject) -> Result<Cow<'_, DynamicObject>, String> {
    if large::excess(cluster).is_none() {
        return Ok(Cow::Borrowed(cluster));
    }
    let mut smaller = cluster.clone();
    let configs = smaller.data.pointer_mut("/spec/managedClusterClientConfigs").and_then(Value::as_array_mut);
    for config in configs.into_iter().flatten().filter_map(Value::as_object_mut) {
        config.remove("caBundle");
    }
    large::excess(&smaller).map_or(Ok(Cow::Owned(smaller)), Err)
}

/// What administrators, and the hub's controllers, decide about a cluster. Labels and taints that
/// could not be read are null.
fn decided(cluster: &DynamicObject) -> Value {
    let taints = match cluster.data.pointer("/spec/taints") {
        None | Some(Value::Null) => json!([]),
        Some(Value::Array(all)) => {
            // An agent must not push out that of the hub.
            let is_hubs = |taint: &&Value| taint["key"] == UNREACHABLE || taint["key"] == UNAVAILABLE;
            let (hubs, others): (Vec<&Value>, Vec<&Value>) = all.iter().partition(is_hubs);
            hubs.into_iter().chain(others).take(MOST_TAINTS).cloned().collect()
        }
        Some(_) => Value::Null,
    };
    let is_labelled = large::marked(cluster).is_none() || !cluster.labels().is_empty();
    let set = cluster.labels().get(SET_LABEL);
    let labels = set.map_or_else(|| json!({}), |set| json!({SET_LABEL: set}));
    json!({
        "metadata": {
            "name": cluster.name_any(),
            "deletionTimestamp": cluster.metadata.deletion_timestamp,
            "labels": is_labelled.then_some(labels),
        },
        "spec": {"taints": taints},
    })
}

/// Who wrote what is asked of decisions and of Placements' status alone. No expression sees it;
/// upstream's do.
fn forget_writers(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(bundle: usize, message: usize) -> DynamicObject {
        let mut cluster = DynamicObject::new("c1", &Of::Cluster.resource());
        cluster.data = json!({"spec": {"managedClusterClientConfigs": [{"url": "https://c1", "caBundle": "b".repeat(bundle)}]},
            "status": {"conditions": [{"type": "T", "message": "m".repeat(message)}]}});
        cluster
    }

    /// An agent may fill its own conditions; certificates may be large for good reasons.
    #[test]
    fn certificates_make_no_cluster_too_large_and_conditions_do() {
        let usual = cluster(1000, 1000);
        assert_eq!(*small(&usual).unwrap(), usual);
        let kept = small(&cluster(100 << 10, 1000)).unwrap().into_owned();
        assert_eq!(kept.data["spec"], json!({"managedClusterClientConfigs": [{"url": "https://c1"}]}));
        assert_eq!(kept.data["status"], usual.data["status"]);
        assert!(small(&cluster(1000, 100 << 10)).unwrap_err().contains("16 KiB"), "it is new");
    }
}
