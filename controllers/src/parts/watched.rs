//! Objects of a kind, followed for as long as the hub serves it.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use kube::api::DynamicObject;
use kube::core::ObjectMeta;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use parking_lot::RwLock;
use serde_json::Value;
use telemetry::readiness::Readiness;
use tokio::sync::watch;
use tokio::time::timeout;

use super::Context;
use super::hub_calls::LeaderClient;
use crate::feed::crd::{self, Presence};
use crate::feed::follow;
use crate::raw::{self, RawObject};
use crate::sources::Kind;
use crate::wakes::Wakes;

/// For a list, until `/readyz` says that it is missing.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the watches of a part, one for each kind, pass to its queue.
pub struct Shared<W, const KINDS: usize> {
    pub hub: LeaderClient,
    pub world: Arc<RwLock<W>>,
    pub wakes: Wakes,
    /// Whether each kind was listed.
    pub listed: [watch::Sender<bool>; KINDS],
}

/// Hands `take` what happens to objects of `kind` that `config` chooses, in all namespaces. A kind
/// that goes and comes back is listed anew. Never ends.
pub async fn follow(kind: &Kind, client: Client, config: watcher::Config, take: impl FnMut(Event<DynamicObject>)) {
    follow_read(kind, client, config, raw::watcher, take).await;
}

/// The same, of objects whose contents stay text.
pub async fn follow_packed(
    kind: &Kind,
    client: Client,
    config: watcher::Config,
    take: impl FnMut(Event<DynamicObject>),
) {
    follow_read(kind, client, config, raw::packed, take).await;
}

async fn follow_read<S: Stream<Item = watcher::Result<Event<DynamicObject>>> + Send>(
    kind: &Kind,
    client: Client,
    config: watcher::Config,
    read: impl Fn(Api<RawObject>, watcher::Config) -> S,
    mut take: impl FnMut(Event<DynamicObject>),
) {
    let mut presence = crd::follow(kind, client.clone());
    loop {
        // The sender lives as long as this does.
        let _ = presence.wait_for(|presence| *presence != Presence::Leaving).await;
        let resource = tokio::select! {
            resource = crd::served(kind, &client) => resource,
            () = crd::leaves(&mut presence) => continue,
        };
        let events = read(Api::all_with(client.clone(), &resource), config.clone());
        tokio::select! {
            () = follow::each(events, &resource.plural, &mut take) => {}
            () = crd::leaves(&mut presence) => {}
        }
    }
}

// === impl Shared ===

impl<W, const KINDS: usize> Shared<W, KINDS> {
    pub fn new(context: &Context<'_>, world: W) -> Self {
        Self {
            hub: LeaderClient::of(context),
            world: Arc::new(RwLock::new(world)),
            wakes: Wakes::default(),
            listed: std::array::from_fn(|_| watch::Sender::new(false)),
        }
    }
}

/// Completes when `listed` says that `kind` was. `/readyz` has `reason` while that takes long.
pub async fn listed(listed: &watch::Sender<bool>, kind: &Kind, readiness: &Readiness, reason: &'static str) {
    let mut listed = listed.subscribe();
    // The senders live as long as this does.
    let mut listed = pin!(async { drop(listed.wait_for(|listed| *listed).await) });
    if timeout(PATIENCE, &mut listed).await.is_err() {
        tracing::warn!(kind = kind.name, "a kind is not listed yet: the part waits for it");
        let _not_ready = readiness.block(reason);
        listed.await;
    }
}

/// Of an object, a queue needs no more than what it is called, and Events on it its UID.
pub fn name_only(object: &mut DynamicObject) {
    let ObjectMeta { name, namespace, uid, resource_version, .. } = std::mem::take(&mut object.metadata);
    object.metadata = ObjectMeta { name, namespace, uid, resource_version, ..ObjectMeta::default() };
    object.data = Value::Null;
}

/// A number for `what`, to compare it with another.
pub fn number(what: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Whether a `resourceVersion` comes before one that is known. Where they are no numbers, that is
/// unknown.
pub fn is_older(version: Option<&str>, known: &str) -> bool {
    let number = |text: &str| text.parse::<u64>().ok();
    let older = |version| Some(number(version)? < number(known)?);
    version.and_then(older).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_what_a_queue_needs_nothing_grows() {
        let filled = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "namespace": "s", "uid": "u",
            "resourceVersion": "7", "labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["a/b"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u"}],
            "managedFields": [{"manager": "m"}]}, "spec": {"a": 1}});
        let mut object: DynamicObject = serde_json::from_value(filled).unwrap();
        name_only(&mut object);
        let left = json!({"name": "n", "namespace": "s", "uid": "u", "resourceVersion": "7"});
        assert_eq!((json!(object.metadata), object.data), (left, Value::Null));
    }
}
