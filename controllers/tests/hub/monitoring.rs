//! What operators are given to watch: the alerts' metrics are there, and say when credentials end.

use std::collections::BTreeSet;
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
const PREFIXES: [&str; 3] = ["cluster_gateway_controllers_", "cluster_gateway_placement_", "cluster_gateway_delivery_"];
/// There only while their parts run: the tests of these wait for them.
const OF_PARTS: [&str; 4] = ["ocm_admission", "managed_serviceaccounts", "cluster_profiles", "standing_by"];
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

fn alerts(testbed: &Testbed) -> Result<()> {
    let text = std::fs::read_to_string(Chart::Gateway.directory().join("files/alerts.yaml"))?;
    let is_of_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut named: BTreeSet<String> = BTreeSet::new();
    for prefix in PREFIXES {
        let starts = text.match_indices(prefix).map(|(start, _)| start);
        let names = starts.map(|start| text[start..].chars().take_while(|character| is_of_name(*character)).collect());
        let names: BTreeSet<String> = names.collect();
        ensure!(!names.is_empty(), "no alert is on {prefix}");
        named.extend(names.into_iter().filter(|name| !OF_PARTS.contains(&&name[prefix.len()..])));
    }
    ensure!(named.len() >= 8, "{named:?}");
    apply(testbed, &[namespace("alerts-fleet")])?;
    apply(testbed, &[kubeconfig_secret("alerts-fleet", "one", &ending(testbed, Some(1_900_000_000)))])?;
    let flags = ["--enable=kubeconfig", "--watch-namespaces=alerts-fleet"];
    let controllers = Running::start(testbed, "alerts-clusters", &flags)?;
    wait_secret(testbed, &controllers.namespace, "one")?;
    wait::until("every metric", SOON, || {
        let metrics = controllers.metrics()?;
        let has = |name: &&String| {
            let of_name =
                |line: &str| line.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(['{', ' ']));
            metrics.lines().any(of_name)
        };
        let missing: Vec<_> = named.iter().filter(|name| !has(name)).collect();
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
    testbed.hub.server.kubectl().ok(&format!("delete secret one -n {fleet}"))?;
    wait_gone(testbed, &controllers.namespace, "one")?;
    told(&controllers, 0.0)
}
