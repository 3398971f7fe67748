//! What an accepted cluster may do: the roles that are made or filled for it.

use serde_json::{Value, json};

use super::{COMMON, CREDENTIAL, DesiredGrant, Key, Kind, PREFIX};
use crate::csr::CLUSTER_LABEL;

/// Whether a `ClusterRole` is one of [`common_roles`].
pub fn is_common(role: &str) -> bool {
    role == CREDENTIAL || role.strip_prefix(PREFIX).is_some_and(|name| COMMON.contains(&name))
}

/// The roles that the bindings in all clusters' namespaces reference. `filled` is the one Secret
/// that agents may fill; it has the name of its `ManagedServiceAccount`. Without it they may fill
/// none. Server-side apply creates it: of all ways to create, only this one lets a right name the
/// object.
pub fn common_roles(filled: Option<&str>) -> Vec<DesiredGrant> {
    let registration = json!([
        rule("coordination.k8s.io", "leases", &["get", "list", "watch", "update"]),
        rule("addon.open-cluster-management.io", "managedclusteraddons", &["get", "list", "watch"]),
        rule("addon.open-cluster-management.io", "managedclusteraddons/status", &["patch", "update"]),
        rule("events.k8s.io", "events", &["create"]),
    ]);
    let work = json!([
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch", "update"]},
        rule("work.open-cluster-management.io", "manifestworks", &["get", "list", "watch", "update", "patch"]),
        rule("work.open-cluster-management.io", "manifestworks/status", &["patch", "update"]),
    ]);
    let upstreams =
        [(COMMON[0], registration), (COMMON[1], work)].map(|(name, rules)| (format!("{PREFIX}{name}"), rules));
    let own = filled.map(|name| (CREDENTIAL.to_owned(), filling_rules(name)));
    let all = upstreams.into_iter().chain(own);
    all.map(|(name, rules)| object(Kind::ClusterRole, "", name, "", json!({"rules": rules}))).collect()
}

fn filling_rules(name: &str) -> Value {
    let account = "authentication.open-cluster-management.io";
    json!([
        named(rule("", "secrets", &["get", "create", "patch"]), name),
        named(rule(account, "managedserviceaccounts", &["get"]), name),
    ])
}

pub(super) fn accepted_rules(name: &str) -> Value {
    let cluster = "cluster.open-cluster-management.io";
    json!([
        rule("certificates.k8s.io", "certificatesigningrequests", &["create", "get", "list", "watch"]),
        rule("register.open-cluster-management.io", "managedclusters/clientcertificates", &["renew"]),
        named(rule(cluster, "managedclusters", &["get", "list", "update", "watch"]), name),
        named(rule(cluster, "managedclusters/status", &["patch", "update"]), name),
    ])
}

pub(super) fn looking_rules(name: &str) -> Value {
    let own = rule("cluster.open-cluster-management.io", "managedclusters", &["get", "list", "watch"]);
    json!([named(own, name)])
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
}

fn named(mut rule: Value, name: &str) -> Value {
    rule["resourceNames"] = json!([name]);
    rule
}

pub(super) fn object(kind: Kind, namespace: &str, name: String, cluster: &str, content: Value) -> DesiredGrant {
    let [group, version, kind_name, _] = kind.resource();
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut document = content;
    document["apiVersion"] = api_version.into();
    document["kind"] = kind_name.into();
    document["metadata"] = json!({"name": name, "labels": {CLUSTER_LABEL: cluster}});
    if !namespace.is_empty() {
        document["metadata"]["namespace"] = namespace.into();
    }
    DesiredGrant { key: Key { kind, namespace: namespace.to_owned(), name }, document }
}
