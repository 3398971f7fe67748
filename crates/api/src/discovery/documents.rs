//! The types of the four documents: `metav1.APIGroupList`, `APIGroup`, `APIResourceList`, and those
//! of `apidiscovery.k8s.io/v2`.

mod aggregated;

use std::borrow::Cow;

use serde::Serialize;

use super::{Group as Table, Resource, Subresource};

pub(super) use self::aggregated::aggregated;

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

// === impl Group ===

impl Group {
    fn of(table: &Table) -> Self {
        let version = GroupVersion { group_version: table.api_version, version: table.version };
        Self { name: table.name, versions: [version], preferred_version: version }
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
