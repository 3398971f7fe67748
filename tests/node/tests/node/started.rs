//! Getting started, followed unchanged by a new user: from an empty hub to a member's pods through
//! it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::page::{blocks, section};
use node_tests::image::PAUSE;
use node_tests::inventory::Inventory;
use node_tests::operator::Operator;
use node_tests::testbed::Testbed;
use tokio::time::Instant;

/// The time that the page promises without the builds.
const PROMISED: Duration = Duration::from_mins(15);
const PAGE: &str = include_str!("../../../../docs/getting-started.md");
const INSTALL: &str = include_str!("../../../../docs/install.md");

pub(crate) fn follow(testbed: &Testbed) -> Result<()> {
    let before = [Inventory::of(&testbed.hub)?, Inventory::of(&testbed.member)?];
    let operator = Operator::new(testbed, &[("berlin", &testbed.member)])?;
    let mark = testbed.audit.mark()?;
    let began = Instant::now();
    for line in part(PAGE, "## 2.", "## 3.", "sh")? {
        let told = operator.run(&line)?;
        ensure!(!told.contains('✗'), "{line}: {told}");
    }
    nothing_refused(testbed, &operator, mark)?;
    // A second installation is an upgrade.
    operator.run(&part(INSTALL, "## With kubectl clusters", "## With helm", "sh")?.join("\n"))?;
    // The same with helm itself, which finds nothing to change.
    let pods = || operator.run("kubectl -n vela-system get pods -o name");
    let running = pods()?;
    operator.run(&part(INSTALL, "## With helm", "## Without helm", "sh")?.join("\n"))?;
    ensure!(pods()? == running, "helm replaced pods: {running}{}", pods()?);
    // The other commands of this section are for a member behind the tunnel.
    let join = part(PAGE, "## 3.", "## 4.", "console")?;
    let join = join.first().context("no command that joins a member")?;
    let joined = operator.run(join)?;
    ensure!(joined.contains("cluster berlin joined: it answers the gateway"), "{join}: {joined}");
    for line in part(PAGE, "## 5.", "## 6.", "sh")? {
        let line = line.replace("=nginx", &format!("={PAUSE}"));
        let told = operator.run(&line)?;
        ensure!(!line.contains("get pods") || told.contains("cart"), "{line}: {told}");
    }
    nothing_refused(testbed, &operator, mark)?;
    ensure!(began.elapsed() < PROMISED, "it took {:?}", began.elapsed());
    remove(testbed, &operator, &before)
}

/// For users without helm: another person prints the manifests, and kubectl suffices to install,
/// use and remove them.
pub(crate) fn printed(testbed: &Testbed) -> Result<()> {
    let before = [Inventory::of(&testbed.hub)?, Inventory::of(&testbed.member)?];
    let operator = Operator::new(testbed, &[("berlin", &testbed.member)])?;
    let lines = part(INSTALL, "## Without helm", "## What you get", "sh")?;
    let [print, apply] = &lines[..] else { anyhow::bail!("other commands: {lines:?}") };
    operator.run(print)?;
    std::fs::remove_file(testbed.tools().join("helm"))?;
    let used = use_printed(&operator, apply);
    testbed.provide_helm()?;
    used?;
    let [hub, member] = &before;
    member.wait_restored(&testbed.member, |_| false)?;
    hub.wait_restored(&testbed.hub, |_| false)
}

fn use_printed(operator: &Operator<'_>, apply: &str) -> Result<()> {
    operator.run(apply)?;
    operator.run(
        "kubectl -n vela-system rollout status deployment cluster-gateway --timeout=150s
         kubectl wait --for=condition=Available apiservice/v1alpha1.cluster.core.oam.dev --timeout=60s",
    )?;
    let checked = operator.run("kubectl clusters check")?;
    ensure!(!checked.contains('✗'), "{checked}");
    operator.run(&format!(
        "kubectl clusters join berlin --rights view\nkubectl --context berlin run cart --image={PAUSE}"
    ))?;
    let pods = operator.run("kubectl clusters get pods berlin -A")?;
    ensure!(pods.contains(" cart "), "{pods}");
    // A second apply keeps what was made by hand or by a program.
    operator.run(&format!("{apply}\nkubectl clusters get pods berlin"))?;
    operator.run("kubectl --context berlin delete pod cart\nkubectl clusters detach berlin --yes")?;
    operator.run("kubectl delete -f gateway.yaml").map(drop)
}

/// Checks that the gateway neither asks for nor logs what the chart's defaults do not grant.
fn nothing_refused(testbed: &Testbed, operator: &Operator<'_>, mark: usize) -> Result<()> {
    let logs = operator.run("kubectl -n vela-system logs --tail=-1 -l app.kubernetes.io/name=cluster-gateway")?;
    let lower = logs.to_lowercase();
    let told = ["managedclusters", "forbidden"].iter().find(|word| lower.contains(**word));
    ensure!(logs.contains("serving") && told.is_none(), "{told:?}: {logs}");
    let refused = testbed.audit.refusals("vela-system", mark)?;
    ensure!(refused.is_empty(), "the hub answers 403 to {}", refused.join(", "));
    Ok(())
}

/// The commands in a part of a page, with this testbed's registry.
pub(crate) fn part(page: &str, from: &str, to: &str, language: &str) -> Result<Vec<String>> {
    let part = section(page, from, to)?;
    let lines = blocks(part, language).flat_map(str::lines).filter_map(|line| match language {
        "console" => line.strip_prefix("$ "),
        _ => Some(line),
    });
    let lines: Vec<_> =
        lines.map(|line| line.replace("registry.example", "localhost").replace("<registry>", "localhost")).collect();
    ensure!(!lines.is_empty(), "nothing to run between {from} and {to}");
    Ok(lines)
}

fn remove(testbed: &Testbed, operator: &Operator<'_>, [hub, member]: &[Inventory; 2]) -> Result<()> {
    for line in part(PAGE, "Then remove `berlin` and the gateway.", "## Next", "sh")? {
        operator.run(&line)?;
    }
    let left = operator.run("kubectl config get-contexts -o name")?;
    ensure!(!left.contains("hub/berlin"), "{left}");
    member.wait_restored(&testbed.member, |_| false)?;
    hub.wait_restored(&testbed.hub, |_| false)
}
