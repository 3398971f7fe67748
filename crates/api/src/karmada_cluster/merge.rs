//! Lists of several members made one, each item marked with its cluster.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Annotation of an item: whose it is (`CacheSourceAnnotationKey` of Karmada's
/// `pkg/apis/cluster/v1alpha1/well_known_constants.go`).
pub const CLUSTER_ANNOTATION: &str = "resource.karmada.io/cached-from-cluster";

/// A list being merged.
#[derive(Default)]
pub struct Merged {
    /// Of the first list.
    head: Option<Head>,
    /// JSON of items or rows, with commas between them.
    items: Vec<u8>,
}

/// A member's list does not fit those before it, or is none. Its text follows a cluster's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its answer is no list like the others'")]
pub struct NotAlike;

#[derive(PartialEq, Eq)]
struct Head {
    kind: String,
    api_version: String,
    /// JSON of a Table's column definitions.
    columns: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    column_definitions: Option<&'a RawValue>,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    rows: Option<Vec<&'a RawValue>>,
}

type Fields<'a> = BTreeMap<String, Cow<'a, RawValue>>;

// === impl Merged ===

impl Merged {
    /// Adds what `cluster` answered. Nothing of it is added if it does not fit.
    pub fn add(&mut self, cluster: &str, json: &[u8]) -> Result<(), NotAlike> {
        let list: List<'_> = serde_json::from_slice(json).map_err(|_| NotAlike)?;
        let is_table = list.kind == "Table";
        let head = Head {
            kind: list.kind.into_owned(),
            api_version: list.api_version.into_owned(),
            columns: list.column_definitions.map(|columns| columns.get().to_owned()),
        };
        if !(is_table || head.kind.ends_with("List")) || self.head.as_ref().is_some_and(|first| *first != head) {
            return Err(NotAlike);
        }
        let before = self.items.len();
        for item in list.items.into_iter().chain(list.rows).flatten() {
            let marked = if is_table { marked_row(cluster, item) } else { marked(cluster, item) };
            let Some(marked) = marked else {
                self.items.truncate(before);
                return Err(NotAlike);
            };
            if !self.items.is_empty() {
                self.items.push(b',');
            }
            self.items.extend_from_slice(marked.get().as_bytes());
        }
        self.head.get_or_insert(head);
        Ok(())
    }

    /// Bytes that it holds.
    pub fn held(&self) -> usize {
        self.items.capacity()
    }

    /// The document; `None` if nobody's list was added. It has no version: each member has its own.
    pub fn document(self) -> Option<Vec<u8>> {
        let Head { kind, api_version, columns } = self.head?;
        let text = |text: &str| serde_json::to_string(text).unwrap_or_default();
        let (columns, items) = match columns {
            Some(columns) => (format!("\"columnDefinitions\":{columns},"), "rows"),
            None => (String::new(), if kind == "Table" { "rows" } else { "items" }),
        };
        let (kind, version) = (text(&kind), text(&api_version));
        let head = format!(
            "{{\"kind\":{kind},\"apiVersion\":{version},\"metadata\":{{\"resourceVersion\":\"\"}},{columns}\"{items}\":["
        );
        let mut document = head.into_bytes();
        document.reserve(self.items.len() + 3);
        document.extend_from_slice(&self.items);
        document.extend_from_slice(b"]}\n");
        Some(document)
    }
}

/// A row of a Table, whose object is marked if it has one.
fn marked_row(cluster: &str, row: &RawValue) -> Option<Box<RawValue>> {
    let mut fields: Fields<'_> = fields(row)?;
    let object = match fields.get("object") {
        Some(object) if object.get() != "null" => Some(marked(cluster, object)?),
        _ => None,
    };
    if let Some(object) = object {
        fields.insert("object".to_owned(), Cow::Owned(object));
    }
    raw(&fields)
}

fn marked(cluster: &str, object: &RawValue) -> Option<Box<RawValue>> {
    let mut outer: Fields<'_> = fields(object)?;
    let metadata = outer.get("metadata")?.clone();
    let mut metadata: Fields<'_> = fields(&metadata)?;
    let annotations: Option<Option<BTreeMap<String, String>>> =
        metadata.get("annotations").map(|annotations| serde_json::from_str(annotations.get())).transpose().ok()?;
    let mut annotations = annotations.flatten().unwrap_or_default();
    annotations.insert(CLUSTER_ANNOTATION.to_owned(), cluster.to_owned());
    metadata.insert("annotations".to_owned(), Cow::Owned(raw(&annotations)?));
    outer.insert("metadata".to_owned(), Cow::Owned(raw(&metadata)?));
    raw(&outer)
}

fn fields(object: &RawValue) -> Option<Fields<'_>> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(object.get()).ok()?;
    Some(fields.into_iter().map(|(name, value)| (name, Cow::Borrowed(value))).collect())
}

fn raw(value: &impl Serialize) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(value).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn merged(lists: &[(&str, Value)]) -> Value {
        let mut merged = Merged::default();
        for (cluster, list) in lists {
            merged.add(cluster, list.to_string().as_bytes()).expect("a list");
        }
        serde_json::from_slice(&merged.document().expect("one at least")).expect("JSON")
    }

    #[test]
    fn items_are_marked_and_keep_what_they_have() {
        let list = |items: Value| json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": items});
        let first = json!([{"metadata": {"name": "a", "annotations": {"x": "y"}}, "spec": {"big": 1e300}}]);
        let found = merged(&[
            ("berlin", list(first)),
            ("paris", list(json!([]))),
            ("rome", list(json!([{"metadata": {"name": "b", "annotations": null}}]))),
        ]);
        assert_eq!((&found["kind"], &found["metadata"]), (&json!("PodList"), &json!({"resourceVersion": ""})));
        let marks: Vec<_> =
            (0..2).map(|item| found["items"][item]["metadata"]["annotations"][CLUSTER_ANNOTATION].clone()).collect();
        assert_eq!(marks, ["berlin", "rome"]);
        assert_eq!(found["items"][0]["metadata"]["annotations"]["x"], "y");
        assert_eq!(found["items"][0]["spec"], json!({"big": 1e300}));
        assert_eq!(merged(&[("a", list(Value::Null))])["items"], json!([]));
    }

    #[test]
    fn rows_of_tables_are_marked() {
        let table = |columns: Value, object: Value| json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": columns, "rows": [{"cells": ["a"], "object": object}]});
        let columns = json!([{"name": "Name"}]);
        let found = merged(&[
            ("berlin", table(columns.clone(), json!({"metadata": {"name": "a"}}))),
            ("paris", table(columns.clone(), Value::Null)),
        ]);
        assert_eq!(found["columnDefinitions"], columns);
        assert_eq!(found["rows"][0]["object"]["metadata"]["annotations"][CLUSTER_ANNOTATION], "berlin");
        assert_eq!(found["rows"][1], json!({"cells": ["a"], "object": null}));
        let mut one = Merged::default();
        one.add("a", table(columns, Value::Null).to_string().as_bytes()).expect("a Table");
        assert_eq!(one.add("b", table(json!([]), Value::Null).to_string().as_bytes()), Err(NotAlike));
    }

    #[test]
    fn what_is_no_list_is_not_merged() {
        let mut merged = Merged::default();
        let half = r#"{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{}},{"spec":1}]}"#;
        for json in ["", "[]", r#"{"kind":"Status","apiVersion":"v1"}"#, half] {
            assert_eq!(merged.add("a", json.as_bytes()), Err(NotAlike), "{json}");
        }
        assert!(merged.items.is_empty(), "nothing is left of a half");
        assert!(merged.document().is_none());
    }
}
