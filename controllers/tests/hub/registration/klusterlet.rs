//! Upstream's agent as it is, whose hub has none of upstream's controllers.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hub_tests::ports;
use hub_tests::process::Process;
use hub_tests::testbed::Testbed;
use hub_tests::tools::{self, Tool};
use hub_tests::wait;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Registration, accept, condition, exists, get, wait_condition};
use crate::fixture::{SOON, apply, namespace};

const NAME: &str = "klusterlet1";
const ACCEPTED: &str = "HubAcceptedManagedCluster";
const AVAILABLE: &str = "ManagedClusterConditionAvailable";
/// Of the Lease, so that silence is not long.
const SECONDS: u64 = 2;
/// The agent asks its hub every few seconds.
const AGENT: Duration = Duration::from_mins(1);

pub fn joins(testbed: &Testbed) -> Result<()> {
    let _registration = Registration::start(testbed, "klusterlet-place")?;
    let hub = testbed.hub.server.kubectl();
    let mut agent = start(testbed)?;
    let request = wait::until("its request", AGENT, || {
        agent.check()?;
        let all = get(testbed, &format!("csr -l open-cluster-management.io/cluster-name={NAME}"))?;
        all["items"][0]["metadata"]["name"].as_str().map(str::to_owned).context("none yet")
    })?;
    // Neither yes: it has nothing, and nobody approves for whom nobody trusts.
    ensure!(!exists(testbed, &format!("namespace {NAME}"))?);
    wait::until("an Event", SOON, || crate::fixture::event(testbed, "default", &request, "RequestNotApproved"))?;
    hub.ok(&format!("certificate approve {request}"))?;
    wait::until_true("the certificate", SOON, || {
        Ok(get(testbed, &format!("csr {request}"))?["status"]["certificate"].is_string())
    })?;
    ensure!(condition(testbed, NAME, "ManagedClusterJoined").is_err(), "it joined with one yes");
    accept(testbed, NAME, true)?;
    wait_condition(testbed, NAME, ACCEPTED, "True/HubClusterAdminAccepted")?;
    wait::until("it to join", AGENT, || {
        agent.check()?;
        condition(testbed, NAME, "ManagedClusterJoined").and_then(|found| {
            ensure!(found.starts_with("True"), "{found}");
            Ok(())
        })
    })
    .with_context(|| agent.log_tail())?;
    let annotations = &get(testbed, &format!("managedcluster {NAME}"))?["metadata"]["annotations"];
    ensure!(annotations["cluster.core.oam.dev/delivery"].is_null(), "it has an agent: {annotations}");
    wait_available(testbed, &agent)?;
    beats(testbed)?;
    dies_and_comes_back(testbed, &mut agent)?;
    testbed.hub.server.delete(&format!("managedcluster {NAME}"))
}

fn wait_available(testbed: &Testbed, agent: &Process) -> Result<()> {
    wait::until("it to be available without taints", AGENT, || {
        let found = condition(testbed, NAME, AVAILABLE)?;
        let taints = get(testbed, &format!("managedcluster {NAME}"))?["spec"]["taints"].clone();
        ensure!(found == "True/ManagedClusterAvailable", "{found}");
        ensure!(taints.as_array().is_none_or(Vec::is_empty), "{taints}");
        Ok(())
    })
    .with_context(|| agent.log_tail())
}

fn beats(testbed: &Testbed) -> Result<()> {
    let patch = json!({"spec": {"leaseDurationSeconds": SECONDS}});
    testbed.hub.server.patch(&format!("managedcluster {NAME}"), &patch)?;
    let renewed = || Ok(get(testbed, &format!("lease managed-cluster-lease -n {NAME}"))?["spec"]["renewTime"].clone());
    let before: Result<Value> = renewed();
    let before = before?;
    wait::until_true("its Lease to beat", AGENT, || renewed().map(|now: Value| now != before))
}

fn dies_and_comes_back(testbed: &Testbed, agent: &mut Process) -> Result<()> {
    agent.stop()?;
    let died = Instant::now();
    wait_condition(testbed, NAME, AVAILABLE, "Unknown/ManagedClusterLeaseUpdateStopped")?;
    let grace = Duration::from_secs(5 * SECONDS);
    ensure!(died.elapsed() < grace + Duration::from_secs(1), "it was told {:?} after its end", died.elapsed());
    wait::until_true("the taint", SOON, || {
        let taints = get(testbed, &format!("managedcluster {NAME}"))?["spec"]["taints"].clone();
        Ok(taints[0]["key"] == "cluster.open-cluster-management.io/unreachable")
    })?;
    agent.start_again()?;
    wait_available(testbed, agent)
}

fn start(testbed: &Testbed) -> Result<Process> {
    let member = &testbed.member.server;
    let file = tools::kinds("open-cluster-management.io/api", &["cluster/v1alpha1/0000_02_clusters"])?;
    member.apply_text(&file)?;
    member.apply(&[namespace("open-cluster-management-agent")])?;
    let directory = testbed.directory("klusterlet")?;
    let hub_directory = directory.join("hub");
    std::fs::create_dir_all(&hub_directory)?;
    let bootstrap = bootstrap(testbed, "klusterlet-place", directory.join("bootstrap.kubeconfig"))?;
    let arguments = [
        "agent".to_owned(),
        format!("--kubeconfig={}", member.kubectl().kubeconfig.display()),
        format!("--spoke-cluster-name={NAME}"),
        format!("--bootstrap-kubeconfig={}", bootstrap.display()),
        format!("--hub-kubeconfig-dir={}", hub_directory.display()),
        format!("--spoke-external-server-urls={}", testbed.member.server.url()),
        format!("--listen=127.0.0.1:{}", ports::free()?),
        "--namespace=open-cluster-management-agent".to_owned(),
        "--cluster-healthcheck-period=2s".to_owned(),
        "--disable-leader-election".to_owned(),
    ];
    Process::start("klusterlet", &tools::provide(Tool::OcmRegistration)?, arguments, &directory)
}

/// Of a user of `place` whom the part does not trust: both yeses are a person's.
pub fn bootstrap(testbed: &Testbed, place: &str, path: PathBuf) -> Result<PathBuf> {
    let account = "stranger";
    let token = testbed.hub.server.service_account_token(place, account)?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("open-cluster-management:bootstrap:{place}:stranger")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "open-cluster-management:bootstrap"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": place}],
    });
    apply(testbed, &[binding])?;
    let authority = std::fs::read(testbed.hub.server.authority_file())?;
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {
            "server": testbed.hub.server.url(), "certificate-authority-data": STANDARD.encode(authority)}}],
        "users": [{"name": "it", "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    });
    std::fs::write(&path, kubeconfig.to_string())?;
    Ok(path)
}
