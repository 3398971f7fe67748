//! Nothing is written that is there already.

use std::sync::Arc;

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use libtest_mimic::Trial;

use crate::fixture::{
    Fixture, Running, SOON, apply, kubeconfig_secret, member_kubeconfig, namespace, secret_field, test, wait_secret,
};

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(fixture, "stillness: no change, no write", stillness)]
}

fn stillness(testbed: &Testbed) -> Result<()> {
    let fleet = "still-fleet";
    let kubeconfig = member_kubeconfig(testbed, "token");
    let source = kubeconfig_secret(fleet, "still", &kubeconfig);
    apply(testbed, &[namespace(fleet), source.clone()])?;
    let flags = ["--enable=kubeconfig", "--watch-namespaces=still-fleet"];
    let mut controllers = Running::start(testbed, "still-clusters", &flags)?;
    wait_secret(testbed, &controllers.namespace, "still")?;
    testbed.hub.server.label("secret still -n still-clusters owner=somebody")?;
    let version = || secret_field(testbed, "still-clusters", "still", "/metadata/resourceVersion");
    let before = version()?;
    testbed.hub.server.annotate("secret still -n still-fleet touched=yes")?;
    controllers.restart()?;
    controllers.wait_state("still-fleet/still", "registered")?;
    let writes = controllers.metric("cluster_gateway_controllers_secret_writes_total", "")?;
    ensure!(writes == 0.0 && version()? == before, "{writes} writes of what was there");
    // A change of the credential is written, and the person's label stays.
    apply(testbed, &[kubeconfig_secret(fleet, "still", &member_kubeconfig(testbed, "other"))])?;
    wait::until_true("the change", SOON, || Ok(version()? != before))?;
    let label = secret_field(testbed, "still-clusters", "still", "/metadata/labels/owner")?;
    ensure!(label == "somebody", "a person's label is gone");
    // Deleted by hand, it comes back: its object is there.
    testbed.hub.server.delete("secret still -n still-clusters")?;
    wait_secret(testbed, "still-clusters", "still")
}
