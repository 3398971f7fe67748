//! A `ManifestWork` of the hub, read.

use std::sync::Arc;

use delivery::work::{DeleteOption, ManifestWorkSpec, ManifestWorkStatus};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde::Deserialize as _;
use serde_json::{Map, Value as Json, json};

use crate::wakes::Key;

/// On each, before anything of it is on a member, and until nothing is.
pub const FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";

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
    pub status: ManifestWorkStatus,
}

// === impl Work ===

impl Work {
    pub fn read(object: &DynamicObject) -> Self {
        let metadata = &object.metadata;
        let part = |name: &str| object.data.get(name).cloned().unwrap_or_else(|| json!({}));
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
            delete_option: object
                .data
                .pointer("/spec/deleteOption")
                .map_or(Ok(None), Option::<DeleteOption>::deserialize)
                .map_err(|error| error.to_string()),
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

pub fn key(object: &DynamicObject) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(work.hold(true)["metadata"]["finalizers"], json!(["other", FINALIZER]));
        assert_eq!(work.hold(false)["metadata"], json!({"uid": "u", "resourceVersion": "7", "finalizers": ["other"]}));
    }
}
