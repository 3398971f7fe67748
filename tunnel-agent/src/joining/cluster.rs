//! The cluster's object on the hub: `ManagedCluster`, `cluster.open-cluster-management.io/v1`.

use std::time::Duration;

use api::ocm_agent::{ANNOUNCED_BY_ANNOTATION, TUNNEL_AGENT};
use serde_json::{Value, json};

pub const CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
/// Default duration of the Lease, in seconds (its kind's default).
const DEFAULT_LEASE: u64 = 60;
/// Limits of the interval of renewals, in seconds, for any value in the object.
const SHORTEST_LEASE: u64 = 1;
const LONGEST_LEASE: u64 = 3_600;
/// Limits of the time between two reads.
const SHORTEST_LOOK: Duration = Duration::from_secs(5);
const LONGEST_LOOK: Duration = Duration::from_mins(1);

/// The `ManagedCluster` that announces `cluster`, with `url` if clients of the hub can reach it
/// there. It says that no klusterlet runs, so that the hub may deliver what no agent on the member
/// will fetch.
pub fn document(cluster: &str, url: Option<&str>) -> Value {
    let mut spec = json!({"hubAcceptsClient": false, "leaseDurationSeconds": DEFAULT_LEASE});
    if let Some(url) = url {
        spec["managedClusterClientConfigs"] = json!([{"url": url}]);
    }
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": cluster, "annotations": {ANNOUNCED_BY_ANNOTATION: TUNNEL_AGENT}}, "spec": spec,
    })
}

/// Path of the object.
pub fn path(cluster: &str) -> String {
    format!("{CLUSTERS}/{cluster}")
}

pub fn is_accepted(cluster: &Value) -> bool {
    cluster["spec"]["hubAcceptsClient"] == true
}

/// Interval of the Lease's renewals.
pub fn lease(cluster: &Value) -> Duration {
    let seconds = cluster["spec"]["leaseDurationSeconds"].as_u64().unwrap_or(DEFAULT_LEASE);
    Duration::from_secs(seconds.clamp(SHORTEST_LEASE, LONGEST_LEASE))
}

/// Interval of reads of the cluster. It has bounds of its own: each read also asks the member, and
/// the agent must notice a denial even if it renews the Lease rarely.
pub fn look(cluster: &Value) -> Duration {
    lease(cluster).clamp(SHORTEST_LOOK, LONGEST_LOOK)
}

/// The command for an administrator.
pub fn how_to_accept(cluster: &str) -> String {
    format!("kubectl patch managedcluster {cluster} --type=merge -p '{{\"spec\":{{\"hubAcceptsClient\":true}}}}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sets_the_lease_sets_neither_the_members_load_nor_how_late_a_no_is_noticed() {
        for (seconds, lease_is, look_is) in [(1, 1, 5), (30, 30, 30), (86_400, 3_600, 60)] {
            let cluster = json!({"spec": {"leaseDurationSeconds": seconds}});
            let expected = (Duration::from_secs(lease_is), Duration::from_secs(look_is));
            assert_eq!((lease(&cluster), look(&cluster)), expected, "{seconds}");
        }
    }
}
