//! Discovery, version and `OpenAPI`: what a client reads before its first real request.
//!
//! Both spellings of discovery derive from the table of kinds. The aggregated one is sent only to clients that
//! name `v2` exactly; older ones get the plain documents (KEP-3352).

use serde_json::{Value, json};

use super::kind::{Group, Kind};

/// The Content-Type by which a client recognises aggregated discovery.
pub(crate) const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

const VERBS: [&str; 3] = ["get", "list", "watch"];

/// `/version` for a `gitVersion` such as `v1.33.5`.
pub(crate) fn version(git_version: &str) -> Value {
    let mut parts = git_version.trim_start_matches('v').split('.');
    json!({
        "major": parts.next().unwrap_or_default(),
        "minor": parts.next().unwrap_or_default(),
        "gitVersion": git_version,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2025-09-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    })
}

/// `/api`, plain.
pub(crate) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// `/apis`, plain.
pub(crate) fn groups() -> Value {
    let groups: Vec<Value> = Group::NAMED
        .into_iter()
        .map(|group| {
            let version = json!({"groupVersion": group.api_version(), "version": "v1"});
            json!({"name": group.name(), "versions": [version], "preferredVersion": version})
        })
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/api/v1`, or `/apis/<group>/v1`.
pub(crate) fn resources(group: Group) -> Value {
    let mut resources: Vec<Value> = group
        .kinds()
        .map(|kind| {
            let traits = kind.traits();
            json!({
                "name": traits.plural,
                "singularName": traits.singular,
                "namespaced": traits.namespaced,
                "kind": traits.kind,
                "verbs": VERBS,
                "shortNames": traits.short,
                "categories": traits.categories,
            })
        })
        .collect();
    if group == Group::Core {
        let log = json!({"name": "pods/log", "singularName": "", "namespaced": true, "kind": "Pod", "verbs": ["get"]});
        resources.push(log);
    }
    json!({"kind": "APIResourceList", "groupVersion": group.api_version(), "resources": resources})
}

/// `/api`, aggregated.
pub(crate) fn aggregated_core() -> Value {
    aggregated(&[Group::Core])
}

/// `/apis`, aggregated.
pub(crate) fn aggregated_groups() -> Value {
    aggregated(&Group::NAMED)
}

/// `/openapi/v3`: a root without documents.
pub(crate) fn openapi() -> Value {
    json!({"paths": {}})
}

fn aggregated(groups: &[Group]) -> Value {
    let items: Vec<Value> = groups
        .iter()
        .map(|group| {
            let resources: Vec<Value> = group.kinds().map(aggregated_resource).collect();
            json!({
                "metadata": {"name": group.name()},
                "versions": [{"version": "v1", "freshness": "Current", "resources": resources}],
            })
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resource(kind: Kind) -> Value {
    let traits = kind.traits();
    let response_kind = |name: &str| json!({"group": traits.group.name(), "version": "v1", "kind": name});
    let mut resource = json!({
        "resource": traits.plural,
        "responseKind": response_kind(traits.kind),
        "scope": if traits.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": traits.singular,
        "verbs": VERBS,
        "shortNames": traits.short,
        "categories": traits.categories,
    });
    if kind == Kind::Pod {
        resource["subresources"] =
            json!([{"subresource": "log", "responseKind": response_kind("Pod"), "verbs": ["get"]}]);
    }
    resource
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_discovery() {
        insta::assert_json_snapshot!("core_resources", resources(Group::Core));
        insta::assert_json_snapshot!("aggregated_core", aggregated_core());
        insta::assert_json_snapshot!("groups", groups());
        insta::assert_json_snapshot!("lease_resources", resources(Group::Coordination));
        insta::assert_json_snapshot!("aggregated_groups", aggregated_groups());
    }

    #[test]
    fn the_version_is_taken_apart() {
        let version = version("v1.33.5");
        assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("33")));
    }
}
