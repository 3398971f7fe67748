//! A real hub for the gateways that need one: etcd, kube-apiserver, its controllers.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use hub_tests::control_plane::{self, Etcd};
use hub_tests::hub::{Hub, MemberSecret};
use hub_tests::tools::{Tool, Tools};
use kit::pki::Authority;

use crate::usage::Tree;

const TOOLS: [Tool; 4] = [Tool::Etcd, Tool::ApiServer, Tool::ControllerManager, Tool::Kubectl];
/// What callers of a proxy may do.
const VERBS: [&str; 5] = ["get", "create", "update", "patch", "delete"];

pub struct HubSide {
    pub hub: Hub,
    pub etcd: Etcd,
    /// Of a ServiceAccount that may use every cluster.
    pub token: String,
    /// For a gateway's own account.
    pub kubeconfig: PathBuf,
}

// === impl HubSide ===

impl HubSide {
    pub fn start(directory: &Path) -> Result<Self> {
        let tools = Tools::only(&TOOLS).context("the hub's programs")?;
        let ground = control_plane::Ground { tools, directory: directory.to_path_buf() };
        let etcd = Etcd::start(&ground)?;
        let mut hub = Hub::start(&ground, &etcd)?;
        hub.wait_ready().context("the hub did not come up")?;
        let token = hub.create_user("bench", &[], &VERBS)?;
        let kubeconfig = hub.create_gateway_account()?;
        Ok(Self { hub, etcd, token, kubeconfig })
    }

    /// Registers the cluster `name` at `url`, whose certificate is of `authority`; `token` is what it is asked with.
    pub fn register(&self, name: &str, url: &str, authority: &Authority, token: &str) -> Result<()> {
        let secret = MemberSecret::with_token(&self.hub.server, token).at(url).trusting(authority);
        self.hub.register_member(name, &secret)
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
