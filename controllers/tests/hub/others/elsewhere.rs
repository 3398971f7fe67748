//! A fleet of Karmada whose control plane is not the hub.

use anyhow::{Context as _, Result, ensure};
use hub_tests::control_plane::ApiServer;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{authority, is_reachable, value};
use crate::fixture::{Running, SOON, definition, event, namespace, wait_gone, wait_secret};

const PLACE: &str = "elsewhere-clusters";
const SECRETS: &str = "karmada-cluster";

pub fn moves_in_and_out(testbed: &Testbed) -> Result<()> {
    // Any API server other than the hub will do.
    let plane = &testbed.member.server;
    let kind = definition("cluster.karmada.io", "Cluster", "v1alpha1", "Cluster");
    plane.apply(&[namespace(SECRETS), kind])?;
    let cluster = |name: &str, endpoint: &str| {
        json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
            "spec": {"syncMode": "Push", "apiEndpoint": endpoint,
                "secretRef": {"namespace": SECRETS, "name": "moved"}}})
    };
    let secret = |token: &str| -> Result<Value> {
        Ok(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "moved", "namespace": SECRETS},
            "stringData": {"caBundle": authority(testbed)?, "token": token}}))
    };
    plane.apply(&[secret("first")?, cluster("moved", &plane.url()), cluster("elsewhere-broken", "http://10.9.8.7")])?;
    let kubeconfig = format!("--karmada-kubeconfig={}", plane.kubectl().kubeconfig.display());
    let controllers = Running::start(testbed, PLACE, &["--enable=karmada", &kubeconfig])?;
    wait_secret(testbed, PLACE, "moved")?;
    // Events on its objects are written to their own API server.
    let note = wait::until("an Event", SOON, || told(plane, "elsewhere-broken"))?;
    ensure!(note.contains("http would send"), "{note}");
    ensure!(
        event(testbed, "default", "elsewhere-broken", "ClusterRefused").is_err(),
        "an Event on an object of elsewhere"
    );
    let token = testbed.member.create_admin("elsewhere")?;
    plane.apply(&[secret(&token)?])?;
    wait::until_true("the new token", SOON, || Ok(value(testbed, PLACE, "moved", "token")? == token))?;
    is_reachable(testbed, PLACE, "moved")?;
    let source = "secrets -l cluster.core.oam.dev/source=karmada";
    ensure!(testbed.hub.server.names(&format!("{source} -n {PLACE}"))? == ["moved"], "the hub's own are read");
    plane.delete("clusters.cluster.karmada.io moved")?;
    wait_gone(testbed, PLACE, "moved")?;
    ensure!(controllers.report("Cluster//moved").is_err());
    plane.delete("crd clusters.cluster.karmada.io")
}

fn told(plane: &ApiServer, name: &str) -> Result<String> {
    let selector = format!("regarding.name={name},reason=ClusterRefused");
    let events = plane.read(&format!("events.events.k8s.io -n default --field-selector {selector}"))?;
    events["items"][0]["note"].as_str().map(str::to_owned).context("no Event")
}
