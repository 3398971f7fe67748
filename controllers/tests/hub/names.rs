//! One name, one owner.

use std::sync::Arc;

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use libtest_mimic::Trial;
use serde_json::json;

use crate::fixture::{
    Fixture, Running, SOON, apply, event, kubeconfig_secret, member_kubeconfig, namespace, secret_field, test,
    wait_gone, wait_secret,
};

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "names: the first has it, and the next after it", owners),
        test(fixture, "names: a person's Secret is never touched", persons),
    ]
}

fn owners(testbed: &Testbed) -> Result<()> {
    let kubeconfig = member_kubeconfig(testbed, "token");
    let (one, two) = ("names-one", "names-two");
    apply(testbed, &[namespace(one), namespace(two)])?;
    apply(testbed, &[kubeconfig_secret(two, "shared", &kubeconfig)])?;
    // Creation times have seconds: in the same one, the uid decides.
    let made = tokio::time::Instant::now();
    wait::until_true("the next second", SOON, || Ok(made.elapsed() > std::time::Duration::from_millis(1100)))?;
    apply(testbed, &[kubeconfig_secret(one, "shared", &kubeconfig)])?;
    // Both are there when the controllers start, and the younger comes first in the list.
    let flags = ["--enable=kubeconfig", "--watch-namespaces=names-one,names-two"];
    let controllers = Running::start(testbed, "names-clusters", &flags)?;
    wait_secret(testbed, &controllers.namespace, "shared")?;
    let origin = "/metadata/annotations/cluster.core.oam.dev~1source-object";
    let owner = || secret_field(testbed, &controllers.namespace, "shared", origin);
    ensure!(owner()?.ends_with("names-two/shared"), "the younger has it: {}", owner()?);
    let why = controllers.wait_state("names-one/shared", "taken")?;
    ensure!(why.contains("core/Secret/names-two/shared"), "{why}");
    let note = wait::until("an Event", SOON, || event(testbed, one, "shared", "ClusterNameTaken"))?;
    ensure!(note.contains("core/Secret/names-two/shared"), "{note}");
    testbed.hub.server.delete("secret shared -n names-two")?;
    wait::until_true("the next to take over", SOON, || {
        Ok(owner().is_ok_and(|owner| owner.ends_with("names-one/shared")))
    })?;
    controllers.wait_state("names-one/shared", "registered")?;
    Ok(())
}

fn persons(testbed: &Testbed) -> Result<()> {
    let fleet = "names-person";
    let by_hand = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine", "namespace": "person-clusters"},
        "stringData": {"endpoint": "https://by.hand"},
    });
    apply(testbed, &[namespace(fleet), namespace("person-clusters"), by_hand])?;
    let version = secret_field(testbed, "person-clusters", "mine", "/metadata/resourceVersion")?;
    let flags = ["--enable=kubeconfig", "--watch-namespaces=names-person"];
    let controllers = Running::start(testbed, "person-clusters", &flags)?;
    apply(testbed, &[kubeconfig_secret(fleet, "mine", &member_kubeconfig(testbed, "token"))])?;
    let why = controllers.wait_state("names-person/mine", "taken")?;
    ensure!(why.contains("not created by this program"), "{why}");
    testbed.hub.server.delete("secret mine -n names-person")?;
    // Another object comes and goes meanwhile, so that there was time to do wrong.
    apply(testbed, &[kubeconfig_secret(fleet, "other", &member_kubeconfig(testbed, "token"))])?;
    wait_secret(testbed, &controllers.namespace, "other")?;
    testbed.hub.server.delete("secret other -n names-person")?;
    wait_gone(testbed, &controllers.namespace, "other")?;
    let now = secret_field(testbed, "person-clusters", "mine", "/metadata/resourceVersion")?;
    ensure!(now == version, "a person's Secret was written");
    Ok(())
}
