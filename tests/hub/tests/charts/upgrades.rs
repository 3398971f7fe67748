//! The pages' commands that change a release, as they stand: helm takes their values, and renders
//! them with a look at the hub. What such values grant and start, the tests of each part show.

use hub_tests::helm::Chart;
use hub_tests::hub::SECRET_NAMESPACE as NAMESPACE;
use hub_tests::prelude::*;
use libtest_mimic::Trial;
use structure_tests::blocks::{Block, Mark, blocks};

use crate::fixture::{Fixture, Planes, on_hub};
use crate::release::Release;

const PAGES: [&str; 4] = [
    include_str!("../../../../README.md"),
    include_str!("../../../../docs/registration.md"),
    include_str!("../../../../docs/delivery.md"),
    include_str!("../../../../docs/operations.md"),
];
const HERE: &str = "tests/hub/tests/charts/upgrades.rs";
const UPGRADE: &str = "helm upgrade cluster-gateway charts/cluster-gateway ";
const RELEASE: &str = "cluster-gateway";
/// The controllers run there already, as after the page's first command.
const BEFORE: &str = "--set=controllers.enabled=true,controllers.sources.kubeconfig=true";
/// Commands of the pages that are run here.
const COUNT: usize = 9;

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![on_hub(fixture, "upgrades::helm takes what the pages turn on and off", taken)]
}

fn taken(planes: &Planes) -> Result<()> {
    let _group = planes.claim_group();
    let release = Release::install(planes, (RELEASE, RELEASE, RELEASE), &[BEFORE.to_owned()])?;
    let charts = Chart::Gateway.directory().canonicalize()?;
    let root = charts.parent().and_then(|charts| charts.parent()).context("the charts are nowhere")?;
    let is_here = |block: &Block| matches!(block.mark(), Ok(Mark::RunBy { file: HERE, .. }));
    let here = PAGES.iter().flat_map(|page| blocks(page)).filter(is_here);
    let commands: Vec<String> = here.flat_map(|block| block.commands()).collect();
    ensure!(commands.len() == COUNT, "other commands: {commands:?}");
    for command in commands {
        ensure!(command.starts_with(&format!("{UPGRADE}-n {NAMESPACE} ")), "another command: {command}");
        let words = command.replace("<registry>", "localhost");
        let words = words.split_whitespace().skip(1).chain(["--dry-run=server"]);
        let told = planes.helm.args(words).directory(root).run()?.success().with_context(|| command.clone())?;
        ensure!(told.contains("STATUS: pending-upgrade"), "{command}: {told}");
    }
    release.uninstall()
}
