//! The rights of the controllers.

use hub_tests::prelude::*;

/// Kinds of sources, Argo CD and managed-serviceaccount, which are read by watches only.
const WATCHED: [&str; 7] = [
    "customresourcedefinitions",
    "clusters",
    "kubefedclusters",
    "managedclusters",
    "clusterprofiles",
    "managedclusteraddons",
    "placements",
];

/// The verbs that the controllers may have: to write clusters' Secrets and their Lease, create
/// Events, and read sources.
pub(super) fn controllers_verbs(case: &str, role: &Value, rule: &Value) -> Result<Value> {
    if let Some(verbs) = of_delivery(case, rule).filter(|_| role["kind"] == "ClusterRole") {
        return Ok(verbs);
    }
    let Some(resource) = rule["resources"][0].as_str() else { bail!("a right that nobody needs: {role}") };
    match role["kind"].as_str() {
        Some("Role") => in_namespaces(case, role, rule, resource),
        Some("ClusterRole") => on_the_hub(case, role, rule, resource),
        _ => bail!("neither a Role nor a ClusterRole: {role}"),
    }
}

/// Whether it is one of the statuses that all parts write alike.
fn is_status(resource: &str) -> bool {
    ["clusterprofiles/status", "managedserviceaccounts/status", "manifestworkreplicasets/status", "placements/status"]
        .contains(&resource)
}

fn in_namespaces(case: &str, role: &Value, rule: &Value, resource: &str) -> Result<Value> {
    let is_named = !rule["resourceNames"].is_null();
    Ok(match resource {
        // In Argo CD's namespace.
        "secrets" if is_of_argocd(role) => json!(["list", "watch", "create", "patch", "delete"]),
        "serviceaccounts" if is_named => json!(["list", "watch"]),
        "serviceaccounts/token" if is_named => json!(["create"]),
        // For the Job that may remove clusters after an uninstallation.
        "secrets" if role["metadata"]["annotations"]["helm.sh/hook"] == "post-delete" => json!(["list", "delete"]),
        "secrets" => {
            ensure!(case != "placement alone", "placement reads no Secret: {rule}");
            if case == "profiles of a gateway elsewhere" {
                return Ok(json!(["list", "watch"]));
            }
            json!(["list", "watch", "create", "patch", "delete"])
        }
        "leases" if !is_named => json!(["create"]),
        "leases" => json!(["get", "patch", "watch"]),
        "clusterprofiles" => json!(["list", "watch", "create", "patch", "delete"]),
        status if is_status(status) => json!(["patch"]),
        _ => bail!("a right that nobody needs: {role}"),
    })
}

fn on_the_hub(case: &str, role: &Value, rule: &Value, resource: &str) -> Result<Value> {
    const KINDS_END: [&str; 4] = ["placement", "Argo CD", "works that are guarded", "delivery"];
    Ok(match resource {
        status if is_status(status) => json!(["patch"]),
        "events" => json!(["create", "patch"]),
        // For placement: decisions and statuses, and the right to own what it writes.
        "placementdecisions" | "manifestworks" => json!(["list", "watch", "create", "patch", "delete"]),
        "placements/finalizers" => json!(["update"]),
        "leases" => {
            let locks = [json!(["placement-lock"]), json!(["work-manager-lock"])];
            ensure!(locks.contains(&rule["resourceNames"]), "{rule}");
            json!(["list", "watch"])
        }
        // For its finalizer.
        "manifestworkreplicasets" => json!(["list", "watch", "patch"]),
        // To see whether a kind is being deleted, since the end of its objects may be reported
        // first.
        "customresourcedefinitions" if KINDS_END.iter().any(|part| case.contains(part)) => {
            json!(["list", "watch", "get"])
        }
        watched if WATCHED.contains(&watched) => json!(["list", "watch"]),
        "tokenreviews" if case.contains("Argo CD") => json!(["create"]),
        "managedserviceaccounts" => json!(["list", "watch", "patch", "delete"]),
        "clustergateways/proxy" if has_accounts(role) => json!(["get", "create", "delete"]),
        "clustergateways/proxy" => json!(["get"]),
        "secrets" if has_accounts(role) => json!(["get", "list", "watch", "create", "patch"]),
        _ => json!(["get", "list", "watch"]),
    })
}

/// The verbs of manifestworks and availability, in the cases that have them.
fn of_delivery(case: &str, rule: &Value) -> Option<Value> {
    let is_whole = case == "delivery by one value";
    if !is_whole && case != "works and probes with policies" {
        return None;
    }
    let either = |all: &[Value]| all.iter().find(|verbs| **verbs == rule["verbs"]).or(all.first()).cloned();
    let on = |names: &[&str]| rule["resourceNames"] == json!(names);
    match rule["resources"][0].as_str()? {
        // Works of sets are created by replica-sets.
        "manifestworks" if is_whole && rule["verbs"].as_array()?.len() == 5 => None,
        "manifestworks" => Some(json!(["get", "list", "watch", "patch"])),
        "manifestworks/status" | "managedclusters/status" => Some(json!(["patch"])),
        // availability writes their taints.
        "managedclusters" => either(&[json!(["list", "watch"]), json!(["list", "watch", "patch"])]),
        "managedclusters/taints" => Some(json!(["update"])),
        "namespaces" if on(&["kube-system"]) => Some(json!(["get"])),
        "leases" if on(&["registration-controller-lock"]) => Some(json!(["list", "watch"])),
        "leases" if on(&["managed-cluster-lease"]) => Some(json!(["get"])),
        // To deliver, and to probe.
        "clustergateways/proxy" => either(&[json!(["get", "create", "update", "patch", "delete"]), json!(["get"])]),
        _ => None,
    }
}

/// Whether it is the role for Argo CD's Secrets.
fn is_of_argocd(role: &Value) -> bool {
    role["metadata"]["name"].as_str().is_some_and(|name| name.ends_with("-argocd"))
}

/// Whether it is the role that writes tokens of `ManagedServiceAccounts`.
fn has_accounts(role: &Value) -> bool {
    role["metadata"]["name"].as_str().is_some_and(|name| name.ends_with(":accounts"))
}
