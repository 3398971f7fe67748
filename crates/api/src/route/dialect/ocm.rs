//! Open Cluster Management's user server: `/<cluster>`, then the member's part
//! (`open-cluster-management.io/cluster-proxy/pkg/utils.GetTargetServiceConfigForKubeAPIServer`).
//!
//! Every path there is a member's, so it has a port of its own: beside others, a cluster named
//! `apis` would take all of ours.

use super::{Dialect, Member, NoMember, Reading};
use crate::cluster_name::ClusterName;

pub(super) fn read(path: &str) -> Reading<'_> {
    let name = path.strip_prefix('/').and_then(|rest| rest.split('/').next()).unwrap_or_default();
    match ClusterName::parse(name) {
        Ok(cluster) => Reading::Member(Member { dialect: Dialect::UserServer, cluster, prefix: &path[..=name.len()] }),
        Err(_) => Reading::NoMember(NoMember::UserServer),
    }
}

/// What [`read`] reads.
pub(super) fn write(cluster: &ClusterName) -> String {
    format!("/{cluster}")
}

#[cfg(test)]
mod tests;
