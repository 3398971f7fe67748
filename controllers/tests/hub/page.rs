//! The commands of docs/registration.md, run unchanged.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use hub_tests::page::{block, blocks, first, section};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use k8s_openapi::jiff::Timestamp;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture::{
    Fixture, Running, SOON, apply, definition, kubeconfig_secret, member_kubeconfig, namespace, script, secret_field,
    test, wait_secret,
};

const PAGE: &str = include_str!("../../../docs/registration.md");
/// The page's namespace for clusters.
const CLUSTERS: &str = "vela-system";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "page: a kubeconfig in a Secret, and what one sees of it", kubeconfig),
        test(fixture, "page: a cluster of Karmada", karmada),
    ]
}

fn kubeconfig(testbed: &Testbed) -> Result<()> {
    let directory = testbed.directory("registration-page")?;
    std::fs::write(directory.join("berlin.kubeconfig"), member_kubeconfig(testbed, "token"))?;
    let run = |commands: &str| script(testbed, &directory, commands);
    apply(testbed, &[namespace("fleet")])?;
    let flags = ["--enable=kubeconfig", "--watch-namespaces=fleet"];
    let controllers = Running::start(testbed, "page-clusters", &flags)?;
    run(first(section(PAGE, "\n## A kubeconfig in a Secret\n", "\n## ")?, "sh")?)?;
    wait_secret(testbed, &controllers.namespace, "berlin")?;
    apply(testbed, &[kubeconfig_secret("fleet", "munich", "{}")])?;
    controllers.wait_state("fleet/munich", "refused")?;
    last_write(&controllers)?;
    let look = first(section(PAGE, "\n## See what happened\n", "\n### ")?, "sh")?;
    let look = look.replace(CLUSTERS, &controllers.namespace);
    wait::until_true("an Event about munich, and the source of berlin", SOON, || {
        let seen = run(&look)?;
        let berlin = seen.lines().find(|line| line.starts_with("berlin ")).unwrap_or_default();
        Ok(seen.contains("munich") && seen.contains("contexts") && berlin.ends_with("kubeconfig"))
    })
}

/// Both pages report when the Secret of the registered cluster was last written.
fn last_write(controllers: &Running) -> Result<()> {
    controllers.wait_state("fleet/berlin", "registered")?;
    let written = controllers.report("fleet/berlin")?["lastWrite"].clone();
    let moment: Timestamp = written.as_str().with_context(|| format!("no moment: {written}"))?.parse()?;
    let ago = Timestamp::now().as_second() - moment.as_second();
    ensure!((0..300).contains(&ago), "written {ago} s ago: {written}");
    let text = controllers.get("/debug/sources")?;
    let line = text.lines().find(|line| line.contains("fleet/berlin")).with_context(|| text.clone())?;
    ensure!(line.contains(written.as_str().unwrap_or("none")), "{line}");
    ensure!(controllers.report("fleet/munich")?["lastWrite"].is_null(), "what is refused was written");
    Ok(())
}

fn karmada(testbed: &Testbed) -> Result<()> {
    let kind = definition("cluster.karmada.io", "Cluster", "v1alpha1", "Cluster");
    apply(testbed, &[kind, namespace("karmada-cluster")])?;
    let authority = Value::from(std::fs::read_to_string(testbed.member.server.authority_file())?);
    let objects: String = blocks(section(PAGE, "\n## Karmada\n", "\n## ")?, "yaml").collect();
    let objects = objects.replace("<token>", "token-of-paris").replace("<CA>", &authority.to_string());
    testbed.hub.server.kubectl().apply(&objects)?;
    let mut controllers = Running::start(testbed, "page-karmada-clusters", &["--enable=karmada"])?;
    wait_secret(testbed, &controllers.namespace, "paris")?;
    let region = "/metadata/labels/topology.kubernetes.io~1region";
    ensure!(secret_field(testbed, &controllers.namespace, "paris", region)? == "north");
    // A source that is turned off leaves its clusters until an administrator removes them, and that
    // removes none of other sources.
    controllers.stop()?;
    let place = controllers.namespace.as_str();
    let other = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other", "namespace": place,
        "labels": {"cluster.core.oam.dev/source": "kubeconfig"}}});
    apply(testbed, &[other])?;
    wait_secret(testbed, place, "paris")?;
    let removal = block(PAGE, "sh", "delete secrets -l cluster.core.oam.dev/source=karmada")?.replace(CLUSTERS, place);
    script(testbed, &testbed.directory("registration-page")?, &removal)?;
    ensure!(testbed.hub.server.read(&format!("secret paris -n {place}"))?.is_null(), "it is left");
    wait_secret(testbed, place, "other")
}
