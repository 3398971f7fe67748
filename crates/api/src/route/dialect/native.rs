//! Our own: a cluster's proxy is a subresource, which the hub's aggregator passes on to us.

use super::{Dialect, Member};
use crate::cluster_name::ClusterName;
use crate::route::{COLLECTION, PROXY};

/// What [`read`] reads.
pub(super) fn write(cluster: &ClusterName) -> String {
    format!("{COLLECTION}/{cluster}/{PROXY}")
}

/// `None`: another path, a cluster's proxy without a valid name among them, which is reviewed as
/// what it says and not found.
pub(super) fn read(path: &str) -> Option<Member<'_>> {
    let (name, tail) = path.strip_prefix(COLLECTION)?.strip_prefix('/')?.split_once('/')?;
    let remainder = tail.strip_prefix(PROXY).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
    let cluster = ClusterName::parse(name).ok()?;
    Some(Member { dialect: Dialect::Native, cluster, prefix: &path[..path.len() - remainder.len()] })
}
