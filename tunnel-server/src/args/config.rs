//! Turns arguments into a consistent configuration, or reports all mistakes in them at once.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use net::tls::server::KeyPairFiles;
use telemetry::flags::InvalidConfig;
use telemetry::logs;
use tunnel::{ClusterName, Settings};

use super::{Agents, Args, Frontends};
use links::AgentsConfig;
use links::Limits;

/// The frontends' address if the arguments give none.
const FRONTEND_LISTEN: &str = "0.0.0.0:8090";

/// A checked configuration.
#[derive(Debug)]
pub struct Config {
    pub agents: AgentsConfig,
    pub hub: HubConfig,
    pub frontends: FrontendConfig,
    pub default_cluster: Option<ClusterName>,
    pub dial_timeout: Duration,
    pub max_held_bytes: u64,
    pub shutdown_delay: Duration,
    pub drain_timeout: Duration,
    /// At least one.
    pub threads: usize,
    pub admin_listen: SocketAddr,
    pub log_format: logs::Format,
    pub log_level: String,
    /// Doubtful settings, for the log.
    pub warnings: Vec<String>,
}

/// The cluster that authenticates agents and authorizes their links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubConfig {
    Kubeconfig(PathBuf),
    /// The cluster this process runs in.
    InCluster,
    /// No cluster: only client certificates authenticate agents.
    None,
}

/// The frontends' listeners, of which there is at least one.
#[derive(Debug, Clone)]
pub struct FrontendConfig {
    pub tls: Option<FrontendTls>,
    /// Path of the Unix socket.
    pub uds: Option<PathBuf>,
}

/// The frontends' TCP listener.
#[derive(Debug, Clone)]
pub struct FrontendTls {
    pub listen: SocketAddr,
    pub serving: KeyPairFiles,
    /// CA bundle of the frontends' client certificates.
    pub client_ca_file: PathBuf,
}

// === impl Config ===

impl Config {
    /// `in_pod`: whether this process runs in a pod, whose cluster can be the hub.
    pub fn new(args: Args, in_pod: bool) -> Result<Self, InvalidConfig> {
        let mut wrong = Vec::new();
        let hub = hub(&args.agents, in_pod, &mut wrong);
        let serving = agents_serving(&args.agents, &mut wrong);
        let frontends = frontends(&args.frontends, &mut wrong);
        let default_cluster = default_cluster(args.frontends.default_cluster.as_deref(), &mut wrong);
        times(&args, &mut wrong);
        let (Some(serving), true) = (serving, wrong.is_empty()) else { return Err(InvalidConfig(wrong)) };
        let (warnings, settings) = (warnings(&args), settings(&args.agents));
        Ok(Self {
            agents: AgentsConfig {
                listen: args.agents.agent_listen,
                serving,
                client_ca_file: args.agents.agent_client_ca_file,
                hub_client_ca: args.agents.agent_hub_client_ca,
                settings,
                drain_timeout: args.process.drain_timeout,
                recheck: args.agents.recheck_interval,
                limits: Limits::default(),
            },
            hub,
            frontends,
            default_cluster,
            dial_timeout: args.frontends.dial_timeout,
            max_held_bytes: args.limits.max_held_bytes,
            shutdown_delay: args.process.shutdown_delay_duration,
            drain_timeout: args.process.drain_timeout,
            threads: args.process.threads.into(),
            admin_listen: args.process.admin_listen,
            log_format: args.logs.log_format.into(),
            log_level: args.logs.log_level,
            warnings,
        })
    }
}

fn hub(args: &Agents, in_pod: bool, wrong: &mut Vec<String>) -> HubConfig {
    match &args.kubeconfig {
        Some(path) => HubConfig::Kubeconfig(path.clone()),
        None if in_pod => HubConfig::InCluster,
        None => {
            if args.agent_client_ca_file.is_none() {
                wrong.push(
                    "no agent could be authenticated: give --agent-client-ca-file (agents with client certificates), or --kubeconfig \
                     (agents with tokens of that hub; not needed in a pod of the hub)"
                        .to_owned(),
                );
            }
            if args.agent_hub_client_ca {
                wrong
                    .push("--agent-hub-client-ca needs a hub, whose client CA it trusts: give --kubeconfig".to_owned());
            }
            HubConfig::None
        }
    }
}

fn settings(args: &Agents) -> Settings {
    Settings { keepalive: args.keepalive, keepalive_timeout: args.keepalive_timeout, ..Settings::default() }
}

fn default_cluster(name: Option<&str>, wrong: &mut Vec<String>) -> Option<ClusterName> {
    let name = name?;
    let told = |error| wrong.push(format!("--default-cluster={name}: {error}"));
    ClusterName::parse(name).map_err(told).ok()
}

fn agents_serving(args: &Agents, wrong: &mut Vec<String>) -> Option<KeyPairFiles> {
    let (certificate, key) = (&args.agent_tls_cert_file, &args.agent_tls_private_key_file);
    let given = [("--agent-tls-cert-file", certificate.is_some()), ("--agent-tls-private-key-file", key.is_some())];
    if let Some(missing) = missing(&given) {
        wrong.push(format!("agents are accepted over TLS only: give {missing}"));
    }
    Some(KeyPairFiles { certificate: certificate.clone()?, private_key: key.clone()? })
}

fn frontends(args: &Frontends, wrong: &mut Vec<String>) -> FrontendConfig {
    let (certificate, key) = (&args.frontend_tls_cert_file, &args.frontend_tls_private_key_file);
    let authority = &args.frontend_client_ca_file;
    let uds = args.frontend_uds.clone();
    let given = [
        ("--frontend-tls-cert-file", certificate.is_some()),
        ("--frontend-tls-private-key-file", key.is_some()),
        ("--frontend-client-ca-file", authority.is_some()),
    ];
    let wanted = args.frontend_listen.is_some() || given.iter().any(|(_, given)| *given);
    let tls = match (certificate, key, authority) {
        (Some(certificate), Some(key), Some(authority)) => Some(FrontendTls {
            listen: args.frontend_listen.unwrap_or_else(|| FRONTEND_LISTEN.parse().expect("a constant")),
            serving: KeyPairFiles { certificate: certificate.clone(), private_key: key.clone() },
            client_ca_file: authority.clone(),
        }),
        _ => None,
    };
    match missing(&given) {
        Some(missing) if wanted => {
            wrong.push(format!("frontends are accepted over mutual TLS only: give {missing} too"));
        }
        Some(missing) if uds.is_none() => {
            wrong.push(format!("no frontend could connect: give {missing}, or --frontend-uds, or both"));
        }
        _ => {}
    }
    FrontendConfig { tls, uds }
}

fn times(args: &Args, wrong: &mut Vec<String>) {
    let times = [
        ("--dial-timeout", args.frontends.dial_timeout),
        ("--keepalive", args.agents.keepalive),
        ("--keepalive-timeout", args.agents.keepalive_timeout),
        ("--recheck-interval", args.agents.recheck_interval),
    ];
    for (flag, time) in times {
        if time.is_zero() {
            wrong.push(format!("{flag} must be greater than 0, for example 10s"));
        }
    }
}

fn warnings(args: &Args) -> Vec<String> {
    let (agents, frontends) = (&args.agents.agent_client_ca_file, &args.frontends.frontend_client_ca_file);
    let mut warnings = Vec::new();
    if let (Some(agents), Some(frontends)) = (agents, frontends)
        && is_same(agents, frontends)
    {
        warnings.push(
            "--agent-client-ca-file and --frontend-client-ca-file hold the same CA: the certificate of any agent opens the frontends' \
             listener too, and with it streams to every cluster; use two CAs"
                .to_owned(),
        );
    }
    warnings
}

/// Whether both paths name one file, or files with the same contents. A file that cannot be read
/// counts as different: its error is reported when the server opens it.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other || matches!((std::fs::read(one), std::fs::read(other)), (Ok(one), Ok(other)) if one == other)
}

/// The flags that are missing, in words.
fn missing(given: &[(&str, bool)]) -> Option<String> {
    let missing: Vec<_> = given.iter().filter(|(_, given)| !given).map(|(flag, _)| *flag).collect();
    let (last, others) = missing.split_last()?;
    Some(if others.is_empty() { (*last).to_owned() } else { format!("{} and {last}", others.join(", ")) })
}
