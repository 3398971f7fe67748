//! What of the tunnel an operator wants.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use net::tls::server::KeyPairFiles;

use super::remote::RemoteConfig;

/// What of the tunnel there is to be.
#[derive(Debug)]
pub struct TunnelConfig {
    /// Tunnel-servers elsewhere.
    pub remote: Option<RemoteConfig>,
    /// A tunnel-server in this process.
    pub embedded: Option<EmbeddedConfig>,
    /// Of links both ways.
    pub settings: tunnel::Settings,
}

/// The agents' listener.
#[derive(Debug, Clone)]
pub struct EmbeddedConfig {
    pub listen: SocketAddr,
    /// `None`: what the gateway serves with.
    pub serving: Option<KeyPairFiles>,
    pub client_ca_file: Option<PathBuf>,
    /// `None`: as long as requests have.
    pub drain_timeout: Option<Duration>,
}
