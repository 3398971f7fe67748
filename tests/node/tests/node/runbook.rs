//! The pages' commands for an operator who looks into a pod, run unchanged.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::wait;
use node_tests::operator::{Operator, section};
use node_tests::testbed::Testbed;
use serde_json::Value;

use crate::pods::{killed, settled};
use crate::readme;
use crate::started::blocks;

const OPERATIONS: &str = include_str!("../../../../docs/operations.md");
const REGISTRATION: &str = include_str!("../../../../docs/registration.md");
const NAMESPACE: &str = "vela-system";
/// Sections of the alerts, the start of the next section, and words in the output of their
/// commands.
const SECTIONS: [(&str, &str, &str); 5] = [
    ("### TunnelClusterNotLinked\n", "### ", "berlin"),
    ("### TunnelServerSheds\n", "### ", "berlin"),
    ("### ClusterGatewayRestarts\n", "### ", "Liveness probe failed"),
    ("### ClusterGatewayNotReady\n", "### ", "ok"),
    ("### ClusterGatewayControllersNoLeader\n", "### ", "holderIdentity"),
];
/// Time for kubelets to write a changed Secret into the pods' files.
const MOUNTED: Duration = Duration::from_mins(3);
/// The mark before a block of commands that this test runs.
const LEAD: &str = "/runbook.rs::followed -->\n\n";

/// Runs the commands on restarted pods: the previous test restarted them, or this one does when it
/// runs alone.
pub(crate) fn followed(testbed: &Testbed) -> Result<()> {
    settled(testbed)?;
    let operator = readme::operator(testbed)?;
    if restarted(testbed)?.is_none() {
        killed(testbed)?;
    }
    let pod = restarted(testbed)?.context("none was started again")?;
    for (heading, next, words) in SECTIONS {
        let part = section(OPERATIONS, heading, next)?;
        let (_, block) = part.split_once(LEAD).with_context(|| format!("{heading}: no commands"))?;
        let (block, _) = block.split_once("\n\n").context("no end")?;
        let block = block.replace("<namespace>", NAMESPACE).replace("<secret-namespace>", NAMESPACE);
        let told = run(&operator, &block.replace("<pod>", &pod)).context(heading)?;
        ensure!(told.contains(words), "{heading}: {told}");
    }
    reported(&operator)?;
    given(&operator)
}

/// Checks that a token in helm's values reaches the agent, which links with it.
fn given(operator: &Operator<'_>) -> Result<()> {
    let create = section(OPERATIONS, "1. Create a temporary token:\n\n", "\n\n")?;
    let part = section(OPERATIONS, "#### The token in helm's values\n", "#### ")?;
    let (_, write) = part.split_once(LEAD).context("no commands")?;
    let (write, _) = write.split_once("\n\n").context("no end")?;
    let replaced = || {
        let logs = operator.run("kubectl --context berlin logs --tail=-1 -l app.kubernetes.io/name=tunnel-agent")?;
        Ok::<_, anyhow::Error>(logs.matches("replacing all links").count())
    };
    let before = replaced()?;
    operator.run(&format!("{create}\n{write}"))?;
    wait::until_true("both agents to link with the new token", MOUNTED, || Ok(replaced()? >= before + 2))?;
    operator.ended("probe berlin", 0).map(drop)
}

/// Runs the commands for the controllers' report, which is served on their pods' loopback interface
/// only.
fn reported(operator: &Operator<'_>) -> Result<()> {
    let part = section(REGISTRATION, "It answers only on its pod's loopback interface", "?format=json")?;
    let block = blocks(part, "sh").next().context("no commands")?;
    let mut lines = block.lines();
    let leader = operator.run(lines.next().context("no line")?)?;
    let (pod, _) = leader.split_once('_').with_context(|| format!("another identity: {leader}"))?;
    let rest = lines.collect::<Vec<_>>().join("\n").replace("<pod>", pod);
    let told = run(operator, &rest)?;
    ensure!(told.contains("berlin") || told.contains("SOURCE") || told.trim().is_empty(), "{told}");
    Ok(())
}

/// Runs lines; a command that they start in the background ends with them.
fn run(operator: &Operator<'_>, lines: &str) -> Result<String> {
    let end = if lines.contains(" &\n") { "\nkill $!" } else { "" };
    operator.run(&format!("{}{end}", lines.replace(" &\n", " > forward.log 2>&1 &\n")))
}

/// The name of a gateway pod whose program was restarted.
fn restarted(testbed: &Testbed) -> Result<Option<String>> {
    let pods = testbed.hub.get(&format!("pods -n {NAMESPACE} -l app.kubernetes.io/name=cluster-gateway"))?;
    let again = |pod: &&Value| pod["status"]["containerStatuses"][0]["restartCount"] != 0;
    let pod = pods["items"].as_array().into_iter().flatten().find(again);
    pod.map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned).context("no name")).transpose()
}
