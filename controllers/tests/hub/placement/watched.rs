//! Decisions by a watch, which gives the time of each write without polling.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::StreamExt as _;
use hub_tests::wait;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::watcher::{self, Event, watcher};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{GROUP, Place, clusters};
use crate::fixture::SOON;

/// The time of each event, its decision, and the clusters in it.
type Seen = Vec<(Instant, String, Vec<String>)>;

/// A watch of one namespace's decisions. It ends on drop.
pub struct Watched {
    seen: Arc<Mutex<Seen>>,
    _stop: oneshot::Sender<()>,
}

// === impl Watched ===

impl Watched {
    /// Watches the decisions of a place; returns once it has seen `first`.
    pub fn start(place: &Place<'_>, first: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let kubeconfig = place.testbed.hub.server.kubectl().kubeconfig;
        let client = runtime.block_on(hub::client::client(Some(&kubeconfig), place.name))?;
        let kind = GroupVersionKind::gvk(GROUP, "v1beta1", "PlacementDecision");
        let resource = ApiResource::from_gvk_with_plural(&kind, "placementdecisions");
        let api: Api<DynamicObject> = Api::namespaced_with(client, place.name, &resource);
        let seen = Arc::new(Mutex::new(Seen::new()));
        let (stop, stopped) = oneshot::channel::<()>();
        let found = Arc::clone(&seen);
        let follow = async move {
            let mut events = pin!(watcher(api, watcher::Config::default()));
            while let Some(event) = events.next().await {
                let Ok(Event::InitApply(object) | Event::Apply(object)) = event else { continue };
                let decision = serde_json::to_value(&object).unwrap_or(Value::Null);
                let name = object.metadata.name.unwrap_or_default();
                found.lock().push((Instant::now(), name, clusters(&decision)));
            }
        };
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = follow => {}
                    _ = stopped => {}
                }
            });
        });
        let watched = Self { seen, _stop: stop };
        wait::until_true("the watch", SOON, || Ok(watched.seen.lock().iter().any(|(_, name, _)| name == first)))?;
        Ok(watched)
    }

    /// How long after `began` a decision named exactly these clusters.
    pub fn since(&self, began: Instant, decision: &str, expected: &[&str]) -> Result<Duration> {
        wait::until(&format!("{decision} to name {expected:?}"), SOON, || {
            let seen = self.seen.lock();
            let is_it = |(at, name, found): &&(Instant, String, Vec<String>)| {
                *at >= began && name == decision && found == expected
            };
            let first = seen.iter().find(is_it);
            first.map(|(at, ..)| *at - began).with_context(|| format!("{seen:?}"))
        })
    }
}
