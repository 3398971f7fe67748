//! The command line: flags of the Go cluster-gateway with their spelling and meaning, and our own
//! in the same style.
//!
//! Every flag also reads an environment variable, `CLUSTER_GATEWAY_` and its name in upper case
//! with `_` for `-`.

mod audit;
mod authentication;
mod clusters;
mod config;
mod dialects;
mod dynamic;
mod gates;
mod identity;
mod inherited;
mod limits;
mod serving;
mod spelling;
mod tracing;
mod tunnel;

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as Group, CommandFactory, FromArgMatches, Parser, ValueEnum};
use telemetry::flags::{self, LogFormat, duration, with_environment};

use self::audit::Audit;
use self::dialects::Dialects;
use self::dynamic::Dynamic;
use self::identity::Identity;
use self::limits::Limits;
use self::serving::ServingTls;
use self::tracing::Tracing;
use self::tunnel::Links;
pub use crate::config::Config;

pub use self::authentication::{Authentication, Authorization};
pub use self::clusters::{Members, Standalone};

/// Aggregated API server that proxies Kubernetes requests to member clusters.
#[derive(Debug, Parser)]
#[command(name = "cluster-gateway", version, max_term_width = 120)]
#[command(
    after_help = "`cluster-gateway patch` writes the CA of the serving certificate into the APIService: see its own --help."
)]
pub struct Args {
    /// Ignored, as in the Go cluster-gateway; some charts pass `apiserver`
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
    pub hub: HubFlags,
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
    #[command(flatten, next_help_heading = "Dialects")]
    pub dialects: Dialects,
    #[command(flatten, next_help_heading = "Without a hub")]
    pub standalone: Standalone,
    #[command(flatten, next_help_heading = "Limits")]
    pub limits: Limits,
    #[command(flatten, next_help_heading = "Audit log and metrics")]
    pub audit: Audit,
    #[command(flatten, next_help_heading = "Traces")]
    pub tracing: Tracing,
    #[command(flatten, next_help_heading = "Logs")]
    pub logs: Logs,
}

#[derive(Debug, Group)]
pub struct Serving {
    /// Port to serve HTTPS on; 0 picks a free one
    #[arg(long, default_value_t = 443, value_name = "PORT")]
    pub secure_port: u16,
    /// Address to listen on; 0.0.0.0 listens on all addresses, IPv6 included
    #[arg(long, default_value = "0.0.0.0", value_name = "ADDRESS")]
    pub bind_address: IpAddr,
    /// PEM file of the serving certificate and its intermediates, re-read when it changes
    #[arg(long, value_name = "FILE")]
    pub tls_cert_file: Option<PathBuf>,
    /// PEM file of the serving certificate's private key, re-read when it changes
    #[arg(long, value_name = "FILE")]
    pub tls_private_key_file: Option<PathBuf>,
    /// Concurrent requests allowed on one HTTP/2 client connection
    #[arg(long, default_value_t = 250, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub http2_max_streams_per_connection: u32,
    /// Threads that serve requests; 0 means one per core
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub serving_threads: usize,
    /// Let other processes listen on the same port; the kernel spreads connections over them
    #[arg(long)]
    pub permit_port_sharing: bool,
    /// Time to keep serving after SIGTERM while endpoints are updated (default 5s, 0s with
    /// --standalone)
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub shutdown_delay_duration: Option<Duration>,
    /// Time after that for requests in flight and open upgrades to finish, before they are cut off
    #[arg(long, value_parser = duration, default_value = "30s", value_name = "DURATION")]
    pub drain_timeout: Duration,
}

#[derive(Debug, Group)]
pub struct HubFlags {
    /// Kubeconfig of the hub, for reading cluster Secrets (default: in-cluster configuration)
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of the cluster Secrets
    #[arg(long, default_value = "vela-system", value_name = "NAMESPACE")]
    pub secret_namespace: String,
    /// Feature gates, `Gate=true|false`; the log names those without effect
    #[arg(long, value_delimiter = ',', value_name = "GATES")]
    pub feature_gates: Vec<String>,
    /// Read endpoints and CAs from accepted `ManagedCluster`s of Open Cluster Management
    #[arg(long)]
    pub ocm_integration: bool,
    /// Include credentials in reads of `clustergateways`, as the Go cluster-gateway does
    #[arg(long)]
    pub expose_credentials: bool,
    /// User-Agent of requests to the hub (default cluster-gateway/<version>)
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT")]
    pub user_agent: String,
}

#[derive(Debug, Group)]
pub struct Logs {
    /// Log format
    #[arg(long, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    pub log_format: LogFormat,
    /// Log level, or a filter such as `info,gateway=debug`; PUT /debug/flags/v changes it at
    /// runtime
    #[arg(long, default_value = "info", value_name = "LEVEL")]
    pub log_level: String,
    /// Log verbosity as in klog: 4 and above mean debug, 8 and above trace (not in release builds)
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

/// Parses the process's arguments. Like clap, prints help or a usage error and ends the process.
/// Each flag gets its environment variable here, so that none can be forgotten.
pub fn parse() -> Args {
    flags::of_process(parse_from)
}

/// Parses `arguments`, the first being the program's name.
pub fn parse_from(arguments: impl IntoIterator<Item: Into<OsString> + Clone>) -> Result<Args, clap::Error> {
    let command = spelling::of_go(with_environment(Args::command(), "CLUSTER_GATEWAY_"));
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut command = command.after_help(format!("{after}\n\n{}", inherited::HELP).trim_start().to_owned());
    let taken = inherited::take(arguments, &mut command)?;
    spelling::no_detached_values(&taken.arguments, &mut command)?;
    let mut args = Args::from_arg_matches(&command.try_get_matches_from(taken.arguments)?)?;
    args.inherited = taken.without_effect;
    Ok(args)
}
