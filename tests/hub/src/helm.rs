//! helm as a child process, and the charts under test.

mod release;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::kubectl::Invocation;
use crate::tools::{self, Tool};

pub use self::release::{Workload, account_kubeconfig};

/// Kinds that grant an account its rights.
pub const RIGHTS: [&str; 5] = ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];
/// helm has no hub while it renders; this is the version that it assumes.
const KUBE_VERSION: &str = "--kube-version=1.35.4";

/// A chart of this project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chart {
    /// For hubs: the gateway, and the tunnel-server.
    Gateway,
    /// For members: the agent.
    Agent,
}

/// helm for one API server and one chart.
#[derive(Clone, Debug)]
pub struct Helm {
    binary: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
    chart: Chart,
}

// === impl Chart ===

impl Chart {
    /// Its directory.
    pub fn directory(self) -> PathBuf {
        let name = match self {
            Self::Gateway => "cluster-gateway",
            Self::Agent => "tunnel-agent",
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts").join(name)
    }
}

// === impl Helm ===

impl Helm {
    /// helm with the gateway's chart for the hub of `kubeconfig`, which rendering and linting do
    /// not read; its own files go below `directory`.
    pub fn prepare(directory: &Path, kubeconfig: &Path) -> Result<Self> {
        let home = directory.join("helm");
        std::fs::create_dir_all(&home)?;
        Ok(Self {
            binary: tools::provide(Tool::Helm)?,
            kubeconfig: kubeconfig.to_path_buf(),
            home,
            chart: Chart::Gateway,
        })
    }

    /// The same with another chart.
    #[must_use]
    pub fn with(&self, chart: Chart) -> Self {
        Self { chart, ..self.clone() }
    }

    /// A command line.
    pub fn args<A: AsRef<str>>(&self, args: impl IntoIterator<Item = A>) -> Invocation {
        let command = Invocation::new("helm", &self.binary, &self.kubeconfig, &self.home, args);
        // These would take precedence over its home for settings and plugins of the user.
        ["HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME"]
            .into_iter()
            .fold(command, |command, variable| command.env(variable, &self.home.to_string_lossy()))
    }

    /// Runs `command` (one or more words) on the chart in `namespace` with more arguments; a
    /// failure is an error.
    pub fn on_chart(&self, command: &str, namespace: &str, more: &[String]) -> Result<String> {
        let chart = self.chart.directory().to_string_lossy().into_owned();
        let words = command.split(' ').map(str::to_owned);
        let words = words.chain([chart, format!("--namespace={namespace}")]).chain(more.iter().cloned());
        self.args(words).run()?.success().with_context(|| format!("helm {command} {}", more.join(" ")))
    }

    /// The objects that the chart renders, without a hub unless `more` has `--dry-run=server`, for
    /// the hub version of the last `--kube-version`.
    pub fn template(&self, release: &str, namespace: &str, more: &[String]) -> Result<Vec<Value>> {
        let more = [&[KUBE_VERSION.to_owned()], more].concat();
        parse(&self.on_chart(&format!("template {release}"), namespace, &more)?)
    }
}

/// Those of `objects`, rendered for `namespace`, that grant an account its rights, with the fields
/// that helm fills in.
pub fn rights(objects: &[Value], namespace: &str) -> Vec<Value> {
    let kind = |object: &Value| object["kind"].as_str().and_then(|kind| RIGHTS.iter().find(|right| **right == kind));
    let given = objects.iter().filter_map(|object| Some((kind(object)?, object.clone())));
    let complete = |(kind, mut object): (&&str, Value)| {
        if !kind.starts_with("Cluster") && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = namespace.into();
        }
        object
    };
    given.map(complete).collect()
}

/// The documents of a YAML stream.
pub fn parse(text: &str) -> Result<Vec<Value>> {
    serde_saphyr::from_multiple(text).with_context(|| format!("not YAML: {text}"))
}
