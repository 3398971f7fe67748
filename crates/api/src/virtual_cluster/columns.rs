//! A `VirtualCluster` as an object and as a row of a table.

use super::{Content, RESOURCE, VirtualCluster};
use crate::object::{Cell, Column, ObjectMeta, Served};
use crate::secret::Endpoint;

/// Replaces an endpoint that readers must not see.
pub(super) const NO_ENDPOINT: &str = "-";

impl Served for VirtualCluster {
    const RESOURCE: &'static str = RESOURCE;
    const KIND: &'static str = "VirtualCluster";
    const TYPED_ITEMS: bool = true;
    const COLUMNS: &'static [Column] = &[
        Column { format: "name", ..Column::text("Name", "Name of the cluster.") },
        Column::text("Alias", "Display name of the cluster."),
        Column::text("Credential_Type", "How the gateway authenticates to the cluster."),
        Column::text("Endpoint", "Address of the cluster, or how it is reached."),
        Column { r#type: "boolean", ..Column::text("Accepted", "Whether the cluster may be used.") },
        Column::text("Labels", "Labels of the cluster."),
        Column {
            format: "dateTime",
            priority: 10,
            ..Column::text("Creation_Timestamp", "When the cluster was registered.")
        },
    ];

    fn metadata(&self) -> ObjectMeta<'_> {
        ObjectMeta {
            name: &self.name,
            uid: &self.uid,
            resource_version: &self.resource_version,
            creation_timestamp: self.creation_timestamp.as_deref(),
            labels: (!self.labels.is_empty()).then_some(&self.labels),
            ..ObjectMeta::default()
        }
    }

    fn cells(&self) -> Vec<Cell<'_>> {
        let labels = self.labels.iter().map(|(key, value)| format!("{key}={value}"));
        vec![
            Cell::Text(&self.name),
            Cell::Text(&self.spec.alias),
            Cell::Text(&self.spec.credential_type),
            Cell::Text(&self.spec.endpoint),
            Cell::Flag(self.spec.accepted),
            Cell::Owned(labels.collect::<Vec<_>>().join(",")),
            self.creation_timestamp.as_deref().map_or(Cell::Null, Cell::Text),
        ]
    }

    type Content<'a> = Content<'a>;

    fn content(&self) -> Content<'_> {
        Content { spec: &self.spec }
    }
}

/// A valid endpoint as written. Any other text may contain a password or part of one, and readers
/// of `virtualclusters` may not be allowed to read credentials.
pub(super) fn shown(written: &[u8]) -> &str {
    match str::from_utf8(written) {
        Ok("") => "",
        Ok(url) if Endpoint::parse(url, true).is_ok() => url,
        _ => NO_ENDPOINT,
    }
}
