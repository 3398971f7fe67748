//! The types of the four documents: `metav1.APIGroupList`, `APIGroup`, `APIResourceList`, and those
//! of `apidiscovery.k8s.io/v2`.

use std::borrow::Cow;

use serde::Serialize;

use super::{Group as Table, Resource, Subresource};

#[derive(Serialize)]
pub(super) struct Typed<T> {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    #[serde(flatten)]
    content: T,
}

#[derive(Serialize)]
pub(super) struct Groups {
    groups: Vec<Group>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Group {
    name: &'static str,
    versions: [GroupVersion; 1],
    preferred_version: GroupVersion,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupVersion {
    group_version: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceList {
    group_version: &'static str,
    resources: Vec<ApiResource>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiResource {
    name: Cow<'static, str>,
    /// Empty, but present, for subresources.
    singular_name: &'static str,
    namespaced: bool,
    kind: &'static str,
    verbs: &'static [&'static str],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    short_names: &'static [&'static str],
}

#[derive(Serialize)]
pub(super) struct GroupDiscoveries {
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

pub(super) fn groups(tables: &[Table]) -> Typed<Groups> {
    Typed {
        kind: "APIGroupList",
        api_version: "v1",
        content: Groups { groups: tables.iter().map(Group::of).collect() },
    }
}

pub(super) fn group(table: &Table) -> Typed<Group> {
    Typed { kind: "APIGroup", api_version: "v1", content: Group::of(table) }
}

pub(super) fn version(table: &Table) -> Typed<ResourceList> {
    let resources = table.resources.iter().flat_map(ApiResource::all).collect();
    let content = ResourceList { group_version: table.api_version, resources };
    Typed { kind: "APIResourceList", api_version: "v1", content }
}

pub(super) fn aggregated(tables: &[Table]) -> Typed<GroupDiscoveries> {
    let items = tables.iter().map(GroupDiscovery::of).collect();
    Typed {
        kind: "APIGroupDiscoveryList",
        api_version: "apidiscovery.k8s.io/v2",
        content: GroupDiscoveries { metadata: Empty {}, items },
    }
}

// === impl Group ===

impl Group {
    fn of(table: &Table) -> Self {
        let version = GroupVersion { group_version: table.api_version, version: table.version };
        Self { name: table.name, versions: [version], preferred_version: version }
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

// === impl ApiResource ===

impl ApiResource {
    /// The resource and its subresources.
    fn all(resource: &'static Resource) -> impl Iterator<Item = Self> {
        let main = Self {
            name: Cow::Borrowed(resource.plural),
            singular_name: resource.singular,
            namespaced: false,
            kind: resource.kind,
            verbs: resource.verbs,
            short_names: resource.short_names,
        };
        let subresources = resource.subresources.iter().map(|subresource| Self::below(resource.plural, subresource));
        std::iter::once(main).chain(subresources)
    }

    fn below(resource: &str, subresource: &'static Subresource) -> Self {
        Self {
            name: Cow::Owned(format!("{resource}/{}", subresource.name)),
            singular_name: "",
            namespaced: false,
            kind: subresource.kind,
            verbs: subresource.verbs,
            short_names: &[],
        }
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
