//! The command line.
//!
//! Every flag also reads an environment variable, `TUNNEL_AGENT_` and its name in upper case with
//! `_` for `-`; what may be given several times is separated by commas there.

mod config;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as Group, Parser};
use secrecy::SecretString;
use telemetry::flags::{self, LogFlags, bytes, duration};

pub use self::config::{ApiServer, Config, InvalidConfig};

/// Links a cluster that nobody can dial to tunnel-servers, and joins their byte streams to allowed
/// addresses here.
#[derive(Debug, Parser)]
#[command(name = "tunnel-agent", version, max_term_width = 120)]
#[command(
    after_help = "Each flag is also read from the environment: --server-ca-file from TUNNEL_AGENT_SERVER_CA_FILE, and so on; \
                        values of flags that may be given several times are separated by commas."
)]
pub struct Args {
    #[command(flatten, next_help_heading = "Tunnel-servers")]
    pub servers: Servers,
    #[command(flatten, next_help_heading = "Credential: a certificate or a token")]
    pub credential: Credential,
    #[command(flatten, next_help_heading = "Destinations")]
    pub destinations: Destinations,
    #[command(flatten, next_help_heading = "Process")]
    pub process: Process,
    #[command(flatten, next_help_heading = "Logs")]
    pub logs: LogFlags,
}

#[derive(Debug, Group)]
pub struct Servers {
    /// The name under which this cluster is known on the hub
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// A tunnel-server's agent listener; may be given several times, and each name stands for all
    /// its addresses
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub server: Vec<String>,
    /// CA bundle of the tunnel-servers' certificates, in place of the system's roots
    #[arg(long, value_name = "FILE")]
    pub server_ca_file: Option<PathBuf>,
    /// Name to look for in the tunnel-servers' certificates, in place of the host of --server
    #[arg(long, value_name = "NAME")]
    pub server_name: Option<String>,
    /// Links to keep to each tunnel-server
    #[arg(long, default_value_t = 2, value_name = "NUMBER")]
    pub links: u16,
    /// Proxy on the way to the tunnel-servers: http://, https:// or
    /// socks5://[USER:PASSWORD@]HOST:PORT; without the flag the environment's `HTTPS_PROXY` and
    /// `NO_PROXY` count
    #[arg(long, value_name = "URL", value_parser = secret)]
    pub proxy_url: Option<SecretString>,
    /// CA bundle of an https:// proxy, in place of the system's roots
    #[arg(long, value_name = "FILE")]
    pub proxy_ca_file: Option<PathBuf>,
    /// Silence after which a link is asked whether it is alive
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub keepalive: Duration,
    /// How long the answer may take before the link counts as dead
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub keepalive_timeout: Duration,
}

#[derive(Debug, Group)]
pub struct Credential {
    /// Client certificate, PEM; read again whenever it changes
    #[arg(long, value_name = "FILE")]
    pub cert_file: Option<PathBuf>,
    /// Private key of --cert-file, PEM
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Bearer token, such as that of a ServiceAccount of the hub; read again whenever it changes
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

#[derive(Debug, Group)]
pub struct Destinations {
    /// This cluster's API server, always allowed; in a pod that of the cluster the pod is in
    #[arg(long, value_name = "HOST:PORT")]
    pub api_server: Option<String>,
    /// Another allowed destination; may be given several times. Loopback, link-local and clouds'
    /// metadata addresses need a rule of their own
    #[arg(long, value_name = "HOST|CIDR[:PORT]", value_delimiter = ',')]
    pub allow: Vec<String>,
    /// Time a tunnel-server gives for connecting to a destination; the agent answers a little
    /// earlier
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub dial_timeout: Duration,
    /// Bytes that all streams together may hold for slow readers; beyond it the stream that holds
    /// the most is reset
    #[arg(long, value_parser = bytes, default_value = "256Mi", value_name = "BYTES")]
    pub max_held_bytes: u64,
}

#[derive(Debug, Group)]
pub struct Process {
    /// How long streams may go on after SIGTERM
    #[arg(long, value_parser = duration, default_value = "30s", value_name = "DURATION")]
    pub drain_timeout: Duration,
    /// Threads that move bytes, each up to about a gigabyte a second. With more than one, bytes are
    /// handed from thread to thread, and small messages cost twice the processor time: one for each
    /// core is worth it only where one is not enough
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256), value_name = "NUMBER")]
    pub threads: u16,
    /// Where /livez, /readyz and /metrics are
    #[arg(long, default_value = "127.0.0.1:8093", value_name = "ADDRESS:PORT")]
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
    flags::parse("TUNNEL_AGENT_", arguments)
}

#[expect(clippy::unnecessary_wraps, reason = "what clap wants of a parser")]
fn secret(text: &str) -> Result<SecretString, std::convert::Infallible> {
    Ok(text.into())
}

#[cfg(test)]
mod tests;
