//! Follows a watch: kube's watcher, with retries after errors.
//!
//! Five loops do not use this:
//!
//! - `feed::watch::objects` begins anew with a list after each error: only a list shows that a
//!   quiet source is readable again.
//! - `parts::rivals` does the same, and begins anew with the term.
//! - `parts::placement::watches` asks the hub, before it takes a deletion, whether the kind leaves.
//! - `parts::manifestworks::sights` and `parts::managed_service_accounts::watches` follow members
//!   through the gateway with `fleet::Sight`, which bounds the bytes of a list.

use std::fmt::Display;
use std::hash::Hash;
use std::mem::take;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::{Lookup, Store};
use kube::runtime::watcher::{self, Event};
use net::words::causes;
use tokio::time::timeout;

/// How often those who wait for a store's first list look.
const LOOKS: Duration = Duration::from_millis(50);

/// A change that a watch reports, with each list as a whole.
#[derive(Debug, PartialEq, Eq)]
pub enum Change<K> {
    Listed(Vec<K>),
    Applied(K),
    Deleted(K),
}

/// Hands each event to `apply`. When the watch fails, logs that `what` cannot be watched, and tries
/// again after kube's back-off. Never ends.
pub async fn each<K>(
    events: impl Stream<Item = watcher::Result<Event<K>>> + Send,
    what: impl Display,
    apply: impl FnMut(Event<K>),
) {
    each_or(events, move |error: &str| tracing::warn!(error, "cannot watch {what}"), apply).await;
}

/// Like [`each`], but hands errors to `failed`, each with its causes.
pub async fn each_or<K>(
    events: impl Stream<Item = watcher::Result<Event<K>>> + Send,
    mut failed: impl FnMut(&str),
    mut apply: impl FnMut(Event<K>),
) {
    let mut events = events.default_backoff().boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => apply(event),
            Err(error) => failed(&causes(&error)),
        }
    }
}

/// Completes when the store has its first list, or never will. Kube's own wait wakes only the last
/// of all who wait (`DelayedInit` polls one channel for them), and in `together::all` each is woken
/// by itself.
pub async fn stored<K>(store: &Store<K>)
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    while timeout(LOOKS, store.wait_until_ready()).await.is_err() {}
}

/// Collects the objects of a list, and hands them to `apply` when the list is complete.
pub fn whole<K>(mut apply: impl FnMut(Change<K>)) -> impl FnMut(Event<K>) {
    let mut listed = Vec::new();
    move |event| match event {
        Event::Init => listed.clear(),
        Event::InitApply(object) => listed.push(object),
        Event::InitDone => apply(Change::Listed(take(&mut listed))),
        Event::Apply(object) => apply(Change::Applied(object)),
        Event::Delete(object) => apply(Change::Deleted(object)),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, stream};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::reflector;

    use super::*;
    use crate::together;

    /// A list that breaks off has no effect, and the watch continues after it.
    #[tokio::test(start_paused = true)]
    async fn a_list_is_handed_over_once_it_is_complete() {
        let events = [
            Ok(Event::Init),
            Ok(Event::InitApply("old")),
            Err(watcher::Error::NoResourceVersion),
            Ok(Event::Init),
            Ok(Event::InitApply("a")),
            Ok(Event::InitApply("b")),
            Ok(Event::InitDone),
            Ok(Event::Apply("c")),
            Ok(Event::Delete("a")),
        ];
        let (mut changes, mut failures) = (Vec::new(), 0);
        let apply = whole(|change| changes.push(change));
        each_or(stream::iter(events), |_| failures += 1, apply).await;
        let expected = [Change::Listed(vec!["a", "b"]), Change::Applied("c"), Change::Deleted("a")];
        assert_eq!((changes.as_slice(), failures), (expected.as_slice(), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_wait_for_a_store_go_on_when_it_has_its_list() {
        let (store, mut writer) = reflector::store::<ConfigMap>();
        let begin = async { writer.apply_watcher_event(&Event::InitDone) };
        let waits = || stored(&store).boxed();
        let each = together::all([waits(), waits(), begin.boxed()]);
        assert!(timeout(Duration::from_secs(1), each).await.is_ok());
    }
}
