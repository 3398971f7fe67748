//! Joining as agents of Open Cluster Management do it: the objects on the hub, and agents without
//! members.

pub mod agents;
pub mod beats;
pub mod clusters;
mod credential;
pub mod fixture;

/// Namespace of the bootstrap account, and of the controllers' Secrets.
pub const NAMESPACE: &str = "joining";
const GROUP: &str = "cluster.open-cluster-management.io";
