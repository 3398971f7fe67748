//! Turns arguments into a consistent configuration; reports all mistakes at once.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use net::tls::client_files::ClientFiles;
use net::tls::server::KeyPairFiles;
use rustls_pki_types::ServerName;
use secrecy::ExposeSecret as _;
use telemetry::flags::InvalidConfig;
use telemetry::logs;
use tunnel::{ClusterName, Destination, Settings};

use super::{Args, Credential, JoinConfig, Servers};
use crate::outbound::Outbound;
use crate::targets::{Rule, Targets, is_in_cluster};

/// The file in a pod with its cluster's CA.
const IN_CLUSTER_CA: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
/// More links to one server than cores to serve them are useless, and a server accepts sixteen from
/// one agent.
const MOST_LINKS: u16 = 8;

/// An agent ready to be started.
#[derive(Debug)]
pub struct Config {
    pub cluster: ClusterName,
    /// Each is a name with a port, or an address.
    pub servers: Vec<Destination>,
    /// Replaces the server's host for verification.
    pub server_name: Option<ServerName<'static>>,
    /// Trust, and the certificate if that is the credential.
    pub files: ClientFiles,
    pub token_file: Option<PathBuf>,
    /// How the agent gets its credential by joining, if it does not have one from the start.
    pub join: Option<JoinConfig>,
    pub links: usize,
    pub outbound: Outbound,
    pub settings: Settings,
    pub api_server: ApiServer,
    pub targets: Targets,
    pub dial_timeout: Duration,
    /// Limit of all streams together.
    pub max_held_bytes: u64,
    pub drain_timeout: Duration,
    /// At least one.
    pub threads: usize,
    pub admin_listen: SocketAddr,
    pub log_format: logs::Format,
    pub log_level: String,
}

/// The API server of the agent's cluster.
#[derive(Debug, Clone)]
pub struct ApiServer {
    pub place: Destination,
    /// The CA to verify it with in the readiness check; without it nothing is verified, because
    /// nothing secret is sent.
    pub ca: Option<PathBuf>,
}

// === impl Config ===

impl Config {
    /// `variable` looks up the environment's settings for the pod and for proxies.
    pub fn new(args: &Args, variable: impl Fn(&str) -> Option<String>) -> Result<Self, InvalidConfig> {
        let mut wrong = Vec::new();
        let cluster = cluster(args.servers.cluster.as_deref(), &mut wrong);
        let servers = servers(&args.servers, &mut wrong);
        let server_name = args.servers.server_name.as_deref().and_then(|name| server_name(name, &mut wrong));
        if !(1..=MOST_LINKS).contains(&args.servers.links) {
            wrong.push(format!("--links must be from 1 to {MOST_LINKS}"));
        }
        let in_pod = variable("KUBERNETES_SERVICE_HOST").is_some_and(|host| !host.is_empty());
        let join = JoinConfig::new(args, in_pod, &mut wrong);
        let identity = match &join {
            Some(join) => Some(joined_identity(&join.state_dir)),
            None if args.join.register => None,
            None => credential(&args.credential, &mut wrong),
        };
        let outbound = outbound(&args.servers, &variable, &mut wrong);
        let api_server = api_server(args.destinations.api_server.as_deref(), &variable, &mut wrong);
        let rules = rules(&args.destinations.allow, &mut wrong);
        times(args, &mut wrong);
        let (Some(cluster), Some(outbound), Some(api_server), true) = (cluster, outbound, api_server, wrong.is_empty())
        else {
            return Err(InvalidConfig(wrong));
        };
        Ok(Self {
            targets: Targets::new(cluster.clone(), api_server.place.clone(), rules),
            cluster,
            servers,
            server_name,
            files: ClientFiles { ca: args.servers.server_ca_file.clone(), identity },
            token_file: args.credential.token_file.clone(),
            join,
            links: args.servers.links.into(),
            outbound,
            settings: settings(&args.servers),
            api_server,
            dial_timeout: args.destinations.dial_timeout,
            max_held_bytes: args.destinations.max_held_bytes,
            drain_timeout: args.process.drain_timeout,
            threads: args.process.threads.into(),
            admin_listen: args.process.admin_listen,
            log_format: args.logs.log_format.into(),
            log_level: args.logs.log_level.clone(),
        })
    }
}

fn server_name(name: &str, wrong: &mut Vec<String>) -> Option<ServerName<'static>> {
    let parsed = ServerName::try_from(name.to_owned());
    let why = |_| wrong.push(format!("--server-name={name} is neither a DNS name nor an IP address"));
    parsed.map_err(why).ok()
}

fn times(args: &Args, wrong: &mut Vec<String>) {
    for (flag, time) in [
        ("--dial-timeout", args.destinations.dial_timeout),
        ("--keepalive", args.servers.keepalive),
        ("--keepalive-timeout", args.servers.keepalive_timeout),
    ] {
        if time.is_zero() {
            wrong.push(format!("{flag} must be greater than 0, for example 10s"));
        }
    }
}

fn settings(servers: &Servers) -> Settings {
    Settings { keepalive: servers.keepalive, keepalive_timeout: servers.keepalive_timeout, ..Settings::default() }
}

fn cluster(name: Option<&str>, wrong: &mut Vec<String>) -> Option<ClusterName> {
    let Some(name) = name else {
        wrong.push("--cluster is required: the name of this cluster on the hub".into());
        return None;
    };
    ClusterName::parse(name).map_err(|error| wrong.push(format!("--cluster={name}: {error}"))).ok()
}

fn servers(args: &Servers, wrong: &mut Vec<String>) -> Vec<Destination> {
    if args.server.is_empty() {
        wrong.push("--server is required: host:port of a tunnel-server's agent listener".into());
    }
    let mut servers: Vec<Destination> = Vec::new();
    for text in &args.server {
        match Destination::parse(text) {
            Ok(server) if servers.contains(&server) => wrong.push(format!("--server={text} is given twice")),
            Ok(server) => servers.push(server),
            Err(error) => wrong.push(format!("--server={text}: {error}")),
        }
    }
    servers
}

/// Files of the credential after the cluster has joined: named as in a klusterlet's Secret.
fn joined_identity(state_dir: &Path) -> KeyPairFiles {
    KeyPairFiles { certificate: state_dir.join("tls.crt"), private_key: state_dir.join("tls.key") }
}

/// Fails closed: without a credential of one kind nothing starts.
fn credential(args: &Credential, wrong: &mut Vec<String>) -> Option<KeyPairFiles> {
    match (&args.cert_file, &args.key_file, &args.token_file) {
        (Some(certificate), Some(private_key), None) => {
            return Some(KeyPairFiles { certificate: certificate.clone(), private_key: private_key.clone() });
        }
        (None, None, Some(_)) => {}
        (None, None, None) => wrong.push(
            "a credential is required: --cert-file and --key-file, or --token-file with a token that the hub accepts, or \
             --register"
                .into(),
        ),
        (_, _, Some(_)) => wrong.push("--token-file and --cert-file are both given: give one of them".into()),
        (Some(_), None, None) => wrong.push("--cert-file needs --key-file".into()),
        (None, Some(_), None) => wrong.push("--key-file needs --cert-file".into()),
    }
    None
}

fn outbound(args: &Servers, variable: &impl Fn(&str) -> Option<String>, wrong: &mut Vec<String>) -> Option<Outbound> {
    let ca = args.proxy_ca_file.clone();
    let made = match &args.proxy_url {
        Some(url) => Outbound::through(url.expose_secret(), ca).map_err(|error| format!("--proxy-url: {error}")),
        None => Outbound::of_environment(variable, ca),
    };
    made.map_err(|error| wrong.push(error)).ok()
}

fn api_server(
    given: Option<&str>,
    variable: &impl Fn(&str) -> Option<String>,
    wrong: &mut Vec<String>,
) -> Option<ApiServer> {
    let ca = || Some(PathBuf::from(IN_CLUSTER_CA)).filter(|path| path.exists());
    if let Some(text) = given {
        let place =
            Destination::parse(text).map_err(|error| wrong.push(format!("--api-server={text}: {error}"))).ok()?;
        // Another address may have another authority.
        let ca = if is_in_cluster(place.host()) { ca() } else { None };
        return Some(ApiServer { place, ca });
    }
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let in_pod = set("KUBERNETES_SERVICE_HOST").zip(set("KUBERNETES_SERVICE_PORT").and_then(|port| port.parse().ok()));
    let place = in_pod.and_then(|(host, port)| Destination::new(&host, port).ok());
    if place.is_none() {
        wrong.push("--api-server is required outside a pod: host:port of this cluster's API server".into());
    }
    place.map(|place| ApiServer { place, ca: ca() })
}

fn rules(allow: &[String], wrong: &mut Vec<String>) -> Vec<Rule> {
    let parse = |text: &String| Rule::parse(text).map_err(|error| wrong.push(format!("--allow={text}: {error}"))).ok();
    allow.iter().filter_map(parse).collect()
}
