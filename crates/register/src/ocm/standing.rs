//! Where a `ManagedCluster` stands between joining and leaving.

use serde_json::Value;

use super::acceptance::COMMON;
use super::condition::{self, HUB_ACCEPTED, JOINED};
use super::is_accepted;
use crate::csr::{ALL_CLUSTERS, PREFIX, is_label};
use crate::fields::field;

/// Records, once, that a cluster was accepted without a person: RFC 3339.
pub const AUTOMATIC_ANNOTATION: &str = "open-cluster-management.io/automatically-accepted-on";

/// An administrator's decision about a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// No decision yet.
    New,
    Accepted,
    /// Denied after an acceptance.
    Denied,
    /// It is being deleted.
    Leaving,
}

/// The consequence of a trusted user's request for a cluster's first certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstJoin {
    /// Accept the cluster, then approve the request.
    Accept,
    /// Approve: the cluster is accepted already, and no agent of it has ever connected.
    Approve,
    /// A person decides: the cluster was judged before, or an agent of it has connected, or it is
    /// being deleted.
    Person,
}

/// A name that no cluster may have here, although a namespace may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    #[error("metadata.name is not the name of a namespace: create the ManagedCluster with another")]
    Shape,
    #[error(
        "metadata.name is reserved: a namespace or a role of that name is the hub's own; create the ManagedCluster \
         with another"
    )]
    Reserved,
}

/// Reads the standing of a `ManagedCluster`.
pub fn of(cluster: &Value) -> Standing {
    if field(cluster, "metadata.deletionTimestamp").is_some() {
        Standing::Leaving
    } else if is_accepted(cluster) {
        Standing::Accepted
    } else if was_judged(cluster) {
        Standing::Denied
    } else {
        Standing::New
    }
}

/// Whether the cluster was ever judged, by an administrator or automatically. Admission guards the
/// annotation, which is the hub's. The condition is in a status that the agent may write. So
/// neither alone is enough.
fn was_judged(cluster: &Value) -> bool {
    condition::find(cluster, HUB_ACCEPTED).is_some() || was_automatic(cluster)
}

fn was_automatic(cluster: &Value) -> bool {
    cluster["metadata"]["annotations"].get(AUTOMATIC_ANNOTATION).is_some()
}

/// The consequence of a trusted user's request.
///
/// Trust is for joining: a holder of a bootstrap credential must not get the certificate of a
/// cluster that already runs an agent. Upstream approves every request of a trusted user, for any
/// cluster.
pub fn first_join(cluster: &Value) -> FirstJoin {
    match of(cluster) {
        Standing::New => FirstJoin::Accept,
        Standing::Accepted if condition::status(cluster, JOINED) != Some("True") => FirstJoin::Approve,
        Standing::Accepted | Standing::Denied | Standing::Leaving => FirstJoin::Person,
    }
}

/// Refuses names whose namespace, group or role does not belong to one cluster alone. With such a
/// name, an acceptance would bind rights in `kube-system`, or give them to the agents of all
/// clusters, or overwrite [`super::acceptance::common_roles`]. A cluster with such a name loses
/// nothing.
pub fn check_name(name: &str, own_namespace: &str) -> Result<(), BadName> {
    const RESERVED: [&str; 2] = ["default", "local"];
    const PREFIXES: [&str; 2] = ["kube-", "open-cluster-management"];
    if !is_label(name) {
        return Err(BadName::Shape);
    }
    let is_reserved = RESERVED.contains(&name)
        || COMMON.contains(&name)
        || name == own_namespace
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || format!("{PREFIX}{name}") == ALL_CLUSTERS;
    if is_reserved { Err(BadName::Reserved) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cluster(accepts: bool, annotated: bool, conditions: &[(&str, &str)]) -> Value {
        let conditions: Vec<_> = conditions.iter().map(|(of, status)| json!({"type": of, "status": status})).collect();
        let annotations = if annotated { json!({AUTOMATIC_ANNOTATION: "t"}) } else { json!({}) };
        json!({"metadata": {"name": "c1", "annotations": annotations},
            "spec": {"hubAcceptsClient": accepts}, "status": {"conditions": conditions}})
    }

    #[test]
    fn a_first_join_is_one_of_a_cluster_that_nobody_judged_and_no_agent_runs() {
        for (accepts, annotated, conditions, standing, join) in [
            (false, false, &[][..], Standing::New, FirstJoin::Accept),
            (false, false, &[(AVAIL, "Unknown")], Standing::New, FirstJoin::Accept),
            (false, true, &[], Standing::Denied, FirstJoin::Person),
            (false, false, &[(HUB_ACCEPTED, "True")], Standing::Denied, FirstJoin::Person),
            (false, false, &[(HUB_ACCEPTED, "False")], Standing::Denied, FirstJoin::Person),
            (true, true, &[], Standing::Accepted, FirstJoin::Approve),
            (true, false, &[(HUB_ACCEPTED, "True")], Standing::Accepted, FirstJoin::Approve),
            (true, true, &[(HUB_ACCEPTED, "True"), (JOINED, "True")], Standing::Accepted, FirstJoin::Person),
        ] {
            let cluster = cluster(accepts, annotated, conditions);
            assert_eq!((of(&cluster), first_join(&cluster)), (standing, join), "{cluster}");
        }
    }

    const AVAIL: &str = condition::AVAILABLE;

    #[test]
    fn who_leaves_joins_no_more() {
        let mut leaving = cluster(true, true, &[]);
        leaving["metadata"]["deletionTimestamp"] = json!("t");
        assert_eq!((of(&leaving), first_join(&leaving)), (Standing::Leaving, FirstJoin::Person));
    }

    #[test]
    fn the_hubs_own_namespaces_and_the_group_of_all_clusters_are_no_clusters() {
        for (name, refused) in [
            ("c1", None),
            ("kube", None),
            ("kube-system", Some(BadName::Reserved)),
            ("default", Some(BadName::Reserved)),
            ("local", Some(BadName::Reserved)),
            ("open-cluster-management-hub", Some(BadName::Reserved)),
            ("managed-clusters", Some(BadName::Reserved)),
            ("vela-system", Some(BadName::Reserved)),
            ("work", Some(BadName::Reserved)),
            ("registration", Some(BadName::Reserved)),
            ("a.b", Some(BadName::Shape)),
            ("A", Some(BadName::Shape)),
            ("", Some(BadName::Shape)),
        ] {
            assert_eq!(check_name(name, "vela-system").err(), refused, "{name}");
        }
    }
}
