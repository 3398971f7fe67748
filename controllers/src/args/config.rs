//! Turns arguments into a consistent configuration; reports all mistakes at once.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum as _;
use register::Rules;
use register::cluster_profile::Providers;
use register::endpoints::{self, Endpoints};
use register::naming::Template;
use register::ocm::Reach;
use telemetry::flags::InvalidConfig;
use telemetry::logs;

use super::{Args, DeliveryFlags, Enabled, HubFlags, PartName, SourceName, Sources, StandsBy};

/// Controllers ready to be started.
#[derive(Debug)]
pub struct Config {
    pub kubeconfig: Option<PathBuf>,
    pub secret_namespace: String,
    /// Without duplicates.
    pub sources: Vec<SourceName>,
    /// Without duplicates.
    pub parts: Vec<PartName>,
    pub gateway: Gateway,
    pub watch_namespaces: Vec<String>,
    pub templates: HashMap<SourceName, Template>,
    pub reserved_names: Vec<String>,
    pub kubeconfig_selector: String,
    pub karmada_kubeconfig: Option<PathBuf>,
    pub kubefed_namespace: String,
    pub ocm_credential: String,
    pub ocm_endpoint: Reach,
    pub ocm_auto_approve_users: Vec<String>,
    /// None unless clusterprofile-import is enabled.
    pub providers: Arc<Providers>,
    /// Without duplicates, at least one.
    pub clusterprofile_namespaces: Vec<String>,
    /// Parts that do not look for rivals.
    pub never_stand_by: Vec<PartName>,
    /// Namespaces in which placement and replica-sets look for rivals; all if empty.
    pub rival_namespaces: Vec<String>,
    pub rollout_needs_rules: bool,
    /// None unless argocd is enabled.
    pub argocd: Option<Argocd>,
    pub source_removal_limit: usize,
    pub delivery: Delivery,
    pub rules: Rules,
    pub leader_elect: bool,
    pub admin_listen: SocketAddr,
    pub log_format: logs::Format,
    pub log_level: String,
}

/// The location of Argo CD, and its ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argocd {
    pub namespace: String,
    /// Namespace and name of its ServiceAccount.
    pub account: (String, String),
}

/// How the gateway is reached.
#[derive(Debug, Clone, Default)]
pub struct Gateway {
    /// None for the hub's aggregated API.
    pub url: Option<String>,
    /// None for the hub's.
    pub ca_file: Option<PathBuf>,
    /// None for our own credential for the hub.
    pub token_file: Option<PathBuf>,
}

/// How `ManifestWorks` are delivered.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// None for an identity that distinguishes this hub from others.
    pub hub_url: Option<String>,
    pub requests_per_cluster: usize,
    pub requests: usize,
    pub timeout: Duration,
    pub resync: Duration,
    pub is_executor_required: bool,
    pub is_feedback_raw: bool,
}

// === impl Config ===

impl Config {
    pub fn new(args: &Args) -> Result<Self, InvalidConfig> {
        let mut wrong = Vec::new();
        let (sources, parts) = enabled(&args.sources.enable, &mut wrong);
        let templates = templates(&args.sources.name_template, &mut wrong);
        let rules = rules(args, &mut wrong);
        let file = args.sources.clusterprofile_import_providers_file.as_deref();
        let providers = providers(file, sources.contains(&SourceName::ClusterprofileImport), &mut wrong);
        let (hub, flags) = (&args.hub, &args.sources);
        not_empty(hub, flags, &mut wrong);
        let gateway = gateway(hub, &mut wrong);
        flags_of_parts(flags, &parts, &mut wrong);
        let delivery = delivery(&args.delivery, parts.contains(&PartName::Manifestworks), &mut wrong);
        let never_stand_by = never_stand_by(&flags.never_stand_by, &parts, &mut wrong);
        let argocd = argocd(flags, &parts, &mut wrong);
        if !wrong.is_empty() {
            return Err(InvalidConfig(wrong));
        }
        Ok(Self {
            kubeconfig: hub.kubeconfig.clone(),
            secret_namespace: hub.secret_namespace.clone(),
            sources: sources.into_iter().collect(),
            parts: parts.into_iter().collect(),
            gateway,
            watch_namespaces: once(&flags.watch_namespaces),
            templates,
            reserved_names: args.sources.reserved_names.clone(),
            kubeconfig_selector: flags.kubeconfig_selector.clone(),
            karmada_kubeconfig: flags.karmada_kubeconfig.clone(),
            kubefed_namespace: flags.kubefed_namespace.clone(),
            ocm_credential: flags.ocm_credential.clone(),
            ocm_endpoint: flags.ocm_endpoint,
            ocm_auto_approve_users: flags.ocm_auto_approve_users.clone(),
            providers: Arc::new(providers),
            clusterprofile_namespaces: published(hub, flags),
            never_stand_by,
            rival_namespaces: once(&flags.rival_namespaces),
            rollout_needs_rules: flags.rollout_needs_rules,
            argocd,
            source_removal_limit: flags.source_removal_limit,
            delivery,
            rules,
            leader_elect: args.process.leader_elect,
            admin_listen: args.process.admin_listen,
            log_format: args.logs.log_format.into(),
            log_level: args.logs.log_level.clone(),
        })
    }
}

fn not_empty(hub: &HubFlags, flags: &Sources, wrong: &mut Vec<String>) {
    for (flag, text) in [
        ("--secret-namespace", &hub.secret_namespace),
        ("--kubefed-namespace", &flags.kubefed_namespace),
        ("--ocm-credential", &flags.ocm_credential),
        ("--kubeconfig-selector", &flags.kubeconfig_selector),
    ] {
        if text.is_empty() {
            wrong.push(format!("{flag} must not be empty"));
        }
    }
}

/// In order, without duplicates.
fn once(names: &[String]) -> Vec<String> {
    let names: BTreeSet<_> = names.iter().filter(|name| !name.is_empty()).cloned().collect();
    names.into_iter().collect()
}

/// Where profiles are published.
fn published(hub: &HubFlags, flags: &Sources) -> Vec<String> {
    let namespaces = once(&flags.clusterprofile_namespaces);
    if namespaces.is_empty() { vec![hub.secret_namespace.clone()] } else { namespaces }
}

fn enabled(names: &[Enabled], wrong: &mut Vec<String>) -> (BTreeSet<SourceName>, BTreeSet<PartName>) {
    let (mut sources, mut parts) = (BTreeSet::new(), BTreeSet::new());
    for name in names {
        match *name {
            Enabled::Source(source) => drop(sources.insert(source)),
            Enabled::Part(part) => drop(parts.insert(part)),
        }
    }
    if names.is_empty() {
        wrong.push(
            "--enable is required: sources of clusters, for example capi, or parts, such as clusterprofile".to_owned(),
        );
    }
    (sources, parts)
}

fn never_stand_by(names: &[StandsBy], parts: &BTreeSet<PartName>, wrong: &mut Vec<String>) -> Vec<PartName> {
    let all: Vec<PartName> = names.iter().map(|name| name.part()).collect();
    for part in all.iter().filter(|part| !parts.contains(part)) {
        let part = part.as_str();
        wrong.push(format!("--never-stand-by={part} has no effect without --enable={part}"));
    }
    all
}

/// Parts that stand by for controllers of Open Cluster Management.
const STAND_BY: [PartName; 4] =
    [PartName::Placement, PartName::ReplicaSets, PartName::OcmRegistration, PartName::Availability];

/// Flags that only some parts read.
fn flags_of_parts(flags: &Sources, parts: &BTreeSet<PartName>, wrong: &mut Vec<String>) {
    for (flag, is_given, of) in [
        ("--ocm-auto-approve-users", !flags.ocm_auto_approve_users.is_empty(), &[PartName::OcmRegistration][..]),
        // If one part does not report it, the other must not wait for it.
        ("--rollout-needs-rules", flags.rollout_needs_rules, &[PartName::ReplicaSets, PartName::Manifestworks][..]),
        ("--rival-namespaces", !flags.rival_namespaces.is_empty(), &STAND_BY[..]),
    ] {
        if is_given && !of.iter().any(|part| parts.contains(part)) {
            let of: Vec<String> = of.iter().map(|part| format!("--enable={}", part.as_str())).collect();
            wrong.push(format!("{flag} has no effect without {}", of.join(" or ")));
        }
    }
}

/// The ServiceAccount that Argo CD uses, in its own namespace.
const ARGOCD_ACCOUNT: &str = "cluster-gateway-argocd";

fn argocd(flags: &Sources, parts: &BTreeSet<PartName>, wrong: &mut Vec<String>) -> Option<Argocd> {
    let namespace = flags.argocd_namespace.clone().filter(|namespace| !namespace.is_empty());
    if flags.argocd_service_account.is_some() && !parts.contains(&PartName::Argocd) {
        wrong.push("--argocd-service-account has no effect without --enable=argocd".to_owned());
    }
    match (namespace, parts.contains(&PartName::Argocd)) {
        (None, false) => None,
        (Some(_), false) => {
            wrong.push("--argocd-namespace has no effect without --enable=argocd".to_owned());
            None
        }
        (None, true) => {
            wrong.push("--argocd-namespace is required for argocd: the namespace that Argo CD runs in".to_owned());
            None
        }
        (Some(namespace), true) => {
            let text = flags.argocd_service_account.as_deref().unwrap_or(ARGOCD_ACCOUNT);
            let account = text.split_once('/').unwrap_or((&namespace, text));
            let account = (account.0.to_owned(), account.1.to_owned());
            if account.0.is_empty() || account.1.is_empty() || account.1.contains('/') {
                wrong.push(format!("--argocd-service-account={text}: write NAME, or NAMESPACE/NAME"));
            }
            Some(Argocd { namespace, account })
        }
    }
}

/// A connection to the hub takes this many streams; more would only wait there.
const MOST_REQUESTS: usize = 10_000;

fn delivery(flags: &DeliveryFlags, is_enabled: bool, wrong: &mut Vec<String>) -> Delivery {
    let numbers = [("--requests-per-cluster", flags.requests_per_cluster), ("--requests", flags.requests)];
    for (flag, number) in numbers {
        if !(1..=MOST_REQUESTS).contains(&number) {
            wrong.push(format!("{flag} must be from 1 to {MOST_REQUESTS}"));
        }
    }
    for (flag, duration) in [("--timeout", flags.timeout), ("--resync", flags.resync)] {
        if duration < Duration::from_secs(1) {
            wrong.push(format!("{flag} must be a second at least"));
        }
    }
    if !is_enabled && (flags.hub_url.is_some() || flags.require_executor || flags.raw_feedback) {
        let flags = "--hub-url, --require-executor and --raw-feedback";
        wrong.push(format!("{flags} have no effect without --enable=manifestworks"));
    }
    if flags.hub_url.as_deref().is_some_and(|url| !url.starts_with("https://")) {
        wrong.push("--hub-url must begin with https://".to_owned());
    }
    Delivery {
        hub_url: flags.hub_url.clone(),
        requests_per_cluster: flags.requests_per_cluster,
        requests: flags.requests,
        timeout: flags.timeout,
        resync: flags.resync,
        is_executor_required: flags.require_executor,
        is_feedback_raw: flags.raw_feedback,
    }
}

fn gateway(hub: &HubFlags, wrong: &mut Vec<String>) -> Gateway {
    for (flag, file) in [("--gateway-ca-file", &hub.gateway_ca_file), ("--gateway-token-file", &hub.gateway_token_file)]
    {
        if file.is_some() && hub.gateway_url.is_none() {
            wrong.push(format!("{flag} has no effect without --gateway-url"));
        }
    }
    let (ca_file, token_file) = (hub.gateway_ca_file.clone(), hub.gateway_token_file.clone());
    Gateway { url: hub.gateway_url.clone(), ca_file, token_file }
}

fn templates(texts: &[String], wrong: &mut Vec<String>) -> HashMap<SourceName, Template> {
    let mut templates = HashMap::new();
    for text in texts {
        let flag = format!("--name-template={text}");
        let Some((source, template)) = text.split_once('=') else {
            wrong.push(format!("{flag}: write SOURCE=TEMPLATE, for example capi={{namespace}}.{{name}}"));
            continue;
        };
        match (SourceName::from_str(source, false), Template::parse(template)) {
            (Err(_), _) => wrong.push(format!("{flag}: {source} is not a source")),
            (_, Err(invalid)) => wrong.push(format!("{flag}: {invalid}")),
            (Ok(SourceName::Karmada | SourceName::Ocm), Ok(template)) if template.has_namespace() => {
                wrong.push(format!("{flag}: objects of {source} are in no namespace: omit {{namespace}}"));
            }
            (Ok(source), Ok(template)) => {
                if templates.insert(source, template).is_some() {
                    wrong.push(format!("{flag}: {} has two templates", source.as_str()));
                }
            }
        }
    }
    templates
}

fn providers(file: Option<&Path>, is_enabled: bool, wrong: &mut Vec<String>) -> Providers {
    let flag = "--clusterprofile-import-providers-file";
    let Some(file) = file else {
        if is_enabled {
            wrong.push(format!(
                "{flag} is required for clusterprofile-import: it names the credential plugins for profiles"
            ));
        }
        return Providers::default();
    };
    let read = std::fs::read(file).map_err(|error| error.to_string());
    read.and_then(|text| Providers::parse(&text).map_err(|invalid| invalid.to_string())).unwrap_or_else(|why| {
        wrong.push(format!("{flag}={}: {why}", file.display()));
        Providers::default()
    })
}

fn rules(args: &Args, wrong: &mut Vec<String>) -> Rules {
    let mut denied = Vec::new();
    for text in args.rules.deny_endpoints.iter().filter(|text| !text.is_empty()) {
        match text.parse() {
            Ok(network) => denied.push(network),
            Err(_) => wrong.push(format!("--deny-endpoints={text} is not a network: write for example 10.0.0.0/8")),
        }
    }
    let gateway = args.hub.gateway_url.iter().map(|url| ("--gateway-url", url));
    let more = args.rules.own_endpoints.iter().map(|url| ("--own-endpoints", url));
    let own = endpoints::own(gateway.chain(more), wrong);
    Rules {
        exec_commands: args.rules.exec_commands.clone(),
        exec_env: args.rules.exec_env.clone(),
        allow_insecure: args.rules.allow_insecure,
        endpoints: Endpoints { denied, own, ..Endpoints::default() },
    }
}
