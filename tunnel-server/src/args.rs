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

pub use self::config::{Config, FrontendConfig, FrontendTls, Hub, InvalidConfig};

/// Holds the links that tunnel-agents open, and opens byte streams over them for gateways and for a
/// kube-apiserver's egress selector.
#[derive(Debug, Parser)]
#[command(name = "tunnel-server", version, max_term_width = 120)]
#[command(
    after_help = "Each flag is also read from the environment: --agent-listen from TUNNEL_SERVER_AGENT_LISTEN, and so on.\n\
                        Certificates, keys and CA bundles are read again whenever they change."
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
    /// Where tunnel-agents link; port 0 takes a free one
    #[arg(long, default_value = "0.0.0.0:8091", value_name = "ADDRESS:PORT")]
    pub agent_listen: SocketAddr,
    /// Certificate shown to agents, with its intermediates, PEM
    #[arg(long, value_name = "FILE")]
    pub agent_tls_cert_file: Option<PathBuf>,
    /// Private key of --agent-tls-cert-file, PEM
    #[arg(long, value_name = "FILE")]
    pub agent_tls_private_key_file: Option<PathBuf>,
    /// CA bundle of the agents' client certificates, PEM; without it agents need tokens of the hub
    #[arg(long, value_name = "FILE")]
    pub agent_client_ca_file: Option<PathBuf>,
    /// Kubeconfig of the hub, which is asked who an agent is and whether it may link (create
    /// clustergateways/tunnel of the cluster's name); the cluster this process runs in when absent.
    /// Without either, an agent needs a client certificate with the common name
    /// system:tunnel-agent:CLUSTER
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// How often the credential of a linked agent is judged anew
    #[arg(long, value_parser = duration, default_value = "30s", value_name = "DURATION")]
    pub recheck_interval: Duration,
    /// Silence after which a link is asked whether it is alive
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub keepalive: Duration,
    /// How long the answer may take before the link counts as dead
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub keepalive_timeout: Duration,
}

#[derive(Debug, Group)]
pub struct Frontends {
    /// Where frontends connect over mutual TLS (default 0.0.0.0:8090); needs the three files below
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub frontend_listen: Option<SocketAddr>,
    /// Certificate shown to frontends, with its intermediates, PEM
    #[arg(long, value_name = "FILE")]
    pub frontend_tls_cert_file: Option<PathBuf>,
    /// Private key of --frontend-tls-cert-file, PEM
    #[arg(long, value_name = "FILE")]
    pub frontend_tls_private_key_file: Option<PathBuf>,
    /// CA bundle of the frontends' client certificates, PEM: whoever holds one may open streams to
    /// every cluster
    #[arg(long, value_name = "FILE")]
    pub frontend_client_ca_file: Option<PathBuf>,
    /// Unix socket for frontends on this machine, made with mode 0660
    #[arg(long, value_name = "PATH")]
    pub frontend_uds: Option<PathBuf>,
    /// Cluster that is meant when a frontend names none
    #[arg(long, value_name = "NAME")]
    pub default_cluster: Option<String>,
    /// How long an agent may take to connect to a destination
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub dial_timeout: Duration,
}

#[derive(Debug, Group)]
pub struct Limits {
    /// Bytes that all streams together may hold here; beyond it the stream that holds the most is
    /// reset
    #[arg(long, value_parser = bytes, default_value = "512Mi", value_name = "BYTES")]
    pub max_held_bytes: u64,
}

#[derive(Debug, Group)]
pub struct Process {
    /// After SIGTERM, time to go on as before while load balancers and DNS learn that this server
    /// leaves
    #[arg(long, value_parser = duration, default_value = "0s", value_name = "DURATION")]
    pub shutdown_delay_duration: Duration,
    /// Then, how long streams may go on before they are reset
    #[arg(long, value_parser = duration, default_value = "30s", value_name = "DURATION")]
    pub drain_timeout: Duration,
    /// Threads that move bytes, each up to about a gigabyte a second. With more than one, bytes are
    /// handed from thread to thread, and small messages cost twice the processor time: one for each
    /// core is worth it only where one is not enough
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256), value_name = "NUMBER")]
    pub threads: u16,
    /// Where /livez, /readyz, /metrics and /debug/links are
    #[arg(long, default_value = "127.0.0.1:8095", value_name = "ADDRESS:PORT")]
    pub admin_listen: SocketAddr,
}

/// Parses the process's arguments; prints help or a usage error and ends the process where clap
/// does.
pub fn parse() -> Args {
    flags::of_process(parse_from)
}

/// Parses `arguments`, the first being the program's name.
pub fn parse_from<I, T>(arguments: I) -> Result<Args, clap::Error>
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    flags::parse("TUNNEL_SERVER_", arguments)
}

#[cfg(test)]
mod tests;
