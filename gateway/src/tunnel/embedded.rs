//! Opens streams over the links of agents that are linked to this process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use links::Registry;
use net::tls::server::KeyPairFiles;
use tokio::time::{Instant, timeout_at};
use tunnel::{ClusterName, Destination, Hop, Reason, Refusal};

use super::stream::Tunnelled;

/// Configuration of the agents' listener.
#[derive(Debug, Clone)]
pub struct EmbeddedConfig {
    pub listen: SocketAddr,
    /// `None`: the gateway's serving certificate.
    pub serving: Option<KeyPairFiles>,
    pub client_ca_file: Option<PathBuf>,
    /// Whether to accept also certificates that the hub signed for agents of Open Cluster
    /// Management.
    pub hub_client_ca: bool,
    /// `None`: the same as for requests.
    pub drain_timeout: Option<Duration>,
}

pub struct Embedded {
    registry: Arc<Registry>,
    via: Arc<str>,
}

// === impl Embedded ===

impl Embedded {
    pub fn new(registry: Arc<Registry>) -> Self {
        Self { registry, via: "an agent linked to this gateway".into() }
    }

    /// The registry tries another link if one is lost or leaving at this moment.
    pub async fn open(&self, cluster: &ClusterName, to: &Destination, deadline: Instant) -> Result<Tunnelled, Refusal> {
        let time = deadline.saturating_duration_since(Instant::now());
        // The registry has its own timeout; this one covers what it does besides waiting for the
        // agent.
        match timeout_at(deadline, self.registry.open(cluster, to, time)).await {
            Ok(opened) => {
                let (stream, gauge) = opened?;
                Ok(Tunnelled::new(stream, Arc::clone(&self.via)).counted(gauge))
            }
            Err(_) => Err(Refusal::new(Hop::Server, Reason::AgentTimeout, "its agent did not answer in time")),
        }
    }
}
