//! Karmada's: a cluster's proxy is a subresource of `clusters` in `cluster.karmada.io`, which a
//! hub's aggregator passes on to us where an APIService says so
//! (`github.com/karmada-io/karmada/pkg/registry/cluster/storage`).

use super::{Dialect, Member, NoMember, Reading};
use crate::cluster_name::ClusterName;
use crate::route::PROXY;

/// Of everything that is Karmada's here.
const GROUP_PATH: &str = "/apis/cluster.karmada.io";
/// What follows.
const BELOW: &str = "/v1alpha1/clusters/";

/// A path of the group that is no cluster's proxy is reviewed as what it says, as any other.
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
    // As Go's clients, and the hub's aggregator, write it, too.
    if name == "*" || name.eq_ignore_ascii_case("%2a") {
        return Reading::Every(prefix);
    }
    match ClusterName::parse(name) {
        Ok(cluster) => Reading::Member(Member { dialect: Dialect::Karmada, cluster, prefix }),
        Err(_) => Reading::NoMember(NoMember::Karmada),
    }
}

/// What [`read`] reads.
pub(super) fn write(cluster: &ClusterName) -> String {
    format!("{GROUP_PATH}{BELOW}{cluster}/{PROXY}")
}

#[cfg(test)]
mod tests;
