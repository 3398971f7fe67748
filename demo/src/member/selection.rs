//! Which objects a request is about, and how they are shown: as they are, as a Table, or as their
//! metadata alone.
//!
//! Lists, single objects and watch events all come through here, so that a watch shows the same
//! columns as the list it follows.

use std::collections::BTreeMap;

use api::{
    accept::{MetaVersion, Representation},
    selector::label::LabelSelector,
};
use kit::selector::FieldSelector;
use serde_json::{Value, json};

use super::{
    cluster::{Cluster, stamp},
    documents::Resource,
};

/// Which objects a request is about, and how it wants to see them.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) resource: Resource,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) labels: LabelSelector,
    pub(super) fields: FieldSelector,
    pub(super) form: Representation,
    /// `includeObject=Object`: rows of tables carry the whole object, and not its metadata alone.
    pub(super) whole: bool,
}

// === impl Selection ===

impl Selection {
    pub(super) fn rows(&self, cluster: &Cluster, version: u64) -> Vec<Value> {
        cluster.rows(self.resource, version).into_iter().filter(|row| self.matches(row)).collect()
    }

    pub(super) fn matches(&self, row: &Value) -> bool {
        let object = &row["object"];
        let holds = |wanted: &Option<String>, field: &str| {
            wanted.as_deref().is_none_or(|wanted| object["metadata"][field] == wanted)
        };
        holds(&self.namespace, "namespace")
            && holds(&self.name, "name")
            && self.labels.matches(&labels(object))
            && self.fields.matches(object)
    }

    /// A line of a watch.
    pub(super) fn event(&self, kind: &str, row: Value) -> String {
        format!("{}\n", json!({"type": kind, "object": self.shown(row)}))
    }

    /// What a watch shows between two versions: an object that stops being selected was deleted, at
    /// the version where to resume from (`k8s.io/apiserver/pkg/storage/cacher`, `cacheWatcher`).
    pub(super) fn change(&self, cluster: &Cluster, version: u64) -> Option<String> {
        let selected = |version| cluster.report(self.resource, version).filter(|row| self.matches(row));
        match (selected(version - 1), selected(version)) {
            (None, None) => None,
            (None, Some(after)) => Some(self.event("ADDED", after)),
            (Some(_), Some(after)) => Some(self.event("MODIFIED", after)),
            (Some(mut before), None) => {
                stamp(&mut before, version);
                Some(self.event("DELETED", before))
            }
        }
    }

    pub(super) fn list(&self, rows: Vec<Value>, version: u64) -> Value {
        let metadata = json!({"resourceVersion": version.to_string()});
        let (kind, api_version) = match self.form {
            Representation::Table(form) => return self.table(rows, form, &metadata),
            Representation::Metadata(form) => ("PartialObjectMetadata", form.api_version()),
            Representation::Json => (self.resource.kind(), self.resource.api_version()),
        };
        let items: Vec<Value> = rows.into_iter().map(|row| self.shown(row)).collect();
        json!({"kind": format!("{kind}List"), "apiVersion": api_version, "metadata": metadata, "items": items})
    }

    pub(super) fn shown(&self, mut row: Value) -> Value {
        match self.form {
            Representation::Json => row["object"].take(),
            Representation::Metadata(form) => metadata_of(&mut row["object"], form),
            Representation::Table(form) => {
                let version = row["object"]["metadata"]["resourceVersion"].clone();
                self.table(vec![row], form, &json!({"resourceVersion": version}))
            }
        }
    }

    fn table(&self, mut rows: Vec<Value>, form: MetaVersion, metadata: &Value) -> Value {
        for object in rows.iter_mut().filter(|_| !self.whole).map(|row| &mut row["object"]) {
            *object = metadata_of(object, form);
        }
        json!({
            "kind": "Table",
            "apiVersion": form.api_version(),
            "metadata": metadata,
            "columnDefinitions": self.resource.columns(),
            "rows": rows,
        })
    }
}

/// The metadata of an object alone, taken out of it.
fn metadata_of(object: &mut Value, form: MetaVersion) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": form.api_version(),
        "metadata": object["metadata"].take(),
    })
}

fn labels(object: &Value) -> BTreeMap<String, String> {
    serde_json::from_value(object["metadata"]["labels"].clone()).unwrap_or_default()
}
