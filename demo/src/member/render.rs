//! One answer in the representation that was negotiated: objects as they are, or as a Table.
//!
//! Lists, single objects and watch events all come through here, so that a watch shows the same columns as the
//! list it follows.

use std::sync::Arc;

use serde_json::{Value, json};
use time::OffsetDateTime;

use super::{kind::Kind, negotiate::Representation, object::Object, request::Query, status::Refusal, table};

/// How objects are shown to one client.
#[derive(Clone, Debug)]
pub(crate) struct Render {
    table: bool,
    include: Include,
    /// In a watch, column definitions go with the first event only.
    columns_sent: bool,
}

/// What a Table row carries besides its cells (`?includeObject=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Include {
    Nothing,
    Metadata,
    Object,
}

// === impl Render ===

impl Render {
    /// Reads the representation and `includeObject`.
    pub(crate) fn new(representation: Representation, query: &Query) -> Result<Self, Refusal> {
        let include = match query.text("includeObject") {
            "" | "Metadata" => Include::Metadata,
            "Object" => Include::Object,
            "None" => Include::Nothing,
            other => return Err(Refusal::BadRequest(format!("unrecognized includeObject value: {other:?}"))),
        };
        match representation {
            Representation::Plain => Ok(Self { table: false, include, columns_sent: false }),
            Representation::Table => Ok(Self { table: true, include, columns_sent: false }),
            Representation::Discovery => Err(Refusal::NotAcceptable),
        }
    }

    /// A list answer.
    pub(crate) fn list(&self, kind: Kind, objects: &[Arc<Object>], version: u64, now: OffsetDateTime) -> Value {
        let version = version.to_string();
        if self.table {
            let rows: Vec<Value> = objects.iter().map(|object| self.row(kind, &object.body, now)).collect();
            return table_of(&version, Some(kind), &rows);
        }
        let items: Vec<&Value> = objects.iter().map(|object| &object.body).collect();
        json!({
            "kind": format!("{}List", kind.traits().kind),
            "apiVersion": kind.traits().group.api_version(),
            "metadata": {"resourceVersion": version},
            "items": items,
        })
    }

    /// A single-object answer.
    pub(crate) fn object(&self, kind: Kind, body: &Value, now: OffsetDateTime) -> Value {
        if !self.table {
            return body.clone();
        }
        table_of(version_of(body), Some(kind), &[self.row(kind, body, now)])
    }

    /// The object of a watch event.
    pub(crate) fn event(&mut self, kind: Kind, body: &Value, now: OffsetDateTime) -> Value {
        if !self.table {
            return body.clone();
        }
        let columns = (!self.columns_sent).then_some(kind);
        self.columns_sent = true;
        table_of(version_of(body), columns, &[self.row(kind, body, now)])
    }

    /// The object of a bookmark.
    pub(crate) fn bookmark(&self, kind: Kind, version: u64) -> Value {
        let version = version.to_string();
        if self.table {
            return table_of(&version, None, &[]);
        }
        let traits = kind.traits();
        json!({
            "kind": traits.kind,
            "apiVersion": traits.group.api_version(),
            "metadata": {"resourceVersion": version},
        })
    }

    fn row(&self, kind: Kind, body: &Value, now: OffsetDateTime) -> Value {
        let object = match self.include {
            Include::Nothing => Value::Null,
            Include::Object => body.clone(),
            Include::Metadata => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": body["metadata"],
            }),
        };
        json!({"cells": table::cells(kind, body, now), "object": object})
    }
}

fn version_of(body: &Value) -> &str {
    body["metadata"]["resourceVersion"].as_str().unwrap_or_default()
}

fn table_of(version: &str, columns: Option<Kind>, rows: &[Value]) -> Value {
    let definitions = columns.map_or_else(|| json!([]), table::columns);
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": version},
        "columnDefinitions": definitions,
        "rows": rows,
    })
}
