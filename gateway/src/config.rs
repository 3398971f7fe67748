//! The configuration of a gateway: the options of each of its parts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use api::cluster_gateway::Credentials;
use api::route::Served;
use api::secret::SecretRules;
use net::listen::Sharing;
use telemetry::logs;

use crate::clusters::{IssuingOptions, karmada_upstream};
use crate::exchange;
use crate::limits::Caps;
use crate::needs::Settings;
use crate::probes::Probing;
use crate::serving::Serving;
use crate::tunnel::TunnelConfig;

/// The configuration of a gateway, ready to start.
#[derive(Debug)]
pub struct Config {
    pub listen: SocketAddr,
    /// What `listen` serves.
    pub served: Served,
    /// Address that serves members like Open Cluster Management's user server; none by default.
    pub user_server: Option<SocketAddr>,
    /// The Karmada upstream. None unless the gateway stands beside a Karmada.
    pub karmada_upstream: Option<karmada_upstream::Options>,
    pub serving: Serving,
    pub sharing: Sharing,
    pub threads: usize,
    pub shutdown_delay: Duration,
    pub drain_timeout: Duration,
    pub source: Source,
    pub auth: auth::Config,
    pub rules: SecretRules,
    pub dial_timeout: Duration,
    pub exec: IssuingOptions,
    pub tunnel: TunnelConfig,
    pub circuit_failures: u32,
    pub proxy_ca_file: Option<PathBuf>,
    pub probing: Probing,
    pub settings: Settings,
    /// Whether reads of `clustergateways` show credentials.
    pub credentials: Credentials,
    pub log_format: logs::Format,
    pub log_level: String,
    /// User-Agent of requests to the hub; if empty, the program's own.
    pub user_agent: String,
    pub gates: Gates,
    pub exchange: exchange::Options,
    /// None if there is no audit log.
    pub audit: Option<audit::Config>,
    /// None if tracing is off.
    pub tracing: Option<traces::Config>,
    pub caps: Caps,
    /// Most bytes held for clients.
    pub held_bytes: u64,
    /// Whether to export the Go cluster-gateway's metrics too.
    pub ocm_proxy_metrics: bool,
    /// Arguments without effect, for the log.
    pub without_effect: Vec<String>,
    /// Warnings about arguments, for the log.
    pub warnings: Vec<String>,
}

/// The source of clusters, and with it of identities.
#[derive(Debug)]
pub enum Source {
    Hub {
        namespace: String,
        /// Whether `ManagedCluster`s decide where clusters are.
        ocm: bool,
        /// `None`: in-cluster configuration.
        secrets: Option<PathBuf>,
        authentication: Option<PathBuf>,
        authorization: Option<PathBuf>,
    },
    Standalone {
        directory: Option<PathBuf>,
        kubeconfig: Option<PathBuf>,
    },
}

/// The feature gates with an effect.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gates {
    /// `ClientIdentityPenetration`: members see the caller instead of the registered credential.
    pub client_identity_penetration: bool,
    /// `HealthinessCheck`: the `health` subresource of `clustergateways` can be written.
    pub healthiness_check: bool,
    /// `SecretCache`: cluster Secrets are watched and cached. They always are, so turning it off
    /// has no effect.
    pub secret_cache: bool,
    /// `OCMClusterCache`: the same as [`Gates::secret_cache`], for `ManagedCluster`.
    pub ocm_cluster_cache: bool,
}

// === impl Gates ===

impl Default for Gates {
    fn default() -> Self {
        Self {
            client_identity_penetration: false,
            healthiness_check: false,
            secret_cache: true,
            ocm_cluster_cache: true,
        }
    }
}
