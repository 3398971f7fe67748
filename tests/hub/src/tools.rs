//! The programs of a control plane, and kubectl: built from Go modules that are pinned in
//! `tools/<set>/go.mod`, once per version.
//!
//! Binaries are kept in `<target>/hub-tools/<set>-<hash of what they are built from>/bin`, so
//! another version is another directory and nothing stale is ever run. Files that
//! `KUBEBUILDER_ASSETS` has (the field's convention: etcd, kube-apiserver, kubectl) are taken from
//! there instead.

mod build;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use self::build::Set;

/// The module of the SIG's `ClusterProfile`.
const INVENTORY: &str = "sigs.k8s.io/cluster-inventory-api";
/// The set with upstream's kinds only: they are of a later release than its programs.
const KINDS: &str = "ocm-kinds";
/// The set with `KubeFed`'s kinds only.
const KUBEFED: &str = "kubefed";
/// The set with the agent of `ManagedServiceAccounts`, and with the modules that contain its kinds.
const ACCOUNTS: &str = "managed-serviceaccount";
/// The module of Cluster API's managers and kinds.
const CLUSTER_API: &str = "sigs.k8s.io/cluster-api";

/// A program that the tests run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// etcd.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
    /// kubectl.
    Kubectl,
    /// kwok: keeps nodes and pods alive without real ones.
    Kwok,
    /// The kubelet's streaming endpoints, our own program.
    Kubelet,
    /// kubectl of the oldest release that the gateway supports: it has neither aggregated discovery
    /// v2 nor WebSocket.
    KubectlOldest,
    /// client-go's informer as a program, our own.
    Informer,
    /// Kubernetes' parser of requests as a program, our own. It needs no control plane, so
    /// [`Tools`] do not have it: see [`provide`].
    RequestInfo,
    /// helm. Only the tests of charts need it, so [`Tools`] do not have it either.
    Helm,
    /// Prometheus without its web pages and without service discovery. Only for the tests of alerts
    /// and dashboards, like the next.
    Prometheus,
    /// Checks and tests alert rules.
    Promtool,
    /// The whole kubelet. Only for the tests on nodes, like the next four.
    NodeKubelet,
    /// kube-proxy.
    KubeProxy,
    /// `CoreDNS` with the plugins that a cluster needs.
    CoreDns,
    /// Enforces `NetworkPolicies` on a node: only kube-router's code for that.
    Policies,
    /// Open Cluster Management's registration: the klusterlet's agent, and the hub's controllers.
    OcmRegistration,
    /// Open Cluster Management's scheduler of Placements. Only for the tests of the controllers,
    /// like the next.
    OcmPlacement,
    /// Open Cluster Management's agent that applies `ManifestWorks`.
    OcmWork,
    /// Does nothing until it is signalled to end, our own program.
    Pause,
    /// The SIG's example of a client that finds clusters by their `ClusterProfile`. Only for the
    /// tests of those, like the next.
    InventoryExample,
    /// The SIG's credential plugin that reads a token from a Secret.
    SecretReader,
    /// The add-on agent of Open Cluster Management that fills `ManagedServiceAccounts`. Only for
    /// the tests of the controllers.
    AccountAgent,
    /// Cluster API's core manager. Only for the test of its clusters.
    ClusterApi,
    /// Karmada's command line. Only for the tests of its dialect, like the next.
    Karmadactl,
    /// Karmada's aggregated API server.
    KarmadaServer,
    /// The Go cluster-gateway's API server. Only for the tests of `kubectl clusters`, like the
    /// next.
    GoGateway,
    /// The manager of kubectl's plugins.
    Krew,
    /// What tells Prometheus of the state of objects. For the tests on nodes alone.
    StateMetrics,
}

/// Every [`Tool`], ready to be run.
#[derive(Clone, Debug)]
pub struct Tools {
    paths: Vec<(Tool, PathBuf)>,
}

// === impl Tool ===

impl Tool {
    const ALL: [Self; 9] = [
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kubectl,
        Self::Kwok,
        Self::Kubelet,
        Self::KubectlOldest,
        Self::Informer,
    ];

    fn binary(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
            Self::Kubelet | Self::NodeKubelet => "kubelet",
            Self::KubectlOldest => "kubectl-oldest",
            Self::Informer => "informer",
            Self::RequestInfo => "requestinfo",
            Self::Helm => "helm",
            Self::Prometheus => "prometheus",
            Self::Promtool => "promtool",
            Self::KubeProxy => "kube-proxy",
            Self::CoreDns => "coredns",
            Self::Policies => "policies",
            Self::OcmRegistration => "ocm-registration",
            Self::OcmPlacement => "ocm-placement",
            Self::OcmWork => "ocm-work",
            Self::Pause => "pause",
            Self::InventoryExample => "controller-example",
            Self::SecretReader => "secretreader",
            Self::AccountAgent => "managed-serviceaccount",
            Self::ClusterApi => "cluster-api-core",
            Self::Karmadactl => "karmadactl",
            Self::KarmadaServer => "karmada-aggregated-apiserver",
            Self::GoGateway => "go-gateway",
            Self::Krew => "krew",
            Self::StateMetrics => "kube-state-metrics",
        }
    }

    /// The directory under `tools/` whose `go.mod` pins it.
    fn set(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Kwok => "kwok",
            Self::Kubelet => "kubelet",
            Self::KubectlOldest => "kubectl-oldest",
            Self::Informer => "informer",
            Self::RequestInfo => "requestinfo",
            Self::Helm => "helm",
            Self::Prometheus | Self::Promtool => "prometheus",
            Self::NodeKubelet | Self::KubeProxy => "node",
            Self::CoreDns => "coredns",
            Self::Policies => "policies",
            Self::OcmRegistration | Self::OcmPlacement | Self::OcmWork => "ocm",
            Self::Pause => "pause",
            Self::InventoryExample | Self::SecretReader => "inventory",
            Self::AccountAgent => ACCOUNTS,
            Self::ClusterApi => "cluster-api",
            Self::Karmadactl | Self::KarmadaServer => "karmada",
            Self::GoGateway => "go-gateway",
            Self::Krew => "krew",
            Self::StateMetrics => "kube-state-metrics",
            Self::ApiServer | Self::ControllerManager | Self::Scheduler | Self::Kubectl => "kubernetes",
        }
    }

    fn package(self) -> String {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3".to_owned(),
            Self::Kwok => "sigs.k8s.io/kwok/cmd/kwok".to_owned(),
            Self::Kubelet | Self::Informer | Self::RequestInfo | Self::CoreDns | Self::Policies | Self::Pause => {
                ".".to_owned()
            }
            Self::InventoryExample => format!("{INVENTORY}/examples/controller-example"),
            Self::SecretReader => format!("{INVENTORY}/plugins/secretreader/cmd/plugin"),
            Self::KubectlOldest => "k8s.io/kubernetes/cmd/kubectl".to_owned(),
            Self::OcmRegistration => "open-cluster-management.io/ocm/cmd/registration".to_owned(),
            Self::OcmPlacement => "open-cluster-management.io/ocm/cmd/placement".to_owned(),
            Self::OcmWork => "open-cluster-management.io/ocm/cmd/work".to_owned(),
            Self::ClusterApi => format!("{CLUSTER_API}/core"),
            Self::Karmadactl => "github.com/karmada-io/karmada/cmd/karmadactl".to_owned(),
            Self::KarmadaServer => "github.com/karmada-io/karmada/cmd/aggregated-apiserver".to_owned(),
            Self::GoGateway => "github.com/oam-dev/cluster-gateway/cmd/apiserver".to_owned(),
            Self::Krew => "sigs.k8s.io/krew/cmd/krew".to_owned(),
            Self::StateMetrics => "k8s.io/kube-state-metrics/v2".to_owned(),
            Self::Helm => "helm.sh/helm/v3/cmd/helm".to_owned(),
            Self::AccountAgent => "open-cluster-management.io/managed-serviceaccount/cmd".to_owned(),
            Self::Prometheus | Self::Promtool => format!("github.com/prometheus/prometheus/cmd/{}", self.binary()),
            kubernetes => format!("k8s.io/kubernetes/cmd/{}", kubernetes.binary()),
        }
    }
}

/// Finds `tool`, building it if it is missing.
pub fn provide(tool: Tool) -> Result<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let asset = assets.map(|directory| directory.join(tool.binary())).filter(|path| path.is_file());
    match asset {
        Some(path) => Ok(path),
        None => Set::read(tool.set())?.provide(tool.binary(), &tool.package()),
    }
}

/// The directory of a Go module that the set of `tool` requires, for the kinds in its files.
pub fn module(tool: Tool, module: &str) -> Result<PathBuf> {
    Set::read(tool.set())?.module(module)
}

/// A file of upstream's module of `ClusterProfiles`, in the version of the tools.
pub fn inventory_file(path: &str) -> Result<String> {
    let path = module(Tool::InventoryExample, INVENTORY)?.join(path);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// A file of `module`, in the version of the agent of `ManagedServiceAccounts`.
pub fn account_file(of: &str, path: &str) -> Result<String> {
    let path = module(Tool::AccountAgent, of)?.join(path);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Where the files of a Go module with upstream's kinds are.
pub fn kinds_module(of: &str) -> Result<PathBuf> {
    Set::read(KINDS)?.module(of)
}

/// Upstream's kinds, YAML: the files of a Go module whose paths begin so.
pub fn kinds(of: &str, beginnings: &[&str]) -> Result<String> {
    let directory = kinds_module(of)?;
    let mut all = String::new();
    for beginning in beginnings {
        let (folder, start) = beginning.rsplit_once('/').context("a folder")?;
        for kind in files(&directory.join(folder), start, ".crd.yaml")? {
            all.push_str("\n---\n");
            all.push_str(&kind);
        }
    }
    Ok(all)
}

/// `KubeFed`'s kind of clusters, in YAML: one of several in its chart's file.
pub fn kubefed_kind() -> Result<String> {
    let module = Set::read(KUBEFED)?.module("sigs.k8s.io/kubefed")?;
    let path = module.join("charts/kubefed/charts/controllermanager/crds/crds.yaml");
    let all = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let kind = all.split("\n---\n").find(|kind| kind.contains("name: kubefedclusters.core.kubefed.io"));
    kind.map(str::to_owned).with_context(|| format!("no KubeFedCluster in {}", path.display()))
}

/// Cluster API's kinds, in YAML, from the files whose names begin with `beginning`; one by one,
/// since they are large.
pub fn cluster_api_kinds(beginning: &str) -> Result<Vec<String>> {
    let directory = module(Tool::ClusterApi, CLUSTER_API)?.join("core/config/crd/bases");
    files(&directory, beginning, ".yaml")
}

/// The contents of the files in a directory whose names begin and end like this.
fn files(directory: &Path, beginning: &str, end: &str) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(beginning) && name.ends_with(end) {
            all.push(std::fs::read_to_string(&path)?);
        }
    }
    anyhow::ensure!(!all.is_empty(), "no {beginning}*{end} in {}", directory.display());
    Ok(all)
}

// === impl Tools ===

impl Tools {
    /// Finds every tool, building what is missing (minutes on the first run).
    pub fn prepare() -> Result<Self> {
        Self::only(&Tool::ALL)
    }

    /// Finds `tools`, building what is missing, for tests that need no others.
    pub fn only(tools: &[Tool]) -> Result<Self> {
        let paths = tools.iter().map(|&tool| Ok((tool, provide(tool)?))).collect::<Result<_>>()?;
        Ok(Self { paths })
    }

    /// The path of `tool`.
    pub fn path(&self, tool: Tool) -> &Path {
        self.paths.iter().find_map(|(known, path)| (*known == tool).then_some(path)).expect("it was prepared")
    }
}
