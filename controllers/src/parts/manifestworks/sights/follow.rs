//! Follows the objects of one kind in one namespace of a member, without their contents: by a
//! watch, or by a list from time to time.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use delivery::identity::Identity;
use futures_util::StreamExt as _;
use kube::api::{DynamicObject, ListParams};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt as _};
use net::backoff::Backoff;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::{Scope, Seen, Version, Way};
use crate::parts::hub;

/// Objects of one answer of a list.
const PAGE: u32 = 500;
/// Pages of a list, which has no end otherwise if a member says so.
const PAGES: usize = 200;
/// Bytes of one list, or of one watch, which begins again then.
const MOST: usize = 16 << 20;
/// For one page of a list, the beginning of a watch's answer, and the rest of a line of it.
const PAGE_WITHIN: Duration = Duration::from_secs(30);
/// Between requests of one follower.
const BETWEEN_REQUESTS: Duration = Duration::from_secs(1);
/// Between tries of a watch that breaks.
const BACKOFF: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(1));
/// A watch that lasts for so long works: lists that never lead to one would go on and on.
const LIVES: Duration = Duration::from_secs(30);
/// Of the time between lists, left to chance.
const CHANCE: f64 = 0.25;

type Meta = PartialObjectMeta<DynamicObject>;

pub struct Follow {
    pub way: Way,
    pub scope: Scope,
    pub is_watch: bool,
    /// Whether nothing is missed.
    pub is_seeing: Arc<AtomicBool>,
    pub sights: Weak<Mutex<Seen>>,
}

/// How a watch broke.
enum Broke {
    /// It had lived for a while.
    Late,
    Early,
    /// It may be listed, and not watched.
    Refused,
}

/// Never ends by itself.
pub async fn follow(follow: Follow) {
    let client = fleet::bounded(follow.way.client.clone(), MOST);
    let client = fleet::roomed(client, follow.way.lists.clone(), PAGE_WITHIN);
    let client = fleet::paced(client, BETWEEN_REQUESTS);
    let Scope { group, version, resource, namespace } = &follow.scope;
    let kind = hub::resource(group, version, "", resource);
    let api: Api<Meta> = if namespace.is_empty() {
        Api::all_with(client, &kind)
    } else {
        Api::namespaced_with(client, namespace, &kind)
    };
    if follow.is_watch { follow.watch(api).await } else { follow.list(api).await }
}

// === impl Follow ===

impl Follow {
    /// One that breaks begins anew with a list: kube would go on where it was, and nobody would
    /// know when it is seeing again.
    async fn watch(&self, api: Api<Meta>) {
        let mut failures = 0;
        loop {
            match self.watch_once(api.clone()).await {
                Broke::Refused => return self.list(api).await,
                Broke::Late => failures = 0,
                Broke::Early => {}
            }
            self.blinded(failures);
            sleep(BACKOFF.wait(failures)).await;
            failures = failures.saturating_add(1);
        }
    }

    /// Until it breaks.
    async fn watch_once(&self, api: Api<Meta>) -> Broke {
        let config = watcher::Config::default().page_size(PAGE);
        let mut events = pin!(watcher::watcher(api, config));
        let (mut listing, mut listed) = (HashMap::new(), None);
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listing.clear(),
                Ok(Event::InitApply(object)) => self.put(&mut listing, &object),
                Ok(Event::InitDone) => {
                    self.listed(&std::mem::take(&mut listing));
                    listed = Some(Instant::now());
                }
                Ok(Event::Apply(object)) => self.saw(&object, &object.resource_version()),
                Ok(Event::Delete(object)) => self.saw(&object, &None),
                Err(error) => {
                    self.log(&error);
                    if is_refused(&error) {
                        return Broke::Refused;
                    }
                    break;
                }
            }
        }
        if listed.is_some_and(|listed| listed.elapsed() >= LIVES) { Broke::Late } else { Broke::Early }
    }

    /// What changes in between is missed until the next list.
    async fn list(&self, api: Api<Meta>) {
        let again = Backoff { chance: CHANCE, ..Backoff::doubling(self.way.resync, self.way.resync) };
        loop {
            match self.list_once(&api).await {
                Ok(listed) => self.listed(&listed),
                Err(error) => {
                    self.log(&error);
                    self.blinded(1);
                }
            }
            sleep(again.wait(0)).await;
        }
    }

    async fn list_once(&self, api: &Api<Meta>) -> kube::Result<HashMap<Identity, Version>> {
        let (mut listed, mut next) = (HashMap::new(), None);
        for _ in 0..PAGES {
            let page = ListParams { limit: Some(PAGE), continue_token: next.take(), ..ListParams::default() };
            let page = api.list(&page).await?;
            for object in &page.items {
                if let Some(identity) = self.tracked(object) {
                    listed.insert(identity, object.resource_version());
                }
            }
            next = page.metadata.continue_.filter(|token| !token.is_empty());
            if next.is_none() {
                break;
            }
        }
        Ok(listed)
    }

    fn log(&self, error: &(dyn std::error::Error + 'static)) {
        let (cluster, scope) = (&self.way.cluster, &self.scope);
        tracing::debug!(cluster, ?scope, error = net::words::causes(error), "a member cannot be followed");
    }

    /// Changes may be missed. If that lasts, works have to look by themselves.
    fn blinded(&self, failures: u32) {
        let was_seeing = self.is_seeing.swap(false, Ordering::Relaxed);
        if failures == 1 || (was_seeing && failures > 1) {
            let works = self.sights.upgrade().map(|sights| sights.lock().works(&self.scope));
            self.wake(works.unwrap_or_default());
        }
    }

    fn put(&self, listing: &mut HashMap<Identity, Version>, object: &Meta) {
        if let Some(identity) = self.tracked(object) {
            listing.insert(identity, object.resource_version());
        }
    }

    fn saw(&self, object: &Meta, version: &Version) {
        let Some(sights) = self.sights.upgrade() else { return };
        let identity = self.identity(object);
        let woken = sights.lock().saw(&identity, version, object.metadata.resource_version.as_deref());
        self.wake(woken);
    }

    fn listed(&self, listed: &HashMap<Identity, Version>) {
        let Some(sights) = self.sights.upgrade() else { return };
        let woken = sights.lock().listed(&self.scope, listed);
        self.is_seeing.store(true, Ordering::Relaxed);
        self.wake(woken);
    }

    fn wake(&self, works: Vec<String>) {
        for work in works {
            self.way.wakes.push(&self.way.cluster, &work);
        }
    }

    /// What an object is, if it is of any work: a namespace may have thousands of others.
    fn tracked(&self, object: &Meta) -> Option<Identity> {
        let identity = self.identity(object);
        self.sights.upgrade()?.lock().has(&identity).then_some(identity)
    }

    fn identity(&self, object: &Meta) -> Identity {
        Identity {
            group: self.scope.group.clone(),
            resource: self.scope.resource.clone(),
            name: object.name_any(),
            namespace: self.scope.namespace.clone(),
        }
    }
}

/// Whether who may list may not watch, or nobody can.
fn is_refused(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if matches!(status.code, 403 | 405))
}
