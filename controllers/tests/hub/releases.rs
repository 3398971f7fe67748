//! A release of the chart, with the controllers that its Deployment would run: what they registered
//! outlives the release, whatever happens to it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::helm::{Helm, account_kubeconfig};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use libtest_mimic::Trial;
use serde_json::Value;
use tokio::time::Instant;

use crate::fixture::{
    Fixture, Running, SOON, apply, kubeconfig_secret, member_kubeconfig, namespace, secret_field, test, wait_secret,
};
use crate::others::value;

const RELEASE: &str = "living";
const CONTROLLERS: &str = "living-cluster-gateway-controllers";
const PLACE: &str = "released";
const FLEET: &str = "released-fleet";
const CLUSTER: &str = "kept";
/// More than the time until an observed deletion of a source takes effect.
const NOTHING_GOES: Duration = Duration::from_secs(3);

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(
        fixture,
        "releases: clusters outlive upgrade, rollback and uninstallation of what registers them",
        outlived,
    )]
}

fn outlived(testbed: &Testbed) -> Result<()> {
    let server = &testbed.hub.server;
    apply(testbed, &[namespace(PLACE), namespace(FLEET)])?;
    let helm = Helm::prepare(&testbed.directory("released-helm")?, &server.kubectl().kubeconfig)?;
    // The testbed's own gateway serves the API.
    let values = "--set=apiService.create=false,controllers.enabled=true,controllers.sources.kubeconfig=true,\
                  controllers.watchNamespaces={released-fleet}";
    helm.on_chart(&format!("install {RELEASE}"), PLACE, &[values.to_owned()])?;
    let mut running = deployed(testbed)?;
    apply(testbed, &[kubeconfig_secret(FLEET, CLUSTER, &member_kubeconfig(testbed, "first"))])?;
    wait_secret(testbed, PLACE, CLUSTER)?;
    let version = || secret_field(testbed, PLACE, CLUSTER, "/metadata/resourceVersion");
    let first = version()?;

    let upgrade = ["--reuse-values", "--set=controllers.replicas=1,log.level=debug"].map(str::to_owned);
    helm.on_chart(&format!("upgrade {RELEASE}"), PLACE, &upgrade)?;
    running = replaced(testbed, running)?;
    ensure!(version()? == first, "the upgrade wrote it again");
    apply(testbed, &[kubeconfig_secret(FLEET, CLUSTER, &member_kubeconfig(testbed, "second"))])?;
    wait::until_true("the other token", SOON, || Ok(value(testbed, PLACE, CLUSTER, "token")? == "second"))?;
    let second = version()?;

    let words = ["rollback", RELEASE, "1", "--namespace", PLACE];
    helm.args(words).run()?.success()?;
    running = replaced(testbed, running)?;
    ensure!(version()? == second, "the rollback wrote it again");

    // The release's pods end after their rights are gone: what they see until then changes nothing.
    let kept = server.read(&format!("secret {CLUSTER} -n {PLACE}"))?;
    helm.args(["uninstall", RELEASE, "--namespace", PLACE]).run()?.success()?;
    server.delete(&format!("secret {CLUSTER} -n {FLEET}"))?;
    let gone = Instant::now();
    wait::until_true("a while", SOON, || {
        let now = server.read(&format!("secret {CLUSTER} -n {PLACE}"))?;
        ensure!(now == kept, "the uninstallation changed it: {now}");
        Ok(gone.elapsed() > NOTHING_GOES)
    })?;
    running.stop()?;
    ensure!(server.read(&format!("secret {CLUSTER} -n {PLACE}"))? == kept, "their end changed it");
    server.delete(&format!("secret {CLUSTER} -n {PLACE}"))
}

/// Replaces the pod by one that registers the same.
fn replaced(testbed: &Testbed, mut before: Running) -> Result<Running> {
    before.stop()?;
    let running = deployed(testbed)?;
    running.wait_state(&format!("{FLEET}/{CLUSTER}"), "registered")?;
    Ok(running)
}

/// Runs what a pod of the release would, with the rights of its account.
fn deployed(testbed: &Testbed) -> Result<Running> {
    let server = &testbed.hub.server;
    let deployment = server.read(&format!("deployment {CONTROLLERS} -n {PLACE}"))?;
    let pod = &deployment["spec"]["template"]["spec"];
    let account = pod["serviceAccountName"].as_str().context("an account")?;
    let kubeconfig = account_kubeconfig(server, PLACE, account)?;
    let arguments = pod["containers"][0]["args"].as_array().context("arguments")?;
    // The gateway's Service has no address here.
    let is_of_pod = |argument: &&str| argument.starts_with("--gateway-");
    let arguments: Vec<&str> = arguments.iter().filter_map(Value::as_str).filter(|it| !is_of_pod(it)).collect();
    Running::as_user(PLACE, &kubeconfig, &arguments)
}
