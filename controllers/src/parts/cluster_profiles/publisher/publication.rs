//! Writes a cluster's profiles where they differ, and removes those without a cluster.

use std::time::Duration;

use kube::Resource as _;
use register::profile::{Owner, Registered, is_said};
use serde_json::Value;
use tokio::time::sleep;

use super::super::books::{Entry, Profile};
use super::super::writer::{Of, WriteError};
use super::Publisher;
use crate::calls::{MANAGER, now_text, value};
use crate::events::Reason;
use crate::metrics::{Operation, ProfileState};
use crate::secrets::Meta;

/// Wait after a removal that failed.
const REMOVE_AGAIN: Duration = Duration::from_secs(5);

/// A profile could not be written. The cluster is tried again.
#[derive(Debug, thiserror::Error)]
#[error("cluster {cluster}: ClusterProfile {namespace}/{cluster}: {cause}")]
pub struct Unwritten {
    cluster: String,
    namespace: String,
    cause: WriteError,
}

// === impl Publisher ===

impl Publisher {
    /// Returns whether a profile reports the cluster as healthy, which is known also after a
    /// restart.
    pub(super) async fn publish(&self, cluster: &Registered, secret: &Meta) -> Result<bool, Unwritten> {
        let mut outcome = Ok(false);
        for namespace in &self.namespaces {
            // The cluster may have gone during its probe.
            if !self.clusters.has(cluster.name.as_str()) {
                break;
            }
            match self.publish_into(namespace, cluster, secret).await {
                Ok(is_well) => outcome = outcome.map(|before| before || is_well),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome
    }

    async fn publish_into(&self, namespace: &str, cluster: &Registered, secret: &Meta) -> Result<bool, Unwritten> {
        let name = cluster.name.as_str();
        let mut before = match self.books.find(namespace, name) {
            Entry::Unknown => return Ok(false),
            Entry::Free => Value::Null,
            Entry::There(Profile { owner: Owner::Other(who), .. }) => {
                self.stand_back(namespace, name, secret, &who);
                return Ok(false);
            }
            Entry::There(profile) => profile.value(),
        };
        let uid = before["metadata"]["uid"].as_str().map(str::to_owned);
        let object = cluster.object(namespace, &self.place, uid.as_deref());
        if !is_said(&before, &object, MANAGER, Of::Object.subresource()) {
            let operation = if uid.is_some() { Operation::Update } else { Operation::Create };
            before = self.write(namespace, cluster, secret, &object, (Of::Object, operation)).await?;
        }
        let now = now_text();
        let status = cluster.status(namespace, &self.gateway, &self.clusters.seen(name), &before, &now);
        if !is_said(&before, &status, MANAGER, Of::Status.subresource()) {
            self.write(namespace, cluster, secret, &status, (Of::Status, Operation::Update)).await?;
        }
        self.metrics.profiles.settle(namespace, name, ProfileState::Published);
        Ok(status["status"]["conditions"][0]["status"] == "True")
    }

    async fn write(
        &self,
        namespace: &str,
        cluster: &Registered,
        secret: &Meta,
        document: &Value,
        (of, operation): (Of, Operation),
    ) -> Result<Value, Unwritten> {
        let name = cluster.name.as_str();
        match self.writer.apply(namespace, name, document, of).await {
            Ok(written) => {
                self.metrics.profiles.wrote(operation);
                let value = value(&written);
                self.books.see(namespace, written);
                Ok(value)
            }
            Err(cause) => {
                if self.metrics.profiles.settle(namespace, name, ProfileState::Failed)
                    && let WriteError::Conflict(why) = &cause
                {
                    let note = format!("ClusterProfile {namespace}/{name} is not written: {why}; remove these fields");
                    self.events.publish(secret.object_ref(&()), Reason::ProfileConflict, note);
                }
                Err(Unwritten { cluster: name.to_owned(), namespace: namespace.to_owned(), cause })
            }
        }
    }

    /// Leaves another manager's profile alone.
    fn stand_back(&self, namespace: &str, name: &str, secret: &Meta, who: &str) {
        if self.metrics.profiles.settle(namespace, name, ProfileState::Taken) {
            let note = format!(
                "ClusterProfile {namespace}/{name} belongs to {who} and is not changed: publish into another namespace \
                 (--clusterprofile-namespaces)"
            );
            tracing::warn!(cluster = name, "{note}");
            self.events.publish(secret.object_ref(&()), Reason::ProfileNameTaken, note);
        }
    }

    /// Removes one of our profiles whose cluster is not registered.
    pub(super) async fn remove(&self, namespace: String, name: String) {
        if !self.clusters.are_listed() || self.clusters.has(&name) {
            return;
        }
        self.metrics.profiles.forget(&namespace, &name);
        let Entry::There(profile) = self.books.find(&namespace, &name) else { return };
        if profile.owner != Owner::We {
            return;
        }
        match self.writer.remove(&namespace, &name, &profile).await {
            Ok(()) => {
                self.books.forget(&namespace, &name, &profile.uid);
                self.metrics.profiles.wrote(Operation::Delete);
                tracing::info!(
                    cluster = name,
                    namespace,
                    "the ClusterProfile is removed: its cluster is not registered"
                );
            }
            Err(error) => {
                tracing::warn!(%error, cluster = name, namespace, "the ClusterProfile is not removed yet");
                sleep(REMOVE_AGAIN).await;
                self.orphans.push(&namespace, &name);
            }
        }
    }
}
