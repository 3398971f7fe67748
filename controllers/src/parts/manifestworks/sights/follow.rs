//! Follows the objects of one kind in one namespace of a member, without their contents: by a
//! watch, or by periodic lists.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use delivery::identity::Identity;
use fleet::{Change, Failure, Kind, Sight};
use net::backoff::Backoff;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};

use super::awaited::group_of;
use super::{ObservedObjects, Route, Scope, Version};
use crate::parts::hub_calls;
use crate::parts::watched::number;

/// Timeout of a page of a list, of the head of a watch's response, and of the rest of one of its
/// lines.
const PAGE_WITHIN: Duration = Duration::from_secs(30);
/// Interval of one follower's requests.
const BETWEEN_REQUESTS: Duration = Duration::from_secs(1);
/// A watch that lasts this long works. Without this, lists that never lead to a working watch would
/// go on forever.
const LIVES: Duration = Duration::from_secs(30);
/// Wait before a refused watch is retried: rights change, and members are upgraded.
const REFUSED: Duration = Duration::from_hours(1);
/// Random share of the interval of lists.
const CHANCE: f64 = 0.25;

pub struct Follow {
    pub route: Route,
    pub scope: Scope,
    pub is_watch: bool,
    /// Whether no change is missed.
    pub is_seeing: Arc<AtomicBool>,
    pub sights: Weak<Mutex<ObservedObjects>>,
}

/// How a watch broke.
enum Broke {
    /// It had lasted for a while.
    Late,
    Early,
    /// The member allows lists, but no watches.
    Refused,
}

/// The listed objects that belong to works.
struct Listed {
    /// Empty if the member returns none.
    version: String,
    objects: HashMap<Identity, Version>,
}

/// Never ends by itself.
pub async fn follow(follow: Follow) -> Infallible {
    let Route { sender, lists, .. } = follow.route.clone();
    let sender = sender.bounded(Sight::MOST).roomed(lists, PAGE_WITHIN).paced(BETWEEN_REQUESTS);
    let Scope { group, version, resource, namespace } = &follow.scope;
    let sight = Sight::new(sender, &hub_calls::resource(group, version, "", resource), namespace);
    if follow.is_watch { follow.watch(&sight).await } else { follow.list(&sight).await }
}

// === impl Follow ===

impl Follow {
    /// A broken watch starts again with a list, which shows when the watch sees all changes again.
    async fn watch(&self, sight: &Sight) -> Infallible {
        let mut failures = 0;
        loop {
            match self.watch_once(sight).await {
                Broke::Refused => {
                    let _ = timeout(REFUSED, self.list(sight)).await;
                    failures = 0;
                    continue;
                }
                Broke::Late => failures = 0,
                Broke::Early => {}
            }
            self.blinded(failures);
            sleep(Backoff::MEMBER.wait(failures)).await;
            failures = failures.saturating_add(1);
        }
    }

    /// Watches until it breaks.
    async fn watch_once(&self, sight: &Sight) -> Broke {
        let version = match self.list_once(sight).await {
            Ok(Listed { version, .. }) if version.is_empty() => {
                self.failed(&Failure::own("a list without a resourceVersion"));
                return Broke::Early;
            }
            Ok(Listed { version, objects }) => {
                self.listed(&objects);
                version
            }
            Err(failure) => {
                self.failed(&failure);
                return Broke::Early;
            }
        };
        // Also waits for the rest that others caused: a watch does not wait for room, which would
        // include that.
        self.route.lists.rest.over().await;
        let listed = Instant::now();
        let failure = sight.watch(version, |change, name, at| self.saw(change, name, at)).await;
        self.failed(&failure);
        // A client that may list may be not allowed to watch, or the kind cannot be watched.
        if matches!(failure.kind, Kind::Answered(403 | 405) | Kind::Plain(403 | 405)) {
            return Broke::Refused;
        }
        if listed.elapsed() >= LIVES { Broke::Late } else { Broke::Early }
    }

    /// Changes between two lists are missed until the next.
    async fn list(&self, sight: &Sight) -> Infallible {
        let again = Backoff::steady(self.route.resync, CHANCE);
        loop {
            match self.list_once(sight).await {
                Ok(listed) => self.listed(&listed.objects),
                Err(failure) => {
                    self.failed(&failure);
                    self.blinded(1);
                }
            }
            sleep(again.wait(0)).await;
        }
    }

    async fn list_once(&self, sight: &Sight) -> Result<Listed, Failure> {
        // Others may postpone the end of the rest repeatedly: meanwhile, works check by themselves.
        if self.route.lists.rest.until().is_some() {
            self.blinded(1);
        }
        let (mut objects, mut definitions) = (HashMap::new(), HashMap::<String, u64>::new());
        let take = |name: &str, version: &str| {
            if let Some(group) = self.awaited(name) {
                let all = definitions.entry(group.to_owned()).or_default();
                *all = all.wrapping_add(number(&(name, version)));
            }
            if let Some(identity) = self.tracked(name) {
                objects.insert(identity, Some(version.to_owned()).filter(|version| !version.is_empty()));
            }
        };
        let version = sight.list(take).await?;
        if !definitions.is_empty() {
            let woken = self.sights.upgrade().map(|sights| sights.lock().awaited.listed(definitions));
            self.wake(woken.unwrap_or_default());
        }
        Ok(Listed { version, objects })
    }

    /// An overloaded API server answers in plain text, for all kinds: all followers rest together.
    /// A Status comes from something behind it, about one kind.
    fn failed(&self, failure: &Failure) {
        let (cluster, scope) = (&self.route.cluster, &self.scope);
        tracing::debug!(cluster, ?scope, %failure, "a member cannot be followed");
        if let (Kind::Plain(429), Some(after)) = (failure.kind, failure.retry_after) {
            self.route.lists.rest.ask(after);
        }
    }

    /// Changes may be missed. If that lasts, works must check by themselves.
    fn blinded(&self, failures: u32) {
        let was_seeing = self.is_seeing.swap(false, Ordering::Relaxed);
        if failures == 1 || (was_seeing && failures > 1) {
            let works = self.sights.upgrade().map(|sights| sights.lock().works(&self.scope));
            self.wake(works.unwrap_or_default());
        }
    }

    fn saw(&self, change: Change, name: &str, at: &str) {
        if change == Change::There
            && let Some(group) = self.awaited(name)
        {
            let woken = self.sights.upgrade().map(|sights| sights.lock().awaited.defined(group));
            self.wake(woken.unwrap_or_default());
        }
        let (Some(sights), Some(identity)) = (self.sights.upgrade(), self.tracked(name)) else { return };
        let version = (change == Change::There).then(|| at.to_owned());
        let woken = sights.lock().saw(&identity, &version, Some(at));
        self.wake(woken);
    }

    fn listed(&self, listed: &HashMap<Identity, Version>) {
        let Some(sights) = self.sights.upgrade() else { return };
        let woken = sights.lock().listed(&self.scope, listed);
        if !self.is_seeing.swap(true, Ordering::Relaxed) {
            self.route.answered.push("", &self.route.cluster);
        }
        self.wake(woken);
    }

    /// The group of a definition, if works lack a kind of it.
    fn awaited<'n>(&self, name: &'n str) -> Option<&'n str> {
        let group = group_of(name).filter(|_| self.scope.is_of_definitions())?;
        self.sights.upgrade()?.lock().awaited.has(group).then_some(group)
    }

    fn wake(&self, works: Vec<String>) {
        for work in works {
            self.route.wakes.push(&self.route.cluster, &work);
        }
    }

    /// The identity of an object, if it belongs to a work: a namespace may have thousands of
    /// others.
    fn tracked(&self, name: &str) -> Option<Identity> {
        if name.is_empty() {
            return None;
        }
        let identity = Identity {
            group: self.scope.group.clone(),
            resource: self.scope.resource.clone(),
            name: name.to_owned(),
            namespace: self.scope.namespace.clone(),
        };
        self.sights.upgrade()?.lock().has(&identity).then_some(identity)
    }
}

#[cfg(test)]
mod tests;
