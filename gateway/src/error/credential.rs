//! What callers are told when it is the gateway's own credential that a member does not take, or that there is none.

use api::cluster_name::ClusterName;
use api::status::{Reason, Status};
use http::StatusCode;

use super::of_cluster;

/// The one in the Secret.
pub(super) fn rejected(cluster: &ClusterName) -> Status {
    let message =
        format!("cluster {cluster} rejected the registered credential (401): renew the credential in its Secret");
    of_cluster(cluster, StatusCode::BAD_GATEWAY, Reason::InternalError, message)
}

/// One that was just issued for it.
pub(super) fn issued_rejected(cluster: &ClusterName) -> Status {
    let message = format!(
        "cluster {cluster} rejected the credential that its external command issued (401): does the member know whom \
         the command speaks for?"
    );
    of_cluster(cluster, StatusCode::BAD_GATEWAY, Reason::InternalError, message)
}

/// The words of the Go cluster-gateway. Nothing was sent to the member.
pub(super) fn not_issued(cluster: &ClusterName, reason: &str) -> Status {
    let message = format!("cluster {cluster}: failed to issue credential from external command: {reason}");
    of_cluster(cluster, StatusCode::SERVICE_UNAVAILABLE, Reason::ServiceUnavailable, message)
}
