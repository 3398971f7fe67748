//! The shapes of the four documents: `metav1.APIGroupList`, `APIGroup` and `APIResourceList`, and
//! `apidiscovery.k8s.io/v2`.

use std::borrow::Cow;

use serde::Serialize;

use super::{Resource, Subresource};
use crate::API_VERSION;
use crate::karmada;
use crate::{GROUP, VERSION};

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
    groups: [Group; 1],
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
    items: [GroupDiscovery; 1],
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

/// Always complete: client-go 0.26 panics on a null kind, later versions drop the resource.
#[derive(Serialize)]
struct ResponseKind {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
}

pub(super) fn groups() -> Typed<Groups> {
    Typed { kind: "APIGroupList", api_version: "v1", content: Groups { groups: [Group::ours()] } }
}

pub(super) fn group() -> Typed<Group> {
    Typed { kind: "APIGroup", api_version: "v1", content: Group::ours() }
}

pub(super) fn karmada_group() -> Typed<Group> {
    let version = GroupVersion { group_version: karmada::API_VERSION, version: karmada::VERSION };
    let content = Group { name: karmada::GROUP, versions: [version], preferred_version: version };
    Typed { kind: "APIGroup", api_version: "v1", content }
}

pub(super) fn karmada_version(proxy: &'static Subresource) -> Typed<ResourceList> {
    let resources = vec![ApiResource::below(karmada::CLUSTERS, proxy)];
    let content = ResourceList { group_version: karmada::API_VERSION, resources };
    Typed { kind: "APIResourceList", api_version: "v1", content }
}

pub(super) fn version(table: &'static [Resource]) -> Typed<ResourceList> {
    let resources = table.iter().flat_map(ApiResource::all).collect();
    Typed {
        kind: "APIResourceList",
        api_version: "v1",
        content: ResourceList { group_version: API_VERSION, resources },
    }
}

pub(super) fn aggregated(table: &'static [Resource]) -> Typed<GroupDiscoveries> {
    let resources = table.iter().map(ResourceDiscovery::new).collect();
    let version = VersionDiscovery { version: VERSION, resources, freshness: "Current" };
    let group = GroupDiscovery { metadata: Name { name: GROUP }, versions: [version] };
    Typed {
        kind: "APIGroupDiscoveryList",
        api_version: "apidiscovery.k8s.io/v2",
        content: GroupDiscoveries { metadata: Empty {}, items: [group] },
    }
}

// === impl Group ===

impl Group {
    fn ours() -> Self {
        let version = GroupVersion { group_version: API_VERSION, version: VERSION };
        Self { name: GROUP, versions: [version], preferred_version: version }
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
    fn new(resource: &'static Resource) -> Self {
        let subresources = resource.subresources.iter().map(|subresource| SubresourceDiscovery {
            subresource: subresource.name,
            response_kind: ResponseKind::ours(subresource.kind),
            verbs: subresource.verbs,
        });
        Self {
            resource: resource.plural,
            response_kind: ResponseKind::ours(resource.kind),
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
    fn ours(kind: &'static str) -> Self {
        Self { group: GROUP, version: VERSION, kind }
    }
}
