//! A `ManifestWork` of the hub, read.

use std::sync::Arc;

use delivery::executor::Executor;
use delivery::work::{DeleteOption, GROUP, ManifestWorkExecutor, ManifestWorkSpec, ManifestWorkStatus};
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use serde::Deserialize as _;
use serde_json::{Map, Value as Json, json};

use crate::calls::MANAGER;
use crate::parts::hub;
use crate::sources::Kind;
use crate::wakes::Key;

pub const WORKS: Kind =
    Kind { group: GROUP, name: "ManifestWork", plural: "manifestworks", versions: &["v1"], is_custom: true };
/// On each, before anything of it is on a member, and until nothing is.
pub const FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";

pub fn works() -> ApiResource {
    hub::resource(WORKS.group, WORKS.versions[0], WORKS.name, WORKS.plural)
}

#[derive(Debug)]
pub struct Work {
    /// Its namespace, which is its cluster's name, and its name.
    pub key: Key,
    pub uid: String,
    pub version: String,
    pub generation: i64,
    pub is_ending: bool,
    pub finalizers: Vec<String>,
    pub labels: Map<String, Json>,
    /// Or why it cannot be read.
    pub spec: Result<Arc<ManifestWorkSpec>, String>,
    /// What becomes of its objects in the end, also where the rest of the spec cannot be read.
    pub delete_option: Result<Option<DeleteOption>, String>,
    /// For whom they are taken away, likewise.
    pub executor: Result<Option<Executor>, String>,
    pub status: ManifestWorkStatus,
}

// === impl Work ===

impl Work {
    pub fn read(object: &DynamicObject) -> Self {
        let (metadata, mut contents) = (&object.metadata, contents(object));
        let delete_option = contents
            .pointer("/spec/deleteOption")
            .map_or(Ok(None), Option::<DeleteOption>::deserialize)
            .map_err(|error| error.to_string());
        let executor = contents.pointer("/spec/executor").map_or(Ok(None), executor);
        let mut part = |name: &str| contents.get_mut(name).map_or_else(|| json!({}), Json::take);
        let labels = object.labels().iter().map(|(key, value)| (key.clone(), Json::from(value.as_str())));
        Self {
            key: key(object),
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            is_ending: metadata.deletion_timestamp.is_some(),
            finalizers: object.finalizers().to_vec(),
            labels: labels.collect(),
            spec: serde_json::from_value(part("spec")).map(Arc::new).map_err(|error| error.to_string()),
            delete_option,
            executor,
            // What cannot be read is told anew.
            status: serde_json::from_value(part("status")).unwrap_or_default(),
        }
    }

    pub fn cluster(&self) -> &str {
        &self.key.0
    }

    pub fn name(&self) -> &str {
        &self.key.1
    }

    pub fn is_held(&self) -> bool {
        self.finalizers.iter().any(|one| one == FINALIZER)
    }

    /// A merge patch with our finalizer, or without it.
    pub fn hold(&self, is_held: bool) -> Json {
        let others = self.finalizers.iter().filter(|one| *one != FINALIZER).cloned();
        let finalizers: Vec<String> = others.chain(is_held.then(|| FINALIZER.to_owned())).collect();
        json!({"metadata": {"uid": self.uid, "resourceVersion": self.version, "finalizers": finalizers}})
    }

    /// A merge patch with another status.
    pub fn told(&self, status: &ManifestWorkStatus) -> Json {
        let (conditions, manifests) = (&status.conditions, &status.resource_status.manifests);
        json!({"metadata": {"uid": self.uid, "resourceVersion": self.version},
            "status": {"conditions": conditions, "resourceStatus": {"manifests": manifests}}})
    }
}

/// Keeps what a work says as text: as values it takes several times as much, and at rest nobody
/// reads it.
pub fn pack(object: &mut DynamicObject) {
    if !object.data.is_string() {
        let mut text = object.data.to_string();
        text.shrink_to_fit();
        object.data = Json::String(text);
    }
}

/// What a work says, packed or not.
fn contents(object: &DynamicObject) -> Json {
    match &object.data {
        Json::String(text) => serde_json::from_str(text).unwrap_or_default(),
        contents => contents.clone(),
    }
}

/// Whether it is by our word that it does not end: an agent's finalizer has the same name.
pub fn is_held_by_us(object: &DynamicObject) -> bool {
    let holds = |fields: &Json| fields["f:metadata"]["f:finalizers"].get(format!("v:{}", json!(FINALIZER))).is_some();
    let entries = object.metadata.managed_fields.iter().flatten();
    let mut ours = entries.filter(|entry| entry.manager.as_deref() == Some(MANAGER));
    ours.any(|entry| entry.fields_v1.as_ref().is_some_and(|fields| holds(&fields.0)))
}

fn executor(value: &Json) -> Result<Option<Executor>, String> {
    let executor = Option::<ManifestWorkExecutor>::deserialize(value).map_err(|error| error.to_string())?;
    executor.as_ref().map(ManifestWorkExecutor::executor).transpose().map_err(|why| why.to_string())
}

pub fn key(object: &DynamicObject) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finalizer_is_ours_if_we_wrote_it() {
        let by = |manager: &str| {
            let fields = json!({"f:metadata": {"f:finalizers": {".": {}, format!("v:\"{FINALIZER}\""): {}}}});
            let entry =
                json!({"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields});
            let object = json!({"apiVersion": "v1", "kind": "x", "metadata": {"name": "w", "managedFields": [entry]}});
            is_held_by_us(&serde_json::from_value(object).unwrap())
        };
        assert!(by(MANAGER) && !by("work-agent"));
    }

    #[test]
    fn others_finalizers_stay_and_a_bad_spec_is_told() {
        let object: DynamicObject = serde_json::from_value(json!({"apiVersion": "v1", "kind": "x",
            "metadata": {"name": "w", "namespace": "c", "uid": "u", "resourceVersion": "7", "finalizers": ["other"]},
            "spec": {"workload": 3}, "status": {"conditions": "x"}}))
        .unwrap();
        let work = Work::read(&object);
        assert!(!work.is_held() && work.spec.is_err() && work.status == ManifestWorkStatus::default());
        assert_eq!(work.delete_option, Ok(None));
        let of = |option: Json| {
            let mut object = object.clone();
            object.data["spec"]["deleteOption"] = option;
            Work::read(&object).delete_option
        };
        let orphan = of(json!({"propagationPolicy": "Orphan"})).unwrap().unwrap();
        assert_eq!(orphan.propagation_policy, "Orphan", "though the workload cannot be read");
        assert!(of(json!({"propagationPolicy": 3})).is_err());
        let by = |executor: Json| {
            let mut object = object.clone();
            object.data["spec"]["executor"] = executor;
            Work::read(&object).executor
        };
        let account = json!({"type": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "a"}});
        assert_eq!(by(json!({"subject": account})).unwrap().unwrap().user(), "system:serviceaccount:n:a");
        assert!(by(Json::Null) == Ok(None) && by(json!({"subject": {"type": "User"}})).is_err());
        let mut packed = object.clone();
        pack(&mut packed);
        pack(&mut packed);
        let again = Work::read(&packed);
        assert_eq!((again.spec, again.key, again.version), (work.spec.clone(), work.key.clone(), work.version.clone()));
        assert_eq!(work.hold(true)["metadata"]["finalizers"], json!(["other", FINALIZER]));
        assert_eq!(work.hold(false)["metadata"], json!({"uid": "u", "resourceVersion": "7", "finalizers": ["other"]}));
    }
}
