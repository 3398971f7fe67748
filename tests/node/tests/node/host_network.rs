//! Gateways that take a port of their node, one on each node: a new pod has no free node until an
//! old one is gone.

use anyhow::{Result, ensure};
use node_tests::image::repository;
use node_tests::inventory::Inventory;
use node_tests::operator::Operator;
use node_tests::testbed::Testbed;
use serde_json::Value;

const NAMESPACE: &str = "edge";
const ROLLOUT: &str = "kubectl -n edge rollout status deployment cluster-gateway --timeout=150s";

pub(crate) fn replaced(testbed: &Testbed) -> Result<()> {
    let before = Inventory::of(&testbed.hub)?;
    let operator = Operator::new(testbed, &[])?;
    let image = repository("cluster-gateway");
    operator.run(&format!(
        "helm install cluster-gateway charts/cluster-gateway -n {NAMESPACE} --create-namespace \
         --set hostNetwork=true,image.repository={image}"
    ))?;
    operator.run(ROLLOUT)?;
    let installed = pods(testbed)?;
    operator.run(&format!(
        "helm upgrade cluster-gateway charts/cluster-gateway -n {NAMESPACE} --reuse-values --set log.format=json"
    ))?;
    operator.run(ROLLOUT)?;
    operator.run("kubectl wait --for=condition=Available apiservice/v1alpha1.cluster.core.oam.dev --timeout=60s")?;
    let upgraded = pods(testbed)?;
    ensure!(upgraded.iter().all(|pod| !installed.contains(pod)), "not replaced: {installed:?}, {upgraded:?}");
    operator.run(&format!(
        "helm uninstall cluster-gateway -n {NAMESPACE} --wait
         kubectl delete namespace {NAMESPACE}"
    ))?;
    before.wait_restored(&testbed.hub, |_| false)
}

/// Names of the two pods that are not ending, after checks that they are on different nodes and
/// have their nodes' addresses.
fn pods(testbed: &Testbed) -> Result<[String; 2]> {
    let list = testbed.hub.get(&format!("pods -n {NAMESPACE}"))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let living = list["items"].as_array().into_iter().flatten();
    let living = living.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    let found: Vec<_> = living
        .map(|pod| (text(&pod["metadata"]["name"]), text(&pod["status"]["hostIP"]), text(&pod["status"]["podIP"])))
        .collect();
    let [(one, node, address), (other, other_node, _)] = &*found else { anyhow::bail!("not two: {found:?}") };
    ensure!(node == address && node != other_node, "{found:?}");
    Ok([one.clone(), other.clone()])
}
