//! The commands of the alerts' sections, run as they stand. Where the page says why not, they need
//! what is not here: pods, controllers, or trouble.

use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::kubectl::Kubectl;
use hub_tests::prelude::*;

use super::queries::Query;

const PAGE: &str = include_str!("../../../../docs/operations.md");
/// Behind expressions, which are no commands.
const EXPRESSION: &str = "# in Prometheus";

/// A line of a section, and of which.
struct Line<'a> {
    of: &'a str,
    text: String,
}

/// Every line of the alerts' blocks but those that are marked as not run.
fn lines() -> Result<Vec<Line<'static>>> {
    let (_, alerts) = PAGE.split_once("\n## Alerts\n").context("no alerts")?;
    let (alerts, _) = alerts.split_once("\n## ").context("no end of the alerts")?;
    let mut lines = Vec::new();
    for section in alerts.split("\n### ").skip(1) {
        let (of, text) = section.split_once('\n').context("nothing below a heading")?;
        let mut is_run = true;
        for block in text.split("\n\n").map(|block| block.trim_matches('\n')) {
            match block.strip_prefix("    ") {
                Some(block) if is_run => {
                    let joined = block.replace("|\n      ", "| ").replace("\n    ", "\n");
                    lines.extend(joined.lines().map(|text| Line { of, text: text.to_owned() }));
                }
                _ => is_run = !block.starts_with("<!-- not run:"),
            }
        }
    }
    Ok(lines)
}

/// The expressions for Prometheus.
pub(super) fn queries() -> Result<Vec<Query>> {
    let of_line = |Line { of, text }: &Line<'_>| {
        let (text, _) = text.split_once(EXPRESSION)?;
        Some(Query { of: format!("runbook of {of}"), text: text.trim().to_owned() })
    };
    Ok(lines()?.iter().filter_map(of_line).collect())
}

/// Asks the hub, or the member where the command says so.
pub(super) fn run_all(testbed: &Testbed) -> Result<()> {
    let (hub, member) = (testbed.hub.server.kubectl(), testbed.member.server.kubectl());
    let mut count = 0;
    for Line { of, text } in lines()?.into_iter().filter(|line| !line.text.contains(EXPRESSION)) {
        let filled = text.replace("<namespace>", SECRET_NAMESPACE).replace("<secret-namespace>", SECRET_NAMESPACE);
        let filled = filled.replace("<kind>", "secrets").replace("<full name>", "cluster-gateway");
        let (of_member, filled) = match filled.split_once("--context <cluster> ") {
            Some((before, after)) => (true, format!("{before}{after}")),
            None => (false, filled.replace("<cluster>", CLUSTER)),
        };
        // Of pods that are not here there are no lines to look through.
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
    // `can-i` fails when it says no.
    ensure!(output.status == 0 || line.contains(" can-i ") && output.stdout == "no\n", "{output:?}");
    Ok(())
}
