//! Names on the hub of Open Cluster Management's agents, as their certificates have them.
//! <https://github.com/open-cluster-management-io/ocm/tree/main/pkg/registration>

use crate::cluster_name::is_label;

/// The signer of clients' certificates.
pub const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// Label of a certificate request that names the cluster.
pub const CLUSTER_LABEL: &str = "open-cluster-management.io/cluster-name";
/// What the organization of a cluster's agents begins with, and their common name.
pub const PREFIX: &str = "system:open-cluster-management:";
/// The organization of all clusters' agents.
pub const ALL_CLUSTERS: &str = "system:open-cluster-management:managed-clusters";
/// Annotation of a `ManagedCluster`: which program announced the cluster.
pub const ANNOUNCED_BY_ANNOTATION: &str = "cluster.core.oam.dev/announced-by";
/// Its value where that is our agent, which applies no works.
pub const TUNNEL_AGENT: &str = "tunnel-agent";
/// Characters of a namespace's name, which a cluster's is too (RFC 1123 label).
const LONGEST_CLUSTER: usize = 63;
/// Characters of an agent's name.
const LONGEST_AGENT: usize = 253;

/// An agent of a cluster: the common name `system:open-cluster-management:<cluster>:<agent>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OcmAgent {
    pub cluster: String,
    pub agent: String,
}

// === impl OcmAgent ===

impl OcmAgent {
    /// Both parts are whole and there are no others: `c1` is never taken for `c10`.
    pub fn of_common_name(common_name: &str) -> Option<Self> {
        let (cluster, agent) = common_name.strip_prefix(PREFIX)?.split_once(':')?;
        (is_cluster(cluster) && is_agent(agent)).then(|| Self { cluster: cluster.to_owned(), agent: agent.to_owned() })
    }

    pub fn common_name(&self) -> String {
        format!("{PREFIX}{}:{}", self.cluster, self.agent)
    }

    /// The organization of the cluster's agents, which is their group on the hub.
    pub fn organization(&self) -> String {
        format!("{PREFIX}{}", self.cluster)
    }
}

/// Whether a cluster can be called so: RFC 1123, in lower case.
pub fn is_cluster(name: &str) -> bool {
    name.len() <= LONGEST_CLUSTER && is_label(name)
}

/// Whether an agent can be called so.
pub fn is_agent(name: &str) -> bool {
    (1..=LONGEST_AGENT).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_two_parts_and_both_are_whole() {
        let agent = OcmAgent { cluster: "c1".to_owned(), agent: "a-7".to_owned() };
        assert_eq!(OcmAgent::of_common_name(&agent.common_name()), Some(agent.clone()));
        assert_eq!(agent.organization(), "system:open-cluster-management:c1");
        for other in ["c1", "c1:", ":a", "c1:a:b", "C1:a", "-c1:a", "c1:a b", ""] {
            assert_eq!(OcmAgent::of_common_name(&format!("{PREFIX}{other}")), None, "{other}");
        }
        assert_eq!(OcmAgent::of_common_name("system:node:c1:a"), None);
    }
}
