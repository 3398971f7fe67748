//! Karmada's dialect: a cluster's proxy is a subresource of `clusters` in `cluster.karmada.io`. A
//! hub's aggregator forwards it to us if an APIService says so
//! (`github.com/karmada-io/karmada/pkg/registry/cluster/storage`).

use super::{Dialect, Member, NoMember, Reading};
use crate::cluster_name::ClusterName;
use crate::route::PROXY;

/// The path of Karmada's group.
const GROUP_PATH: &str = "/apis/cluster.karmada.io";
/// The path below it.
const BELOW: &str = "/v1alpha1/clusters/";

/// Any other path of the group is reviewed under its own attributes, like all paths.
pub(super) fn read(path: &str, is_on: bool) -> Reading<'_> {
    let Some(rest) = path.strip_prefix(GROUP_PATH).filter(|rest| rest.is_empty() || rest.starts_with('/')) else {
        return Reading::Other;
    };
    if !is_on {
        return Reading::NoMember(NoMember::Off);
    }
    let Some((name, tail)) = rest.strip_prefix(BELOW).and_then(|rest| rest.split_once('/')) else {
        return Reading::Other;
    };
    let Some(remainder) = tail.strip_prefix(PROXY).filter(|rest| rest.is_empty() || rest.starts_with('/')) else {
        return Reading::Other;
    };
    let prefix = &path[..path.len() - remainder.len()];
    // The escape is the form that Go's clients and the hub's aggregator write.
    if name == "*" || name.eq_ignore_ascii_case("%2a") {
        return Reading::Every(prefix);
    }
    match ClusterName::parse(name) {
        Ok(cluster) => Reading::Member(Member { dialect: Dialect::Karmada, cluster, prefix }),
        Err(_) => Reading::NoMember(NoMember::Karmada),
    }
}

/// Writes the path that [`read`] reads.
pub(super) fn write(cluster: &ClusterName) -> String {
    format!("{GROUP_PATH}{BELOW}{cluster}/{PROXY}")
}

#[cfg(test)]
mod tests;
