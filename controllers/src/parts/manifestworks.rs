//! Delivers `ManifestWorks` through the gateway, without an agent on the member.
//!
//! The crate `delivery` decides what to do with an object, and what to report; this part asks the
//! hub and the members, and writes the results. Works are processed one by one, a limited number at
//! a time, and at most four of one cluster.

mod allowance;
mod applied;
mod beginning;
mod begun;
mod clusters;
mod complete;
mod contest;
mod discovery;
mod done;
mod edits;
mod ending;
mod failed;
mod failure;
mod keeping;
mod lanes;
mod member;
mod memory;
mod object;
mod objects;
mod observed;
mod pace;
mod pass;
mod reading;
mod remembering;
mod removal;
mod rest;
mod reviews;
mod shelf;
mod sights;
mod statuses;
mod staying;
mod target;
mod telling;
#[cfg(test)]
mod tests;
mod unlisted;
mod verdicts;
mod waiting;
mod watches;
mod whole;
mod work;

use std::sync::Arc;
use std::time::Duration;

use api::cluster_name::ClusterName;
use api::virtual_cluster::LOCAL;
use delivery::feedback;
use fleet::Fleet;
use kube::api::DynamicObject;
use kube::runtime::controller::Action;
use kube::runtime::reflector::Store;
use kube::runtime::reflector::store::Writer;
use net::backoff::Backoff;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use self::applied::Agent;
use self::beginning::{Watches, agent};
use self::clusters::{Clusters, Mode};
use self::failure::Failure;
use self::lanes::Lanes;
use self::member::{Limits, Member};
use self::memory::{Memories, Memory};
use self::shelf::Shelf;
use self::sights::Route;
use self::target::{Shared, Slot, Target, Targets};
use self::work::{Work, works};
use super::Context;
use super::catch_up::Versions as _;
use super::hub_calls::LeaderClient;
use crate::args::PartName;
use crate::events::Events;
use crate::feed::crd::{self, Presence};
use crate::metrics::Metrics;
use crate::queue::Queue;
use crate::sources::MANAGED_CLUSTERS;
use crate::wakes::Wakes;

/// Its name in `--enable` and metrics.
const NAME: &str = PartName::Manifestworks.as_str();
/// Works that are processed concurrently.
const AT_ONCE: u16 = 256;
/// Concurrent writes to the hub. With 256, a busy hub answered 504 to writes that it had made, and
/// retries then conflicted; with 16 none did.
const WRITES: usize = 16;
/// Limit of the manifests of one work. With these, a spec of 500 KiB and a status with the usual
/// conditions for each of them fit into one object of the hub, whose limit is 1.5 MiB.
const MOST_MANIFESTS: usize = 1_500;
/// Objects of one work that are processed concurrently.
const REQUESTS: usize = 4;
/// Statuses with rules that are evaluated concurrently, each on a thread of its own: of all
/// clusters, and of one.
const COSTLY: usize = 2;
const COSTLY_OF_ONE: usize = 1;
/// Clusters whose rules take longer share one evaluation at a time.
const SLOW_RULES: Duration = Duration::from_millis(250);
/// A cluster whose answers take longer has one request at a time, and all such clusters share a
/// quarter of the requests.
const SLOW_ANSWER: Duration = Duration::from_secs(2);
/// Wait before a work asks for its turn again after others went first.
const SLOT_AGAIN: Duration = Duration::from_secs(1);
/// Wait before a work that waits for its turn is processed even if nothing wakes it.
const NO_SLOT: Duration = Duration::from_mins(1);
/// Wait after a definition was created, until it is served.
const DEFINED: Backoff = Backoff::doubling(Duration::from_millis(300), Duration::from_mins(1));
/// Most failures [`Failure::Defined`] in a row that are not worth reporting.
const PATIENCE: u32 = 5;

struct Part {
    hub: LeaderClient,
    /// Permits of [`WRITES`].
    writes: Semaphore,
    members: Fleet,
    agent: Agent,
    clusters: Clusters,
    /// Presence of the definition of `ManagedCluster`.
    definition: watch::Receiver<Presence>,
    targets: Targets,
    memories: Memories,
    store: Store<DynamicObject>,
    shelf: Shelf,
    wakes: Wakes,
    /// Clusters whose members answered some other request, by name.
    answered: Wakes,
    limits: Limits,
    resync: Duration,
    is_executor_required: bool,
    needs_rules: bool,
    /// Limit of a value without another type that is reported as JSON, in bytes; none if such a
    /// value is an error.
    raw_feedback: Option<usize>,
    events: Events,
    metrics: Metrics,
}

/// Runs until it is dropped.
pub async fn run(context: Context<'_>) {
    let writer = Writer::new(works());
    // It ends by being dropped, after everything that counts.
    let _counting = context.metrics.counting(|metrics| metrics.delivery.clear());
    let (config, term) = (&context.config.delivery, context.term.clone());
    let hub = LeaderClient::of(&context);
    let part = Arc::new(Part {
        agent: agent(&hub, config.hub_url.as_deref()).await,
        definition: crd::follow(&MANAGED_CLUSTERS, hub.client.clone()),
        hub,
        writes: Semaphore::new(WRITES),
        members: context.members,
        clusters: Clusters::default(),
        targets: Targets::new(Shared::new(Lanes::new(COSTLY, COSTLY_OF_ONE, SLOW_RULES))),
        memories: Memories::default(),
        store: writer.as_reader(),
        shelf: Shelf::new(shelf::LIMITS, context.metrics.delivery.clone()),
        wakes: Wakes::default(),
        answered: context.answered,
        limits: Limits {
            lanes: Lanes::new(config.requests, config.requests_per_cluster, SLOW_ANSWER),
            within: config.timeout,
        },
        resync: config.resync,
        is_executor_required: config.is_executor_required,
        needs_rules: context.config.rollout_needs_rules,
        raw_feedback: config.is_feedback_raw.then_some(feedback::RAW),
        events: context.events,
        metrics: context.metrics,
    });
    let watches = Watches::default();
    let queue = async {
        let begin = async {
            term.begins().await;
            watches.begin(&part).await;
        };
        // Changes until then are the present leader's to process; when this ends, everything is
        // processed.
        tokio::select! {
            () = begin => {}
            never = part.wakes.ignore() => match never {},
        }
        part.wake_all();
        work(Arc::clone(&part)).await;
    };
    tokio::join!(watches.run(&part, writer), watches::answers(&part), queue);
}

async fn work(part: Arc<Part>) {
    let (store, wakes, resource) = (part.store.clone(), part.wakes.clone(), works());
    // Each runs in a task of its own, so that reading a large work does not delay others. The task
    // ends with the queue.
    let reconcile = async |object: Arc<DynamicObject>, part: Arc<Part>| {
        let task = tokio::spawn(async move { part.reconcile(&object).await });
        Ok(AbortOnDropHandle::new(task).await.unwrap_or_else(|error| {
            tracing::error!(%error, "a pass over a work broke off");
            Action::requeue(NO_SLOT)
        }))
    };
    let retry = |_: Arc<DynamicObject>, _: &Failure, _: Arc<Part>| Action::await_change();
    Queue { wakes, store, resource, at_once: AT_ONCE }.run(part, reconcile, retry).await;
}

// === impl Part ===

impl Part {
    async fn reconcile(&self, object: &DynamicObject) -> Action {
        let key = work::key(object);
        let Some(target) = self.mode(object).and_then(|_| self.target(&key.0)) else {
            self.leave(&key);
            // Its cluster may be gone, which is unknown before all clusters are listed.
            let is_ending = object.metadata.deletion_timestamp.is_some();
            return if is_ending { Action::requeue(NO_SLOT) } else { Action::await_change() };
        };
        // Before the slot: it also waits while it has no turn, or while its cluster rests.
        if object.metadata.deletion_timestamp.is_none() {
            self.metrics.delivery.begin(&key, object.metadata.generation.unwrap_or_default());
            // If the watch has reported it as gone meanwhile, its metrics are already forgotten.
            if !self.is_there(&key, object.metadata.uid.as_deref().unwrap_or_default()) {
                self.metrics.delivery.forget(&key);
            }
        }
        let Some(slot) = target.slot(&key.1) else { return Action::requeue(NO_SLOT) };
        let action = self.work_in(object, &target, &slot).await;
        drop(slot);
        // Works that waited for a slow cluster's slot come before this cluster's own.
        for target in self.targets.next_slow().into_iter().chain([target]) {
            for next in target.next() {
                self.wakes.push(target.member.cluster.as_str(), &next);
            }
        }
        let is_wanted = || self.clusters.mode(&key.0).is_some() || !self.memories.of_cluster(&key.0).is_empty();
        if !is_wanted() {
            self.targets.forget(&key.0, is_wanted);
            self.metrics.delivery.forget_cluster(&key.0);
        }
        action
    }

    /// Processes a work in its turn. Its contents may be large, and are not read before there is
    /// something to do.
    async fn work_in(&self, object: &DynamicObject, target: &Arc<Target>, slot: &Slot) -> Action {
        let key = work::key(object);
        let memory = self.memories.of(&key);
        let mut memory = memory.lock().await;
        // Since `object` was taken, the watch may have brought another version, or this replica's
        // own write, which memory then forgets.
        let newest = self.known(&key).filter(|newest| newest.metadata.uid == object.metadata.uid);
        let Some((newest, mode)) = newest.and_then(|newest| self.mode(&newest).map(|mode| (newest, mode))) else {
            if self.known(&key).is_none() {
                self.leave(&key);
            }
            return Action::requeue(Duration::ZERO);
        };
        let rest = target.rest();
        let is_ending = newest.metadata.deletion_timestamp.is_some();
        let waits = rest.filter(|_| !is_ending).or_else(|| memory.rests(&newest.metadata, Instant::now()));
        if let Some(waits) = waits {
            return Action::requeue(waits);
        }
        let whole = self.whole(newest, target, &mut memory).await;
        let (mut work, _taken) = match whole {
            Ok(whole) => whole,
            Err(again) => return again,
        };
        memory.recall(&mut work);
        if work.is_ending {
            // From now on, only its deletion is reported.
            drop(memory.take_status());
        }
        if !self.clusters.is_leaving(work.cluster()) {
            memory.left = None;
        }
        let done = match rest {
            Some(rest) => self.tell_waiting(&mut work, &mut memory).await.map(|()| Action::requeue(rest)),
            None => self.pass(&mut work, target, slot, mode, &mut memory).await,
        };
        let action = match done {
            Ok(action) => action,
            Err(failure) => self.failed(&mut work, target, &mut memory, failure).await,
        };
        // The watch cannot mark a work while it is processed, so the version is checked afterwards.
        drop(memory);
        if self.version(&work.key).is_some_and(|version| self.memories.saw(&work.key, &version)) {
            self.wakes.push(&work.key.0, &work.key.1);
        }
        // If the watch reported it as gone meanwhile, its state was forgotten, but this pass may
        // have left some.
        if !self.is_there(&work.key, &work.uid) {
            self.leave(&work.key);
        }
        action
    }

    async fn pass(
        &self,
        work: &mut Work,
        target: &Arc<Target>,
        slot: &Slot,
        mode: Mode,
        memory: &mut Memory,
    ) -> Result<Action, Failure> {
        let answers = target.member.answers();
        let done = if work.is_ending {
            self.end(work, target, slot, mode, memory).await
        } else {
            self.keep(work, target, slot, mode, memory).await
        };
        let is_away = done.as_ref().is_err_and(|failure| failure.away().is_some());
        // A pass in which nothing was asked says nothing of the member.
        if !is_away && target.member.answers() != answers && target.answered() {
            self.wake_in(work.cluster());
        }
        done
    }

    /// The target of a cluster. The hub itself has none.
    fn target(&self, cluster: &str) -> Option<Arc<Target>> {
        let name = ClusterName::parse(cluster).ok().filter(|_| cluster != LOCAL)?;
        let member = || {
            let may_write = Arc::clone(&self.hub.may_write);
            Member::new(&name, self.members.sender(&name), &self.limits, may_write, self.metrics.delivery.clone())
        };
        Some(self.targets.of(&name, member))
    }

    fn route(&self, target: &Target) -> Route {
        Route {
            cluster: target.member.cluster.as_str().to_owned(),
            sender: target.member.sender(),
            lists: target.lists.clone(),
            wakes: self.wakes.clone(),
            answered: self.answered.clone(),
            resync: self.resync,
        }
    }
}

/// Gathers the objects to check. Returns whether that is all of them.
fn owes(work: &Work, target: &Target, memory: &mut Memory) -> bool {
    let changed = target.sights.take_changed(work.name());
    // A kind that was missing may have come, and is not served at once.
    changed.iter().filter(|one| one.resource.is_empty()).for_each(|one| memory.objects.begin_again(one));
    memory.owed.extend(changed);
    let is_resync = memory.resync.is_some_and(|at| at <= Instant::now());
    // Followers that have begun meanwhile have reported the changes.
    let is_blind = is_resync && !memory.is_seen(&target.sights);
    if is_resync && !is_blind {
        memory.resync = None;
    }
    is_blind || memory.settled != Some(work.generation)
}

fn is_due(memory: &Memory) -> bool {
    let now = Instant::now();
    !memory.owed.is_empty()
        || memory.has_begun()
        || memory.due(now).next().is_some()
        || memory.removal.is_some_and(|at| at <= now)
}
