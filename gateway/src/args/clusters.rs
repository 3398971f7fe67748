//! Flags about clusters: how their members are reached, and what a gateway without a hub reads in
//! its place.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as Group;
use telemetry::flags::duration;

use super::MissingCa;

#[derive(Debug, Group)]
pub struct Members {
    /// Timeout for connecting to a member, TLS included
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub dial_timeout: Duration,
    /// Consecutive failed connections after which dials to a member pause; 0 never pauses them
    #[arg(long, default_value_t = 5, value_name = "NUMBER")]
    pub circuit_failures: u32,
    /// CA bundle for `https://` proxies in `proxy-url` (default: the system's roots)
    #[arg(long, value_name = "FILE")]
    pub proxy_ca_file: Option<PathBuf>,
    /// How to verify a member whose Secret has neither `ca.crt` nor `ca`: with the system's roots,
    /// or not at all
    #[arg(long, value_enum, default_value_t = MissingCa::System, value_name = "TRUST")]
    pub missing_ca: MissingCa,
    /// Interval between probes of each member's `/healthz`, which write changes to its Secret's
    /// health annotations; 0s turns probes off
    #[arg(long, value_parser = duration, default_value = "0s", value_name = "DURATION", conflicts_with = "standalone")]
    pub health_probe_interval: Duration,
    /// Timeout for one probe, connecting included
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub health_probe_timeout: Duration,
    /// Accept `http://` endpoints: they send the credential in the clear
    #[arg(long)]
    pub allow_http_endpoints: bool,
}

#[derive(Debug, Group)]
#[group(id = "standalone-group")]
pub struct Standalone {
    /// Run without a hub
    #[arg(long)]
    pub standalone: bool,
    /// Directory of cluster Secret manifests (*.yaml, *.yml, *.json), re-read when it changes
    #[arg(long, value_name = "DIR", requires = "standalone")]
    pub clusters_dir: Option<PathBuf>,
    /// Kubeconfig whose contexts become clusters, re-read when it changes
    #[arg(long, value_name = "FILE", requires = "standalone")]
    pub clusters_from_kubeconfig: Option<PathBuf>,
    /// File of tokens, CSV lines `token,user,uid,"group1,group2"`, re-read when it changes
    #[arg(long, value_name = "FILE")]
    pub token_auth_file: Option<PathBuf>,
    /// File of authorization rules in YAML, users to clusters and verbs, re-read when it changes
    #[arg(long, value_name = "FILE", requires = "standalone")]
    pub standalone_policy: Option<PathBuf>,
}
