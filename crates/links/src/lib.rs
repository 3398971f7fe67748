//! Links that agents open: the listener that admits them, the linked agents, and how much each may
//! take. The tunnel-server stands on it, and the gateway with `--tunnel-listen`.

mod agents;
mod limits;
mod registry;

pub use self::agents::{Agents, AgentsConfig};
pub use self::limits::Limits;
pub use self::registry::{
    AgentListing, ClusterListing, Credential, LinkListing, Linked, Metrics, Named, NotLinked, Registry, StreamListing,
};
