//! A Cluster as a client sends it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::DesiredCluster;
use super::refused::Refused;
use crate::hub_object::or_empty;
use crate::karmada::{API_VERSION, KIND};
use crate::karmada_cluster::Spec;
use crate::karmada_cluster::cluster::Cluster;
use crate::karmada_cluster::spec::FIELDS;
use crate::karmada_cluster::text::Text;

/// A Cluster as it was sent.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Object {
    kind: String,
    api_version: String,
    #[serde(deserialize_with = "or_empty")]
    pub(super) metadata: Meta,
    #[serde(deserialize_with = "or_empty")]
    pub(super) spec: Spec,
    #[serde(deserialize_with = "Text::object")]
    pub(super) status: Text,
    /// Paths of fields that the type lacks.
    #[serde(skip)]
    pub(super) unknown: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Meta {
    #[serde(deserialize_with = "or_empty")]
    pub(super) name: String,
    #[serde(deserialize_with = "or_empty")]
    pub(super) generate_name: String,
    #[serde(deserialize_with = "or_empty")]
    uid: String,
    #[serde(deserialize_with = "or_empty")]
    pub(super) resource_version: String,
    #[serde(deserialize_with = "or_empty")]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_empty")]
    finalizers: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    owner_references: Vec<Value>,
}

// === impl Object ===

impl Object {
    pub(super) fn read(value: Value) -> Result<Self, Refused> {
        // serde would accept an array as the fields in order.
        if !value.is_object() {
            return Err(Refused::Json);
        }
        let unknown = unknown(&value);
        let object: Self = serde_json::from_value(value).map_err(|_| Refused::Json)?;
        Ok(Self { unknown, ..object })
    }

    pub(super) fn check_type(&self) -> Result<(), Refused> {
        // Go's clients omit both in typed bodies.
        let fits = |said: &str, own: &str| said.is_empty() || said == own;
        if fits(&self.kind, KIND) && fits(&self.api_version, API_VERSION) { Ok(()) } else { Err(Refused::Type) }
    }

    pub(super) fn check(&self, current: &Cluster<'_>) -> Result<(), Refused> {
        self.check_type()?;
        let Meta { name, uid, resource_version, .. } = &self.metadata;
        if name.is_empty() {
            return Err(Refused::NoName);
        }
        if name != current.name() {
            return Err(Refused::Name(name.clone(), current.name().to_owned()));
        }
        if !uid.is_empty() && uid != current.uid() {
            return Err(Refused::Uid(name.clone()));
        }
        if !resource_version.is_empty() && resource_version != current.resource_version() {
            return Err(Refused::Version(name.clone()));
        }
        Ok(())
    }

    pub(super) fn wanted(self) -> DesiredCluster {
        let Meta { name, labels, annotations, finalizers, owner_references, .. } = self.metadata;
        let mut unknown = self.unknown;
        // The Secret has its own, which decide when it is deleted.
        unknown.extend((!finalizers.is_empty()).then(|| "metadata.finalizers".to_owned()));
        unknown.extend((!owner_references.is_empty()).then(|| "metadata.ownerReferences".to_owned()));
        DesiredCluster { name, labels, annotations, spec: self.spec, status: self.status, pinned: false, unknown }
    }
}

fn unknown(object: &Value) -> Vec<String> {
    const TOP: &[&str] = &["kind", "apiVersion", "metadata", "spec", "status"];
    let names = |value: &Value, known: &'static [&'static str], before: &'static str| -> Vec<String> {
        let fields = value.as_object().into_iter().flat_map(Map::keys);
        fields.filter(|name| !known.contains(&name.as_str())).map(|name| format!("{before}{name}")).collect()
    };
    let mut found = names(object, TOP, "");
    found.extend(names(&object["spec"], FIELDS, "spec."));
    found
}
