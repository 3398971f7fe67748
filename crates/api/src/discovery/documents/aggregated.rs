//! Aggregated discovery: all groups in one document.

use serde::Serialize;

use super::Typed;
use crate::discovery::{Group as Table, Resource};

#[derive(Serialize)]
pub(in crate::discovery) struct GroupDiscoveries {
    metadata: Empty,
    items: Vec<GroupDiscovery>,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct GroupDiscovery {
    metadata: Name,
    versions: [VersionDiscovery; 1],
}

#[derive(Serialize)]
struct Name {
    name: &'static str,
}

#[derive(Serialize)]
struct VersionDiscovery {
    version: &'static str,
    resources: Vec<ResourceDiscovery>,
    freshness: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDiscovery {
    resource: &'static str,
    response_kind: ResponseKind,
    scope: &'static str,
    singular_resource: &'static str,
    verbs: &'static [&'static str],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    short_names: &'static [&'static str],
    subresources: Vec<SubresourceDiscovery>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceDiscovery {
    subresource: &'static str,
    response_kind: ResponseKind,
    verbs: &'static [&'static str],
}

/// Always complete: client-go 0.26 panics on a null kind, and later versions drop the resource.
#[derive(Serialize)]
struct ResponseKind {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
}

pub(in crate::discovery) fn aggregated(tables: &[Table]) -> Typed<GroupDiscoveries> {
    let items = tables.iter().map(GroupDiscovery::of).collect();
    Typed {
        kind: "APIGroupDiscoveryList",
        api_version: "apidiscovery.k8s.io/v2",
        content: GroupDiscoveries { metadata: Empty {}, items },
    }
}

// === impl GroupDiscovery ===

impl GroupDiscovery {
    fn of(table: &Table) -> Self {
        let resources = table.resources.iter().map(|resource| ResourceDiscovery::new(table, resource)).collect();
        let version = VersionDiscovery { version: table.version, resources, freshness: "Current" };
        Self { metadata: Name { name: table.name }, versions: [version] }
    }
}

// === impl ResourceDiscovery ===

impl ResourceDiscovery {
    fn new(table: &Table, resource: &'static Resource) -> Self {
        let subresources = resource.subresources.iter().map(|subresource| SubresourceDiscovery {
            subresource: subresource.name,
            response_kind: ResponseKind::of(table, subresource.kind),
            verbs: subresource.verbs,
        });
        Self {
            resource: resource.plural,
            response_kind: ResponseKind::of(table, resource.kind),
            scope: "Cluster",
            singular_resource: resource.singular,
            verbs: resource.verbs,
            short_names: resource.short_names,
            subresources: subresources.collect(),
        }
    }
}

// === impl ResponseKind ===

impl ResponseKind {
    fn of(table: &Table, kind: &'static str) -> Self {
        Self { group: table.name, version: table.version, kind }
    }
}
