//! What a standby's watch observed, as its term begins: a connection that broke without a word
//! shows only when the watch runs out, and the last leader's later work must not be undone.

use std::collections::HashMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use kube::runtime::watcher::Event;
use net::backoff::Backoff;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::watched::is_older;
use crate::calls::{Listed, list_metadata_as};
use crate::wakes::Key;

/// Seconds that a watch lasts before the next goes on where it ended. A connection on which nothing
/// comes is given up 5 s after that; with kube's default, 290 s, a leader could begin with what is
/// five minutes old. It costs two requests a minute for each kind, which list nothing.
pub const WATCH: u32 = 30;
/// For which a watch may be behind, until it begins anew. Longer and longer: the list with which it
/// begins may take minutes where there are many objects, and beginning anew cuts it off.
const PATIENCE: Backoff = Backoff::doubling(Duration::from_secs(2), Duration::from_mins(15));
/// Between two looks at what a watch observed.
const LOOKS: Duration = Duration::from_millis(50);
/// Between two tries to list: a term's writes wait for it.
const TRIES: Backoff = Backoff::doubling(Duration::from_millis(500), Duration::from_secs(15));

/// What a watch observed of the objects of one kind.
pub trait Versions {
    /// The `resourceVersion` of an object; none: there is no such object.
    fn version(&self, key: &Key) -> Option<String>;

    fn keys(&self) -> Vec<Key>;
}

/// What a watch observed, where nothing else keeps the versions.
#[derive(Debug, Default)]
pub struct Followed {
    versions: Mutex<HashMap<Key, String>>,
    /// What a list had so far.
    listing: Mutex<HashMap<Key, String>>,
    again: Notify,
}

/// What a list has and a watch has not reported yet.
#[derive(Debug)]
struct Behind {
    /// Objects that are known as they were before, by the versions that they have at least.
    stale: HashMap<Key, String>,
    /// Objects that are not known at all. Nothing is done with these.
    unseen: Vec<Key>,
}

/// Completes when nothing in `told` is older than it is on the hub now, which one list of metadata
/// shows. Begins the watch anew by `again` if it does not catch up soon.
pub async fn catch_up(api: &Api<DynamicObject>, told: &impl Versions, again: impl Fn()) {
    let mut behind = Behind::of(told, list(api).await);
    let (mut begins, mut last) = (0, Instant::now());
    while !behind.catches_up(told) {
        if last.elapsed() >= PATIENCE.window(begins) {
            let (kind, stale, unseen) = (api.resource_url(), behind.stale.len(), behind.unseen.len());
            tracing::warn!(kind, stale, unseen, "a watch is behind the hub: starting it again");
            again();
            (begins, last) = (begins.saturating_add(1), Instant::now());
            // Its list has them, if they are there still.
            behind.unseen.clear();
        }
        sleep(LOOKS).await;
    }
}

async fn list(api: &Api<DynamicObject>) -> Listed<(Key, String)> {
    let mut failures = 0;
    loop {
        match list_metadata_as(api, ListParams::default(), |metadata| named(&metadata)).await {
            Ok(listed) => return listed,
            Err(error) => {
                tracing::warn!(%error, kind = api.resource_url(), "cannot list: the part does nothing until it can");
            }
        }
        sleep(TRIES.wait(failures)).await;
        failures = failures.saturating_add(1);
    }
}

fn named(metadata: &ObjectMeta) -> (Key, String) {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    ((text(&metadata.namespace), text(&metadata.name)), text(&metadata.resource_version))
}

// === impl Followed ===

impl Followed {
    /// The watch reported this event.
    pub fn see(&self, event: &Event<DynamicObject>) {
        let mut versions = self.versions.lock();
        match event {
            Event::Init => self.listing.lock().clear(),
            Event::InitApply(object) => self.listing.lock().extend([named(&object.metadata)]),
            Event::InitDone => *versions = std::mem::take(&mut *self.listing.lock()),
            Event::Apply(object) => versions.extend([named(&object.metadata)]),
            Event::Delete(object) => drop(versions.remove(&named(&object.metadata).0)),
        }
    }

    /// Completes when the watch is to begin anew, with a list.
    pub async fn again(&self) {
        self.again.notified().await;
    }

    /// As [`catch_up`].
    pub async fn catch_up(&self, api: &Api<DynamicObject>) {
        catch_up(api, self, || self.again.notify_one()).await;
    }
}

impl Versions for Followed {
    fn version(&self, key: &Key) -> Option<String> {
        self.versions.lock().get(key).cloned()
    }

    fn keys(&self) -> Vec<Key> {
        self.versions.lock().keys().cloned().collect()
    }
}

// === impl Behind ===

impl Behind {
    fn of(told: &impl Versions, listed: Listed<(Key, String)>) -> Self {
        let there: HashMap<Key, String> = listed.items.into_iter().collect();
        // What was made since then is newer than the list.
        let gone = told.keys().into_iter().filter(|key| !there.contains_key(key));
        let gone = gone.map(|key| (key, listed.version.clone())).collect::<Vec<_>>();
        let unseen = there.keys().filter(|key| told.version(key).is_none()).cloned().collect();
        Self { stale: there.into_iter().chain(gone).collect(), unseen }
    }

    /// Forgets what was observed meanwhile. True if that is all.
    fn catches_up(&mut self, told: &impl Versions) -> bool {
        self.stale.retain(|key, version| told.version(key).is_some_and(|known| is_older(Some(&known), version)));
        self.unseen.retain(|key| told.version(key).is_none());
        self.stale.is_empty() && self.unseen.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object((name, version): &(&str, &str)) -> DynamicObject {
        let metadata = json!({"name": name, "namespace": "n", "resourceVersion": version});
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "x", "metadata": metadata})).unwrap()
    }

    /// What is known after a watch with this list.
    fn told(all: &[(&str, &str)]) -> Followed {
        let told = Followed::default();
        told.see(&Event::Init);
        for one in all {
            told.see(&Event::InitApply(object(one)));
        }
        assert!(told.keys().is_empty(), "that is not all");
        told.see(&Event::InitDone);
        told
    }

    #[test]
    fn what_was_told_is_behind_until_it_is_as_new_as_the_list() {
        let is_over = |before: &[(&str, &str)], later: &[(&str, &str)]| {
            let items = [("a", "9"), ("b", "15")].iter().map(|one| named(&object(one).metadata)).collect();
            let mut behind = Behind::of(&told(before), Listed { version: "20".into(), items });
            behind.catches_up(&told(later))
        };
        let same = [("a", "9"), ("b", "15")];
        assert!(is_over(&same, &same));
        let ahead = [("a", "9"), ("b", "21"), ("c", "22")];
        assert!(is_over(&ahead, &ahead), "the watch went on after the list");
        let older = [("a", "9"), ("b", "14")];
        assert!(!is_over(&older, &older) && is_over(&older, &same));
        let gone = [("a", "9"), ("b", "15"), ("c", "10")];
        assert!(!is_over(&gone, &gone), "it was not there any more");
        assert!(is_over(&gone, &same) && is_over(&gone, &ahead), "it went, or another one came");
        assert!(!is_over(&same[..1], &same[..1]) && is_over(&same[..1], &same), "one was not told");
    }

    #[test]
    fn what_a_watch_tells_one_by_one_counts() {
        let followed = told(&[("a", "9"), ("b", "15")]);
        followed.see(&Event::Apply(object(&("a", "16"))));
        followed.see(&Event::Delete(object(&("b", "17"))));
        assert_eq!(followed.keys(), [("n".to_owned(), "a".to_owned())]);
        assert_eq!(followed.version(&followed.keys()[0]).as_deref(), Some("16"));
    }
}
