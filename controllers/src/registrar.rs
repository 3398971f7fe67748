//! Decides for all sources which object registers which cluster, and when a registration ends.
//!
//! Feeds report the objects that they see and hand over what they read. The watch of the clusters'
//! Secrets reports which names are taken. `register::claims` and `register::removals` have the
//! rules; the registrar adds the clock, and the leader writes the results.

mod admission;
mod former;
mod removal;
mod source;
mod state;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use parking_lot::Mutex;
use register::claims::{Object, Step};
use register::fingerprint::Sums;
use register::removals::{Moment, Remaining};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

pub use self::source::{Feed, FeedState, Source};
use self::state::{HeldSecret, Registrations};
use crate::events::{Events, Reason};
use crate::metrics::Metrics;
use crate::reports::Reports;
use crate::secrets::{Meta, Secrets};
use crate::term::MayWrite;
use crate::wakes::Wakes;

pub struct Registrar {
    state: Mutex<Registrations>,
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

    /// Waits until the clusters' Secrets are known, which say what was registered.
    pub async fn secrets_known(&self) {
        let mut known = self.state.lock().is_held_known.subscribe();
        let _ = known.wait_for(|known| *known).await;
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
        let of_feed: Vec<String> = state.registered_by(covers).map(|(name, _)| name.clone()).collect();
        for name in of_feed {
            self.note_former(&mut state, &name);
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
        let read = |meta: &Meta| Some((meta.metadata.name.clone()?, HeldSecret::read(meta, &state.sources)));
        let held: HashMap<String, HeldSecret> = secrets.iter().filter_map(read).collect();
        let before = std::mem::replace(&mut state.held, held);
        let changed = |name: &&String| before.get(*name) != state.held.get(*name);
        let names: HashSet<String> = before.keys().chain(state.held.keys()).filter(changed).cloned().collect();
        for name in &names {
            self.forget_foreign(name, state.held.get(name));
        }
        if state.is_held_known.send_replace(true) {
            for name in names {
                self.settle(&mut state, &name);
            }
        } else {
            for name in &names {
                self.note_former(&mut state, name);
            }
            if let clusters @ 1.. = state.unwatched() {
                tracing::warn!(
                    clusters,
                    "clusters stay whose objects are in namespaces that their sources do not read"
                );
            }
        }
        if state.is_ready() {
            self.ready.send_if_modified(|ready| !std::mem::replace(ready, true));
        }
    }

    /// A Secret of the namespace was created, changed, or deleted.
    pub fn secret_changed(&self, name: &str, secret: Option<&Meta>) {
        let mut state = self.state.lock();
        let new = secret.map(|meta| HeldSecret::read(meta, &state.sources));
        let origin =
            |held: Option<&HeldSecret>| held.map(|held| (held.uid.clone(), held.origin.clone(), held.managers));
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
        self.note_former(state, name);
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
