//! Lists come as events of a watch, and in pages from a hub that does not send them so.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use http::StatusCode;
use hub_tests::control_plane::ApiServer;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use libtest_mimic::Trial;

use crate::fixture::{Fixture, Running, SOON, apply, kubeconfig_secret, member_kubeconfig, namespace, test};

const FLEET: &str = "listed-fleet";
/// Three pages.
const SOURCES: u32 = 60;

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(fixture, "lists: all are registered, from events of a watch or from pages", registered)]
}

fn registered(testbed: &Testbed) -> Result<()> {
    let kubeconfig = member_kubeconfig(testbed, "token");
    let sources: Vec<_> =
        (0..SOURCES).map(|number| kubeconfig_secret(FLEET, &format!("listed{number}"), &kubeconfig)).collect();
    apply(testbed, &[namespace(FLEET)])?;
    apply(testbed, &sources)?;
    let lists = through(testbed, "listed-as-events", &[])?;
    ensure!(lists == 0, "{lists} lists of Secrets");
    let flags = ["--feature-gates=WatchList=false".to_owned()];
    let lists = through(testbed, "listed-in-pages", &flags).context("without lists as events")?;
    // With that of the clusters' Secrets, of which there are none yet.
    ensure!(lists >= 4, "{lists} lists of Secrets");
    Ok(())
}

/// Registers all clusters in the namespace `place`, through an API server of the hub with these
/// flags. Returns how many lists of Secrets that server was asked for.
fn through(testbed: &Testbed, place: &str, flags: &[String]) -> Result<u64> {
    apply(testbed, &[namespace(place)])?;
    let mut hub = testbed.hub.server.start_replica(place, flags)?;
    hub.wait_ready()?;
    let before = lists(&hub)?;
    let flags = ["--enable=kubeconfig", "--watch-namespaces=listed-fleet", "--leader-elect=false"];
    let running = Running::as_user(place, &hub.kubectl().kubeconfig, &flags)?;
    wait::until("all to be registered", 3 * SOON, || {
        let registered = running.metric("cluster_gateway_controllers_source_objects", "state=\"registered\"")?;
        ensure!(registered + 0.5 > f64::from(SOURCES), "{registered}");
        Ok(())
    })?;
    Ok(lists(&hub)? - before)
}

fn lists(hub: &ApiServer) -> Result<u64> {
    let metrics = hub.client(Some(hub.admin())).get("/metrics", &[])?.expect(StatusCode::OK)?.text();
    let counts = |labels: &str| labels.contains("resource=\"secrets\"") && labels.contains("verb=\"LIST\"");
    Ok(kit::exposition::sum_where(&metrics, "apiserver_request_total", counts))
}
