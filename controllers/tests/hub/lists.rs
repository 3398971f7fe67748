//! Lists come as events of a watch, and in pages from a hub that does not send them so.

use std::sync::Arc;

use anyhow::{Result, ensure};
use http::StatusCode;
use hub_tests::control_plane::ApiServer;
use hub_tests::kubeconfig::Credential;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use libtest_mimic::Trial;
use serde_json::json;

use crate::fixture::{Fixture, Running, SOON, apply, kubeconfig_secret, member_kubeconfig, namespace, test};
use crate::rights::used::right;

const FLEET: &str = "listed-fleet";
/// Three pages.
const SOURCES: u32 = 60;
const FLAGS: [&str; 3] = ["--enable=kubeconfig", "--watch-namespaces=listed-fleet", "--leader-elect=false"];

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(fixture, "lists: all are registered, from events of a watch or from pages", registered)]
}

fn registered(testbed: &Testbed) -> Result<()> {
    let kubeconfig = member_kubeconfig(testbed, "token");
    let sources: Vec<_> =
        (0..SOURCES).map(|number| kubeconfig_secret(FLEET, &format!("listed{number}"), &kubeconfig)).collect();
    apply(testbed, &[namespace(FLEET)])?;
    apply(testbed, &sources)?;
    as_events(testbed)?;
    in_pages(testbed)
}

/// The audit log of a hub that sends lists as events shows no list of Secrets.
fn as_events(testbed: &Testbed) -> Result<()> {
    let (place, server) = ("audited-lists", &testbed.hub.server);
    apply(testbed, &[namespace(place)])?;
    let token = server.service_account_token(place, place)?;
    server.bind(place, "cluster-admin", (place, place))?;
    let all = json!({"verb": "list", "resource": "secrets"});
    wait::until_true("the right", SOON, || server.may(place, place, &all))?;
    let kubeconfig = server.kubeconfig(place, Credential::Token(token))?;
    let mark = testbed.audit.mark()?;
    let running = Running::as_user(place, &kubeconfig, &FLAGS)?;
    wait_registered(&running)?;
    let used = testbed.audit.used((place, place), mark)?;
    let [list, watch] = ["list", "watch"].map(|verb| used.contains(&right("", "secrets", verb)));
    ensure!(watch && !list, "the Secrets were listed: {used:?}");
    Ok(())
}

/// Through an API server of the hub that does not send lists as events.
fn in_pages(testbed: &Testbed) -> Result<()> {
    let place = "listed-in-pages";
    apply(testbed, &[namespace(place)])?;
    let mut hub = testbed.hub.server.start_replica(place, &["--feature-gates=WatchList=false".to_owned()])?;
    hub.wait_ready()?;
    let before = lists(&hub)?;
    let running = Running::as_user(place, &hub.kubectl().kubeconfig, &FLAGS)?;
    wait_registered(&running)?;
    let lists = lists(&hub)? - before;
    // With that of the clusters' Secrets, of which there are none yet.
    ensure!(lists >= 4, "{lists} lists of Secrets");
    Ok(())
}

fn wait_registered(running: &Running) -> Result<()> {
    wait::until("all to be registered", 3 * SOON, || {
        let registered = running.metric("cluster_gateway_controllers_source_objects", "state=\"registered\"")?;
        ensure!(registered + 0.5 > f64::from(SOURCES), "{registered}");
        Ok(())
    })
}

/// How many lists of Secrets this server was asked for.
fn lists(hub: &ApiServer) -> Result<u64> {
    let metrics = hub.client(Some(hub.admin())).get("/metrics", &[])?.expect(StatusCode::OK)?.text();
    let counts = |labels: &str| labels.contains("resource=\"secrets\"") && labels.contains("verb=\"LIST\"");
    Ok(kit::exposition::sum_where(&metrics, "apiserver_request_total", counts))
}
