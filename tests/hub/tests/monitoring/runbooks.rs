//! The commands of the alerts' sections, run as they stand. `tests/node` runs those that need pods.
//! Where the page says why not, they need what is nowhere here, such as trouble.

use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::kubectl::Kubectl;
use hub_tests::prelude::*;
use hub_tests::promtool::EXPRESSION;
use structure_tests::blocks::{Block, Mark, blocks};

use super::queries::Query;

const PAGE: &str = include_str!("../../../../docs/operations.md");

/// Before the alert whose section has an expression.
pub(super) const RUNBOOK: &str = "runbook of ";

/// A command of a section, and of which.
struct Line {
    of: String,
    text: String,
}

/// Every command of the alerts' blocks but those that are marked as not run, or as run elsewhere.
fn lines() -> Vec<Line> {
    let is_run = |block: &Block| {
        let is_here = matches!(block.mark(), Ok(Mark::RunBy { file, .. }) if file.starts_with("tests/hub"));
        is_here && block.above.lines().any(|line| line == "## Alerts")
    };
    let lines = |block: Block| {
        let of = block.heading().to_owned();
        block.commands().into_iter().map(move |text| Line { of: of.clone(), text })
    };
    blocks(PAGE).into_iter().filter(is_run).flat_map(lines).collect()
}

/// The expressions for Prometheus.
pub(super) fn queries() -> Vec<Query> {
    let of_line = |Line { of, text }: &Line| {
        let (text, _) = text.split_once(EXPRESSION)?;
        Some(Query { of: format!("{RUNBOOK}{of}"), text: text.trim().to_owned() })
    };
    lines().iter().filter_map(of_line).collect()
}

/// Asks the hub, or the member where the command says so.
pub(super) fn run_all(testbed: &Testbed) -> Result<()> {
    let (hub, member) = (testbed.hub.server.kubectl(), testbed.member.server.kubectl());
    let mut count = 0;
    for Line { of, text } in lines().into_iter().filter(|line| !line.text.contains(EXPRESSION)) {
        let filled = text.replace("<namespace>", SECRET_NAMESPACE).replace("<secret-namespace>", SECRET_NAMESPACE);
        let filled = filled.replace("<kind>", "secrets").replace("<full name>", "cluster-gateway");
        let (of_member, filled) = match filled.split_once("--context <cluster> ") {
            Some((before, after)) => (true, format!("{before}{after}")),
            None => (false, filled.replace("<cluster>", CLUSTER)),
        };
        // Of pods that are not here there are no lines to look through: `tests/structure` compares
        // what is looked for with what programs log.
        let line = if filled.contains(" logs ") { filled.split(" | grep ").next().unwrap_or(&filled) } else { &filled };
        let kubectl = if of_member { &member } else { &hub };
        run(kubectl, line).with_context(|| format!("{of}: {text}"))?;
        count += 1;
    }
    ensure!(count > 25, "of all commands, {count} are run");
    Ok(())
}

/// Runs a line.
fn run(kubectl: &Kubectl, line: &str) -> Result<()> {
    let output = kubectl.shell(line)?.run()?;
    // `can-i` fails when it says no, and warns of what no API server has.
    let is_known = !output.stderr.contains("the server doesn't have a resource type");
    let is_no = line.contains(" can-i ") && output.stdout == "no\n";
    ensure!(is_known && (output.status == 0 || is_no), "{output:?}");
    Ok(())
}
