//! Which objects a request is about, and how they are shown: as they are, or as a Table.
//!
//! Lists, single objects and watch events all come through here, so that a watch shows the same
//! columns as the list it follows.

use std::collections::BTreeMap;

use api::selector::label::LabelSelector;
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
    pub(super) table: bool,
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

    pub(super) fn list(&self, mut rows: Vec<Value>, version: u64) -> Value {
        let metadata = json!({"resourceVersion": version.to_string()});
        if self.table {
            return self.table(rows, &metadata);
        }
        let items: Vec<Value> = rows.iter_mut().map(|row| row["object"].take()).collect();
        let kind = format!("{}List", self.resource.kind());
        json!({"kind": kind, "apiVersion": self.resource.api_version(), "metadata": metadata, "items": items})
    }

    pub(super) fn shown(&self, mut row: Value) -> Value {
        if !self.table {
            return row["object"].take();
        }
        let version = row["object"]["metadata"]["resourceVersion"].clone();
        self.table(vec![row], &json!({"resourceVersion": version}))
    }

    fn table(&self, mut rows: Vec<Value>, metadata: &Value) -> Value {
        for object in rows.iter_mut().filter(|_| !self.whole).map(|row| &mut row["object"]) {
            *object = json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": object["metadata"].take(),
            });
        }
        json!({
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": self.resource.columns(),
            "rows": rows,
        })
    }
}

fn labels(object: &Value) -> BTreeMap<String, String> {
    serde_json::from_value(object["metadata"]["labels"].clone()).unwrap_or_default()
}
