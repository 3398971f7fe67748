//! Holds the links that agents opened, and opens byte streams over them for gateways and for a kube-apiserver's egress selector.

mod admin;
mod agents;
mod app;
pub mod args;
mod egress;
mod frontend;
mod limits;
mod metrics;
mod registry;
mod relay;
mod shared;
#[cfg(test)]
mod testing;

pub use self::agents::{Agents, AgentsConfig};
pub use self::app::Server;
pub use self::limits::Limits;
pub use self::registry::{AgentListing, ClusterListing, LinkListing, NoSuch, Registry, StreamListing};
