//! Monitoring for operators: every query of the chart's alerts and of its dashboard finds series of
//! a running system, each alert fires when it should and only then, and the commands of its section
//! in the docs run.

mod examples;
mod flood;
mod queries;
mod runbooks;
mod scraping;

use std::collections::BTreeSet;
use std::path::Path;

use hub_tests::helm::Chart;
use hub_tests::prelude::*;
use hub_tests::promtool;
use libtest_mimic::{Failed, Trial};

use self::flood::Flood;
use self::queries::Query;
use self::runbooks::RUNBOOK;
use self::scraping::Scraping;
use crate::fixture::{Fixture, test};

/// Time for the first samples after an event.
const LIMIT: Duration = Duration::from_mins(1);

/// Alerts on programs that do not run here, by the tests that evaluate them on what these tell.
const ELSEWHERE: [(&str, &[&str]); 10] = [
    (
        "controllers/tests/hub/monitoring.rs",
        &[
            "ClusterGatewayControllersNoLeader",
            "ClusterGatewaySourceUnavailable",
            "ClusterGatewayRemovalsHeld",
            "ClusterGatewayNameTaken",
            "ClusterGatewayRegisteredCredentialExpires",
            "ClusterGatewayArgocdTokenOverdue",
            "ClusterGatewayDeliveryStuck",
            "ClusterGatewayDeliveryContested",
            "ClusterGatewayDeliveryForeign",
            "ClusterGatewayPlacementRemovalsHeld",
        ],
    ),
    ("controllers/tests/hub/registration/admission.rs", &["ClusterGatewayAdmissionMissing"]),
    ("controllers/tests/hub/accounts/refused.rs", &["ClusterGatewayServiceAccountsFail"]),
    ("controllers/tests/hub/works/tunnelled.rs", &["ClusterGatewayDeliveryMemberFailing"]),
    ("controllers/tests/hub/published.rs", &["ClusterGatewayProfilesFail"]),
    ("controllers/tests/hub/placement/conflicts.rs", &["ClusterGatewayStandingBy"]),
    ("controllers/tests/hub/fleet/loss.rs", &["ClusterGatewayClustersLost"]),
    ("controllers/tests/hub/fleet/rights.rs", &["ClusterGatewayLossesHeld"]),
    ("tests/hub/tests/karmada/beside.rs", &["ClusterGatewayKarmadaFilesRefused"]),
    ("tests/node/tests/node/pods.rs", &["ClusterGatewayNotReady"]),
];

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let alone = |name: &str, run: fn() -> Result<()>| {
        Trial::test(name, move || run().map_err(|error| Failed::from(format!("{error:#}"))))
    };
    vec![
        test(fixture, "monitoring::every query of alerts and dashboard finds series", find),
        test(fixture, "monitoring::the commands of the alerts' sections run", runbooks::run_all),
        alone("monitoring::each alert fires when it should and only then", examples::hold),
        alone("monitoring::what is not evaluated here is evaluated where its program runs", elsewhere),
        alone("monitoring::each alert has a section in the docs", sections),
        alone("monitoring::the dashboard can be read at a glance", glance),
    ]
}

fn find(testbed: &Testbed) -> Result<()> {
    let flood = Flood::start(testbed)?;
    let scraping = Scraping::start(testbed)?;
    let mut missing = Vec::new();
    for Query { of, text } in queries::all()?.into_iter().chain(runbooks::queries()) {
        let asked = scraping.count(&text).with_context(|| of.clone())?; // or it is no query at all
        if asked > 0 || is_elsewhere(&of) {
            continue;
        }
        let found = || scraping.count(&text).map(|count| count > 0);
        if wait::until_true(&of, LIMIT, found).is_err() {
            missing.push(format!("{of}: {text}"));
        }
    }
    scraping.end()?;
    flood.told(testbed)?;
    ensure!(missing.is_empty(), "no series:\n{}", missing.join("\n"));
    Ok(())
}

/// Whether another test evaluates the query.
fn is_elsewhere(of: &str) -> bool {
    let alert = of.strip_prefix(RUNBOOK).unwrap_or(of);
    ELSEWHERE.iter().flat_map(|(_, alerts)| *alerts).any(|name| *name == alert)
}

/// The other tests evaluate the alerts that are listed for them here.
fn elsewhere() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (file, alerts) in ELSEWHERE {
        let text = std::fs::read_to_string(root.join(file)).with_context(|| file.to_owned())?;
        ensure!(text.contains("promtool::evaluated("), "{file} evaluates nothing");
        let missing: Vec<_> = alerts.iter().filter(|alert| !text.contains(&format!("\"{alert}\""))).collect();
        ensure!(missing.is_empty(), "{file} does not name {missing:?}");
    }
    Ok(())
}

fn sections() -> Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let docs = std::fs::read_to_string(docs)?;
    let headings: BTreeSet<_> = docs.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    for alert in promtool::alerts()? {
        let (name, notes) = (alert.name(), &alert.0["annotations"]);
        ensure!(headings.contains(name), "{name} has no section");
        let anchor = format!("docs/operations.md#{}", name.to_lowercase());
        ensure!(notes["runbook_url"] == *anchor, "{name}: {}", notes["runbook_url"]);
        ensure!(notes["summary"].as_str().is_some_and(|text| !text.is_empty()), "{name} says nothing");
        let severity = alert.0["labels"]["severity"].as_str();
        ensure!(severity.is_some_and(|severity| ["critical", "warning"].contains(&severity)), "{name}: {severity:?}");
        let (_, section) = docs.split_once(&format!("### {name}\n")).context("it was there")?;
        let section = section.split("\n#").next().context("there is a first")?;
        ensure!(section.contains("\n    "), "{name} has no command to confirm it with");
    }
    Ok(())
}

fn glance() -> Result<()> {
    let text = std::fs::read_to_string(Chart::Gateway.directory().join("files/dashboard.json"))?;
    let dashboard: Value = serde_json::from_str(&text)?;
    let panels = dashboard["panels"].as_array().context("no panels")?;
    let shown: Vec<_> = panels.iter().filter(|panel| panel["type"] != "row").collect();
    ensure!(shown.len() <= 25, "{} panels", shown.len());
    for panel in shown {
        ensure!(panel["description"].as_str().is_some_and(|text| !text.is_empty()), "{}", panel["title"]);
    }
    Ok(())
}
