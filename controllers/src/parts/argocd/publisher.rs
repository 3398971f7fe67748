//! Writes the clusters' Secrets, one by one.

use std::sync::Arc;
use std::time::Duration;

use api::cluster_name::ClusterName;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, ListParams, Patch};
use kube::runtime::controller::Action;
use kube::{Api, Resource as _, ResourceExt as _};
use register::profile::GatewayAddress;

use super::NAME;
use super::inventory::{Difference, Inventory};
use super::secret::{Content, HeldSecret, secret_name, writers};
use crate::calls::{CONFLICT, creating, merging};
use crate::events::{Events, Reason};
use crate::metrics::{Metrics, Operation};
use crate::parts::hub_calls::{self, CallError, LeaderClient, found, managed_clusters};
use crate::parts::worker::{Failure, Tries, Worker, judged, key};

/// Time between two writes of one Secret, because another writer may revert each of them.
const PAUSE: Duration = Duration::from_secs(5);

pub struct Publisher {
    /// Secrets in Argo CD's namespace.
    pub secrets: Api<Secret>,
    pub hub: LeaderClient,
    pub gateway: GatewayAddress,
    pub inventory: Arc<Inventory>,
    pub events: Events,
    pub metrics: Metrics,
    pub tries: Tries,
}

// === impl Worker ===

impl Worker for Publisher {
    const KIND: &'static str = "ManagedCluster";

    async fn work(&self, object: &DynamicObject) -> Result<Action, Failure> {
        let name = object.name_any();
        let done = self.publish(object, &name).await;
        self.count();
        let is_accepted = || self.inventory.is_accepted(&name);
        judged(done, &self.tries, &key(object), is_accepted, || self.metrics.failed(NAME))
    }

    fn tries(&self) -> &Tries {
        &self.tries
    }
}

// === impl Publisher ===

impl Publisher {
    pub fn count(&self) {
        self.metrics.argocd.secrets.set(i64::try_from(self.inventory.settled()).unwrap_or(i64::MAX));
    }

    async fn publish(&self, object: &DynamicObject, name: &str) -> Result<Action, Failure> {
        // `removal` handles Secrets of clusters that are not accepted. Without a token, all
        // clusters wait for one.
        let Some(token) = self.inventory.token().filter(|_| self.inventory.is_accepted(name)) else {
            return Ok(Action::await_change());
        };
        let cluster =
            ClusterName::parse(name).map_err(|error| Failure::Reported(format!("no Secret has it: {error}")))?;
        let content = Content::new(&cluster, &self.gateway, &token.text);
        let written = match self.inventory.difference(name, &content) {
            Difference::None => return Ok(Action::await_change()),
            Difference::Missing => self.create(object, &cluster, &content).await?,
            Difference::Other { uid, version } => {
                let last = self.inventory.written_at(name);
                if let Some(rest) = last.and_then(|last| PAUSE.checked_sub(last.elapsed())) {
                    return Ok(Action::requeue(rest));
                }
                self.update(&cluster, &content, (&uid, &version)).await?
            }
        };
        if let Some((cluster, held)) = HeldSecret::read(&written) {
            self.inventory.wrote(&cluster, held);
        }
        Ok(Action::await_change())
    }

    async fn create(
        &self,
        object: &DynamicObject,
        cluster: &ClusterName,
        content: &Content,
    ) -> Result<Secret, Failure> {
        let secret = content.secret(cluster);
        match self.hub.write(self.secrets.create(&creating(), &secret)).await {
            Ok(created) => {
                self.metrics.argocd.wrote(Operation::Create);
                tracing::info!(cluster = cluster.as_str(), "its Secret for Argo CD was created");
                Ok(created)
            }
            Err(error) if error.is(CONFLICT) => self.take_back(object, cluster, content).await,
            Err(error) => Err(error.into()),
        }
    }

    /// Handles a name that exists although no Secret of ours is known. Either the label was
    /// removed, or the Secret is another program's.
    async fn take_back(
        &self,
        object: &DynamicObject,
        cluster: &ClusterName,
        content: &Content,
    ) -> Result<Secret, Failure> {
        let name = secret_name(cluster.as_str());
        let named = ListParams::default().fields(&format!("metadata.name={name}"));
        let found = hub_calls::list_metadata(&self.secrets, named).await?.pop().ok_or(CallError::Gone)?;
        if let Some((_, held)) = HeldSecret::of(&found, None) {
            return self.update(cluster, content, (&held.uid, &held.version)).await;
        }
        let note = format!(
            "Secret {}/{name} was not created by this program ({} wrote it), and Argo CD gets no other Secret of \
             cluster {}: delete it, or create it under another name; the cluster's Secret is then written within 5 \
             minutes",
            found.namespace.as_deref().unwrap_or_default(),
            writers(&found),
            cluster.as_str()
        );
        self.events.publish(object.object_ref(&managed_clusters()), Reason::ArgocdSecretNameTaken, note.clone());
        Err(Failure::Reported(note))
    }

    async fn update(&self, cluster: &ClusterName, content: &Content, of: (&str, &str)) -> Result<Secret, Failure> {
        let (name, patch) = (secret_name(cluster.as_str()), content.patch(cluster, of));
        let call = async { self.secrets.patch(&name, &merging(), &Patch::Merge(&patch)).await };
        let written = found(self.hub.write(call).await)?.ok_or(CallError::Gone)?;
        self.metrics.argocd.wrote(Operation::Update);
        tracing::info!(cluster = cluster.as_str(), "its Secret for Argo CD was brought up to date");
        Ok(written)
    }
}

#[cfg(test)]
mod tests;
