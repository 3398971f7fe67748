//! Decides for all sources which object registers which cluster, and when a registration ends.
//!
//! Feeds report the objects that they see and hand over what they read. The watch of the clusters'
//! Secrets reports which names are taken. `register::claims` and `register::removals` have the
//! rules; the registrar adds the clock, and the leader writes the results.

mod removal;
mod source;
mod state;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use parking_lot::Mutex;
use register::claims::{Object, Step, Verdict, Wish};
use register::expiry::Expiry;
use register::fingerprint::{Sum, Sums};
use register::reading::{Reading, Waiting};
use register::removals::{Moment, Remaining, Withdrawal};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

pub use self::source::{Feed, FeedState, Source};
use self::state::{Cluster, HeldSecret, Registrations};
use crate::calls::asked_to_wait;
use crate::events::{Events, Reason};
use crate::metrics::{Metrics, Operation};
use crate::reports::{Reports, Stage};
use crate::secrets::{Meta, Secrets, Wanted, WriteError};
use crate::term::MayWrite;
use crate::wakes::Wakes;

pub struct Registrar {
    state: Mutex<Registrations>,
    /// Names of the sources, as labels have them.
    names: Vec<&'static str>,
    secrets: Secrets,
    /// Events of the hub that has the clusters' Secrets.
    events: Events,
    reports: Arc<Reports>,
    metrics: Metrics,
    may_write: MayWrite,
    /// Sums of the input that clusters are derived from.
    pub sums: Sums,
    /// Names of registrations to remove.
    ends: Wakes,
    due: Notify,
    ready: watch::Sender<bool>,
    started: Instant,
}

/// An object of a source, as last seen.
#[derive(Clone)]
pub struct Sighting {
    pub object: Object,
    /// Name of the cluster.
    pub name: String,
    pub uid: String,
    /// RFC 3339.
    pub created: String,
    pub reference: ObjectReference,
}

/// A write to try again.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct Retry {
    pub after: Duration,
    pub why: String,
}

// === impl Registrar ===

impl Registrar {
    pub fn new(
        (secrets, events): (Secrets, Events),
        sources: HashMap<&'static str, Source>,
        limit: usize,
        (reports, metrics): (Arc<Reports>, Metrics),
        may_write: MayWrite,
    ) -> Self {
        Self {
            names: sources.keys().copied().collect(),
            state: Mutex::new(Registrations::new(limit, sources)),
            secrets,
            events,
            reports,
            metrics,
            may_write,
            sums: Sums::default(),
            ends: Wakes::default(),
            due: Notify::new(),
            ready: watch::Sender::new(false),
            started: Instant::now(),
        }
    }

    fn now(&self) -> Moment {
        self.started.elapsed()
    }

    /// Completes when names may be given to objects. That needs a list of every source, because a
    /// name belongs to the oldest object, not to the first that was read.
    pub async fn ready(&self) {
        // The sender lives as long as this receiver.
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }

    /// A feed saw a new or changed object.
    pub fn see(&self, sighting: Sighting) {
        let Sighting { object, name, uid, created, reference } = sighting;
        self.reports.see(&object, &name, reference);
        let mut state = self.state.lock();
        // A withdrawal holds until the object is read again without one, however often it is
        // written.
        if state.removals.is_withdrawn(&object) {
            return;
        }
        state.present(&object, self.now());
        if state.recount.is_some() {
            self.due.notify_one();
        }
        for name in state.claims.see(object, &name, &uid, &created) {
            self.settle(&mut state, &name);
        }
    }

    /// A feed saw an object whose name cannot be a cluster's.
    pub fn see_nameless(&self, object: &Object, reference: ObjectReference, why: &str) {
        self.reports.see(object, "", reference);
        let mut state = self.state.lock();
        for name in state.unclaim(object) {
            self.settle(&mut state, &name);
        }
        self.refuse(&state, object, Reason::InvalidClusterName, why);
    }

    /// A feed saw an object's deletion.
    pub fn deleted(&self, object: &Object) {
        self.reports.forget(object);
        let mut state = self.state.lock();
        let now = self.now();
        let is_available = state.sources.get(object.source).is_some_and(Source::is_available);
        state.removals.present(object); // the deletion replaces what was known before
        // Other objects need not be remembered, and they may be any number.
        if state.is_registrant(object) {
            if is_available {
                state.removals.deleted(object.clone(), now);
            } else {
                state.removals.deleted_in_doubt(object.clone());
            }
        }
        self.unclaim(&mut state, object);
    }

    fn unclaim(&self, state: &mut Registrations, object: &Object) {
        let mut names = state.unclaim(object);
        names.extend(state.registered_by(|registrant| registrant == object).map(|(name, _)| name.clone()));
        for name in names {
            self.settle(state, &name);
        }
    }

    /// A feed has a complete list: an object that is not in it is missing. Returns whether another
    /// list is needed to confirm that.
    pub fn listed(&self, source: &'static str, feed: usize, objects: &HashSet<Object>) -> bool {
        let mut state = self.state.lock();
        let now = self.now();
        let feed_there = state.sources.get(source).and_then(|source| source.feeds.get(feed)).cloned();
        let covers = |object: &Object| {
            object.source == source && feed_there.as_ref().is_some_and(|feed| feed.covers(object.key().0))
        };
        let is_absent = |object: &Object| covers(object) && !objects.contains(object);
        self.reports.retain(|object| !is_absent(object));
        state.removals.unlisted(is_absent);
        let registered = state.registered_by(is_absent);
        let (mut names, absent): (Vec<String>, HashSet<Object>) =
            registered.map(|(name, object)| (name.clone(), object.clone())).unzip();
        let claimants = state.claims.objects().map(|(object, _)| object);
        let claimants: Vec<Object> = claimants.filter(|object| is_absent(object)).cloned().collect();
        self.set_feed(&mut state, source, feed, FeedState::Available);
        for object in claimants {
            names.extend(state.unclaim(&object));
        }
        let is_left = |object: &Object| !absent.contains(object) && !state.removals.is_absent(object);
        let mut of_source = state.registered_by(|object| object.source == source);
        let remaining = Remaining::of(of_source.any(|(_, object)| is_left(object)));
        drop(of_source);
        for object in absent {
            state.removals.missing(object, remaining, now);
        }
        state.forget_absences(now);
        for name in names {
            self.settle(&mut state, &name);
        }
        state.removals.are_missing(source)
    }

    /// A feed cannot be read. No registration of its source ends until it can be read again.
    pub fn unavailable(&self, source: &'static str, feed: usize) {
        let mut state = self.state.lock();
        state.removals.doubt(source);
        self.set_feed(&mut state, source, feed, FeedState::Unavailable);
    }

    fn set_feed(&self, state: &mut Registrations, source: &'static str, feed: usize, new: FeedState) {
        if let Some(source) = state.sources.get_mut(source)
            && let Some(feed) = source.feeds.get_mut(feed)
        {
            feed.state = new;
        }
        let is_available = state.sources.get(source).is_some_and(Source::is_available);
        self.metrics.source_available(source, is_available);
        if state.is_ready() {
            self.ready.send_if_modified(|ready| !std::mem::replace(ready, true));
        }
    }

    /// All Secrets of the namespace.
    pub fn secrets_listed(&self, secrets: &[Meta]) {
        let mut state = self.state.lock();
        let read = |meta: &Meta| Some((meta.metadata.name.clone()?, HeldSecret::read(meta, &self.names)));
        let held: HashMap<String, HeldSecret> = secrets.iter().filter_map(read).collect();
        let before = std::mem::replace(&mut state.held, held);
        let changed = |name: &&String| before.get(*name) != state.held.get(*name);
        let names: HashSet<String> = before.keys().chain(state.held.keys()).filter(changed).cloned().collect();
        for name in &names {
            self.forget_foreign(name, state.held.get(name));
        }
        if std::mem::replace(&mut state.is_held_known, true) {
            for name in names {
                self.settle(&mut state, &name);
            }
        }
        if state.is_ready() {
            self.ready.send_if_modified(|ready| !std::mem::replace(ready, true));
        }
    }

    /// A Secret of the namespace was created, changed, or deleted.
    pub fn secret_changed(&self, name: &str, secret: Option<&Meta>) {
        let mut state = self.state.lock();
        let new = secret.map(|meta| HeldSecret::read(meta, &self.names));
        let origin = |held: Option<&HeldSecret>| held.map(|held| (held.uid.clone(), held.origin.clone()));
        let is_same = origin(state.held.get(name)) == origin(new.as_ref());
        self.forget_foreign(name, new.as_ref());
        match new {
            Some(new) => state.held.insert(name.to_owned(), new),
            None => state.held.remove(name),
        };
        if !is_same {
            self.settle(&mut state, name);
        }
    }

    /// Clears a cluster's metrics once its name has no Secret of ours.
    fn forget_foreign(&self, name: &str, held: Option<&HeldSecret>) {
        if held.is_none_or(|held| held.origin.is_none()) {
            self.metrics.ended(name);
        }
    }

    /// Judges a name anew, and starts the step that follows.
    fn settle(&self, state: &mut Registrations, name: &str) {
        if !state.is_ready() {
            return; // every object is read after that
        }
        let before = state.next_due();
        match state.judge(name, self.now()).step {
            Step::Keep | Step::Wait => {}
            Step::Write(object) | Step::Refuse(object) => wake(state, &object),
            Step::Remove => self.ends.push("", name),
        }
        if state.next_due() != before {
            self.due.notify_one();
        }
    }

    /// Whether nothing needs to be done for an object with an input of this `sum`: its cluster's
    /// Secret was derived from the same input.
    pub fn is_settled(&self, object: &Object, sum: Option<Sum>) -> bool {
        let Some(sum) = sum else { return false };
        let Some((cluster, expiry)) = self.state.lock().settled(object, sum, self.now()) else { return false };
        self.registered(object, &cluster, expiry);
        true
    }

    /// Reports that an object's cluster is in its Secret.
    fn registered(&self, object: &Object, cluster: &str, expiry: Expiry) {
        self.metrics.expires(cluster, expiry);
        self.reports.settle(object, Stage::Registered, "");
    }

    /// Takes what was read of an object, from an input of this `sum`, and writes it if the object
    /// has the name.
    pub async fn take(&self, sighting: Sighting, reading: Reading, sum: Option<Sum>) -> Result<(), Retry> {
        let object = &sighting.object.clone();
        match &reading {
            Reading::Waiting(why) if why.ends() => {
                self.withdraw(object, *why);
                return Ok(());
            }
            _ => self.stay(sighting),
        }
        let cluster = match &reading {
            Reading::Register(secret) => {
                let uid = self.state.lock().claims.get(object).map(|claim| claim.uid.clone());
                let Some(uid) = uid else { return Ok(()) };
                let hash = register::fingerprint::of(secret, &uid);
                Some(Cluster { secret, hash, expiry: Expiry::of(&secret.credential), sum })
            }
            _ => None,
        };
        let Some((name, uid)) = self.admit(object, &reading, cluster.as_ref()) else { return Ok(()) };
        let Some(Cluster { secret, hash, expiry, .. }) = &cluster else { return Ok(()) };
        let wanted = Wanted { name: &name, object, uid: &uid, hash, secret };
        let outcome = self.write(&wanted).await;
        let mut state = self.state.lock();
        for waiting in state.busy.remove(&name).unwrap_or_default() {
            wake(&state, &waiting);
        }
        match outcome {
            Ok(meta) => {
                state.held.insert(name.clone(), HeldSecret::read(&meta, &self.names));
                self.registered(object, &name, *expiry);
                // The object may have gone during the write.
                self.settle(&mut state, &name);
                Ok(())
            }
            Err(error) => {
                // A removal that came due during the write found the name busy.
                if state.judge(&name, self.now()).step == Step::Remove {
                    self.ends.push("", &name);
                }
                Err(self.failed(&state, object, &error))
            }
        }
    }

    /// Handles an object that no longer registers a cluster, by its own content.
    fn withdraw(&self, object: &Object, why: Waiting) {
        self.reports.settle(object, Stage::Waiting, &why.to_string());
        let mut state = self.state.lock();
        let now = self.now();
        // An object that registered no cluster is no part of a mass deletion.
        let is_of_a_crowd = why == Waiting::Leaving && state.is_registrant(object);
        let by = if is_of_a_crowd { Withdrawal::Deletion } else { Withdrawal::Refusal };
        state.removals.withdrawn(object.clone(), by, now);
        self.unclaim(&mut state, object);
    }

    /// Takes back a withdrawal if the object registers a cluster again.
    fn stay(&self, sighting: Sighting) {
        let is_back = {
            let mut state = self.state.lock();
            state.removals.is_withdrawn(&sighting.object) && state.removals.present(&sighting.object)
        };
        if is_back {
            self.see(sighting);
        }
    }

    /// Judges the name of an object that was read. If its Secret must be written, marks the name as
    /// busy and returns it with the object's uid.
    fn admit(&self, object: &Object, reading: &Reading, cluster: Option<&Cluster<'_>>) -> Option<(String, String)> {
        let mut state = self.state.lock();
        let claim = state.claims.get(object)?;
        let (name, uid) = (claim.name.clone(), claim.uid.clone());
        let wish = match reading {
            Reading::Register(_) => Wish::Register(cluster?.hash.clone()),
            Reading::Refused(_) => Wish::Refused,
            Reading::Paused => Wish::Paused,
            Reading::Waiting(_) => Wish::Waiting,
        };
        state.wish(object, wish, cluster.and_then(Cluster::derived));
        if let Some(waiting) = state.busy.get_mut(&name) {
            waiting.insert(object.clone());
            return None;
        }
        let Verdict { step, owner, losers } = state.judge(&name, self.now());
        self.due.notify_one();
        if losers.contains(object) {
            let owner = owner.map_or_else(|| state.holder_in_words(&name), |owner| owner.reference);
            let note = format!("cluster {name} is registered by {owner}");
            self.stand_back(&state, object, &note);
            return None;
        }
        match step {
            Step::Write(owner) if owner == *object => {
                state.busy.insert(name.clone(), BTreeSet::new());
                return Some((name, uid));
            }
            Step::Write(other) => wake(&state, &other),
            Step::Remove => self.ends.push("", &name),
            Step::Refuse(_) | Step::Keep | Step::Wait => match cluster {
                Some(cluster) => self.registered(object, &name, cluster.expiry),
                None => self.report(&state, object, reading),
            },
        }
        None
    }

    /// Reports why an object registers no cluster.
    fn report(&self, state: &Registrations, object: &Object, reading: &Reading) {
        match reading {
            Reading::Register(_) => {}
            Reading::Paused => _ = self.reports.settle(object, Stage::Paused, ""),
            Reading::Waiting(why) => _ = self.reports.settle(object, Stage::Waiting, &why.to_string()),
            Reading::Refused(why) => self.refuse(state, object, Reason::ClusterRefused, &why.to_string()),
        }
    }

    fn stand_back(&self, state: &Registrations, object: &Object, note: &str) {
        if self.reports.settle(object, Stage::Taken, note) {
            tracing::warn!(source = object.source, object = object.reference, "{note}");
            self.publish(state, object, Reason::ClusterNameTaken, note);
        }
    }

    fn refuse(&self, state: &Registrations, object: &Object, reason: Reason, why: &str) {
        if self.reports.settle(object, Stage::Refused, why) {
            tracing::warn!(source = object.source, object = object.reference, "the object registers no cluster: {why}");
            self.publish(state, object, reason, why);
        }
    }

    fn publish(&self, state: &Registrations, object: &Object, reason: Reason, note: &str) {
        if let (Some(source), Some(reference)) = (state.sources.get(object.source), self.reports.reference(object)) {
            source.events.publish(reference, reason, note.to_owned());
        }
    }

    async fn write(&self, wanted: &Wanted<'_>) -> Result<Meta, WriteError> {
        let held = self.state.lock().held.get(wanted.name).cloned();
        let mut uid = held.as_ref().map(|held| held.uid.clone());
        if let Some(held) = held
            && let Some(origin) = &held.origin
            && origin.object != *wanted.object
            && origin.uid != wanted.uid
        {
            // The name passes to another cluster. A delete and a create, instead of an update, keep
            // clients that are connected to the old cluster from reaching the new one.
            self.secrets.remove(wanted.name, (&held.uid, &held.version), (self.may_write)()).await?;
            self.metrics.wrote(wanted.object.source, Operation::Delete);
            uid = None;
        }
        let meta = self.secrets.write(wanted, uid.as_deref(), (self.may_write)()).await?;
        let (source, object, cluster) = (wanted.object.source, &wanted.object.reference, wanted.name);
        let operation = if uid.is_some() { Operation::Update } else { Operation::Create };
        self.metrics.wrote(source, operation);
        if let Some(took) = self.reports.written(wanted.object) {
            self.metrics.registered_after(took);
        }
        tracing::info!(source, object, cluster, operation = operation.as_str(), "the cluster's Secret is written");
        if uid.is_none() {
            let note = format!("cluster {cluster} is registered");
            self.publish(&self.state.lock(), wanted.object, Reason::ClusterRegistered, &note);
        }
        Ok(meta)
    }

    fn failed(&self, state: &Registrations, object: &Object, error: &WriteError) -> Retry {
        let why = error.to_string();
        let stage = matches!(error, WriteError::Conflict(_)).then(|| {
            self.publish(state, object, Reason::SecretConflict, &why);
            Stage::Refused
        });
        let asked = error.hub().map(asked_to_wait).unwrap_or_default();
        Retry { after: self.reports.failed(object, stage, &why).max(asked), why }
    }
}

/// Wakes an object in its source's feeds.
fn wake(state: &Registrations, object: &Object) {
    let (namespace, name) = object.key();
    if let Some(source) = state.sources.get(object.source) {
        source.wake(namespace, name);
    }
}

#[cfg(test)]
mod tests;
