//! Watches of a feed's objects and of the Secrets that they refer to, and the watch of the
//! clusters' Secrets.
//!
//! A watch of objects that breaks restarts with a list. kube would continue from the last version,
//! but then a quiet source would not be known to be readable again, and removals wait for that.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt as _};
use net::backoff::Backoff;
use net::words::causes;
use register::claims::Object;
use register::removals::BETWEEN_LISTS;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::Feed;
use super::crd::{self, Presence};
use super::follow::{self, Change};
use crate::calls::{paged, watcher};
use crate::raw::{self, RawObject, large};
use crate::registrar::Registrar;
use crate::secrets::{Meta, Secrets};
use crate::sources::prune_metadata;

/// A little more than the time after which an object is missing for the second time.
const LIST_AGAIN: Duration = BETWEEN_LISTS.saturating_add(Duration::from_secs(1));

/// Wait for the first list, before other sources get names without it, and for the list of the
/// clusters' Secrets before it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Wait for a kind that is not served, before other sources no longer wait for it.
const ABSENT_AFTER: Duration = Duration::from_secs(2);

type Events = BoxStream<'static, watcher::Result<Event<DynamicObject>>>;

/// Why a watch ended.
enum End {
    /// Objects are missing, and another list must confirm it.
    ListAgain,
    Broken,
}

/// State of a watch since it began.
#[derive(Default)]
struct WatchState {
    listed: HashSet<Object>,
    list_again: Option<Instant>,
    is_listed: bool,
}

/// Follows the feed's objects. Never ends.
pub async fn objects(feed: Arc<Feed>, mut writer: Writer<DynamicObject>) {
    // A list shows what is missing only if it is known what was registered.
    let mut is_known = timeout(PATIENCE, feed.registrar.secrets_known()).await.is_ok();
    let mut presence = crd::follow(&feed.source.kind, feed.source.client.clone());
    let mut failures = 0;
    loop {
        // The sender lives as long as this receiver.
        let _ = presence.wait_for(|presence| *presence != Presence::Leaving).await;
        let resource = tokio::select! {
            resource = crd::served(&feed.source.kind, &feed.source.client) => resource,
            () = unavailable_after_a_moment(&feed) => continue,
        };
        let mut state = WatchState::default();
        let end = tokio::select! {
            end = follow(&feed, &mut writer, &resource, &mut state) => end,
            () = feed.registrar.secrets_known(), if !is_known => {
                is_known = true;
                End::ListAgain
            }
            () = crd::leaves(&mut presence) => End::Broken,
        };
        if state.is_listed {
            failures = 0;
        }
        if matches!(end, End::Broken) {
            feed.registrar.unavailable(feed.source.name.as_str(), feed.index);
            sleep(Backoff::WATCH.wait(failures)).await;
            failures = failures.saturating_add(1);
        }
    }
}

async fn unavailable_after_a_moment(feed: &Feed) {
    sleep(ABSENT_AFTER).await;
    feed.registrar.unavailable(feed.source.name.as_str(), feed.index);
    std::future::pending::<()>().await;
}

async fn follow(
    feed: &Feed,
    writer: &mut Writer<DynamicObject>,
    resource: &ApiResource,
    state: &mut WatchState,
) -> End {
    let mut events = events(feed, resource);
    let mut patience = pin!(sleep(PATIENCE));
    loop {
        let again = async {
            match state.list_again {
                Some(moment) => sleep_until(moment).await,
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            event = events.next() => event,
            () = again => return End::ListAgain,
            () = &mut patience, if !state.is_listed && !patience.is_elapsed() => {
                tracing::warn!(source = feed.source.name.as_str(), "the source returns no list yet: others do not \
                    wait for it");
                feed.registrar.unavailable(feed.source.name.as_str(), feed.index);
                continue;
            }
        };
        match event {
            Some(Ok(event)) => take(feed, writer, event, state),
            Some(Err(error)) => {
                tracing::warn!(error = causes(&error), source = feed.source.name.as_str(), "cannot watch the source");
                feed.metrics.queues.watch_failed(feed.source.name.as_str());
                return End::Broken;
            }
            None => return End::Broken,
        }
    }
}

/// Objects in the form that is kept. Secrets without their data, which is read when it is needed.
fn events(feed: &Feed, resource: &ApiResource) -> Events {
    let mut config = paged();
    config.label_selector.clone_from(&feed.source.labels);
    let client = feed.source.client.clone();
    if feed.source.kind.group.is_empty() {
        let api = match &feed.namespace {
            Some(namespace) => Api::<Meta>::namespaced(client, namespace),
            None => Api::all(client),
        };
        return watcher(api, config).map(|event| event.map(without_data)).boxed();
    }
    let api = match &feed.namespace {
        Some(namespace) => Api::<RawObject>::namespaced_with(client, namespace, resource),
        None => Api::all_with(client, resource),
    };
    raw::watcher(api, config).boxed()
}

fn without_data(event: Event<Meta>) -> Event<DynamicObject> {
    let object = |secret: Meta| DynamicObject { types: None, metadata: secret.metadata, data: serde_json::Value::Null };
    raw::mapped(event, object)
}

fn take(feed: &Feed, writer: &mut Writer<DynamicObject>, event: Event<DynamicObject>, state: &mut WatchState) {
    let event = event.modify(|object| {
        let is_cut = large::marked(object).is_some();
        feed.source.reader.prune(object);
        prune_metadata(object, is_cut);
    });
    writer.apply_watcher_event(&event);
    match event {
        Event::Init => state.listed.clear(),
        Event::InitApply(object) => {
            state.listed.insert(feed.object(&object));
            see(feed, &object);
        }
        Event::InitDone => {
            state.is_listed = true;
            let objects = std::mem::take(&mut state.listed);
            feed.source
                .reader
                .retain(&|key| !feed.covers(key) || objects.contains(&feed.object_called(&key.0, &key.1)));
            let are_missing = feed.registrar.listed(feed.source.name.as_str(), feed.index, &objects);
            state.list_again = are_missing.then(|| Instant::now() + LIST_AGAIN);
        }
        Event::Apply(object) => see(feed, &object),
        Event::Delete(object) => {
            feed.source.reader.forget(&(object.namespace().unwrap_or_default(), object.name_any()));
            feed.registrar.deleted(&feed.object(&object));
        }
    }
}

/// Claims the object's name at once, and queues the object to be read.
fn see(feed: &Feed, object: &DynamicObject) {
    if let Some(sighting) = feed.sight(object) {
        feed.registrar.see(sighting);
    }
    feed.wakes.push(&object.namespace().unwrap_or_default(), &object.name_any());
}

/// Follows the Secrets that the feed's objects refer to. Never ends.
pub async fn secrets(feed: Arc<Feed>) {
    let Some(related) = feed.source.reader.related() else { return };
    let client = feed.source.client.clone();
    let api = match related.namespace.as_ref().or(feed.namespace.as_ref()) {
        Some(namespace) => Api::<Meta>::namespaced(client, namespace),
        None => Api::all(client),
    };
    let config = watcher::Config {
        label_selector: related.labels,
        field_selector: related.name.map(|name| format!("metadata.name={name}")),
        ..paged()
    };
    let failed = |error: &str| {
        tracing::warn!(error, source = feed.source.name.as_str(), "cannot watch the source's Secrets");
        feed.metrics.queues.watch_failed(feed.source.name.as_str());
    };
    let apply = |event: Event<Meta>| match event {
        Event::InitApply(secret) | Event::Apply(secret) | Event::Delete(secret) => {
            for (namespace, name) in feed.source.reader.of_secret(&secret) {
                feed.reports.changed(&feed.object_called(&namespace, &name));
                feed.wakes.push(&namespace, &name);
            }
        }
        Event::Init | Event::InitDone => {}
    };
    follow::each_or(watcher(api, config), failed, apply).await;
}

/// Reports the clusters' Secrets and their origins to the registrar. Never ends.
pub async fn holders(secrets: Secrets, registrar: Arc<Registrar>) {
    let events = watcher(secrets.metadata(), paged());
    let what = format!("the Secrets of clusters in namespace {}", secrets.namespace());
    let changed = |secret: &Meta, now: Option<&Meta>| {
        if let Some(name) = &secret.metadata.name {
            registrar.secret_changed(name, now);
        }
    };
    let apply = |change: Change<Meta>| match change {
        Change::Listed(listed) => registrar.secrets_listed(&listed),
        Change::Applied(secret) => changed(&secret, Some(&secret)),
        Change::Deleted(secret) => changed(&secret, None),
    };
    follow::each(events, what, follow::whole(apply)).await;
}
