//! Getting started, word for word, as a stranger follows it: from an empty hub to a member's pods
//! through it.

use anyhow::{Context as _, Result, ensure};
use node_tests::image::PAUSE;
use node_tests::inventory::Inventory;
use node_tests::operator::{Operator, section};
use node_tests::testbed::Testbed;

const PAGE: &str = include_str!("../../../../docs/getting-started.md");
const INSTALL: &str = include_str!("../../../../docs/install.md");

pub(crate) fn follow(testbed: &Testbed) -> Result<()> {
    let before = [Inventory::of(&testbed.hub)?, Inventory::of(&testbed.member)?];
    let operator = Operator::new(testbed, &[("berlin", &testbed.member)])?;
    let mark = testbed.audit.mark()?;
    for line in part(PAGE, "## 2.", "## 3.", "sh")? {
        let told = operator.run(&line)?;
        ensure!(!told.contains('✗'), "{line}: {told}");
    }
    nothing_refused(testbed, &operator, mark)?;
    // Again: an upgrade.
    operator.run(&part(INSTALL, "## With kubectl clusters", "## With helm", "sh")?.join("\n"))?;
    // The other commands there are for a member behind the tunnel.
    let join = part(PAGE, "## 3.", "## 4.", "console")?;
    let join = join.first().context("no command that joins a member")?;
    let joined = operator.run(join)?;
    ensure!(joined.contains("cluster berlin joined: it answers the gateway"), "{join}: {joined}");
    operator.run(&format!("kubectl --context berlin run cart --image={PAUSE}"))?;
    for line in part(PAGE, "## 5.", "## 6.", "sh")? {
        let told = operator.run(&line)?;
        ensure!(!line.contains("get pods") || told.contains("cart"), "{line}: {told}");
    }
    nothing_refused(testbed, &operator, mark)?;
    remove(testbed, &operator, &before)
}

/// What the chart's defaults do not grant is not asked for in vain, nor told of.
fn nothing_refused(testbed: &Testbed, operator: &Operator<'_>, mark: usize) -> Result<()> {
    let logs = operator.run("kubectl -n vela-system logs --tail=-1 -l app.kubernetes.io/name=cluster-gateway")?;
    let lower = logs.to_lowercase();
    let told = ["managedclusters", "forbidden"].iter().find(|word| lower.contains(**word));
    ensure!(logs.contains("serving") && told.is_none(), "{told:?}: {logs}");
    let refused = testbed.audit.refusals("vela-system", mark)?;
    ensure!(refused.is_empty(), "the hub answers 403 to {}", refused.join(", "));
    Ok(())
}

/// The commands of a part of a page, said of this place.
pub(crate) fn part(page: &str, from: &str, to: &str, language: &str) -> Result<Vec<String>> {
    let part = section(page, from, to)?;
    let blocks = part.split("```").filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'));
    let lines = blocks.flat_map(str::lines).filter_map(|line| match language {
        "console" => line.strip_prefix("$ "),
        _ => Some(line),
    });
    let lines: Vec<_> =
        lines.map(|line| line.replace("registry.example", "localhost").replace("<registry>", "localhost")).collect();
    ensure!(!lines.is_empty(), "nothing to run between {from} and {to}");
    Ok(lines)
}

fn remove(testbed: &Testbed, operator: &Operator<'_>, [hub, member]: &[Inventory; 2]) -> Result<()> {
    operator.run("kubectl --context berlin delete pod cart")?;
    for line in part(PAGE, "## 7.", "## Next", "sh")? {
        operator.run(&line)?;
    }
    let left = operator.run("kubectl config get-contexts -o name")?;
    ensure!(!left.contains("hub/berlin"), "{left}");
    member.wait_restored(&testbed.member, |_| false)?;
    hub.wait_restored(&testbed.hub, |_| false)
}
