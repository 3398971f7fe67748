//! What operators are given to watch: the alerts' metrics are there, and say when credentials end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_tests::helm::Chart;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use libtest_mimic::Trial;

use crate::fixture::{
    Fixture, Running, SOON, apply, kubeconfig_secret, member_kubeconfig, namespace, test, wait_gone, wait_secret,
};

/// Of all that the program tells.
const PREFIXES: [&str; 4] = [
    "cluster_gateway_controllers_",
    "cluster_gateway_placement_",
    "cluster_gateway_delivery_",
    "cluster_gateway_argocd_",
];
/// There only while their parts run: the tests of these wait for them.
const OF_PARTS: [&str; 6] = [
    "ocm_admission",
    "managed_serviceaccounts",
    "cluster_profiles",
    "standing_by",
    "probed_clusters",
    "member_requests_total",
];
const EXPIRY: &str = "cluster_gateway_controllers_credential_expiry_timestamp_seconds";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "monitoring: the program has every metric of the alerts", alerts),
        test(fixture, "monitoring: a credential's end is told as long as its cluster is there", expiry),
    ]
}

/// A kubeconfig whose token ends at `end`, if it says so.
fn ending(testbed: &Testbed, end: Option<u32>) -> String {
    let claims = end.map_or_else(|| r#"{"sub":"x"}"#.to_owned(), |end| format!(r#"{{"exp":{end}}}"#));
    member_kubeconfig(testbed, &format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims)))
}

/// The metrics of the alerts, each with what their queries need of its labels.
fn named() -> Result<BTreeMap<String, BTreeSet<String>>> {
    let text = std::fs::read_to_string(Chart::Gateway.directory().join("files/alerts.yaml"))?;
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for query in text.lines().filter_map(|line| line.trim().strip_prefix("expr: ")) {
        let by = query.split(" by (").skip(1).filter_map(|rest| rest.split_once(')')).map(|(labels, _)| labels);
        let by: Vec<String> = by.flat_map(|labels| labels.split(", ")).map(|label| format!("{label}=\"")).collect();
        for prefix in PREFIXES {
            for (start, _) in query.match_indices(prefix) {
                let is_of_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
                let (name, rest) = query[start..].split_at(query[start..].find(|c| !is_of_name(c)).unwrap_or_default());
                if OF_PARTS.contains(&&name[prefix.len()..]) {
                    continue;
                }
                let labels = named.entry(name.to_owned()).or_default();
                labels.extend(by.iter().cloned());
                let chosen = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(labels, _)| labels);
                labels.extend(chosen.map(str::to_owned));
            }
        }
    }
    for prefix in PREFIXES {
        ensure!(named.keys().any(|name| name.starts_with(prefix)), "no alert is on {prefix}");
    }
    Ok(named)
}

fn alerts(testbed: &Testbed) -> Result<()> {
    let named = named()?;
    ensure!(named.len() >= 9, "{named:?}");
    ensure!(named.values().flatten().any(|label| label == "state=\"taken\""), "no labels: {named:?}");
    apply(testbed, &[namespace("alerts-fleet")])?;
    apply(testbed, &[kubeconfig_secret("alerts-fleet", "one", &ending(testbed, Some(1_900_000_000)))])?;
    let flags = ["--enable=kubeconfig", "--watch-namespaces=alerts-fleet"];
    let controllers = Running::start(testbed, "alerts-clusters", &flags)?;
    wait_secret(testbed, &controllers.namespace, "one")?;
    wait::until("every metric", SOON, || {
        let metrics = controllers.metrics()?;
        let has = |(name, labels): &(&String, &BTreeSet<String>)| {
            let is_it = |line: &str| {
                let of_name = line.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(['{', ' ']));
                of_name && labels.iter().all(|label| line.contains(label))
            };
            metrics.lines().any(is_it)
        };
        let missing: Vec<_> = named.iter().filter(|of| !has(of)).collect();
        ensure!(missing.is_empty(), "no series of {missing:?}");
        Ok(())
    })
}

fn expiry(testbed: &Testbed) -> Result<()> {
    let (fleet, cluster) = ("expiry-fleet", "cluster=\"one\"");
    apply(testbed, &[namespace(fleet)])?;
    apply(testbed, &[kubeconfig_secret(fleet, "one", &ending(testbed, Some(1_900_000_000)))])?;
    let flags = ["--enable=kubeconfig", "--watch-namespaces=expiry-fleet"];
    let mut controllers = Running::start(testbed, "expiry-clusters", &flags)?;
    let told = |controllers: &Running, end: f64| {
        wait::until_true("the credential's end", SOON, || Ok((controllers.metric(EXPIRY, cluster)? - end).abs() < 1.0))
    };
    told(&controllers, 1_900_000_000.0)?;
    // After a restart nothing is written, and it is told all the same.
    controllers.restart()?;
    told(&controllers, 1_900_000_000.0)?;
    apply(testbed, &[kubeconfig_secret(fleet, "one", &ending(testbed, Some(1_950_000_000)))])?;
    told(&controllers, 1_950_000_000.0)?;
    apply(testbed, &[kubeconfig_secret(fleet, "one", &ending(testbed, None))])?;
    told(&controllers, 0.0)?;
    apply(testbed, &[kubeconfig_secret(fleet, "one", &ending(testbed, Some(1_950_000_000)))])?;
    told(&controllers, 1_950_000_000.0)?;
    testbed.hub.server.delete(&format!("secret one -n {fleet}"))?;
    wait_gone(testbed, &controllers.namespace, "one")?;
    told(&controllers, 0.0)
}
