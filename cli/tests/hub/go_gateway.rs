//! Tests `kubectl clusters` on a real hub with the Go gateway (oam-dev/cluster-gateway), and with a
//! real member. `../go_gateway.rs` has what it answers when members fail.

mod failing;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::control_plane::{Etcd, Launcher};
use hub_tests::hub::{GATEWAY_HOST, Hub, SECRET_NAMESPACE};
use hub_tests::kubectl::Kubectl;
use hub_tests::process::Process;
use hub_tests::scratch::Scratch;
use hub_tests::testbed::Testbed;
use hub_tests::tools::{Tool, provide};
use hub_tests::{load, ports, wait};
use kit::pki::{Authority, Leaf};
use libtest_mimic::Trial;
use serde_json::json;

use crate::fixture::{Fixture, clusters_as, ended, is_void, member, registered, test, tokens};

const LIMIT: Duration = Duration::from_secs(30);
/// Time for the hub to find a gateway available.
const AVAILABLE: Duration = Duration::from_mins(1);
const JOIN: &str = "--rights view --account-namespace cli-lund";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(
        fixture,
        "go_gateway::a member is joined, used, rotated, renamed and leaves nothing behind; hops fail",
        whole_life,
    )]
}

/// A hub of its own, because a hub can have only one gateway.
struct GoHub<'a> {
    testbed: &'a Testbed,
    gateway: Process,
    hub: Hub,
    _etcd: Etcd,
    launcher: Launcher,
    _scratch: Scratch,
}

// === impl GoHub ===

impl<'a> GoHub<'a> {
    fn start(testbed: &'a Testbed) -> Result<Self> {
        let scratch = Scratch::create()?;
        let launcher = Launcher { tools: testbed.launcher().tools.clone(), directory: scratch.path().to_path_buf() };
        let etcd = Etcd::start(&launcher)?;
        let mut hub = Hub::start(&launcher, &etcd)?;
        hub.wait_ready()?;
        let gateway = start_gateway(&launcher, &hub)?;
        available(&hub).with_context(|| gateway.log_tail())?;
        Ok(Self { testbed, gateway, hub, _etcd: etcd, launcher, _scratch: scratch })
    }

    fn program(&self) -> Kubectl {
        clusters_as(self.testbed, &self.hub.server.kubectl().kubeconfig)
    }

    fn ended(&self, line: &str, code: i32) -> Result<String> {
        let output = ended(&self.program(), line, code)?;
        Ok(format!("{}{}", output.stdout, output.stderr))
    }

    /// Checks that the output of a command line has these parts.
    fn says(&self, line: &str, code: i32, parts: &[&str]) -> Result<()> {
        let told = self.ended(line, code)?;
        for part in parts {
            ensure!(told.contains(part), "`{line}`: {part}: {told}");
        }
        Ok(())
    }

    fn join(&self, endpoint: &str) -> String {
        format!("join lund {JOIN} {} --endpoint {endpoint}", member(self.testbed))
    }

    fn registered(&self) -> Result<String> {
        registered(&self.hub.server, "lund")
    }

    /// The objects on hub and member that have the cluster's name.
    fn objects(&self) -> Result<Vec<String>> {
        let kinds = "secrets,serviceaccounts,clusterroles,clusterrolebindings";
        let hub = self.hub.server.names(&format!("{kinds} -n {SECRET_NAMESPACE}"))?;
        let member = self.testbed.member.server.names("clusterroles,clusterrolebindings,namespaces")?;
        Ok(hub.into_iter().chain(member).filter(|name| name.contains("lund")).collect())
    }
}

/// Waits until the hub finds its gateway available.
fn available(hub: &Hub) -> Result<()> {
    hub.server.wait_for("apiservice v1alpha1.cluster.core.oam.dev", "Available", AVAILABLE)
}

/// Starts the Go gateway, with the rights that its chart gives it.
fn start_gateway(launcher: &Launcher, hub: &Hub) -> Result<Process> {
    let kubeconfig = hub.create_gateway_account()?;
    let rule =
        |group: &str, name: &str| json!({"apiGroups": [group], "resources": [name], "verbs": ["get", "list", "watch"]});
    let rules =
        [rule("", "namespaces"), rule("admissionregistration.k8s.io", "*"), rule("flowcontrol.apiserver.k8s.io", "*")];
    let group = "rbac.authorization.k8s.io";
    let metadata = json!({"name": "go-gateway"});
    let subject = json!({"kind": "ServiceAccount", "name": "gateway", "namespace": SECRET_NAMESPACE});
    hub.apply(&[
        json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": metadata, "rules": rules}),
        json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "go-gateway"}, "subjects": [subject]}),
    ])?;
    let authority = Authority::new("go-gateway-ca");
    let serving = authority.issue(&Leaf::server("go-gateway").san(GATEWAY_HOST));
    let serving = serving.write_to(&launcher.directory, "go-gateway")?;
    let (port, kubeconfig) = (ports::free()?, kubeconfig.display());
    let process = Process::start(
        "go-gateway",
        &provide(Tool::GoGateway)?,
        [
            format!("--secure-port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            format!("--secret-namespace={SECRET_NAMESPACE}"),
            format!("--tls-cert-file={}", serving.certificate.display()),
            format!("--tls-private-key-file={}", serving.key.display()),
        ],
        Path::new(&launcher.directory),
    )?;
    hub.register_gateway(port, &authority)?;
    Ok(process)
}

fn whole_life(testbed: &Testbed) -> Result<()> {
    let go = GoHub::start(testbed)?;
    no_agents(&go)?;
    joined(&go)?;
    used(&go)?;
    rotated(&go)?;
    gone(&go)?;
    failing::probed(go)
}

/// The Go gateway links no agents, and the program says so before it creates anything.
fn no_agents(go: &GoHub<'_>) -> Result<()> {
    let line = format!("join lund {JOIN} {} --tunnel --server 127.0.0.1:1", member(go.testbed));
    go.says(&line, 1, &["the Go cluster-gateway, which links no agents", "remedy: ", "without --tunnel"])?;
    ensure!(go.objects()?.is_empty(), "{:?}", go.objects()?);
    Ok(())
}

/// Joins halfway at first, with an endpoint where nothing listens.
fn joined(go: &GoHub<'_>) -> Result<()> {
    let nowhere = format!("https://127.0.0.1:{}", ports::free()?);
    let half = ["lund is registered, but the gateway could not use it", "connection refused", "remedy: "];
    go.says(&format!("{} --wait 1s", go.join(&nowhere)), 1, &half)?;
    go.says("list -o wide", 0, &["Failed", "connection refused"])?;
    go.says("probe lund", 1, &["✗ member", "connection refused", "remedy: "])?;
    let first = go.registered()?;
    let joined = ["cluster lund joined", "as system:serviceaccount:cli-lund:lund"];
    go.says(&go.join(&go.testbed.member.server.url()), 0, &joined)?;
    ensure!(go.registered()? == first, "the second try made another token");
    ensure!(!is_void(&go.testbed.member.server, &first)?, "the registered token is nobody's");
    let hub = go.hub.server.kubectl().kubeconfig;
    let another = format!("join lund --member-kubeconfig {} --rights view --endpoint https://10.0.0.7", hub.display());
    go.says(&another, 2, &["is taken", "remedy: "])
}

fn used(go: &GoHub<'_>) -> Result<()> {
    go.says("list -o wide", 0, &["lund   ", "Ready", "v1.3", "ServiceAccountToken", "never"])?;
    go.says("check lund", 0, &["✓ APIService v1alpha1.cluster.core.oam.dev", "✓ lund: Kubernetes v1.", "0 failed"])?;
    let hops = ["✓ gateway", "✓ registration", "✓ member", "accepted, as system:serviceaccount:cli-lund:lund"];
    go.says("probe lund", 0, &hops)?;
    go.says("get namespaces --all", 0, &["lund", "kube-system"])?;
    go.says("get secrets lund", 1, &["cannot list resource \"secrets\""])?;
    go.says("label lund env=test", 0, &[])?;
    go.says("alias lund Lund", 0, &[])?;
    go.says("list -l env=test", 0, &["lund", "Lund"])?;
    // The Go gateway does not select clusters itself.
    ensure!(!go.ended("list -l env=other -o name", 0)?.contains("lund"), "of another label");
    go.says("exec-each -l env=other -- true", 1, &["no cluster matches"])
}

/// Rotates without a failed request.
fn rotated(go: &GoHub<'_>) -> Result<()> {
    let server = &go.testbed.member.server;
    let old = go.registered()?;
    let path = format!("{}/api/v1/namespaces", Testbed::proxy_path("lund"));
    load::beside(&go.hub.server, &path, || {
        let line = format!("rotate lund {} --grace 2s", member(go.testbed));
        go.says(&line, 0, &["lund: rotated, 1 old token ended"])?;
        // API servers remember for seconds that a token was valid.
        wait::until_true("the old token to be void", LIMIT, || is_void(server, &old))
    })?;
    let new = go.registered()?;
    ensure!(new != old && !is_void(server, &new)?, "no new token");
    ensure!(tokens(server, "cli-lund")?.len() == 1, "a token is left over");
    go.says("get namespaces lund", 0, &["kube-system"])
}

fn gone(go: &GoHub<'_>) -> Result<()> {
    go.says("rename lund lund-1", 0, &[])?;
    go.says("get namespaces lund-1", 0, &["kube-system"])?;
    // The registered credential may not revoke itself.
    go.says("detach lund-1 --yes", 1, &["is forbidden", "remedy: "])?;
    go.says(&format!("detach lund-1 {} --yes", member(go.testbed)), 0, &["cluster lund-1 detached"])?;
    wait::until_true("hub and member to be as they were", LIMIT, || Ok(go.objects()?.is_empty()))?;
    go.says("probe lund-1", 1, &["✗ registration", "not found", "join lund-1"])
}
