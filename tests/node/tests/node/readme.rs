//! The README's sections on installing and on clusters that cannot be reached, word for word. What
//! they make is what the tests after this one use.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::wait;
use node_tests::inventory::Inventory;
use node_tests::load;
use node_tests::operator::{Operator, commands, section};
use node_tests::testbed::Testbed;

const README: &str = include_str!("../../../../README.md");
const LIMIT: Duration = Duration::from_mins(1);

/// A hub and its cluster `berlin`, as the README makes them.
pub(crate) struct Installed {
    before: [Inventory; 2],
}

/// Somebody with the README, and the two clusters.
pub(crate) fn operator(testbed: &Testbed) -> Result<Operator<'_>> {
    Operator::new(testbed, &[("berlin", &testbed.member)])
}

/// What the README says of a place, said of this one.
fn here(testbed: &Testbed, text: &str) -> String {
    text.replace("<registry>", "localhost")
        .replace("https://10.0.0.7:6443", &testbed.member.url())
        .replace("https://<hub>", &testbed.hub.url())
}

/// Follows the README to its end.
pub(crate) fn follow(testbed: &Testbed) -> Result<Installed> {
    let before = [Inventory::of(&testbed.hub)?, Inventory::of(&testbed.member)?];
    let operator = operator(testbed)?;
    let install = section(README, "## Install", "## Clusters you cannot reach")?;
    let tunnel = section(README, "## Clusters you cannot reach", "## Without a hub")?;
    follow_install(testbed, &operator, &here(testbed, install)).context("Install")?;
    testbed.hide_member(true)?;
    ensure!(pods(testbed, &operator).is_err(), "the member can be reached without a tunnel");
    follow_tunnel(testbed, &operator, &here(testbed, tunnel)).context("Clusters you cannot reach")?;
    Ok(Installed { before })
}

/// The images are there: nothing here builds them by docker.
fn follow_install(testbed: &Testbed, operator: &Operator<'_>, text: &str) -> Result<()> {
    let lines = commands(text);
    let (docker, lines): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| line.starts_with("docker build"));
    ensure!(docker.len() == 1 && lines.len() == 11, "{docker:?} {lines:?}");
    for line in &lines {
        let said = if line.contains("get apiservice") {
            wait::until("the API to be available", LIMIT, || {
                let said = operator.run(line)?;
                ensure!(said.contains("True"), "{said}");
                Ok(said)
            })?
        } else if line.contains("--server ") {
            // The hub's own notice of the new right, and the gateway's of the new Secret.
            wait::until("the member to answer", LIMIT, || operator.run(line))?
        } else {
            operator.run(line)?
        };
        ensure!(!line.contains("get pods") || said.is_empty(), "{line}: pods on an empty member: {said}");
    }
    let listed = operator.run("kubectl get clustergateways")?;
    ensure!(listed.contains("berlin") && !pods(testbed, operator)?.contains("tunnel-agent"), "{listed}");
    Ok(())
}

fn follow_tunnel(testbed: &Testbed, operator: &Operator<'_>, text: &str) -> Result<()> {
    let (text, yaml) = text.split_once("```yaml\n").context("no values")?;
    let lines = commands(text);
    let [upgrade, install, label] = &lines[..] else { anyhow::bail!("other commands: {lines:?}") };
    operator.run(upgrade)?;
    let (yaml, _) = yaml.split_once("```").context("no end of the values")?;
    let values = values(operator, yaml)?;
    std::fs::write(operator.directory().join("berlin.yaml"), values)?;
    operator.run(install)?;
    operator.run(label)?;
    wait::until("the agent's pods, through it", LIMIT, || {
        let pods = pods(testbed, operator)?;
        ensure!(pods.matches("tunnel-agent-").count() == 2 && !pods.contains("0/1"), "{pods}");
        Ok(())
    })?;
    for context in ["hub", "berlin"] {
        operator.run(&format!("kubectl --context {context} wait deployments -A --all --for=condition=Available"))?;
    }
    Ok(())
}

/// The agent's values, with what the notes' commands print.
fn values(operator: &Operator<'_>, yaml: &str) -> Result<String> {
    let notes = operator.run("helm get notes cluster-gateway -n vela-system")?;
    let notes = commands(&notes);
    let said = |part: &str| {
        let line = notes.iter().find(|line| line.contains(part)).with_context(|| format!("no {part} in {notes:?}"))?;
        operator.run(line)
    };
    let service = wait::until("the load balancer", LIMIT, || {
        let said = said("get service cluster-gateway-tunnel-agents")?;
        ensure!(!said.contains("<pending>"), "{said}");
        Ok(said)
    })?;
    let row = service.lines().nth(1).context("no Service")?;
    let address = row.split_whitespace().nth(3).context("no address")?;
    let authority = said("cluster-gateway-tunnel-agents-tls")?;
    let (text, _) = yaml.split_once("    -----BEGIN").context("no place for the CA")?;
    let text = authority.lines().fold(text.to_owned(), |text, line| text + "    " + line + "\n");
    Ok(text
        .replace("<address of the Service cluster-gateway-tunnel-agents>", address)
        .replace("<token>", said("tunnel-agent-berlin")?.trim()))
}

/// The README's last command of its first part.
fn pods(testbed: &Testbed, operator: &Operator<'_>) -> Result<String> {
    let hub = testbed.hub.url();
    let path = "apis/cluster.core.oam.dev/v1alpha1/clustergateways/berlin/proxy";
    operator.run(&format!("kubectl --server {hub}/{path} --request-timeout=5s get pods -A"))
}

// === impl Installed ===

impl Installed {
    /// Undoes it, and nothing is left but what the chart's page says.
    pub(crate) fn remove(&self, testbed: &Testbed) -> Result<()> {
        load::clean(&[&testbed.hub, &testbed.member])?; // of a test that failed
        let operator = operator(testbed)?;
        operator.run(
            "helm --kube-context berlin uninstall tunnel-agent
             helm uninstall cluster-gateway -n vela-system
             kubectl -n vela-system delete secret berlin
             kubectl delete clusterrolebinding,clusterrole berlin
             kubectl --context berlin -n kube-system delete serviceaccount cluster-gateway
             kubectl --context berlin delete clusterrolebinding cluster-gateway",
        )?;
        let [hub, member] = &self.before;
        hub.wait_restored(&testbed.hub, |object| {
            object.contains("vela-system") && crate::walk::namespaces_own(object)
        })?;
        member.wait_restored(&testbed.member, |_| false)?;
        operator.run("kubectl delete namespace vela-system")?;
        testbed.hide_member(false)
    }
}
