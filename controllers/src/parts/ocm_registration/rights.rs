//! Writes and removes the rights that acceptance gives a cluster.

use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use register::ocm::acceptance::{self, Cluster, DesiredGrant, Difference, Key, Kind, ObservedGrant};
use register::ocm::leaving::{self, DEPENDENTS};
use register::ocm::standing::{self, BadName};
use serde_json::{Value, json};

use super::hub_calls::{CallError, LeaderClient, found, list_metadata};
use super::mirror::Mirror;
use super::unseen::Unseen;
use crate::calls::{MANAGER, creating};

pub struct Rights {
    pub hub: LeaderClient,
    pub mirror: Mirror,
    /// What the mirror may lack.
    pub unseen: Unseen,
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
    pub fn missing(&self, cluster: &Cluster<'_>) -> Result<Vec<DesiredGrant>, Refused> {
        standing::check_name(cluster.name, &self.own_namespace)?;
        let namespace =
            self.mirror.read(&cluster.namespace_key(), |seen| (seen.is_leaving(), seen.is_of(cluster.name)));
        match namespace {
            Some((true, _)) => return Err(Refused::Terminating),
            Some((false, false)) => return Err(Refused::Foreign),
            Some((false, true)) | None => {}
        }
        let all = acceptance::common_roles(self.filled.as_deref()).into_iter();
        let all = all.chain(cluster.granted(self.filled.is_some()));
        let is_there = |wanted: &DesiredGrant| {
            !self.is_unseen(&wanted.key) && self.mirror.difference(wanted) == Some(Difference::Nothing)
        };
        Ok(all.filter(|wanted| !is_there(wanted)).collect())
    }

    /// Writes the missing objects, in order.
    pub async fn grant(&self, missing: &[DesiredGrant]) -> Result<(), Refused> {
        for wanted in missing {
            self.write(wanted).await?;
        }
        Ok(())
    }

    /// Whether the cluster was accepted before. Its status does not prove it, because an agent
    /// writes the status, and could remove the record of the decision.
    pub fn were_given(&self, cluster: &Cluster<'_>) -> bool {
        let mark = cluster.mark_key();
        self.has_clusters_name(cluster) && (self.mirror.has(&mark) || self.is_unseen(&mark))
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
            if self.has_clusters_name(cluster) && self.may_differ(&wanted).await? {
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
        let is_own = self.mirror.read(&cluster.namespace_key(), |seen| seen.is_of(cluster.name));
        if is_own != Some(true) || !self.has_clusters_name(cluster) {
            return Ok(false);
        }
        for (group, version, plural) in DEPENDENTS {
            let resource = super::hub_calls::resource(group, version, "", plural);
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

    async fn write(&self, wanted: &DesiredGrant) -> Result<(), Refused> {
        let unwritten = |error| Refused::Write { key: wanted.key.clone(), error };
        if wanted.key.kind == Kind::Namespace {
            return self.create_namespace(wanted).await;
        }
        match self.mirror.difference(wanted) {
            Some(Difference::Whole) => self.delete(&wanted.key).await.map_err(unwritten)?,
            None if !self.is_unseen(&wanted.key) => match self.create(wanted).await {
                // There is one that the mirror has not seen, or does not keep.
                Err(error) if error.is_conflict() => {}
                written => return written.map_err(unwritten),
            },
            _ => {}
        }
        self.apply(wanted).await.map_err(unwritten)
    }

    /// Creates the namespace, but never changes it: an existing one without the cluster's label has
    /// another owner.
    async fn create_namespace(&self, wanted: &DesiredGrant) -> Result<(), Refused> {
        let unwritten = |error| Refused::Write { key: wanted.key.clone(), error };
        if self.mirror.has(&wanted.key) {
            return Ok(());
        }
        let object = object(wanted).map_err(unwritten)?;
        let api = self.mirror.api(&wanted.key);
        match self.hub.write(api.create(&creating(), &object)).await {
            Ok(_) => Ok(()),
            // The mirror may not have seen our own namespace yet.
            Err(error) if error.is_conflict() => self.check_namespace(wanted).await,
            Err(error) => Err(unwritten(error)),
        }
    }

    async fn check_namespace(&self, wanted: &DesiredGrant) -> Result<(), Refused> {
        let api = self.mirror.api(&wanted.key);
        let unwritten = |error| Refused::Write { key: wanted.key.clone(), error };
        let existing = self.hub.read(api.get(&wanted.key.name)).await.map_err(unwritten)?;
        let is_own = ObservedGrant::of(existing.metadata, &existing.data).is_of(&wanted.key.name);
        if is_own { Ok(()) } else { Err(Refused::Foreign) }
    }

    /// Creates what is not there. To apply it would create it too, for one more access review:
    /// those take much of the hub's time when many clusters join.
    async fn create(&self, wanted: &DesiredGrant) -> Result<(), CallError> {
        let (api, object) = (self.mirror.api(&wanted.key), object(wanted)?);
        self.noted(&wanted.key, api.create(&creating(), &object)).await
    }

    /// With force: the rights must be exactly these, whichever client wrote others.
    async fn apply(&self, wanted: &DesiredGrant) -> Result<(), CallError> {
        let (key, parameters) = (&wanted.key, PatchParams::apply(MANAGER).force());
        let api = self.mirror.api(key);
        self.noted(key, api.patch(&key.name, &parameters, &Patch::Apply(&wanted.document))).await
    }

    /// Makes a call that writes an object, and remembers what the mirror may lack.
    async fn noted(&self, key: &Key, call: impl Future<Output = kube::Result<DynamicObject>>) -> Result<(), CallError> {
        // Roles that all clusters share are never taken away.
        let is_noted = !acceptance::is_common(&key.name);
        if is_noted {
            // Before the call: it may take effect without an answer.
            self.unseen.begin_write(key);
        }
        let written = self.hub.write(call).await;
        if is_noted {
            // Also without an answer: a deletion beside it may have forgotten that it began.
            self.unseen.wrote(key, written.as_ref().ok().and_then(ResourceExt::resource_version));
        }
        written.map(drop)
    }

    /// Deletes what the mirror has, and what was written here and the mirror may lack. If an object
    /// of another client appears in the mirror later, the cluster is looked at again.
    async fn delete(&self, key: &Key) -> Result<(), CallError> {
        let last = self.unseen.last(key);
        let Some(existing) = self.existing(key).await? else { return Ok(()) };
        let api = self.mirror.api(key);
        if let Some(rest) = existing.without_work_finalizer() {
            // The finalizer would keep the right in force until it is removed.
            let change = json!({"metadata": {"finalizers": rest}});
            found(self.hub.merge(&api, &key.name, &change).await)?;
        }
        found(self.hub.write(api.delete(&key.name, &DeleteParams::default())).await)?;
        self.unseen.deleted(key, last.as_ref());
        Ok(())
    }

    /// An object as the mirror has it; or its metadata as the hub has them, if the mirror may be
    /// behind. A list, because the chart grants no `get` of rights.
    async fn existing(&self, key: &Key) -> Result<Option<ObservedGrant>, CallError> {
        if !self.is_unseen(key) {
            return Ok(self.mirror.read(key, ObservedGrant::clone));
        }
        let last = self.unseen.last(key);
        let only = ListParams::default().fields(&format!("metadata.name={}", key.name));
        let metadata = list_metadata(&self.mirror.api(key), only).await?.pop();
        if metadata.is_none() {
            self.unseen.deleted(key, last.as_ref());
        }
        Ok(metadata.map(|metadata| ObservedGrant::of(metadata, &Value::Null)))
    }

    /// Whether an object exists that is not as wanted, or may not be.
    async fn may_differ(&self, wanted: &DesiredGrant) -> Result<bool, CallError> {
        if self.is_unseen(&wanted.key) {
            return Ok(self.existing(&wanted.key).await?.is_some());
        }
        Ok(self.mirror.difference(wanted).is_some_and(|difference| difference != Difference::Nothing))
    }

    fn is_unseen(&self, key: &Key) -> bool {
        self.unseen.may_lack(key, || self.mirror.read(key, |seen| seen.version().map(str::to_owned)).flatten())
    }
}

fn object(wanted: &DesiredGrant) -> Result<DynamicObject, CallError> {
    let object = serde_json::from_value(wanted.document.clone());
    object.map_err(|error| CallError::Hub(kube::Error::SerdeError(error)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use http::Method;
    use parking_lot::Mutex;

    use super::super::mirror::Writers;
    use super::*;
    use crate::scripted;

    /// By their paths.
    type Objects = Arc<Mutex<BTreeMap<String, Value>>>;

    /// A hub that keeps objects. What has a finalizer is not deleted.
    fn hub(objects: &Objects) -> LeaderClient {
        let objects = Arc::clone(objects);
        LeaderClient::scripted(move |head, body| {
            let (path, mut all) = (head.uri.path(), objects.lock());
            let answer = match head.method {
                Method::POST => {
                    let path = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap_or_default());
                    if all.contains_key(&path) {
                        return Some(scripted::status(409, "AlreadyExists", "there is one"));
                    }
                    patched(all.entry(path).or_default(), body)
                }
                Method::PATCH => patched(all.entry(path.to_owned()).or_default(), body),
                Method::DELETE => {
                    all.retain(|of, object| of != path || object["metadata"]["finalizers"][0].is_string());
                    json!({"kind": "Status", "apiVersion": "v1", "status": "Success"})
                }
                _ => listed(&all, path, head.uri.query().unwrap_or_default()),
            };
            Some((200, answer))
        })
    }

    fn patched(object: &mut Value, change: Value) -> Value {
        if change["kind"].is_string() {
            *object = change;
        } else {
            object["metadata"]["finalizers"] = change["metadata"]["finalizers"].clone();
        }
        object["metadata"]["resourceVersion"] = "7".into();
        object.clone()
    }

    /// The object of a collection that a query names.
    fn listed(all: &BTreeMap<String, Value>, collection: &str, query: &str) -> Value {
        let is_named = |path: &str| {
            let name = path.strip_prefix(collection).and_then(|name| name.strip_prefix('/'));
            name.is_some_and(|name| query.contains(&format!("metadata.name%3D{}", name.replace(':', "%3A"))))
        };
        let items: Vec<_> = all.iter().filter(|(path, _)| is_named(path)).map(|(_, object)| object).collect();
        json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": items})
    }

    fn rights_on(objects: &Objects) -> (Rights, Writers) {
        let hub = hub(objects);
        let (mirror, writers) = Mirror::new(hub.client.clone());
        let (unseen, own_namespace) = (Unseen::default(), "own".to_owned());
        (Rights { hub, mirror, unseen, own_namespace, filled: Some("token".to_owned()) }, writers)
    }

    fn saw(writers: &Writers, wanted: &DesiredGrant, version: &str) {
        let mut object: DynamicObject = serde_json::from_value(wanted.document.clone()).unwrap();
        object.metadata.resource_version = Some(version.to_owned());
        writers.saw(wanted.key.kind, &object);
    }

    /// The mirror sees nothing at all here: a watch may be that late.
    #[tokio::test]
    async fn a_refusal_takes_rights_that_the_mirror_has_not_seen() {
        let objects = Objects::default();
        let (rights, _writers) = rights_on(&objects);
        let cluster = Cluster { name: "c1", uid: "u" };
        let path = |key: &Key| format!("{}/{}", rights.mirror.api(key).resource_url(), key.name);
        let is_there = |key: &Key| objects.lock().contains_key(&path(key));
        assert!(!rights.were_given(&cluster));
        rights.grant(&cluster.granted(true)).await.unwrap();
        assert!(cluster.withdrawn().iter().all(is_there) && rights.were_given(&cluster));

        // The Secret may go when this is done.
        rights.withdraw(&cluster).await.unwrap();
        let left: Vec<Key> = cluster.withdrawn().into_iter().filter(is_there).collect();
        assert!(left.is_empty(), "{left:?}");
        let [role, _] = cluster.left();
        assert_eq!(objects.lock()[&path(&role.key)]["rules"], role.document["rules"], "it may still look at itself");

        rights.end(&cluster, false).await.unwrap();
        assert!(!cluster.ended().iter().any(is_there));
        assert!(!rights.were_given(&cluster));
    }

    #[tokio::test]
    async fn the_mirror_is_right_once_it_has_what_was_written_and_not_before() {
        let objects = Objects::default();
        let (rights, writers) = rights_on(&objects);
        let cluster = Cluster { name: "c1", uid: "u" };
        let granted = cluster.granted(true);
        rights.grant(&granted).await.unwrap();
        let all = [acceptance::common_roles(Some("token")), granted.clone()].concat();
        // The namespace is only ever created, and a deletion may have come between these versions.
        for (version, missing) in [("6", granted.len() - 1), ("7", 0)] {
            for wanted in &all {
                saw(&writers, wanted, version);
            }
            assert_eq!(rights.missing(&cluster).unwrap().len(), missing, "at version {version}");
        }

        // A role as it was before the acceptance says nothing of the one that was written.
        rights.grant(&granted).await.unwrap();
        let [role, _] = cluster.left();
        saw(&writers, &role, "6");
        rights.withdraw(&cluster).await.unwrap();
        let path = format!("{}/{}", rights.mirror.api(&role.key).resource_url(), role.key.name);
        assert_eq!(objects.lock()[&path]["rules"], role.document["rules"], "it may only look at itself");
    }

    /// Another client created it, and no watch has reported it yet.
    #[tokio::test]
    async fn one_that_is_there_though_the_mirror_lacks_it_is_made_as_it_is_to_be() {
        let objects = Objects::default();
        let (rights, _writers) = rights_on(&objects);
        let cluster = Cluster { name: "c1", uid: "u" };
        let granted = cluster.granted(false);
        let role = granted.iter().find(|wanted| wanted.key == cluster.mark_key()).unwrap();
        let path = format!("{}/{}", rights.mirror.api(&role.key).resource_url(), role.key.name);
        let [other, _] = cluster.left();
        objects.lock().insert(path.clone(), other.document);
        rights.grant(&granted).await.unwrap();
        assert_eq!(objects.lock()[&path]["rules"], role.document["rules"]);
    }
}
