//! The README's section on installing, that of the agent's chart on helm alone, and the quick start
//! of delivery, word for word. What they make is what the tests after this one use.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::page::{blocks, commands, section};
use hub_tests::wait;
use node_tests::image::PAUSE;
use node_tests::inventory::{Inventory, LEFT};
use node_tests::load;
use node_tests::operator::Operator;
use node_tests::testbed::Testbed;

const README: &str = include_str!("../../../../README.md");
/// The page of the agent's chart.
const AGENT: &str = include_str!("../../../../charts/tunnel-agent/README.md");
const DELIVERY: &str = include_str!("../../../../docs/delivery.md");
const JOIN: &str = include_str!("../../../../docs/join.md");
const LIMIT: Duration = Duration::from_mins(1);
/// Time for pods of a workload to run, or to end.
const RUN: &str = "--timeout=120s";
/// Number of kinds that delivery needs.
const KINDS: usize = 8;
/// Kubeconfig of the user to whom the README grants access.
const JANE: &str = "jane.kubeconfig";

/// The README's installation: a hub and its cluster `berlin`.
pub(crate) struct Installed {
    before: [Inventory; 2],
}

/// An operator with the README and the two clusters.
pub(crate) fn operator(testbed: &Testbed) -> Result<Operator<'_>> {
    Operator::new(testbed, &[("berlin", &testbed.member)])
}

/// Replaces the README's addresses by those of the testbed.
fn here(testbed: &Testbed, text: &str) -> String {
    text.replace("<registry>", "localhost")
        .replace("https://10.0.0.7:6443", &testbed.member.url())
        .replace("https://<hub>", &testbed.hub.url())
}

/// Follows the pages, one after the other.
pub(crate) fn follow(testbed: &Testbed) -> Result<Installed> {
    let before = [Inventory::of(&testbed.hub)?, Inventory::of(&testbed.member)?];
    let operator = operator(testbed)?;
    let install = section(README, "## Install", "## Clusters you cannot reach")?;
    let tunnel = section(AGENT, "## With helm alone", "## Extra arguments")?;
    follow_install(testbed, &operator, &here(testbed, install)).context("Install")?;
    testbed.hide_member(true)?;
    ensure!(pods(testbed, &operator).is_err(), "the member can be reached without a tunnel");
    follow_tunnel(testbed, &operator, &here(testbed, tunnel)).context("With helm alone")?;
    let fleet = section(DELIVERY, "## Quick start", "## The scheduler")?;
    follow_fleet(testbed, &operator, &here(testbed, fleet)).context("Quick start")?;
    Ok(Installed { before })
}

/// Skips the command that builds images with docker: the images exist already.
fn follow_install(testbed: &Testbed, operator: &Operator<'_>, text: &str) -> Result<()> {
    let lines = commands(text);
    let (docker, lines): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| line.starts_with("docker build"));
    ensure!(docker.len() == 1 && lines.len() == 11, "{docker:?} {lines:?}");
    testbed.kubeconfig_of(&operator.directory().join(JANE), "jane")?;
    for line in &lines {
        if line.contains("create clusterrolebinding berlin ") {
            ensure!(line.contains("--user=jane"), "somebody else is let in: {line}");
            let refused = pods(testbed, operator).err().context("jane may before she is let in")?;
            ensure!(format!("{refused:#}").contains("Forbidden"), "{refused:#}");
        }
        let said = if line.contains("get apiservice") {
            wait::until("the API to be available", LIMIT, || {
                let said = operator.run(line)?;
                ensure!(said.contains("True"), "{said}");
                Ok(said)
            })?
        } else if line.contains("--server ") {
            // It takes the hub a while to notice the new right, and the gateway the new Secret.
            wait::until("the member to answer", LIMIT, || operator.run(&as_jane(line)))?
        } else {
            operator.run(line)?
        };
        ensure!(!line.contains("get pods") || said.is_empty(), "{line}: pods on an empty member: {said}");
    }
    let listed = operator.run("kubectl get clustergateways")?;
    ensure!(healthy(&listed)? == "Unknown" && !pods(testbed, operator)?.contains("tunnel-agent"), "{listed}");
    Ok(())
}

/// A command, run as the user to whom the README grants access.
fn as_jane(line: &str) -> String {
    format!("KUBECONFIG={JANE} {line}")
}

/// Health of `berlin` in the output of `kubectl get clustergateways`.
pub(crate) fn healthy(listed: &str) -> Result<&str> {
    // The last column, because others may be empty.
    let last = |start: &str| listed.lines().find(|row| row.starts_with(start))?.split_whitespace().next_back();
    ensure!(last("NAME ") == Some("HEALTHY"), "{listed}");
    last("berlin ").with_context(|| listed.to_owned())
}

/// Runs the section's blocks, one after the other: each must find what the previous ones made.
fn follow_tunnel(testbed: &Testbed, operator: &Operator<'_>, text: &str) -> Result<()> {
    for block in blocks(text, "sh") {
        operator.run(block)?;
    }
    wait::until("the agent's pods, through it", LIMIT, || {
        let pods = pods(testbed, operator)?;
        ensure!(pods.matches("tunnel-agent-").count() == 2 && !pods.contains("0/1"), "{pods}");
        Ok(())
    })?;
    for context in ["hub", "berlin"] {
        operator.run(&format!("kubectl --context {context} wait deployments -A --all --for=condition=Available"))?;
    }
    let listed = operator.run("kubectl clusters list")?;
    let row = listed.lines().find(|row| row.starts_with("berlin ")).with_context(|| listed.clone())?;
    let row: Vec<_> = row.split_whitespace().collect();
    ensure!(row[1] == "Ready" && row[4..6] == ["ClusterProxy", "2/2"], "{listed}");
    Ok(())
}

/// Follows the section with a single cluster, which is then one of the two that the Placement
/// chooses.
fn follow_fleet(testbed: &Testbed, operator: &Operator<'_>, text: &str) -> Result<()> {
    let blocks: Vec<&str> = blocks(text, "sh").collect();
    let [delivery, cluster, workload] = &blocks[..] else { anyhow::bail!("other commands: {blocks:?}") };
    operator.run(delivery)?;
    operator.run(cluster)?;
    ensure!(workload.contains("image: nginx"), "another image: {workload}");
    let workload = workload.replace("image: nginx", &format!("image: '{PAUSE}'"));
    let (writes, looks) = workload.split_at(workload.find("kubectl get placementdecisions").context("no look")?);
    operator.run(writes)?;
    wait::until("the workload to be there", LIMIT, || {
        let told = operator.run(looks)?;
        ensure!(told.starts_with("berlin") && told.contains("AsExpected"), "{told}");
        Ok(())
    })?;
    let member = "kubectl --context berlin";
    // The set reports its choice a moment before the workload exists.
    operator.run(&format!(
        "{member} wait --for=create deployment/web {RUN}
         {member} rollout status deployment web {RUN}"
    ))?;
    ensure!(pods(testbed, operator)?.matches("web-").count() == 2, "{}", pods(testbed, operator)?);
    operator.run(&format!(
        "kubectl delete mwrs/web placement/web managedclustersetbinding/fleet managedclusterset/fleet
         {member} wait pod -l app=web --for=delete {RUN}"
    ))?;
    operator
        .run(&format!("kubectl -n vela-system rollout status deployment cluster-gateway-controllers {RUN}"))
        .map(drop)
}

/// The last command of the README's first part.
fn pods(testbed: &Testbed, operator: &Operator<'_>) -> Result<String> {
    let hub = testbed.hub.url();
    let path = "apis/cluster.core.oam.dev/v1alpha1/clustergateways/berlin/proxy";
    operator.run(&as_jane(&format!("kubectl --server {hub}/{path} --request-timeout=5s get pods -A")))
}

/// Whether this is a kind that stays after removal, or the object that the hub itself makes for it.
fn is_kind(object: &str) -> bool {
    ["CustomResourceDefinition ", "APIService "].iter().any(|kind| object.starts_with(kind))
        && object.ends_with(".open-cluster-management.io")
}

// === impl Installed ===

impl Installed {
    /// Undoes it as the page on joining says, and nothing is left but what the chart's page says.
    pub(crate) fn remove(&self, testbed: &Testbed) -> Result<()> {
        load::clean(&[&testbed.hub, &testbed.member])?; // of a test that failed
        let operator = operator(testbed)?;
        operator.run("kubectl delete managedcluster berlin\nkubectl delete namespace berlin")?;
        let lines = commands(section(JOIN, "### Remove it by hand\n", "A token from")?);
        ensure!(lines.len() == 4, "other commands: {lines:?}");
        operator.run(&lines.join("\n").replace("<clusters-namespace>", "vela-system"))?;
        operator
            .run("helm --kube-context berlin uninstall tunnel-agent\nhelm uninstall cluster-gateway -n vela-system")?;
        let [hub, member] = &self.before;
        hub.wait_restored(&testbed.hub, |object| {
            let is_of_namespace = object.contains("vela-system") && crate::walk::namespaces_own(object);
            is_kind(object) || is_of_namespace || object == LEFT
        })?;
        member.wait_restored(&testbed.member, is_kind)?;
        operator.run("kubectl --context berlin get crd -o name | xargs kubectl --context berlin delete")?;
        member.wait_restored(&testbed.member, |_| false)?;
        let kinds = operator.run("kubectl get crd -o name")?;
        ensure!(kinds.lines().count() == KINDS, "{kinds}");
        operator.run("kubectl get crd -o name | xargs kubectl delete\nkubectl delete namespace vela-system")?;
        hub.wait_restored(&testbed.hub, |_| false)?;
        testbed.hide_member(false)
    }
}
