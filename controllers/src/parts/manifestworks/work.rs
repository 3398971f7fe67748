//! A `ManifestWork` of the hub, parsed.

use std::borrow::Cow;
use std::sync::Arc;

use delivery::executor::Executor;
use delivery::identity::Identity;
use delivery::work::{DeleteOption, GROUP, ManifestWorkExecutor, ManifestWorkSpec, ManifestWorkStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::{ObjectRef, Store};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json, json};

use crate::calls::MANAGER;
use crate::parts::hub_calls;
use crate::raw::{self, weight};
use crate::sources::Kind;
use crate::wakes::Key;

pub const WORKS: Kind =
    Kind { group: GROUP, name: "ManifestWork", plural: "manifestworks", versions: &["v1"], is_custom: true };
/// Set on each work before any of its objects is on a member, and until none is.
pub const FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";

pub fn works() -> ApiResource {
    hub_calls::resource(WORKS.group, WORKS.versions[0], WORKS.name, WORKS.plural)
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
    /// Or why it is invalid.
    pub spec: Result<Arc<ManifestWorkSpec>, String>,
    /// How its objects are deleted in the end, even if the rest of the spec is invalid.
    pub delete_option: Result<Option<DeleteOption>, String>,
    /// The executor for which they are deleted, likewise.
    pub executor: Result<Option<Executor>, String>,
    pub status: ManifestWorkStatus,
}

#[derive(Deserialize)]
struct Contents<'a> {
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

/// The parts of a spec that are parsed separately.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow)]
    delete_option: Option<&'a RawValue>,
    #[serde(borrow)]
    executor: Option<&'a RawValue>,
}

// === impl Work ===

impl Work {
    /// Parses a work. An invalid part becomes an error there, and never an absent value: for a work
    /// without manifests, all objects are removed.
    pub fn read(object: &DynamicObject) -> Self {
        let metadata = &object.metadata;
        let text = text(object);
        let contents = part::<Contents<'_>>(&text);
        let (spec, status) = match &contents {
            Ok(contents) => (Ok(contents.spec.map_or("{}", RawValue::get)), contents.status),
            Err(why) => (Err(why.clone()), None),
        };
        let head = spec.clone().and_then(part::<Head<'_>>);
        let of_head = |chosen: Option<&RawValue>| chosen.map_or("null", RawValue::get).to_owned();
        let delete_option = head.as_ref().map(|head| of_head(head.delete_option)).map_err(Clone::clone);
        let by = head.as_ref().map(|head| of_head(head.executor)).map_err(Clone::clone);
        let labels = object.labels().iter().map(|(key, value)| (key.clone(), Json::from(value.as_str())));
        Self {
            key: key(object),
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            is_ending: metadata.deletion_timestamp.is_some(),
            finalizers: object.finalizers().to_vec(),
            labels: labels.collect(),
            spec: spec.and_then(|spec| values(spec).map(Arc::new)),
            delete_option: delete_option.and_then(|text| values(&text)),
            executor: by.and_then(|text| executor(&text)),
            // An invalid status is reported again.
            status: status.and_then(|status| values(status.get()).ok()).unwrap_or_default(),
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

    /// Whether an object belongs to the work, by its wanted manifests or its reported status.
    pub fn has(&self, identity: &Identity) -> bool {
        let Identity { group, resource, name, namespace } = identity;
        let told = &self.status.resource_status.manifests;
        let is_told = told
            .iter()
            .map(|one| &one.resource_meta)
            .any(|one| (&one.group, &one.resource, &one.name, &one.namespace) == (group, resource, name, namespace));
        let manifests = || self.spec.iter().flat_map(|spec| &spec.workload.manifests);
        // Paths have another name for its kind, for which the member would have to be asked.
        let is_wanted = |one: &Json| {
            let text = |pointer: &str| one.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
            let of_group = text("/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
            (of_group, text("/metadata/name"), text("/metadata/namespace")) == (group, name, namespace)
        };
        is_told || manifests().any(is_wanted)
    }

    /// A merge patch that adds or removes our finalizer.
    pub fn hold(&self, is_held: bool) -> Json {
        let others = self.finalizers.iter().filter(|one| *one != FINALIZER).cloned();
        let finalizers: Vec<String> = others.chain(is_held.then(|| FINALIZER.to_owned())).collect();
        json!({"metadata": {"uid": self.uid, "resourceVersion": self.version, "finalizers": finalizers}})
    }

    /// A merge patch with another status.
    pub fn with_status(&self, status: &ManifestWorkStatus) -> Json {
        let (conditions, manifests) = (&status.conditions, &status.resource_status.manifests);
        json!({"metadata": {"uid": self.uid, "resourceVersion": self.version},
            "status": {"conditions": conditions, "resourceStatus": {"manifests": manifests}}})
    }
}

/// Memory needed to parse it, roughly.
pub fn weighs(object: &DynamicObject) -> usize {
    weight(text(object).as_bytes())
}

/// The contents of a work in the kept form: as values they take several times the memory, and
/// nothing reads them at rest.
fn text(object: &DynamicObject) -> Cow<'_, str> {
    match &object.data {
        Json::String(text) => Cow::Borrowed(text),
        contents => Cow::Owned(contents.to_string()),
    }
}

/// Parses the parts of a text, each as text, at any depth.
fn part<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn values<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    raw::parse(text).map_err(|why| why.to_string())
}

/// Whether our finalizer keeps it from ending: an agent's finalizer has the same name.
pub fn is_held_by_us(object: &DynamicObject) -> bool {
    let holds = |fields: &Json| fields["f:metadata"]["f:finalizers"].get(format!("v:{}", json!(FINALIZER))).is_some();
    let entries = object.metadata.managed_fields.iter().flatten();
    let mut ours = entries.filter(|entry| entry.manager.as_deref() == Some(MANAGER));
    ours.any(|entry| entry.fields_v1.as_ref().is_some_and(|fields| holds(&fields.0)))
}

/// The entry that says so, and nothing else.
pub fn holding() -> ManagedFieldsEntry {
    let fields = json!({"f:metadata": {"f:finalizers": {format!("v:{}", json!(FINALIZER)): {}}}});
    ManagedFieldsEntry {
        manager: Some(MANAGER.to_owned()),
        fields_v1: Some(FieldsV1(fields)),
        ..ManagedFieldsEntry::default()
    }
}

fn executor(text: &str) -> Result<Option<Executor>, String> {
    let executor: Option<ManifestWorkExecutor> = values(text)?;
    executor.as_ref().map(ManifestWorkExecutor::executor).transpose().map_err(|why| why.to_string())
}

pub fn key(object: &DynamicObject) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// The work as the watch brought it last.
pub fn find(store: &Store<DynamicObject>, key: &Key) -> Option<Arc<DynamicObject>> {
    store.get(&ObjectRef::new_with(&key.1, works()).within(&key.0))
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
        let packed = DynamicObject { data: Json::String(object.data.to_string()), ..object.clone() };
        let again = Work::read(&packed);
        assert_eq!((again.spec, again.key, again.version), (work.spec.clone(), work.key.clone(), work.version.clone()));
        assert_eq!(work.hold(true)["metadata"]["finalizers"], json!(["other", FINALIZER]));
        assert_eq!(work.hold(false)["metadata"], json!({"uid": "u", "resourceVersion": "7", "finalizers": ["other"]}));
    }

    /// Otherwise all of its objects would be removed.
    #[test]
    fn a_work_that_cannot_be_read_does_not_look_as_if_it_wanted_nothing() {
        let of = |data: &str| {
            let object = json!({"apiVersion": "v1", "kind": "x", "metadata": {"name": "w", "namespace": "c"}});
            let object: DynamicObject = serde_json::from_value(object).unwrap();
            Work::read(&DynamicObject { data: data.into(), ..object })
        };
        let broken = of("{");
        assert!(broken.spec.is_err() && broken.delete_option.is_err() && broken.executor.is_err());
        let manifests = |manifests: &str| {
            let option = r#""deleteOption": {"propagationPolicy": "Orphan"}"#;
            let conditions = r#"[{"type": "Applied", "status": "True"}]"#;
            of(&format!(
                r#"{{"spec": {{{option}, "workload": {{"manifests": [{manifests}]}}}}, "status": {{"conditions": {conditions}}}}}"#
            ))
        };
        let deep = format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200));
        let heavy = vec![r#"{"a":0}"#; 60_000].join(",");
        for (text, why) in [(deep, "recursion limit"), (heavy, "more than 24 MiB")] {
            let work = manifests(&text);
            assert!(work.spec.is_err_and(|error| error.contains(why)), "{why}");
            assert_eq!(work.delete_option.unwrap().unwrap().propagation_policy, "Orphan");
            assert_eq!((work.executor, work.status.conditions.len()), (Ok(None), 1));
        }
        assert!(manifests(r#"{"a": 1}"#).spec.is_ok());
    }
}
