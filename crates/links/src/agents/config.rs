//! What the port for agents needs: addresses, certificates, authorities and limits.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use net::tls::server::KeyPairFiles;
use tunnel::Settings;

use crate::limits::Limits;

/// Configuration of the agents' listener.
#[derive(Debug, Clone)]
pub struct AgentsConfig {
    pub listen: SocketAddr,
    pub serving: KeyPairFiles,
    /// CA bundle of the agents' client certificates. Without it, and without a hub for tokens, the
    /// listener does not start.
    pub client_ca_file: Option<PathBuf>,
    /// Whether to also accept certificates that the hub signed for agents of Open Cluster
    /// Management. Needs a hub, and the right to read its authentication ConfigMap.
    pub hub_client_ca: bool,
    pub settings: Settings,
    /// How long streams may continue after [`Agents::drain`](super::Agents::drain) has begun.
    pub drain_timeout: Duration,
    /// Interval, with jitter, of rechecks of a linked agent's credential; [`AgentsConfig::RECHECK`]
    /// except in some tests. A revoked credential ends its links within this interval plus the time
    /// for which reviews are cached. If RBAC withdraws the right, they end within seconds,
    /// provided that this program may read the hub's roles.
    pub recheck: Duration,
    pub limits: Limits,
}

// === impl AgentsConfig ===

impl AgentsConfig {
    /// A stolen credential works for this long after it was revoked. The hub pays for that with one
    /// review per agent and interval.
    pub const RECHECK: Duration = Duration::from_secs(30);
}
