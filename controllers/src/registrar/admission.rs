//! Takes what was read of an object: gives it its name, writes the cluster's Secret, and reports
//! what came of it.

use std::collections::BTreeSet;

use register::claims::{Object, Step, Verdict, Wish};
use register::expiry::Expiry;
use register::fingerprint::Sum;
use register::kubeconfig;
use register::reading::{Reading, Waiting};
use register::removals::Withdrawal;

use super::state::{Cluster, HeldSecret, Registrations};
use super::{Registrar, Retry, Sighting, wake};
use crate::calls::asked_to_wait;
use crate::events::Reason;
use crate::metrics::Operation;
use crate::reports::Stage;
use crate::secrets::{DesiredRegistration, Meta, WriteError, Written};

impl Registrar {
    /// Whether nothing needs to be done for an object with an input of this `sum`: its cluster's
    /// Secret was derived from the same input.
    pub fn is_settled(&self, object: &Object, sum: Option<Sum>) -> bool {
        let Some(sum) = sum else { return false };
        let Some((cluster, expiry)) = self.state.lock().settled(object, sum, self.now()) else { return false };
        self.registered(object, &cluster, expiry);
        true
    }

    /// Reports that an object's cluster is in its Secret.
    pub(super) fn registered(&self, object: &Object, cluster: &str, expiry: Expiry) {
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
        let Some((reading, hash)) = self.checked(object, reading) else { return Ok(()) };
        let cluster = match &reading {
            Reading::Register(secret) => Some(Cluster { secret, hash, expiry: Expiry::of(&secret.credential), sum }),
            _ => None,
        };
        let Some((name, uid)) = self.admit(object, &reading, cluster.as_ref()) else { return Ok(()) };
        let Some(Cluster { secret, hash, expiry, .. }) = &cluster else { return Ok(()) };
        let wanted = DesiredRegistration { name: &name, object, uid: &uid, hash, secret };
        let outcome = self.write(&wanted).await;
        let mut state = self.state.lock();
        for waiting in state.busy.remove(&name).unwrap_or_default() {
            wake(&state, &waiting);
        }
        match outcome {
            Ok(meta) => {
                let held = HeldSecret::read(&meta, &state.sources);
                state.held.insert(name.clone(), held);
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

    /// The reading after the check of its private key, and the hash of its cluster, empty if it
    /// registers none. None if the object claims no name. Content whose hash the cluster's Secret
    /// has was checked before it was written.
    fn checked(&self, object: &Object, reading: Reading) -> Option<(Reading, String)> {
        let Reading::Register(secret) = &reading else { return Some((reading, String::new())) };
        let claim = self.state.lock().claims.get(object).cloned()?;
        // Computed without the lock. If the claim or the Secret changes meanwhile, `admit` judges
        // the name anew. No content of another object has this hash: the uid is its key.
        let hash = register::fingerprint::of(secret, &claim.uid);
        let is_known = self.state.lock().has_hash(&claim.name, &hash);
        Some((if is_known { reading } else { kubeconfig::checked(reading) }, hash))
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

    /// The rights that the acceptance of an object's cluster gave are gone. If the object was
    /// refused, its Secret goes now: it waited for that.
    pub fn stripped(&self, object: &Object) {
        let mut state = self.state.lock();
        if state.removals.stripped(object) {
            self.unclaim(&mut state, object);
        }
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

    pub(super) fn refuse(&self, state: &Registrations, object: &Object, reason: Reason, why: &str) {
        if self.reports.settle(object, Stage::Refused, why) {
            tracing::warn!(source = object.source, object = object.reference, "the object registers no cluster: {why}");
            self.publish(state, object, reason, why);
        }
    }

    pub(super) fn publish(&self, state: &Registrations, object: &Object, reason: Reason, note: &str) {
        if let (Some(source), Some(reference)) = (state.sources.get(object.source), self.reports.reference(object)) {
            source.events.publish(reference, reason, note.to_owned());
        }
    }

    pub(super) async fn write(&self, wanted: &DesiredRegistration<'_>) -> Result<Meta, WriteError> {
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
        let Written { meta, labels_left } = self.secrets.write(wanted, uid.as_deref(), (self.may_write)()).await?;
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
        if !labels_left.is_empty() {
            let labels = labels_left.join(", ");
            let note = format!(
                "another field manager has set labels of the Secret of cluster {cluster}, which stay as they are: \
                 {labels}; everything else follows the object"
            );
            tracing::info!(source, object, "{note}");
            self.publish(&self.state.lock(), wanted.object, Reason::SecretConflict, &note);
        }
        Ok(meta)
    }

    fn failed(&self, state: &Registrations, object: &Object, error: &WriteError) -> Retry {
        let why = error.to_string();
        let stage = matches!(error, WriteError::Conflict(..)).then(|| {
            self.publish(state, object, Reason::SecretConflict, &why);
            Stage::Refused
        });
        let asked = error.hub().map(asked_to_wait).unwrap_or_default();
        Retry { after: self.reports.failed(object, stage, &why).max(asked), why }
    }
}
