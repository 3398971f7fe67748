//! The command line.
//!
//! Every flag also reads an environment variable, `TUNNEL_SERVER_` and its name in upper case with
//! `_` for `-`.

mod config;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as Group, Parser};
use telemetry::flags::{self, LogFlags, bytes, duration};

pub use self::config::{Config, FrontendConfig, FrontendTls, HubConfig};

/// Accepts links of tunnel-agents, and opens byte streams over them for gateways and for
/// kube-apiservers (egress selector).
#[derive(Debug, Parser)]
// A flag given twice has its last value: charts put `extraArgs` behind their own.
#[command(name = "tunnel-server", version, max_term_width = 120, args_override_self = true)]
#[command(
    after_help = "Each flag is also read from the environment: --agent-listen from TUNNEL_SERVER_AGENT_LISTEN, and so on.\n\
                        Certificates, keys and CA bundles are re-read when they change."
)]
pub struct Args {
    #[command(flatten, next_help_heading = "Agents")]
    pub agents: Agents,
    #[command(flatten, next_help_heading = "Frontends: gateways and kube-apiservers")]
    pub frontends: Frontends,
    #[command(flatten, next_help_heading = "Limits")]
    pub limits: Limits,
    #[command(flatten, next_help_heading = "Process")]
    pub process: Process,
    #[command(flatten, next_help_heading = "Logs")]
    pub logs: LogFlags,
}

#[derive(Debug, Group)]
pub struct Agents {
    /// Address on which tunnel-agents link; port 0 picks a free one
    #[arg(long, default_value = "0.0.0.0:8091", value_name = "ADDRESS:PORT")]
    pub agent_listen: SocketAddr,
    /// Serving certificate for agents, with its intermediates, PEM
    #[arg(long, value_name = "FILE")]
    pub agent_tls_cert_file: Option<PathBuf>,
    /// Private key of --agent-tls-cert-file, PEM
    #[arg(long, value_name = "FILE")]
    pub agent_tls_private_key_file: Option<PathBuf>,
    /// CA bundle for agents' client certificates, PEM; without it agents need tokens of the hub
    #[arg(long, value_name = "FILE")]
    pub agent_client_ca_file: Option<PathBuf>,
    /// Accept certificates that the hub signed for agents of Open Cluster Management, each for its
    /// own cluster (reads the ConfigMap extension-apiserver-authentication in kube-system)
    #[arg(long)]
    pub agent_hub_client_ca: bool,
    /// Kubeconfig of the hub, which authenticates agents and authorizes their links (create
    /// clustergateways/tunnel of the cluster's name); default: in-cluster configuration. Without a
    /// hub, agents need a client certificate with the common name system:tunnel-agent:CLUSTER
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Interval at which the credential of a linked agent is checked again
    #[arg(long, value_parser = duration, default_value = "30s", value_name = "DURATION")]
    pub recheck_interval: Duration,
    /// Silence on a link after which the server sends a PING
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub keepalive: Duration,
    /// Silence after that PING before a link counts as dead
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub keepalive_timeout: Duration,
}

#[derive(Debug, Group)]
pub struct Frontends {
    /// Address on which frontends connect with mutual TLS (default: 0.0.0.0:8090); needs the next
    /// three flags
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub frontend_listen: Option<SocketAddr>,
    /// Serving certificate for frontends, with its intermediates, PEM
    #[arg(long, value_name = "FILE")]
    pub frontend_tls_cert_file: Option<PathBuf>,
    /// Private key of --frontend-tls-cert-file, PEM
    #[arg(long, value_name = "FILE")]
    pub frontend_tls_private_key_file: Option<PathBuf>,
    /// CA bundle for frontends' client certificates, PEM: every holder of one may open streams to
    /// every cluster
    #[arg(long, value_name = "FILE")]
    pub frontend_client_ca_file: Option<PathBuf>,
    /// Path of a Unix socket for frontends on this machine, created with mode 0660
    #[arg(long, value_name = "PATH")]
    pub frontend_uds: Option<PathBuf>,
    /// Cluster of streams whose frontend names none
    #[arg(long, value_name = "NAME")]
    pub default_cluster: Option<String>,
    /// Timeout for an agent to connect to a destination
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub dial_timeout: Duration,
}

#[derive(Debug, Group)]
pub struct Limits {
    /// Bytes that all streams together may hold; beyond it, the server resets the stream that holds
    /// the most
    #[arg(long, value_parser = bytes, default_value = "512Mi", value_name = "BYTES")]
    pub max_held_bytes: u64,
}

#[derive(Debug, Group)]
pub struct Process {
    /// Time to keep serving after SIGTERM while load balancers and DNS remove this server
    #[arg(long, value_parser = duration, default_value = "0s", value_name = "DURATION")]
    pub shutdown_delay_duration: Duration,
    /// Time after that for open streams to finish, before they are reset
    #[arg(long, value_parser = duration, default_value = "30s", value_name = "DURATION")]
    pub drain_timeout: Duration,
    /// Threads that relay bytes, about a gigabyte a second each; with more than one, small messages
    /// cost twice the CPU time, so use more only if one is not enough
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256), value_name = "NUMBER")]
    pub threads: u16,
    /// Address of the admin listener: /livez, /readyz, /metrics and /debug/links
    #[arg(long, default_value = "127.0.0.1:8095", value_name = "ADDRESS:PORT")]
    pub admin_listen: SocketAddr,
}

/// Parses the process's arguments; prints help or a usage error and ends the process where clap
/// does.
pub fn parse() -> Args {
    flags::of_process(parse_from)
}

/// Parses `arguments`, the first being the program's name.
pub fn parse_from(arguments: impl IntoIterator<Item: Into<OsString> + Clone>) -> Result<Args, clap::Error> {
    flags::parse("TUNNEL_SERVER_", arguments)
}

#[cfg(test)]
mod tests;
