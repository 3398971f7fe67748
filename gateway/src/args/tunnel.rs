//! Flags for the tunnel to members that cannot be dialled. Those for separate tunnel-servers are
//! the Go cluster-gateway's for its konnectivity proxy, with its defaults.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as Group;
use net::tls::client_files::ClientFiles;
use net::tls::server::KeyPairFiles;
use rustls_pki_types::ServerName;
use telemetry::flags::duration;

use crate::tunnel::{EmbeddedConfig, RemoteConfig, TunnelConfig};

#[derive(Debug, Group)]
#[group(id = "tunnel-group")]
pub struct Links {
    /// Tunnel-servers: names or addresses, also `HOST:PORT`, separated by commas; all addresses of
    /// a name are used
    #[arg(long, value_delimiter = ',', value_name = "HOSTS")]
    pub proxy_host: Vec<String>,
    /// Port of the tunnel-servers in --proxy-host
    #[arg(long, default_value_t = 8090, value_name = "PORT")]
    pub proxy_port: u16,
    /// CA bundle for the tunnel-servers' certificates (default: the system's roots), re-read when
    /// it changes
    #[arg(long, value_name = "FILE")]
    pub proxy_ca_cert: Option<PathBuf>,
    /// Client certificate for tunnel-servers, PEM, re-read when it changes
    #[arg(long, value_name = "FILE")]
    pub proxy_cert: Option<PathBuf>,
    /// Private key of --proxy-cert, PEM, re-read when it changes
    #[arg(long, value_name = "FILE")]
    pub proxy_key: Option<PathBuf>,
    /// Address on which the gateway itself accepts links of tunnel-agents
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub tunnel_listen: Option<SocketAddr>,
    /// Serving certificate for agents, PEM (default: the gateway's), re-read when it changes
    #[arg(long, value_name = "FILE", requires = "tunnel_listen")]
    pub tunnel_tls_cert_file: Option<PathBuf>,
    /// Private key of --tunnel-tls-cert-file, PEM, re-read when it changes
    #[arg(long, value_name = "FILE", requires = "tunnel_listen")]
    pub tunnel_tls_private_key_file: Option<PathBuf>,
    /// CA bundle for agents' client certificates; without it agents need a token of the hub
    #[arg(long, value_name = "FILE", requires = "tunnel_listen")]
    pub tunnel_client_ca_file: Option<PathBuf>,
    /// Accept certificates that the hub signed for agents of Open Cluster Management, each for its
    /// own cluster
    #[arg(long, requires = "tunnel_listen")]
    pub tunnel_hub_client_ca: bool,
    /// Time for streams of agents to finish at shutdown, after agents are asked to link elsewhere
    /// (default: --drain-timeout)
    #[arg(long, value_parser = duration, value_name = "DURATION", requires = "tunnel_listen")]
    pub tunnel_drain_timeout: Option<Duration>,
    /// Silence on a link after which the gateway sends a PING
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub tunnel_keepalive: Duration,
    /// Silence after that PING before the gateway closes the link
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub tunnel_keepalive_timeout: Duration,
}

/// Most memory for short frames that a stalled client leaves unread on one link, before the link
/// ends: without a limit one agent could take all of the gateway's memory. Enough for more than a
/// hundred stalled streams, each with its first window full of 100-byte frames.
const SHORT_FRAMES: usize = 256 * 1024 * 1024;

// === impl Links ===

impl Links {
    /// `hub`: whether there is one that can review agents' tokens.
    pub(super) fn config(&self, hub: bool, wrong: &mut Vec<String>, warnings: &mut Vec<String>) -> TunnelConfig {
        for (flag, time) in
            [("tunnel-keepalive", self.tunnel_keepalive), ("tunnel-keepalive-timeout", self.tunnel_keepalive_timeout)]
        {
            if time.is_zero() {
                wrong.push(format!("--{flag} must be greater than 0s, for example 10s"));
            }
        }
        TunnelConfig {
            remote: self.remote(wrong, warnings),
            embedded: self.embedded(hub, wrong),
            settings: tunnel::Settings {
                keepalive: self.tunnel_keepalive,
                keepalive_timeout: self.tunnel_keepalive_timeout,
                short_frames: SHORT_FRAMES,
                ..tunnel::Settings::default()
            },
        }
    }

    fn remote(&self, wrong: &mut Vec<String>, warnings: &mut Vec<String>) -> Option<RemoteConfig> {
        // Charts pass the flag with an empty value if there is none.
        let given: Vec<_> = self.proxy_host.iter().map(|host| host.trim()).filter(|host| !host.is_empty()).collect();
        let identity = pair(self.proxy_cert.as_ref(), self.proxy_key.as_ref(), ["proxy-cert", "proxy-key"], wrong);
        if given.is_empty() {
            if identity.is_some() || self.proxy_ca_cert.is_some() {
                warnings
                    .push("--proxy-ca-cert, --proxy-cert and --proxy-key have no effect without --proxy-host".into());
            }
            return None;
        }
        if identity.is_none() {
            warnings.push(
                "--proxy-host without --proxy-cert and --proxy-key: tunnel-servers refuse gateways without a client certificate"
                    .into(),
            );
        }
        let hosts = given.into_iter().filter_map(|text| self.host(text, wrong)).collect();
        Some(RemoteConfig { hosts, files: ClientFiles { ca: self.proxy_ca_cert.clone(), identity } })
    }

    fn host(&self, text: &str, wrong: &mut Vec<String>) -> Option<(String, u16)> {
        let parsed = split(text, self.proxy_port)
            .filter(|(host, port)| *port != 0 && ServerName::try_from(host.as_str()).is_ok());
        if parsed.is_none() {
            wrong.push(format!("--proxy-host: {text:?} is neither HOST nor HOST:PORT (IPv6 in brackets)"));
        }
        parsed
    }

    fn embedded(&self, hub: bool, wrong: &mut Vec<String>) -> Option<EmbeddedConfig> {
        let serving = pair(
            self.tunnel_tls_cert_file.as_ref(),
            self.tunnel_tls_private_key_file.as_ref(),
            ["tunnel-tls-cert-file", "tunnel-tls-private-key-file"],
            wrong,
        );
        let listen = self.tunnel_listen?;
        if !hub && self.tunnel_client_ca_file.is_none() {
            wrong.push(
                "--tunnel-listen without a hub needs --tunnel-client-ca-file: agents authenticate by client certificate".into(),
            );
        }
        if !hub && self.tunnel_hub_client_ca {
            wrong.push("--tunnel-hub-client-ca needs a hub: it trusts the hub's client CA".into());
        }
        Some(EmbeddedConfig {
            listen,
            serving,
            client_ca_file: self.tunnel_client_ca_file.clone(),
            hub_client_ca: self.tunnel_hub_client_ca,
            drain_timeout: self.tunnel_drain_timeout,
        })
    }
}

/// Splits `HOST`, `HOST:PORT`, `[IPv6]:PORT`, or a plain IPv6 address.
fn split(text: &str, port: u16) -> Option<(String, u16)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').filter(|(host, _)| host.parse::<Ipv6Addr>().is_ok())?;
        let port = if rest.is_empty() { port } else { rest.strip_prefix(':')?.parse().ok()? };
        return Some((host.to_owned(), port));
    }
    match text.split_once(':') {
        Some((host, digits)) if !digits.contains(':') => Some((host.to_owned(), digits.parse().ok()?)),
        _ => Some((text.to_owned(), port)),
    }
}

fn pair(
    certificate: Option<&PathBuf>,
    private_key: Option<&PathBuf>,
    [certificate_flag, key_flag]: [&str; 2],
    wrong: &mut Vec<String>,
) -> Option<KeyPairFiles> {
    // Charts pass an empty value for "none".
    let given = |path: Option<&PathBuf>| path.filter(|path| !path.as_os_str().is_empty()).cloned();
    match (given(certificate), given(private_key)) {
        (Some(certificate), Some(private_key)) => return Some(KeyPairFiles { certificate, private_key }),
        (None, None) => {}
        (Some(_), None) => {
            wrong.push(format!("--{key_flag} is required with --{certificate_flag}: the two make a pair"));
        }
        (None, Some(_)) => {
            wrong.push(format!("--{certificate_flag} is required with --{key_flag}: the two make a pair"));
        }
    }
    None
}

#[cfg(test)]
mod tests;
