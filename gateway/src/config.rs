//! What a gateway is started with: the options of each part of it.

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

/// A gateway ready to be started.
#[derive(Debug)]
pub struct Config {
    pub listen: SocketAddr,
    /// What is served there.
    pub served: Served,
    /// Where members are served as Open Cluster Management's user server serves them. Absent:
    /// nowhere.
    pub user_server: Option<SocketAddr>,
    /// Karmada's aggregated API server. Absent unless the gateway stands beside a Karmada.
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
    /// Whether readers of `clustergateways` see credentials.
    pub credentials: Credentials,
    pub log_format: logs::Format,
    pub log_level: String,
    /// User-Agent of requests to the hub; empty: the program's own.
    pub user_agent: String,
    pub gates: Gates,
    pub exchange: exchange::Options,
    /// Absent: nothing is audited.
    pub audit: Option<audit::Config>,
    /// Absent: nothing is traced.
    pub tracing: Option<traces::Config>,
    pub caps: Caps,
    /// That may be held for clients.
    pub held_bytes: u64,
    /// Whether the Go cluster-gateway's metrics are exported beside our own.
    pub ocm_proxy_metrics: bool,
    /// Things given that have no effect, for the log.
    pub without_effect: Vec<String>,
    /// Things given that the operator should think about again, for the log.
    pub warnings: Vec<String>,
}

/// Where clusters, and with them identities, come from.
#[derive(Debug)]
pub enum Source {
    Hub {
        namespace: String,
        /// `ManagedCluster`s say where clusters are.
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

/// The gates that mean something here.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gates {
    /// `ClientIdentityPenetration`: members see the caller instead of the registered credential.
    pub client_identity_penetration: bool,
    /// `HealthinessCheck`: the `health` subresource of `clustergateways` can be written.
    pub healthiness_check: bool,
    /// `SecretCache`: cluster Secrets are watched and kept. They always are; switching it off has
    /// no effect.
    pub secret_cache: bool,
    /// `OCMClusterCache`: as [`Gates::secret_cache`], for `ManagedCluster`.
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
