//! Writes works, and sets' finalizers and statuses: each write only for the version that was
//! judged.

use delivery::work::replica_set::{Name, ReplicaSet, SET_LABEL, patch, work};
use futures_util::stream::{self, StreamExt as _};
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};

use super::deployer::{AT_ONCE, Deployer};
use super::kinds::Of;
use super::plan::{Change, Due, Finalizers, Surplus};
use super::report::Report;
use crate::calls::{PAGE, creating, deleting, is_taken, value};
use crate::metrics::{Operation, SetObject};
use crate::parts::hub_calls::{CallError, found};
use crate::parts::worker;
use crate::wakes::Key;

// === impl Deployer ===

impl Deployer {
    pub(super) async fn put(&self, key: &Key, set: &ReplicaSet, due: &Due) -> Result<(), CallError> {
        let Ok(label) = set.key() else { return Ok(()) };
        let (written, operation) = match &due.change {
            Change::Create => match self.create(key, (set, &label), due).await? {
                Some(created) => (created, Operation::Create),
                None => return Ok(()),
            },
            Change::Patch { name, version } => {
                let wanted = work(set, &label, &due.placement, &due.cluster, Name::Known(name));
                // A work that has changed since is judged again.
                let patch = {
                    let world = self.world.read();
                    let known = world.work(key, &(due.cluster.clone(), name.clone()));
                    let known = known.filter(|known| known.resource_version == *version).ok_or(CallError::Gone)?;
                    patch(known, &wanted)
                };
                let Some(patch) = patch else { return Ok(()) };
                drop(wanted);
                let api = self.api(Of::Work, &due.cluster);
                let patched = found(self.hub.merge(&api, name, &patch).await)?.ok_or(CallError::Gone)?;
                (patched, Operation::Update)
            }
        };
        self.metrics.replica_sets.wrote(SetObject::Work, operation);
        let name = written.metadata.name.as_deref().unwrap_or_default();
        let (namespace, set, cluster) = (&key.0, &key.1, &due.cluster);
        tracing::info!(namespace, set, cluster, work = name, "a work was {}d", operation.as_str());
        self.know(Of::Work, &written);
        Ok(())
    }

    /// None if the work existed already, and is known now. Its name is always the same, so the hub
    /// refuses a second one, with any outcome of the first request.
    async fn create(
        &self,
        key: &Key,
        (set, label): (&ReplicaSet, &str),
        due: &Due,
    ) -> Result<Option<DynamicObject>, CallError> {
        let Due { cluster, placement, .. } = due;
        match self.create_called(key, (set, label), due, Name::Only).await {
            Err(CallError::Hub(error)) if is_taken(&error) => {}
            answered => return answered.map(Some),
        }
        self.look(key, cluster.clone(), &of_set(label)).await?;
        let is_there =
            self.world.read().works(key).any(|work| work.cluster == *cluster && work.placement() == placement);
        if is_there {
            return Ok(None);
        }
        // Another object has this name: somebody removed its labels.
        self.create_called(key, (set, label), due, Name::MadeUp).await.map(Some)
    }

    async fn create_called(
        &self,
        key: &Key,
        (set, label): (&ReplicaSet, &str),
        due: &Due,
        called: Name<'_>,
    ) -> Result<DynamicObject, CallError> {
        let wanted = work(set, label, &due.placement, &due.cluster, called);
        let wanted: DynamicObject = serde_json::from_value(wanted).map_err(unwritable)?;
        let created = self.hub.write(self.api(Of::Work, &due.cluster).create(&creating(), &wanted)).await;
        if created.as_ref().is_err_and(may_have_succeeded) {
            self.doubt(key, &due.cluster);
        }
        created
    }

    fn doubt(&self, key: &Key, cluster: &str) {
        if let Some(known) = self.world.write().set_mut(key) {
            known.unsure.insert(cluster.to_owned());
        }
    }

    /// Looks for works that may have been created although no answer came: an unknown work would
    /// outlive its set.
    pub(super) async fn make_sure(&self, key: &Key) -> Result<(), CallError> {
        let (clusters, label) = {
            let world = self.world.read();
            let Some(known) = world.set(key).filter(|known| !known.unsure.is_empty()) else { return Ok(()) };
            (known.unsure.clone(), known.set.key())
        };
        let Ok(label) = label else { return Ok(()) };
        let chosen = of_set(&label);
        let looks = clusters.into_iter().map(|cluster| self.look(key, cluster, &chosen));
        let looks: Vec<_> = stream::iter(looks.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).collect().await;
        looks.into_iter().collect()
    }

    async fn look(&self, key: &Key, cluster: String, chosen: &ListParams) -> Result<(), CallError> {
        let found = self.hub.read(self.api(Of::Work, &cluster).list(chosen)).await?;
        found.items.iter().for_each(|work| self.know(Of::Work, work));
        if let Some(known) = self.world.write().set_mut(key) {
            known.unsure.remove(&cluster);
        }
        Ok(())
    }

    pub(super) async fn remove(&self, key: &Key, surplus: &Surplus) -> Result<(), CallError> {
        let Surplus { cluster, name, uid } = surplus;
        let api = self.api(Of::Work, cluster);
        // If another work has its name, that one was not judged, and the judged one is gone.
        let Some(removed) = found(self.hub.write(api.delete(name, &deleting(uid, None))).await)? else {
            return Ok(());
        };
        self.metrics.replica_sets.wrote(SetObject::Work, Operation::Delete);
        tracing::info!(namespace = key.0, set = key.1, cluster, work = name, "a work was removed");
        // It may stay until an agent has removed its objects: then the answer shows its present
        // state.
        match removed.left() {
            Some(work) => self.know(Of::Work, &work),
            None => drop(self.world.write().remove(Of::Work, &(cluster.clone(), name.clone()), None, worker::moment())),
        }
        Ok(())
    }

    pub(super) async fn write_finalizers(&self, key: &Key, finalizers: &Finalizers) -> Result<(), CallError> {
        let metadata = json!({"resourceVersion": finalizers.version, "finalizers": finalizers.all});
        let api = self.api(Of::Set, &key.0);
        let Some(written) = found(self.hub.merge(&api, &key.1, &json!({"metadata": metadata})).await)? else {
            return Ok(());
        };
        self.metrics.replica_sets.wrote(SetObject::Set, Operation::Update);
        // A set without finalizers is then gone, and the watch reports it.
        if !finalizers.all.is_empty() {
            self.know(Of::Set, &written);
        }
        Ok(())
    }

    /// Writes the status of a set that still exists.
    pub(super) async fn write_status(&self, key: &Key, report: &Report) -> Result<(), CallError> {
        let status = serde_json::to_value(&report.status).map_err(unwritable)?;
        let change = json!({"metadata": {"resourceVersion": report.version}, "status": status});
        let api = self.api(Of::Set, &key.0);
        let Some(written) = found(self.hub.merge_status(&api, &key.1, &change).await)? else { return Ok(()) };
        self.metrics.replica_sets.wrote(SetObject::Set, Operation::Update);
        self.know(Of::Set, &written);
        if let Some(known) = self.world.write().set_mut(key) {
            known.told_at = Some(worker::moment());
        }
        Ok(())
    }

    /// Stores the hub's answer, before the watch brings the change.
    fn know(&self, of: Of, object: &DynamicObject) {
        let object: Value = value(object);
        self.world.write().put(of, object, worker::moment());
    }

    fn api(&self, of: Of, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.hub.client.clone(), namespace, &of.resource())
    }
}

/// Works of the set with this label. Without a resourceVersion, the hub answers from its storage,
/// not from a cache.
fn of_set(label: &str) -> ListParams {
    ListParams::default().labels(&format!("{SET_LABEL}={label}")).limit(PAGE)
}

fn unwritable(error: serde_json::Error) -> CallError {
    CallError::Hub(kube::Error::SerdeError(error))
}

/// Whether the hub may have carried out a failed call.
fn may_have_succeeded(error: &CallError) -> bool {
    match error {
        CallError::Hub(kube::Error::Api(status)) => status.code >= 500,
        CallError::NotLeading(_) | CallError::Gone | CallError::Hub(kube::Error::BuildRequest(_)) => false,
        CallError::Timeout | CallError::Hub(_) => true,
    }
}

#[cfg(test)]
mod tests;
