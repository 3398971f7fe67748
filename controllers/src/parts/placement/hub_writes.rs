//! Writes decisions and Placements' status, each at the version that the plan was computed from.

use kube::api::DynamicObject;
use kube::{Api, Resource as _};
use serde_json::{Value, json};

use super::kinds::Of;
use super::plan::{Change, Surplus};
use super::scheduler::Scheduler;
use crate::calls::{creating, deleting, value};
use crate::events::Reason;
use crate::metrics::{Object, Operation};
use crate::parts::hub_calls::{CallError, found};
use crate::parts::worker;
use crate::wakes::Key;

// === impl Scheduler ===

impl Scheduler {
    /// Returns the version after the write.
    pub(super) async fn write(
        &self,
        placement: &DynamicObject,
        change: &Change,
        warning: &str,
    ) -> Result<String, CallError> {
        let key = (namespace(placement), change.name.clone());
        self.world.write().begin(&key, change.list.as_deref());
        let written = self.write_one(placement, change, warning).await;
        self.world.write().end(&key);
        written
    }

    async fn write_one(&self, placement: &DynamicObject, change: &Change, warning: &str) -> Result<String, CallError> {
        let api = self.api(placement, Of::Decision);
        let (written, reason, done) = match &change.version {
            None => (self.create(&api, change).await?, Reason::DecisionCreate, "created"),
            Some(version) => (self.update(&api, change, version).await?, Reason::DecisionUpdate, "updated"),
        };
        let clusters = written["status"]["decisions"].as_array().map_or(0, Vec::len);
        let text = |field: &str| written["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (uid, version) = (text("uid"), text("resourceVersion"));
        self.world.write().put(Of::Decision, written, worker::moment());
        let reason =
            if warning.is_empty() || reason == Reason::DecisionCreate { reason } else { Reason::DecisionWarning };
        self.tell_decision(placement, (&change.name, &uid), reason, (done, clusters), warning);
        Ok(version)
    }

    /// The list is part of the status, which a create ignores, so it takes a second write.
    async fn create(&self, api: &Api<DynamicObject>, change: &Change) -> Result<Value, CallError> {
        let mut object = DynamicObject::new(&change.name, &Of::Decision.resource());
        let metadata = change.metadata.as_ref();
        let metadata = metadata.map(|metadata| serde_json::from_value(metadata.clone()));
        // It consists of labels and an owner, so it always parses.
        object.metadata = metadata.and_then(Result::ok).unwrap_or_default();
        object.metadata.name = Some(change.name.clone());
        let created = value(&self.hub.write(api.create(&creating(), &object)).await?);
        self.metrics.placements.wrote(Object::Decision, Operation::Create);
        let version = created["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        match &change.list {
            Some(list) => self.list(api, &change.name, version, list).await,
            None => Ok(created),
        }
    }

    async fn update(&self, api: &Api<DynamicObject>, change: &Change, version: &str) -> Result<Value, CallError> {
        let mut written = Value::Null;
        if let Some(metadata) = &change.metadata {
            let mut metadata = metadata.clone();
            metadata["resourceVersion"] = version.into();
            let patched = found(self.hub.merge(api, &change.name, &json!({"metadata": metadata})).await)?;
            written = value(&patched.ok_or(CallError::Gone)?);
            self.metrics.placements.wrote(Object::Decision, Operation::Update);
        }
        let version = written["metadata"]["resourceVersion"].as_str().unwrap_or(version);
        match &change.list {
            Some(list) => self.list(api, &change.name, version, list).await,
            None => Ok(written),
        }
    }

    async fn list(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        version: &str,
        list: &[String],
    ) -> Result<Value, CallError> {
        let decisions: Vec<Value> = list.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
        let change = json!({"metadata": {"resourceVersion": version}, "status": {"decisions": decisions}});
        let written = found(self.hub.merge_status(api, name, &change).await)?.ok_or(CallError::Gone)?;
        self.metrics.placements.wrote(Object::Decision, Operation::Update);
        Ok(value(&written))
    }

    pub(super) async fn remove(&self, placement: &DynamicObject, surplus: &Surplus) -> Result<(), CallError> {
        let api = self.api(placement, Of::Decision);
        let key = (namespace(placement), surplus.name.clone());
        let parameters = deleting(&surplus.uid, Some(&surplus.version));
        self.world.write().begin(&key, None);
        let removed = found(self.hub.write(api.delete(&surplus.name, &parameters)).await);
        if removed.is_ok() {
            self.world.write().remove(Of::Decision, &key, None, worker::moment());
        }
        self.world.write().end(&key);
        removed?;
        self.metrics.placements.wrote(Object::Decision, Operation::Delete);
        let decision = (surplus.name.as_str(), surplus.uid.as_str());
        self.tell_decision(placement, decision, Reason::DecisionDelete, ("deleted", 0), "");
        Ok(())
    }

    /// Writes the status. Ignores a Placement that is gone.
    pub(super) async fn write_status(
        &self,
        placement: &DynamicObject,
        key: &Key,
        (version, status): &(String, Value),
    ) -> Result<(), CallError> {
        let api = self.api(placement, Of::Placement);
        if let Some(known) = self.world.write().placement_mut(key) {
            known.intended = status.clone();
        }
        let change = json!({"metadata": {"resourceVersion": version}, "status": status});
        let Some(written) = found(self.hub.merge_status(&api, &key.1, &change).await)? else { return Ok(()) };
        self.metrics.placements.wrote(Object::Placement, Operation::Update);
        self.world.write().put(Of::Placement, value(&written), worker::moment());
        Ok(())
    }

    /// With upstream's texts.
    fn tell_decision(
        &self,
        placement: &DynamicObject,
        (name, uid): (&str, &str),
        reason: Reason,
        (done, clusters): (&str, usize),
        warning: &str,
    ) {
        let (namespace, of) = (namespace(placement), placement.metadata.name.as_deref().unwrap_or_default());
        tracing::info!(namespace, placement = of, decision = name, clusters, "a decision was {done}");
        let mut note = format!("Decision {name} is {done} with placement {of} in namespace {namespace}");
        if reason == Reason::DecisionWarning {
            note = format!("{note}: {warning}");
        }
        let mut decision = DynamicObject::new(name, &Of::Decision.resource());
        (decision.metadata.namespace, decision.metadata.uid) = (Some(namespace), Some(uid.to_owned()));
        let related = decision.object_ref(&Of::Decision.resource());
        self.events.publish_with(placement.object_ref(&Of::Placement.resource()), Some(related), reason, note);
    }

    fn api(&self, placement: &DynamicObject, of: Of) -> Api<DynamicObject> {
        Api::namespaced_with(self.hub.client.clone(), &namespace(placement), &of.resource())
    }
}

fn namespace(object: &DynamicObject) -> String {
    object.metadata.namespace.clone().unwrap_or_default()
}
