//! The watches, and what they put into the queue.

use std::collections::HashSet;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt as _};
use serde_json::Value;
use tokio::time::timeout;

use super::kinds::Of;
use super::scheduler::{Scheduler, moment};
use super::world::Woken;
use super::{Shared, worker};
use crate::calls::value;
use crate::feed::crd::{self, Presence};
use crate::wakes::Key;

/// Objects of one answer of a list: an agent may make its own `ManagedCluster` large.
const PAGE: u32 = 100;
/// For the list of a kind that nobody need have, while nothing says that it is not there.
const PATIENCE: Duration = Duration::from_secs(10);

/// Completes when everything was listed that has to be there, and scores if there are any.
pub async fn listed(shared: &Shared) {
    for of in Of::ALL {
        let mut listed = shared.listed[of.index()].subscribe();
        // The senders live as long as this does.
        let listed = async { drop(listed.wait_for(|listed| *listed).await) };
        if of == Of::Score {
            tokio::select! {
                () = listed => {}
                () = absent(shared, of) => {}
            }
        } else {
            listed.await;
        }
    }
}

/// Completes when a kind is known not to be there.
async fn absent(shared: &Shared, of: Of) {
    let mut presence = crd::follow(of.kind(), shared.hub.client.clone());
    let known = presence.wait_for(|presence| *presence != Presence::Unknown);
    let is_there = match timeout(PATIENCE, known).await {
        Ok(Ok(presence)) => *presence == Presence::There,
        Ok(Err(_)) | Err(_) => false,
    };
    if is_there {
        std::future::pending::<()>().await;
    }
}

/// Follows all kinds. Never ends.
pub async fn follow(shared: &Shared, scheduler: &Scheduler, writer: Writer<DynamicObject>) {
    let mut writer = Some(writer);
    join_all(Of::ALL.map(|of| {
        let placements = if of == Of::Placement { writer.take() } else { None };
        Follower { shared, scheduler, of, placements, listing: HashSet::new() }.run()
    }))
    .await;
}

/// Follows one kind.
struct Follower<'a> {
    shared: &'a Shared,
    scheduler: &'a Scheduler,
    of: Of,
    /// What the queue takes its objects from.
    placements: Option<Writer<DynamicObject>>,
    /// What a list had so far.
    listing: HashSet<Key>,
}

// === impl Follower ===

impl Follower<'_> {
    async fn run(mut self) {
        let (kind, client) = (self.of.kind(), self.shared.hub.client.clone());
        let mut presence = crd::follow(kind, client.clone());
        loop {
            // The sender lives as long as this does.
            let _ = presence.wait_for(|presence| *presence != Presence::Leaving).await;
            let resource = tokio::select! {
                resource = crd::served(kind, &client) => resource,
                () = crd::leaves(&mut presence) => continue,
            };
            tokio::select! {
                () = self.watch(&resource) => {}
                () = crd::leaves(&mut presence) => {}
            }
        }
    }

    async fn watch(&mut self, resource: &ApiResource) {
        let api: Api<DynamicObject> = Api::all_with(self.shared.hub.client.clone(), resource);
        let config = watcher::Config::default().page_size(PAGE);
        let mut events = pin!(watcher::watcher(api, config).default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => self.take(event),
                Err(error) => tracing::warn!(%error, kind = self.of.kind().name, "cannot watch"),
            }
        }
    }

    fn take(&mut self, event: Event<DynamicObject>) {
        match &event {
            Event::Init => self.listing.clear(),
            Event::InitApply(object) => {
                self.listing.insert(worker::key(object));
                self.put(object);
            }
            Event::Apply(object) => self.put(object),
            Event::InitDone => {
                let listing = std::mem::take(&mut self.listing);
                let known = self.shared.world.read().keys(self.of);
                known.iter().filter(|key| !listing.contains(key)).for_each(|key| self.remove(key, None));
            }
            Event::Delete(object) => self.remove(&worker::key(object), object.resource_version().as_deref()),
        }
        let is_listed = matches!(event, Event::InitDone);
        if let Some(writer) = &mut self.placements {
            writer.apply_watcher_event(&event.modify(prune));
        }
        if is_listed {
            self.shared.listed[self.of.index()].send_replace(true);
        }
    }

    fn put(&self, object: &DynamicObject) {
        let mut object = value(object);
        if !matches!(self.of, Of::Decision | Of::Placement) {
            forget_writers(&mut object);
        }
        let woken = self.shared.world.write().put(self.of, object, moment());
        self.wake(woken);
    }

    fn remove(&self, key: &Key, version: Option<&str>) {
        let woken = self.shared.world.write().remove(self.of, key, version, moment());
        if self.of == Of::Placement && self.shared.world.read().placement(key).is_none() {
            self.scheduler.forget(key);
        }
        self.wake(woken);
    }

    fn wake(&self, woken: Woken) {
        for (namespace, name) in woken {
            self.shared.wakes.push(&namespace, &name);
        }
    }
}

/// Who wrote what is asked of decisions and of Placements' status alone. No expression sees it; upstream's do.
fn forget_writers(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Of a Placement, the queue needs no more than what it is called.
fn prune(object: &mut DynamicObject) {
    object.managed_fields_mut().clear();
    object.annotations_mut().clear();
    object.data = Value::Null;
}
