//! The page's quick start, a workload on a choice of clusters, run unchanged.

use anyhow::{Result, bail, ensure};
use hub_tests::page::{first, section};
use hub_tests::wait;

use super::{Fleet, NAMES, lease};
use crate::fixture::{SOON, script};

const DELIVERY: &str = include_str!("../../../../docs/delivery.md");
/// The page's cluster.
const CLUSTER: &str = "berlin";
/// The commands for a workload: to write its objects, and to see the result.
const COMMANDS: usize = 6;

pub fn quick_start(fleet: &Fleet<'_>) -> Result<()> {
    // The first block installs; `tests/node` runs it.
    let blocks = blocks(DELIVERY, "## Quick start")?;
    let [_, cluster, commands] = blocks[..] else { bail!("three blocks that are run: {blocks:?}") };
    for name in NAMES {
        run(fleet, &cluster.replace(CLUSTER, name))?;
        lease(fleet, name)?;
    }
    let each: Vec<&str> = commands.split("\n\n").collect();
    ensure!(each.len() == COMMANDS, "{} commands", each.len());
    let (writes, looks) = each.split_at(4);
    for command in writes {
        run(fleet, command)?;
    }
    for name in NAMES {
        fleet.wait_available(name, "True/MemberAnswers")?;
    }
    wait::until("the first two to be chosen", SOON, || {
        let told = run(fleet, looks[0])?;
        ensure!(told.trim() == NAMES[..2].join(" "), "{told}");
        Ok(())
    })?;
    for name in &NAMES[..2] {
        fleet.wait_work("web", name, "Applied", "True/AppliedManifestWorkComplete")?;
        ensure!(fleet.object(name, "deployment web")?["spec"]["replicas"] == 2);
    }
    ensure!(fleet.object(NAMES[2], "deployment web")?.is_null(), "it was not chosen");
    wait::until("the set to tell", SOON, || {
        let told = run(fleet, looks[1])?;
        ensure!(told.matches("AsExpected").count() == 2, "{told}");
        Ok(())
    })
}

/// The commands of a section, without those that no test runs.
pub fn blocks<'a>(page: &'a str, heading: &str) -> Result<Vec<&'a str>> {
    let section = section(page, &format!("{heading}\n"), "\n## ")?;
    section.split("<!-- run by:").skip(1).map(|rest| first(rest, "sh")).collect()
}

/// Runs the commands of a page; returns what they print.
pub fn run(fleet: &Fleet<'_>, commands: &str) -> Result<String> {
    script(fleet.testbed, &fleet.testbed.directory("fleet-page")?, commands)
}
