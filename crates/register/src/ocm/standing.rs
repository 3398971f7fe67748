//! Where a `ManagedCluster` stands between joining and leaving.

use serde_json::Value;

use super::acceptance::COMMON;
use super::condition::{self, HUB_ACCEPTED, JOINED};
use super::is_accepted;
use crate::csr::{ALL_CLUSTERS, PREFIX, is_label};
use crate::fields::field;

/// Remembers that a cluster was let in without a person, once: RFC 3339.
pub const AUTOMATIC_ANNOTATION: &str = "open-cluster-management.io/automatically-accepted-on";

/// What an administrator said of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing yet.
    New,
    Accepted,
    /// No, after a yes.
    Denied,
    /// It is being deleted.
    Leaving,
}

/// What the request of a trusted user for a cluster's first certificate leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstJoin {
    /// The cluster is let in, then the request approved.
    Accept,
    /// The cluster is in already, and no agent of it ever came: approved.
    Approve,
    /// A person decides: it was let in once and has had its say, or its no.
    Person,
}

/// A name that no cluster may have here, although it is a namespace's.
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

/// Reads it off a `ManagedCluster`.
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

/// Whether an administrator was ever asked. The annotation is the hub's, which admission guards;
/// the condition is in a status that the agent may write, so neither alone is enough.
fn was_judged(cluster: &Value) -> bool {
    condition::find(cluster, HUB_ACCEPTED).is_some() || was_automatic(cluster)
}

fn was_automatic(cluster: &Value) -> bool {
    cluster["metadata"]["annotations"].get(AUTOMATIC_ANNOTATION).is_some()
}

/// What a trusted user's request leads to.
///
/// Trust is for joining: a holder of a bootstrap credential must not get the certificate of a
/// cluster that an agent runs already. Upstream approves every request of a trusted user, for any
/// cluster.
pub fn first_join(cluster: &Value) -> FirstJoin {
    match of(cluster) {
        Standing::New => FirstJoin::Accept,
        Standing::Accepted if condition::status(cluster, JOINED) != Some("True") => FirstJoin::Approve,
        Standing::Accepted | Standing::Denied | Standing::Leaving => FirstJoin::Person,
    }
}

/// Refuses names whose namespace, group or role is not a cluster's alone: with these a yes would
/// bind rights in `kube-system`, or give them to the agents of all clusters, or write over
/// [`super::acceptance::common_roles`]. Of a cluster with such a name, nothing is taken away.
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
