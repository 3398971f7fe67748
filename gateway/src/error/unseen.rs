//! Names that are not among the clusters. "No such cluster" makes clients give up what they have there: it is said where the hub says
//! so, or cannot be asked for want of rights or room. A hub that fails is a reason to come again. The words of the 404 are the Go
//! cluster-gateway's, which clients look for.

use api::cluster_name::ClusterName;
use api::status::{Reason, Status};
use http::StatusCode;

use super::of_cluster;

pub(super) fn absent(cluster: &ClusterName) -> Status {
    of_cluster(cluster, StatusCode::NOT_FOUND, Reason::NotFound, format!("no such cluster {cluster}"))
}

pub(super) fn late(cluster: &ClusterName) -> Status {
    unavailable(
        cluster,
        format!(
            "cluster {cluster} is registered, but the gateway has not read it from the hub yet, try again shortly; if it stays so, see the gateway's log"
        ),
    )
}

pub(super) fn unanswered(cluster: &ClusterName) -> Status {
    unavailable(
        cluster,
        format!(
            "cluster {cluster} is not known to the gateway, and the hub did not say whether it was registered just now, try \
             again shortly; if it stays so, see the gateway's log"
        ),
    )
}

fn unavailable(cluster: &ClusterName, message: String) -> Status {
    of_cluster(cluster, StatusCode::SERVICE_UNAVAILABLE, Reason::ServiceUnavailable, message)
}
