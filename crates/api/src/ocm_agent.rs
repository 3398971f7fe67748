//! Names of Open Cluster Management's agents on the hub, as in their certificates.
//! <https://github.com/open-cluster-management-io/ocm/tree/main/pkg/registration>

use crate::cluster_name::is_label;

/// The signer of client certificates.
pub const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// Label of a certificate request: the name of the cluster.
pub const CLUSTER_LABEL: &str = "open-cluster-management.io/cluster-name";
/// Prefix of the organization of a cluster's agents, and of their common name.
pub const PREFIX: &str = "system:open-cluster-management:";
/// The organization of the agents of all clusters.
pub const ALL_CLUSTERS: &str = "system:open-cluster-management:managed-clusters";
/// Annotation of a `ManagedCluster`: the program that announced the cluster.
pub const ANNOUNCED_BY_ANNOTATION: &str = "cluster.core.oam.dev/announced-by";
/// The annotation's value of our own agent, which applies no works.
pub const TUNNEL_AGENT: &str = "tunnel-agent";
/// Most characters in the name of a namespace, and so of a cluster (RFC 1123 label).
const LONGEST_CLUSTER: usize = 63;
/// Most characters in an agent's name.
const LONGEST_AGENT: usize = 253;

/// An agent of a cluster: the common name `system:open-cluster-management:<cluster>:<agent>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OcmAgent {
    pub cluster: String,
    pub agent: String,
}

// === impl OcmAgent ===

impl OcmAgent {
    /// Both parts must be complete and the only ones, so that `c1` is never taken for `c10`.
    pub fn of_common_name(common_name: &str) -> Option<Self> {
        let (cluster, agent) = common_name.strip_prefix(PREFIX)?.split_once(':')?;
        (is_cluster(cluster) && is_agent(agent)).then(|| Self { cluster: cluster.to_owned(), agent: agent.to_owned() })
    }

    pub fn common_name(&self) -> String {
        format!("{PREFIX}{}:{}", self.cluster, self.agent)
    }

    /// The organization of the cluster's agents. It is their group on the hub.
    pub fn organization(&self) -> String {
        format!("{PREFIX}{}", self.cluster)
    }
}

/// Whether `name` is a valid cluster name: a lower-case RFC 1123 label.
pub fn is_cluster(name: &str) -> bool {
    name.len() <= LONGEST_CLUSTER && is_label(name)
}

/// Whether `name` is a valid agent name.
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
