//! Writes and removes the rights that acceptance gives a cluster.

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use register::ocm::acceptance::{self, Cluster, Difference, Key, Kind, WORK_FINALIZER, Wanted};
use register::ocm::leaving::{self, DEPENDENTS};
use register::ocm::standing::{self, BadName};
use serde_json::{Value, json};

use super::hub::{CallError, Hub, found, list_metadata};
use super::mirror::Mirror;
use crate::calls::{MANAGER, creating};

pub struct Rights {
    pub hub: Hub,
    pub mirror: Mirror,
    /// Namespace of the clusters' Secrets, which cannot be a cluster's.
    pub own_namespace: String,
    /// The Secret that agents may fill: in their own cluster's namespace, where the source `ocm`
    /// reads it.
    pub filled: Option<String>,
}

/// Why an acceptance is not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error(transparent)]
    Name(#[from] BadName),
    #[error(
        "the namespace exists and is not the cluster's: if it is to be, label it \
         open-cluster-management.io/cluster-name with the cluster's name; or create the ManagedCluster with another name"
    )]
    Foreign,
    #[error("the cluster's namespace is being deleted: the cluster is accepted once the namespace is gone")]
    Terminating,
    #[error("{0}")]
    Admission(String),
    #[error("cannot write {kind:?} {name}: {error}", kind = .key.kind, name = .key.name)]
    Write { key: Key, error: CallError },
}

// === impl Refused ===

impl Refused {
    /// The text for the condition. It leaves out the hub's message, because a message that changes
    /// each time would cause a write each time.
    pub fn for_condition(&self) -> String {
        match self {
            Self::Write { key, .. } => {
                format!("cannot write {:?} {}: the Event AcceptanceFailed says why", key.kind, key.name)
            }
            told => told.to_string(),
        }
    }
}

// === impl Rights ===

impl Rights {
    /// The objects that an accepted cluster still lacks.
    pub fn missing(&self, cluster: &Cluster<'_>) -> Result<Vec<Wanted>, Refused> {
        standing::check_name(cluster.name, &self.own_namespace)?;
        if let Some(namespace) = self.mirror.value(&cluster.namespace_key()) {
            if !namespace["metadata"]["deletionTimestamp"].is_null() {
                return Err(Refused::Terminating);
            }
            if !acceptance::is_clusters(&namespace, cluster.name) {
                return Err(Refused::Foreign);
            }
        }
        let all = acceptance::common_roles(self.filled.as_deref()).into_iter();
        let all = all.chain(cluster.granted(self.filled.is_some()));
        Ok(all.filter(|wanted| self.mirror.difference(wanted) != Some(Difference::Nothing)).collect())
    }

    /// Writes the missing objects, in order.
    pub async fn grant(&self, missing: &[Wanted]) -> Result<(), Refused> {
        for wanted in missing {
            self.write(wanted).await?;
        }
        Ok(())
    }

    /// Whether the cluster was accepted before. Its status does not prove it, because an agent
    /// writes the status, and could remove the record of the decision.
    pub fn were_given(&self, cluster: &Cluster<'_>) -> bool {
        self.has_clusters_name(cluster) && self.mirror.get(&cluster.mark_key()).is_some()
    }

    /// Whether the cluster's name may be used in rights. Roles and bindings with reserved names
    /// belong to the hub. Any other right of a cluster has its name, whichever controllers gave it.
    fn has_clusters_name(&self, cluster: &Cluster<'_>) -> bool {
        standing::check_name(cluster.name, &self.own_namespace).is_ok()
    }

    /// Removes what a refusal takes away, and reduces the rest.
    pub async fn withdraw(&self, cluster: &Cluster<'_>) -> Result<(), CallError> {
        for key in cluster.withdrawn() {
            self.delete(&key).await?;
        }
        for wanted in cluster.left() {
            if self.has_clusters_name(cluster)
                && self.mirror.difference(&wanted).is_some_and(|difference| difference != Difference::Nothing)
            {
                self.apply(&wanted).await?;
            }
        }
        Ok(())
    }

    /// Removes everything except the namespace. `keep_work`: keeps the right to works until they
    /// have ended.
    pub async fn end(&self, cluster: &Cluster<'_>, keep_work: bool) -> Result<(), CallError> {
        let work = cluster.work_key();
        let ended = cluster.ended();
        let ended = ended.iter().filter(|_| self.has_clusters_name(cluster));
        for key in cluster.withdrawn().iter().chain(ended) {
            if !(keep_work && *key == work) {
                self.delete(key).await?;
            }
        }
        Ok(())
    }

    /// Deletes the next objects in the namespace of a cluster that leaves. True if there were any.
    pub async fn delete_dependents(&self, cluster: &Cluster<'_>) -> Result<bool, CallError> {
        let namespace = self.mirror.value(&cluster.namespace_key()).filter(|_| self.has_clusters_name(cluster));
        if !namespace.is_some_and(|namespace| acceptance::is_clusters(&namespace, cluster.name)) {
            return Ok(false);
        }
        for (group, version, plural) in DEPENDENTS {
            let resource = super::hub::resource(group, version, "", plural);
            let api: Api<DynamicObject> = Api::namespaced_with(self.hub.client.clone(), cluster.name, &resource);
            let Some(list) = found(list_metadata(&api, ListParams::default()).await)? else { continue };
            let all: Vec<Value> = list.iter().map(|metadata| json!({"metadata": metadata})).collect();
            for name in leaving::first(&all) {
                found(self.hub.write(api.delete(name, &DeleteParams::default())).await)?;
            }
            if !all.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn write(&self, wanted: &Wanted) -> Result<(), Refused> {
        let unwritten = |error| Refused::Write { key: wanted.key.clone(), error };
        if wanted.key.kind == Kind::Namespace {
            return self.create_namespace(wanted).await;
        }
        if self.mirror.difference(wanted) == Some(Difference::Whole) {
            self.delete(&wanted.key).await.map_err(unwritten)?;
        }
        self.apply(wanted).await.map_err(unwritten)
    }

    /// Creates the namespace, but never changes it: an existing one without the cluster's label has
    /// another owner.
    async fn create_namespace(&self, wanted: &Wanted) -> Result<(), Refused> {
        let unwritten = |error| Refused::Write { key: wanted.key.clone(), error };
        if self.mirror.get(&wanted.key).is_some() {
            return Ok(());
        }
        let object: DynamicObject = serde_json::from_value(wanted.document.clone())
            .map_err(|error| unwritten(CallError::Hub(kube::Error::SerdeError(error))))?;
        let api = self.mirror.api(&wanted.key);
        match self.hub.write(api.create(&creating(), &object)).await {
            Ok(_) => Ok(()),
            // The mirror may not have seen our own namespace yet.
            Err(error) if error.is_conflict() => self.check_namespace(wanted).await,
            Err(error) => Err(unwritten(error)),
        }
    }

    async fn check_namespace(&self, wanted: &Wanted) -> Result<(), Refused> {
        let api = self.mirror.api(&wanted.key);
        let unwritten = |error| Refused::Write { key: wanted.key.clone(), error };
        let existing = self.hub.read(api.get(&wanted.key.name)).await.map_err(unwritten)?;
        if acceptance::is_clusters(&super::hub::value(&existing), &wanted.key.name) {
            Ok(())
        } else {
            Err(Refused::Foreign)
        }
    }

    /// With force: the rights must be exactly these, whichever client wrote others.
    async fn apply(&self, wanted: &Wanted) -> Result<(), CallError> {
        let parameters = PatchParams::apply(MANAGER).force();
        let api = self.mirror.api(&wanted.key);
        self.hub.write(api.patch(&wanted.key.name, &parameters, &Patch::Apply(&wanted.document))).await.map(drop)
    }

    /// Deletes only what the mirror has. If an object arrives there later, the cluster is looked at
    /// again.
    async fn delete(&self, key: &Key) -> Result<(), CallError> {
        let Some(existing) = self.mirror.value(key) else { return Ok(()) };
        let api = self.mirror.api(key);
        if let Some(rest) = without_finalizer(&existing) {
            // The finalizer would keep the right in force until it is removed.
            let change = json!({"metadata": {"finalizers": rest}});
            found(self.hub.merge(&api, &key.name, &change).await)?;
        }
        found(self.hub.write(api.delete(&key.name, &DeleteParams::default())).await).map(drop)
    }
}

/// The finalizers without the one for works; None if it is not among them.
fn without_finalizer(object: &Value) -> Option<Vec<&Value>> {
    let all = object["metadata"]["finalizers"].as_array()?;
    let rest: Vec<&Value> = all.iter().filter(|finalizer| *finalizer != WORK_FINALIZER).collect();
    (rest.len() < all.len()).then_some(rest)
}
