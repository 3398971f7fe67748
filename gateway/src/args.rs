//! The command line: flags of the Go cluster-gateway with their spelling and meaning, and our own
//! in the same style.
//!
//! Every flag also reads an environment variable, `CLUSTER_GATEWAY_` and its name in upper case
//! with `_` for `-`.

mod audit;
mod config;
mod dynamic;
mod gates;
mod help;
mod identity;
mod inherited;
mod limits;
mod serving;
mod spelling;
mod tunnel;

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as Group, Parser, ValueEnum};
use telemetry::flags::duration;

use self::audit::Audit;
pub use self::config::InvalidConfig;
use self::dynamic::Dynamic;
pub use self::help::{parse, parse_from};
use self::identity::Identity;
use self::limits::Limits;
use self::serving::ServingTls;
use self::tunnel::Links;
pub use crate::config::Config;

/// Aggregated API server that proxies Kubernetes requests to member clusters.
#[derive(Debug, Parser)]
#[command(name = "cluster-gateway", version, max_term_width = 120)]
#[command(
    after_help = "`cluster-gateway patch` writes the CA of its certificate into the APIService: see its own --help."
)]
pub struct Args {
    /// Ignored, as by the Go cluster-gateway; some charts pass `apiserver`
    #[arg(hide = true)]
    pub positional: Vec<String>,
    /// Flags that were given and mean nothing here, `--name` each
    #[arg(skip)]
    pub inherited: Vec<String>,
    #[command(flatten, next_help_heading = "Serving")]
    pub serving: Serving,
    #[command(flatten, next_help_heading = "Serving")]
    pub serving_tls: ServingTls,
    #[command(flatten, next_help_heading = "Hub")]
    pub hub: Hub,
    #[command(flatten, next_help_heading = "Authentication")]
    pub authentication: Authentication,
    #[command(flatten, next_help_heading = "Authorization")]
    pub authorization: Authorization,
    #[command(flatten, next_help_heading = "Members")]
    pub members: Members,
    #[command(flatten, next_help_heading = "Members")]
    pub dynamic: Dynamic,
    #[command(flatten, next_help_heading = "Members behind the tunnel")]
    pub tunnel: Links,
    #[command(flatten, next_help_heading = "Identity on the member")]
    pub identity: Identity,
    #[command(flatten, next_help_heading = "Without a hub")]
    pub standalone: Standalone,
    #[command(flatten, next_help_heading = "Limits")]
    pub limits: Limits,
    #[command(flatten, next_help_heading = "Audit log and metrics")]
    pub audit: Audit,
    #[command(flatten, next_help_heading = "Logs")]
    pub logs: Logs,
}

#[derive(Debug, Group)]
pub struct Serving {
    /// Port to serve HTTPS on; 0 takes a free one
    #[arg(long, default_value_t = 443)]
    pub secure_port: u16,
    /// Address to listen on
    #[arg(long, default_value = "0.0.0.0")]
    pub bind_address: IpAddr,
    /// PEM file of the serving certificate and its intermediates, re-read when it changes
    #[arg(long, value_name = "FILE")]
    pub tls_cert_file: Option<PathBuf>,
    /// PEM file of the serving certificate's private key, re-read when it changes
    #[arg(long, value_name = "FILE")]
    pub tls_private_key_file: Option<PathBuf>,
    /// Requests one client may have under way on one HTTP/2 connection
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub http2_max_streams_per_connection: u32,
    /// Threads that serve requests, each with its own runtime; 0 means one per core
    #[arg(long, default_value_t = 0)]
    pub serving_threads: usize,
    /// Let other processes listen on the same port; connections are spread over all of them
    #[arg(long)]
    pub permit_port_sharing: bool,
    /// After SIGTERM, time to go on serving while endpoints are updated (default 5s, 0s with
    /// --standalone)
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub shutdown_delay_duration: Option<Duration>,
    /// Then, time for requests in flight to finish before they and open upgrades are cut off
    #[arg(long, value_parser = duration, default_value = "30s", value_name = "DURATION")]
    pub drain_timeout: Duration,
}

#[derive(Debug, Group)]
pub struct Hub {
    /// Kubeconfig for reading cluster Secrets; in-cluster configuration when absent
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of the cluster Secrets
    #[arg(long, default_value = "vela-system", value_name = "NAMESPACE")]
    pub secret_namespace: String,
    /// `Gate=true|false` pairs; gates without effect here are named in the log
    #[arg(long, value_delimiter = ',', value_name = "GATES")]
    pub feature_gates: Vec<String>,
    /// Take endpoints and CAs from the `ManagedCluster`s of Open Cluster Management where there are
    /// any
    #[arg(long)]
    pub ocm_integration: bool,
    /// Return credentials when `clustergateways` are read, as the Go cluster-gateway does
    #[arg(long)]
    pub expose_credentials: bool,
    /// User-Agent of requests to the hub (default cluster-gateway/<version>)
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT")]
    pub user_agent: String,
}

#[derive(Debug, Group)]
pub struct Authentication {
    /// Kubeconfig for `TokenReview` and the hub's CA `ConfigMap`; --kubeconfig, else in-cluster,
    /// when absent
    #[arg(long, value_name = "FILE")]
    pub authentication_kubeconfig: Option<PathBuf>,
    /// CA bundle for client certificates, in place of the hub's
    #[arg(long, value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,
    /// CA bundle for front proxies, in place of the hub's
    #[arg(long, value_name = "FILE")]
    pub requestheader_client_ca_file: Option<PathBuf>,
    /// Common names of front proxies; empty means any certificate of the CA
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub requestheader_allowed_names: Vec<String>,
    /// Headers with the user's name
    #[arg(long, value_delimiter = ',', default_value = "x-remote-user", value_name = "HEADERS")]
    pub requestheader_username_headers: Vec<String>,
    /// Headers with the user's uid
    #[arg(long, value_delimiter = ',', value_name = "HEADERS")]
    pub requestheader_uid_headers: Vec<String>,
    /// Headers with the user's groups
    #[arg(long, value_delimiter = ',', default_value = "x-remote-group", value_name = "HEADERS")]
    pub requestheader_group_headers: Vec<String>,
    /// Prefixes of headers with the user's extra attributes
    #[arg(long, value_delimiter = ',', default_value = "x-remote-extra-", value_name = "PREFIXES")]
    pub requestheader_extra_headers_prefix: Vec<String>,
    /// Do not read the hub's CA `ConfigMap`
    #[arg(long)]
    pub authentication_skip_lookup: bool,
    /// Become ready without the hub's CA `ConfigMap` if it cannot be read
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub authentication_tolerate_lookup_failure: bool,
    /// How long the hub's word on a token is kept
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub authentication_token_webhook_cache_ttl: Duration,
    /// Treat requests without credentials as `system:anonymous`
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub anonymous_auth: bool,
}

#[derive(Debug, Group)]
pub struct Authorization {
    /// Kubeconfig for `SubjectAccessReview`; --kubeconfig, else in-cluster, when absent
    #[arg(long, value_name = "FILE")]
    pub authorization_kubeconfig: Option<PathBuf>,
    /// Paths open to everybody; a trailing `*` makes a prefix
    #[arg(long, value_delimiter = ',', default_value = "/healthz,/readyz,/livez", value_name = "PATHS")]
    pub authorization_always_allow_paths: Vec<String>,
    /// How long a permission is kept
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub authorization_webhook_cache_authorized_ttl: Duration,
    /// How long a refusal is kept
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub authorization_webhook_cache_unauthorized_ttl: Duration,
    /// What an upgrade by GET (WebSocket exec, attach, port-forward, anything but a watch of a
    /// collection) is authorized as
    #[arg(long, value_enum, default_value_t = UpgradeVerb::Create)]
    pub upgrade_verb: UpgradeVerb,
    /// Ask the hub about each proxied request a second time, as what it is for the member
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub authorize_proxy_subpath: bool,
    /// Allow everything to everybody; needs a loopback `--bind-address`
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub standalone_debug_mode: bool,
}

#[derive(Debug, Group)]
pub struct Members {
    /// Time to connect to a member, TLS included
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub dial_timeout: Duration,
    /// Failed connections in a row after which a member is not tried for a while; 0 tries every
    /// time
    #[arg(long, default_value_t = 5, value_name = "NUMBER")]
    pub circuit_failures: u32,
    /// CA bundle of members' `https://` proxies, in place of the system's roots
    #[arg(long, value_name = "FILE")]
    pub proxy_ca_file: Option<PathBuf>,
    /// Whom to trust when a Secret has neither `ca.crt` nor `ca`
    #[arg(long, value_enum, default_value_t = MissingCa::System)]
    pub missing_ca: MissingCa,
    /// How often to ask each member's `/healthz` and write the finding into its Secret's health
    /// annotations; 0s never
    #[arg(long, value_parser = duration, default_value = "0s", value_name = "DURATION", conflicts_with = "standalone")]
    pub health_probe_interval: Duration,
    /// Time for one such probe, connecting included
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub health_probe_timeout: Duration,
    /// Accept `http://` endpoints, which send credentials in the clear
    #[arg(long)]
    pub allow_http_endpoints: bool,
}

#[derive(Debug, Group)]
#[group(id = "standalone-group")]
pub struct Standalone {
    /// Run without a hub
    #[arg(long)]
    pub standalone: bool,
    /// Directory of Secret manifests (*.yaml, *.yml, *.json), one cluster each, followed as it
    /// changes
    #[arg(long, value_name = "DIR", requires = "standalone")]
    pub clusters_dir: Option<PathBuf>,
    /// Kubeconfig whose contexts become clusters, followed as it changes
    #[arg(long, value_name = "FILE", requires = "standalone")]
    pub clusters_from_kubeconfig: Option<PathBuf>,
    /// Tokens as CSV lines `token,user,uid,"group1,group2"`, re-read when it changes
    #[arg(long, value_name = "FILE")]
    pub token_auth_file: Option<PathBuf>,
    /// YAML rules saying who may use which clusters, re-read when it changes
    #[arg(long, value_name = "FILE", requires = "standalone")]
    pub standalone_policy: Option<PathBuf>,
}

#[derive(Debug, Group)]
pub struct Logs {
    /// Form of the log lines
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Level, or a filter such as `info,gateway=debug`; changed at run time by PUT /debug/flags/v
    #[arg(long, default_value = "info", value_name = "LEVEL")]
    pub log_level: String,
    /// Verbosity as klog has it: 4 and more mean debug, 8 and more trace (in development builds;
    /// release builds have none)
    #[arg(long, value_name = "NUMBER")]
    pub v: Option<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UpgradeVerb {
    Create,
    Get,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MissingCa {
    System,
    Insecure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}
