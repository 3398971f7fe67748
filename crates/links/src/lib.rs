//! The server side of agents' links: the listener that admits agents, the registry of links, and
//! their limits. The tunnel-server uses it, and the gateway with `--tunnel-listen`.

mod agents;
mod limits;
mod registry;

pub use self::agents::{Agents, AgentsConfig};
pub use self::limits::Limits;
pub use self::registry::{
    AgentListing, ClusterListing, Credential, LinkListing, Linked, Metrics, Named, NotLinked, Registry, StreamListing,
};
