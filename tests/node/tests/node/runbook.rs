//! The pages' commands for an operator who looks into a pod, run unchanged.

use anyhow::{Context as _, Result, ensure};
use hub_tests::page::{below, first, section};
use node_tests::operator::Operator;
use node_tests::testbed::Testbed;
use serde_json::Value;

use crate::pods::{killed, settled};
use crate::readme;

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
/// Before commands that a test runs, and behind such a block.
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
        let block = below(part, LEAD).context(heading)?;
        let (block, _) = block.split_once("\n\n").context("no end")?;
        let block = block.replace("<namespace>", NAMESPACE).replace("<secret-namespace>", NAMESPACE);
        let told = run(&operator, &block.replace("<pod>", &pod)).context(heading)?;
        ensure!(told.contains(words), "{heading}: {told}");
    }
    reported(&operator)
}

/// Runs the commands for the controllers' report, which is served on their pods' loopback interface
/// only.
fn reported(operator: &Operator<'_>) -> Result<()> {
    let part = section(REGISTRATION, "It answers only on its pod's loopback interface", "?format=json")?;
    let block = first(part, "sh")?;
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
