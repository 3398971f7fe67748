//! The commands of the alerts' sections, run unchanged. `tests/node` runs those that need pods.
//! Commands that the page marks as not run need something that no test has, such as a fault.

use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::kubectl::Kubectl;
use hub_tests::prelude::*;
use hub_tests::promtool::EXPRESSION;
use structure_tests::blocks::{Block, Mark, blocks};

use super::queries::Query;

const PAGE: &str = include_str!("../../../../docs/operations.md");

/// The prefix of an alert's name for an expression in its section.
pub(super) const RUNBOOK: &str = "runbook of ";

/// A command, and its section.
struct Line {
    of: String,
    text: String,
}

/// All commands of the alerts' blocks, except those that are marked as not run, or as run
/// elsewhere.
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

/// Runs each on the hub, or on the member if the command says so.
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
        // Without pods there are no logs to search: `tests/structure` compares the searched texts
        // with what programs log.
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
    // `can-i` fails if the answer is no, and warns of resources that no API server has.
    let is_known = !output.stderr.contains("the server doesn't have a resource type");
    let is_no = line.contains(" can-i ") && output.stdout == "no\n";
    ensure!(is_known && (output.status == 0 || is_no), "{output:?}");
    Ok(())
}
