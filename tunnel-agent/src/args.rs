//! The command line.
//!
//! Every flag also reads an environment variable: `TUNNEL_AGENT_` and its name in upper case with
//! `_` for `-`. Commas separate the values of repeatable flags there.

mod config;
mod join;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as Group, Parser};
use secrecy::SecretString;
use telemetry::flags::{self, LogFlags, bytes, duration};

pub use self::config::{ApiServer, Config};
pub use self::join::{JoinConfig, Member, SecretName};

/// Links its cluster to tunnel-servers and connects their byte streams to the API server and other
/// allowed destinations.
#[derive(Debug, Parser)]
// A flag given twice has its last value: charts put `extraArgs` behind their own.
#[command(name = "tunnel-agent", version, max_term_width = 120, args_override_self = true)]
#[command(
    after_help = "Each flag is also read from the environment: --server-ca-file from TUNNEL_AGENT_SERVER_CA_FILE, and so on; \
                        commas separate the values of repeatable flags."
)]
pub struct Args {
    #[command(flatten, next_help_heading = "Tunnel-servers")]
    pub servers: Servers,
    #[command(flatten, next_help_heading = "Credential: a certificate or a token")]
    pub credential: Credential,
    #[command(flatten, next_help_heading = "Joining a hub, as Open Cluster Management's agents do")]
    pub join: Join,
    #[command(flatten, next_help_heading = "Destinations")]
    pub destinations: Destinations,
    #[command(flatten, next_help_heading = "Process")]
    pub process: Process,
    #[command(flatten, next_help_heading = "Logs")]
    pub logs: LogFlags,
}

#[derive(Debug, Group)]
pub struct Servers {
    /// Name of this cluster on the hub
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// Agent listener of the tunnel-servers; repeatable. The agent links to all addresses of a name
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub server: Vec<String>,
    /// CA bundle for the tunnel-servers' certificates, PEM (default: the system's roots)
    #[arg(long, value_name = "FILE")]
    pub server_ca_file: Option<PathBuf>,
    /// Name expected in the tunnel-servers' certificates (default: the host of --server)
    #[arg(long, value_name = "NAME")]
    pub server_name: Option<String>,
    /// Number of links to each tunnel-server
    #[arg(long, default_value_t = 2, value_name = "NUMBER")]
    pub links: u16,
    /// Forward proxy to the tunnel-servers: http://, https:// or socks5://[USER:PASSWORD@]HOST:PORT
    /// (default: `HTTPS_PROXY` and `NO_PROXY` of the environment)
    #[arg(long, value_name = "URL", value_parser = secret)]
    pub proxy_url: Option<SecretString>,
    /// CA bundle for an https:// proxy, PEM (default: the system's roots)
    #[arg(long, value_name = "FILE")]
    pub proxy_ca_file: Option<PathBuf>,
    /// Silence on a link after which the agent sends a PING
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub keepalive: Duration,
    /// Silence after that PING before a link counts as dead
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub keepalive_timeout: Duration,
}

#[derive(Debug, Group)]
pub struct Credential {
    /// Client certificate, PEM, re-read when it changes
    #[arg(long, value_name = "FILE")]
    pub cert_file: Option<PathBuf>,
    /// Private key of --cert-file, PEM, re-read when it changes
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Bearer token, such as one of a ServiceAccount of the hub, re-read when it changes
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

#[derive(Debug, Group)]
pub struct Join {
    /// Join a hub: announce this cluster there, ask for a certificate, and link with it once an
    /// administrator has approved both. In place of the flags above
    #[arg(long)]
    pub register: bool,
    /// Kubeconfig of the hub that may ask to join
    #[arg(long, value_name = "FILE", requires = "register")]
    pub bootstrap_kubeconfig: Option<PathBuf>,
    /// Directory for the credentials received on joining: tls.key, tls.crt, kubeconfig,
    /// cluster-name, agent-name. Optional with --state-secret
    #[arg(long, value_name = "DIRECTORY", requires = "register")]
    pub state_dir: Option<PathBuf>,
    /// Secret of this cluster for the same credentials: in place of --state-dir, or in addition to
    /// it if that directory is lost with the agent. Only one agent may use it
    #[arg(long, value_name = "NAMESPACE/NAME", requires = "register")]
    pub state_secret: Option<String>,
    /// Kubeconfig of this cluster, whose version, resources and health are reported to the hub
    /// (default in a pod: the pod's cluster)
    #[arg(long, value_name = "FILE", requires = "register")]
    pub kubeconfig: Option<PathBuf>,
    /// https URL at which clients of the hub can reach this cluster's API server themselves
    #[arg(long, value_name = "URL", requires = "register")]
    pub member_api_url: Option<String>,
    /// ServiceAccount of this cluster whose token is sent to the hub, into the Secret of the
    /// `ManagedServiceAccount` of that name: clients of the hub act here with its rights
    #[arg(long, value_name = "NAMESPACE/NAME", requires = "register")]
    pub credential_service_account: Option<String>,
}

#[derive(Debug, Group)]
pub struct Destinations {
    /// API server of this cluster, always allowed (default in a pod: the pod's cluster)
    #[arg(long, value_name = "HOST:PORT")]
    pub api_server: Option<String>,
    /// Another allowed destination; repeatable. Loopback, link-local and cloud metadata addresses
    /// need a rule of their own
    #[arg(long, value_name = "HOST|CIDR[:PORT]", value_delimiter = ',')]
    pub allow: Vec<String>,
    /// Timeout of the tunnel-servers for connecting to a destination; the agent answers slightly
    /// earlier
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub dial_timeout: Duration,
    /// Bytes that all streams together may hold for slow readers; beyond it, the agent resets the
    /// stream that holds the most
    #[arg(long, value_parser = bytes, default_value = "256Mi", value_name = "BYTES")]
    pub max_held_bytes: u64,
}

#[derive(Debug, Group)]
pub struct Process {
    /// Time for open streams to finish after SIGTERM, before they are reset
    #[arg(long, value_parser = duration, default_value = "30s", value_name = "DURATION")]
    pub drain_timeout: Duration,
    /// Threads that relay bytes, about a gigabyte a second each; with more than one, small messages
    /// cost twice the CPU time, so use more only if one is not enough
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256), value_name = "NUMBER")]
    pub threads: u16,
    /// Address of the admin listener: /livez, /readyz and /metrics
    #[arg(long, default_value = "127.0.0.1:8093", value_name = "ADDRESS:PORT")]
    pub admin_listen: SocketAddr,
}

/// Parses the process's arguments; prints help or a usage error and ends the process where clap
/// does.
pub fn parse() -> Args {
    flags::of_process(parse_from)
}

/// Parses `arguments`, the first being the program's name.
pub fn parse_from(arguments: impl IntoIterator<Item: Into<OsString> + Clone>) -> Result<Args, clap::Error> {
    flags::parse("TUNNEL_AGENT_", arguments)
}

#[expect(clippy::unnecessary_wraps, reason = "what clap wants of a parser")]
fn secret(text: &str) -> Result<SecretString, std::convert::Infallible> {
    Ok(text.into())
}

#[cfg(test)]
mod tests;
