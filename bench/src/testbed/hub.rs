//! A real hub for the gateways that need one: etcd, kube-apiserver, its controllers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use hub_tests::control_plane::{self, Etcd};
use hub_tests::hub::{Hub, MemberSecret};
use hub_tests::tools::{Tool, Tools};
use hub_tests::wait;
use kit::pki::Authority;
use serde_json::{Value, json};

use harness::usage::Tree;

const TOOLS: [Tool; 4] = [Tool::Etcd, Tool::ApiServer, Tool::ControllerManager, Tool::Kubectl];
/// Verbs that callers of a proxy may use.
pub const VERBS: [&str; 5] = ["get", "create", "update", "patch", "delete"];

/// Limit for kinds to be served.
const SERVED: Duration = Duration::from_secs(30);

/// The caller: namespace and name of a ServiceAccount.
pub const CALLER: (&str, &str) = ("default", "bench");

pub struct HubSide {
    pub hub: Hub,
    pub etcd: Etcd,
    /// Token of a ServiceAccount that may use every cluster.
    pub token: String,
    /// Kubeconfig of a gateway's own account.
    pub kubeconfig: PathBuf,
}

// === impl HubSide ===

impl HubSide {
    pub fn start(directory: &Path) -> Result<Self> {
        let tools = Tools::only(&TOOLS).context("the hub's programs")?;
        let testbed = control_plane::Launcher { tools, directory: directory.to_path_buf() };
        let etcd = Etcd::start(&testbed)?;
        let mut hub = Hub::start(&testbed, &etcd)?;
        hub.wait_ready().context("the hub did not come up")?;
        let token = hub.create_user(CALLER.1, &[], &VERBS)?;
        let kubeconfig = hub.create_gateway_account()?;
        Ok(Self { hub, etcd, token, kubeconfig })
    }

    /// Registers the cluster `name` at `url`, whose certificate is of `authority`, with the
    /// credential `token`.
    pub fn register(&self, name: &str, url: &str, authority: &Authority, token: &str) -> Result<()> {
        let secret = MemberSecret::with_token(&self.hub.server, token).at(url).trusting(authority);
        self.hub.register_member(name, &secret)
    }

    /// Installs kinds (YAML) and waits until the hub serves them.
    pub fn install(&self, kinds: &str) -> Result<()> {
        let kubectl = self.hub.server.kubectl();
        kubectl.args(["apply", "--server-side", "-f", "-"]).stdin(kinds).run()?.success()?;
        // A kind that is so new that it has no status is an error to kubectl.
        wait::until("the kinds to be served", SERVED, || {
            kubectl.ok("wait --for=condition=Established crd --all --timeout=30s").map(drop)
        })
    }

    /// Lets a ServiceAccount (namespace, name) do what `rules` say, by a `ClusterRole` and a
    /// `ClusterRoleBinding` called `name`.
    pub fn grant(&self, name: &str, account: (&str, &str), rules: &Value) -> Result<()> {
        const GROUP: &str = "rbac.authorization.k8s.io";
        let version = format!("{GROUP}/v1");
        let metadata = json!({"name": name});
        let role = json!({"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": rules});
        let binding = json!({
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "namespace": account.0, "name": account.1}],
        });
        self.hub.apply(&[role, binding])
    }

    /// The hub's API server.
    pub fn tree(&self) -> Tree {
        Tree::new([self.hub.server.process_id()])
    }
}

impl Drop for HubSide {
    /// Both at the same time; each one's own drop then waits.
    fn drop(&mut self) {
        self.hub.release();
        self.etcd.release();
    }
}
