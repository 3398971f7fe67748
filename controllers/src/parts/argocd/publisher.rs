//! Writes the Secrets of clusters, one by one.

use std::sync::Arc;
use std::time::Duration;

use api::cluster_name::ClusterName;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, Patch};
use kube::runtime::controller::Action;
use kube::{Api, Resource as _, ResourceExt as _};
use register::profile::Way;

use super::NAME;
use super::secret::{Content, Held, secret_name};
use super::state::{Difference, State};
use super::watches::resource;
use crate::calls::{CONFLICT, creating, is, merging};
use crate::events::{Events, Reason};
use crate::metrics::{Metrics, Operation};
use crate::parts::hub::{CallError, Hub, found};
use crate::parts::worker::{Failure, Tries, Worker};

/// Between two writes of one Secret: somebody may change it back.
const PAUSE: Duration = Duration::from_secs(5);

pub struct Publisher {
    /// In Argo CD's namespace.
    pub secrets: Api<Secret>,
    pub hub: Hub,
    pub way: Way,
    pub state: Arc<State>,
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
        let is_over = done.is_err() && !self.state.is_accepted(&name);
        self.count();
        if is_over {
            return Ok(Action::await_change());
        }
        if done.as_ref().is_err_and(|failure| !failure.is_conflict()) {
            self.metrics.failed(NAME);
        }
        done
    }

    fn tries(&self) -> &Tries {
        &self.tries
    }
}

// === impl Publisher ===

impl Publisher {
    pub fn count(&self) {
        self.metrics.argocd.secrets.set(i64::try_from(self.state.settled()).unwrap_or(i64::MAX));
    }

    async fn publish(&self, object: &DynamicObject, name: &str) -> Result<Action, Failure> {
        // Whose Secret is to go, the removals see to. Without a token, all wait for one.
        let Some(token) = self.state.token().filter(|_| self.state.is_accepted(name)) else {
            return Ok(Action::await_change());
        };
        let cluster = ClusterName::parse(name).map_err(|error| Failure::Told(format!("no Secret has it: {error}")))?;
        let content = Content::new(&cluster, &self.way, &token.text);
        let written = match self.state.difference(name, &content) {
            Difference::None => return Ok(Action::await_change()),
            Difference::Missing => self.create(object, &cluster, &content).await?,
            Difference::Other { uid, version } => {
                let last = self.state.written_at(name);
                if let Some(rest) = last.and_then(|last| PAUSE.checked_sub(last.elapsed())) {
                    return Ok(Action::requeue(rest));
                }
                self.update(&cluster, &content, (&uid, &version)).await?
            }
        };
        if let Some((cluster, held)) = Held::read(&written) {
            self.state.wrote(&cluster, held);
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
            Err(CallError::Hub(error)) if is(&error, CONFLICT) => {
                let note = format!(
                    "the Secret {} of Argo CD's namespace was not created by this program: rename or remove it",
                    secret_name(cluster.as_str())
                );
                self.events.tell(object.object_ref(&resource()), Reason::ArgocdSecretNameTaken, note.clone());
                Err(Failure::Told(note))
            }
            Err(error) => Err(error.into()),
        }
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
