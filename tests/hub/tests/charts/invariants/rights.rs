//! What the controllers may do.

use hub_tests::prelude::*;

/// Of sources, Argo CD and managed-serviceaccount: all by their watches.
const WATCHED: [&str; 7] = [
    "customresourcedefinitions",
    "clusters",
    "kubefedclusters",
    "managedclusters",
    "clusterprofiles",
    "managedclusteraddons",
    "placements",
];

/// What the controllers may do: write clusters' Secrets and their Lease, tell Events, read sources.
pub(super) fn controllers_verbs(case: &str, role: &Value, rule: &Value) -> Result<Value> {
    if let Some(verbs) = of_delivery(case, rule).filter(|_| role["kind"] == "ClusterRole") {
        return Ok(verbs);
    }
    Ok(match (role["kind"].as_str(), rule["resources"][0].as_str()) {
        // In Argo CD's namespace.
        (Some("Role"), Some("secrets")) if is_of_argocd(role) => json!(["list", "watch", "create", "patch", "delete"]),
        (Some("Role"), Some("serviceaccounts")) if !rule["resourceNames"].is_null() => json!(["list", "watch"]),
        (Some("Role"), Some("serviceaccounts/token")) if !rule["resourceNames"].is_null() => json!(["create"]),
        // Of the Job that an uninstallation may leave its end to.
        (Some("Role"), Some("secrets")) if role["metadata"]["annotations"]["helm.sh/hook"] == "post-delete" => {
            json!(["list", "delete"])
        }
        (Some("Role"), Some("secrets")) => {
            ensure!(case != "placement alone", "placement reads no Secret: {rule}");
            if case == "profiles of a gateway elsewhere" {
                return Ok(json!(["list", "watch"]));
            }
            json!(["list", "watch", "create", "patch", "delete"])
        }
        (Some("Role"), Some("leases")) if rule["resourceNames"].is_null() => json!(["create"]),
        (Some("Role"), Some("leases")) => json!(["get", "patch"]),
        (Some("Role"), Some("clusterprofiles")) => json!(["list", "watch", "create", "patch", "delete"]),
        (
            _,
            Some(
                "clusterprofiles/status"
                | "managedserviceaccounts/status"
                | "manifestworkreplicasets/status"
                | "placements/status",
            ),
        ) => json!(["patch"]),
        (Some("ClusterRole"), Some("events")) => json!(["create", "patch"]),
        // Of placement: decisions and statuses, and the right to own what it writes.
        (Some("ClusterRole"), Some("placementdecisions" | "manifestworks")) => {
            json!(["list", "watch", "create", "patch", "delete"])
        }
        (Some("ClusterRole"), Some("placements/finalizers")) => json!(["update"]),
        (Some("ClusterRole"), Some("leases")) => {
            let locks = [json!(["placement-lock"]), json!(["work-manager-lock"])];
            ensure!(locks.contains(&rule["resourceNames"]), "{rule}");
            json!(["list", "watch"])
        }
        // Its finalizer.
        (Some("ClusterRole"), Some("manifestworkreplicasets")) => json!(["list", "watch", "patch"]),
        // Whether a kind is on its way out, by whom the end of each object may be told before.
        (Some("ClusterRole"), Some("customresourcedefinitions"))
            if ["placement", "Argo CD", "works that are guarded", "delivery"]
                .iter()
                .any(|part| case.contains(part)) =>
        {
            json!(["list", "watch", "get"])
        }
        (Some("ClusterRole"), Some(watched)) if WATCHED.contains(&watched) => json!(["list", "watch"]),
        (Some("ClusterRole"), Some("tokenreviews")) if case.contains("Argo CD") => json!(["create"]),
        (Some("ClusterRole"), Some("managedserviceaccounts")) => json!(["list", "watch", "patch", "delete"]),
        (Some("ClusterRole"), Some("clustergateways/proxy")) if has_accounts(role) => {
            json!(["get", "create", "delete"])
        }
        (Some("ClusterRole"), Some("clustergateways/proxy")) => json!(["get"]),
        (Some("ClusterRole"), Some("secrets")) if has_accounts(role) => {
            json!(["get", "list", "watch", "create", "patch"])
        }
        (Some("ClusterRole"), Some(_)) => json!(["get", "list", "watch"]),
        _ => bail!("a right that nobody needs: {role}"),
    })
}

/// Of manifestworks and availability, where a case has them.
fn of_delivery(case: &str, rule: &Value) -> Option<Value> {
    let is_whole = case == "delivery by one value";
    if !is_whole && case != "works and probes with policies" {
        return None;
    }
    let either = |all: &[Value]| all.iter().find(|verbs| **verbs == rule["verbs"]).or(all.first()).cloned();
    let on = |names: &[&str]| rule["resourceNames"] == json!(names);
    match rule["resources"][0].as_str()? {
        // Those of sets are created by replica-sets.
        "manifestworks" if is_whole && rule["verbs"].as_array()?.len() == 5 => None,
        "manifestworks" => Some(json!(["list", "watch", "patch", "delete"])),
        "manifestworks/status" | "managedclusters/status" => Some(json!(["patch"])),
        // Their taints are availability's.
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
