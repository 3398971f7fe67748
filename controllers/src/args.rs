//! The command line.
//!
//! Every flag also reads an environment variable: `CLUSTER_GATEWAY_CONTROLLERS_` and its name in
//! upper case with `_` for `-`. Commas separate the values of repeatable flags there.

mod config;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use api::secret::HARMLESS_VARIABLES;
use clap::builder::PossibleValue;
use clap::{Args as Group, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum};
use register::endpoints::DENIED;
use register::ocm::Reach;
use telemetry::flags::{self, LogFlags, duration};

pub use self::config::{Argocd, Config};
use crate::commands::Command;

/// Registers clusters with a gateway: creates cluster Secrets from objects of other systems, and
/// keeps them up to date.
#[derive(Debug, Parser)]
#[command(name = "cluster-gateway-controllers", version, max_term_width = 120, args_conflicts_with_subcommands = true)]
// A flag given twice has its last value: charts put `extraArgs` behind their own.
#[command(args_override_self = true)]
#[command(after_help = "Each flag is also read from the environment: --secret-namespace from \
                  CLUSTER_GATEWAY_CONTROLLERS_SECRET_NAMESPACE, and so on; commas separate the values of repeatable flags.")]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten, next_help_heading = "Hub")]
    pub hub: HubFlags,
    #[command(flatten, next_help_heading = "Sources and parts")]
    pub sources: Sources,
    #[command(flatten, next_help_heading = "Delivery (manifestworks)")]
    pub delivery: DeliveryFlags,
    #[command(flatten, next_help_heading = "Rules for objects")]
    pub rules: RuleFlags,
    #[command(flatten, next_help_heading = "Process")]
    pub process: Process,
    #[command(flatten, next_help_heading = "Logs")]
    pub logs: LogFlags,
}

#[derive(Debug, Group)]
pub struct HubFlags {
    /// Kubeconfig of the hub (default in a pod: the pod's cluster)
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of the cluster Secrets
    #[arg(long, default_value = "vela-system", value_name = "NAMESPACE")]
    pub secret_namespace: String,
    /// URL of the gateway. Members are reached through it, and a cluster at that URL is never
    /// registered (default: the hub's aggregated API)
    #[arg(long, value_name = "URL")]
    pub gateway_url: Option<String>,
    /// PEM file of the CA that verifies --gateway-url's certificate (default: the hub's)
    #[arg(long, value_name = "FILE")]
    pub gateway_ca_file: Option<PathBuf>,
    /// File of the token to send to --gateway-url (default: the credential for the hub)
    #[arg(long, value_name = "FILE")]
    pub gateway_token_file: Option<PathBuf>,
}

#[derive(Debug, Group)]
pub struct Sources {
    /// Sources to register clusters from, and parts that do more for registered clusters;
    /// repeatable. None by default
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',')]
    pub enable: Vec<Enabled>,
    /// Namespaces to read objects of capi, kubeconfig and clusterprofile-import from; repeatable
    /// (default: all)
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub watch_namespaces: Vec<String>,
    /// Template of the names of a source's clusters, with {namespace} and {name}; repeatable
    /// (default: {name})
    #[arg(long, value_name = "SOURCE=TEMPLATE", value_delimiter = ',')]
    pub name_template: Vec<String>,
    /// Reserved names: no cluster may be called NAME or NAME-…, because other Secrets in the
    /// clusters' namespace have such names; repeatable
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "cluster-gateway,tunnel-agent")]
    pub reserved_names: Vec<String>,
    /// Labels of the Secrets that the source kubeconfig reads
    #[arg(long, default_value = "cluster.core.oam.dev/kubeconfig=true", value_name = "SELECTOR")]
    pub kubeconfig_selector: String,
    /// Kubeconfig of Karmada's control plane (default: the hub)
    #[arg(long, value_name = "FILE")]
    pub karmada_kubeconfig: Option<PathBuf>,
    /// Namespace of `KubeFed`'s clusters
    #[arg(long, default_value = "kube-federation-system", value_name = "NAMESPACE")]
    pub kubefed_namespace: String,
    /// Name of the `ManagedServiceAccount` whose token the gateway uses for a `ManagedCluster`
    #[arg(long, default_value = "cluster-gateway", value_name = "NAME")]
    pub ocm_credential: String,
    /// Users whose first certificate request for a `ManagedCluster` accepts it automatically;
    /// repeatable. Only for ocm-registration
    #[arg(long, value_name = "USER", value_delimiter = ',')]
    pub ocm_auto_approve_users: Vec<String>,
    /// How to reach a `ManagedCluster`: auto, direct or tunnel. auto uses the tunnel if the
    /// `ManagedCluster` has no address
    #[arg(long, default_value = "auto", value_name = "MODE")]
    pub ocm_endpoint: Reach,
    /// File with the credential plugins for other managers' `ClusterProfiles`, in the format of the
    /// SIG's library
    #[arg(long, value_name = "FILE")]
    pub clusterprofile_import_providers_file: Option<PathBuf>,
    /// Namespaces to publish a `ClusterProfile` for every registered cluster into; repeatable
    /// (default: --secret-namespace)
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub clusterprofile_namespaces: Vec<String>,
    /// Parts that run even while OCM's controllers hold their Lease: placement, replica-sets;
    /// repeatable
    #[arg(long, value_enum, value_name = "PART", value_delimiter = ',')]
    pub never_stand_by: Vec<StandsBy>,
    /// Namespaces in which a Lease of OCM's controllers makes a part stand by; repeatable.
    /// placement and replica-sets look only there (default: everywhere); ocm-registration and
    /// availability look there and in namespaces whose name begins with open-cluster-management
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub rival_namespaces: Vec<String>,
    /// Continue a rollout of a `ManifestWorkReplicaSet` only if a condition rule sets Progressing,
    /// as OCM does. manifestworks then sets no Progressing itself (default: works without such a
    /// rule have finished when they are applied and available)
    #[arg(long)]
    pub rollout_needs_rules: bool,
    /// Namespace of Argo CD, where argocd writes a Secret for each accepted `ManagedCluster`;
    /// required for argocd
    #[arg(long, value_name = "NAMESPACE")]
    pub argocd_namespace: Option<String>,
    /// `ServiceAccount` of the hub whose token Argo CD uses for members, in Argo CD's namespace
    /// or as NAMESPACE/NAME (default: cluster-gateway-argocd)
    #[arg(long, value_name = "NAME")]
    pub argocd_service_account: Option<String>,
    /// Removals allowed per source and minute; more wait for 10 minutes. A tenth of the source's
    /// clusters may always be removed. placement applies the limit to clusters, sets and bindings,
    /// argocd to its Secrets
    #[arg(long, default_value_t = 20, value_name = "NUMBER")]
    pub source_removal_limit: usize,
}

#[derive(Debug, Group)]
pub struct DeliveryFlags {
    /// URL of the hub that agents use. Its hash identifies what this hub applied on members, so
    /// that agents and these controllers can take over from each other (default: the UID of the
    /// hub's Namespace kube-system)
    #[arg(long, value_name = "URL")]
    pub hub_url: Option<String>,
    /// Requests to one member at a time
    #[arg(long, default_value_t = 4, value_name = "NUMBER")]
    pub requests_per_cluster: usize,
    /// Requests to all members at a time
    #[arg(long, default_value_t = 256, value_name = "NUMBER")]
    pub requests: usize,
    /// Timeout of one request to a member
    #[arg(long, value_parser = duration, default_value = "30s", value_name = "DURATION")]
    pub timeout: Duration,
    /// Interval between lists of a member's objects that cannot be watched; jitter shortens it by
    /// up to a quarter
    #[arg(long, value_parser = duration, default_value = "4m", value_name = "DURATION")]
    pub resync: Duration,
    /// Deliver no `ManifestWork` that names no executor
    #[arg(long)]
    pub require_executor: bool,
    /// Report lists, maps and fractions that a feedback rule finds as JSON (`JsonRaw`), up to 1024
    /// bytes, as OCM's agent does with the feature gate `RawFeedbackJsonString`
    #[arg(long)]
    pub raw_feedback: bool,
}

#[derive(Debug, Group)]
pub struct RuleFlags {
    /// Programs that kubeconfigs may name in exec, each with the words that its arguments must
    /// begin with (`aws eks get-token`); repeatable. The gateway runs them, and has its own list
    #[arg(long, value_name = "PROGRAM", value_delimiter = ',')]
    pub exec_commands: Vec<String>,
    /// Environment variables that kubeconfigs and `ClusterProfiles` may set for these programs;
    /// repeatable. The gateway has its own list
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = HARMLESS_VARIABLES)]
    pub exec_env: Vec<String>,
    /// Register clusters whose certificate is not verified
    #[arg(long)]
    pub allow_insecure: bool,
    /// Networks that no cluster's address may be in; host names are not resolved; repeatable
    #[arg(long, value_name = "CIDR", value_delimiter = ',', default_value = DENIED)]
    pub deny_endpoints: Vec<String>,
    /// More URLs of the gateway, besides --gateway-url. Clusters at these are refused, because
    /// their requests would return to the gateway; repeatable
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    pub own_endpoints: Vec<String>,
}

#[derive(Debug, Group)]
pub struct Process {
    /// Write only while holding the Lease cluster-gateway-controllers, so that replicas take turns
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, value_name = "BOOL")]
    pub leader_elect: bool,
    /// Address of the admin listener: /livez, /readyz, /metrics and /debug
    #[arg(long, default_value = "127.0.0.1:8097", value_name = "ADDRESS:PORT")]
    pub admin_listen: SocketAddr,
}

/// A source, as flags and labels name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum)]
pub enum SourceName {
    Capi,
    Kubeconfig,
    Karmada,
    Kubefed,
    Ocm,
    ClusterprofileImport,
}

/// What works for clusters, other than by registering them, as flags and labels name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum)]
pub enum PartName {
    OcmRegistration,
    ManagedServiceaccount,
    Clusterprofile,
    Placement,
    ReplicaSets,
    Argocd,
    Manifestworks,
    Availability,
}

/// A part that stands by for other controllers, unless this is turned off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StandsBy {
    Placement,
    ReplicaSets,
}

/// What --enable names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enabled {
    Source(SourceName),
    Part(PartName),
}

/// Parses the process's arguments; prints help or a usage error and ends the process where clap
/// does.
pub fn parse() -> Args {
    flags::of_process(parse_from)
}

/// Parses `arguments`, the first being the program's name.
pub fn parse_from(arguments: impl IntoIterator<Item: Into<OsString> + Clone>) -> Result<Args, clap::Error> {
    let with_environment = |command| flags::with_environment(command, "CLUSTER_GATEWAY_CONTROLLERS_");
    let command = with_environment(Args::command()).mut_subcommands(with_environment);
    Args::from_arg_matches(&command.try_get_matches_from(arguments)?)
}

// === impl SourceName ===

impl SourceName {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Capi => "capi",
            Self::Kubeconfig => "kubeconfig",
            Self::Karmada => "karmada",
            Self::Kubefed => "kubefed",
            Self::Ocm => "ocm",
            Self::ClusterprofileImport => "clusterprofile-import",
        }
    }
}

// === impl PartName ===

impl PartName {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OcmRegistration => "ocm-registration",
            Self::ManagedServiceaccount => "managed-serviceaccount",
            Self::Clusterprofile => "clusterprofile",
            Self::Placement => "placement",
            Self::ReplicaSets => "replica-sets",
            Self::Argocd => "argocd",
            Self::Manifestworks => "manifestworks",
            Self::Availability => "availability",
        }
    }
}

// === impl StandsBy ===

impl StandsBy {
    pub const fn part(self) -> PartName {
        match self {
            Self::Placement => PartName::Placement,
            Self::ReplicaSets => PartName::ReplicaSets,
        }
    }
}

// === impl Enabled ===

impl ValueEnum for Enabled {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Source(SourceName::Capi),
            Self::Source(SourceName::Kubeconfig),
            Self::Source(SourceName::Karmada),
            Self::Source(SourceName::Kubefed),
            Self::Source(SourceName::Ocm),
            Self::Source(SourceName::ClusterprofileImport),
            Self::Part(PartName::OcmRegistration),
            Self::Part(PartName::ManagedServiceaccount),
            Self::Part(PartName::Clusterprofile),
            Self::Part(PartName::Placement),
            Self::Part(PartName::ReplicaSets),
            Self::Part(PartName::Argocd),
            Self::Part(PartName::Manifestworks),
            Self::Part(PartName::Availability),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Source(source) => source.to_possible_value(),
            Self::Part(part) => part.to_possible_value(),
        }
    }
}

#[cfg(test)]
mod tests;
