//! The credential of the registered cluster, put on last.

use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::clusters::Cluster;

/// Sets the cluster's own credential. The caller's was removed when it was authenticated; a cluster that authenticates us by
/// client certificate needs no header.
pub fn apply(cluster: &Cluster, headers: &mut HeaderMap) {
    if let Some(authorization) = cluster.authorization() {
        headers.insert(AUTHORIZATION, authorization.clone());
    }
}
