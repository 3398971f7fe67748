//! The chart's autoscaler with real figures: more gateways when those that run are busy, and all of
//! them serve.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::usage::Usage;
use hub_tests::wait;
use node_tests::cluster::Cluster;
use node_tests::load::{self, Load};
use node_tests::testbed::Testbed;
use serde_json::Value;

use crate::pods::settled;
use crate::readme;

const NAMESPACE: &str = "vela-system";
const NAME: &str = "cluster-gateway";
/// The gateways' port.
const PORT: u16 = 9443;
/// So little that readers make two gateways busy.
const REQUESTED: &str = "2m";
const MOST: usize = 4;
/// For the autoscaler's rounds, a quarter of a minute each, and for pods to be ready.
const LIMIT: Duration = Duration::from_mins(3);

pub(crate) fn scaled(testbed: &Testbed) -> Result<()> {
    settled(testbed)?;
    let (operator, usage) = (readme::operator(testbed)?, Usage::start(&testbed.hub.server, NAMESPACE)?);
    let upgrade = "helm upgrade cluster-gateway charts/cluster-gateway -n vela-system --reuse-values --set";
    operator.run(&format!(
        "{upgrade} autoscaling.enabled=true,autoscaling.maxReplicas={MOST},resources.requests.cpu={REQUESTED}"
    ))?;
    let load = Load::start(&testbed.hub, &[("berlin", &testbed.member)])?;
    let pods = wait::until("more gateways", LIMIT, || {
        let used = used(&testbed.hub)?;
        usage.tell(NAME, &used.iter().map(|(name, cpu)| (name.as_str(), cpu.as_str())).collect::<Vec<_>>());
        ready(&testbed.hub)
    });
    let pods = pods.with_context(|| operator.run("kubectl -n vela-system describe hpa").unwrap_or_default())?;
    let nodes: Vec<_> = testbed.hub.nodes.iter().map(node_tests::node::Node::name).collect();
    ensure!(nodes.iter().all(|node| pods.iter().any(|(on, _)| on == node)), "{pods:?}");
    for (_, address) in pods {
        load::ask(&testbed.hub, address, "berlin").with_context(|| address.to_string())?;
    }
    load.finish()?;
    load::clean(&[&testbed.hub, &testbed.member])?;
    operator.run(&format!("{upgrade} autoscaling.enabled=false,resources.requests.cpu=100m"))?;
    settled(testbed)
}

/// What kubelets measure of each gateway.
fn used(hub: &Cluster) -> Result<Vec<(String, String)>> {
    let mut used = Vec::new();
    for node in &hub.nodes {
        let path = format!("/api/v1/nodes/{}/proxy/stats/summary", node.name());
        let summary: Value = serde_json::from_str(&hub.kubectl().ok(&format!("get --raw {path}"))?)?;
        for pod in summary["pods"].as_array().into_iter().flatten() {
            let of = |container: &&Value| container["name"] == NAME;
            let container = pod["containers"].as_array().into_iter().flatten().find(of);
            let cpu = container.and_then(|container| container["cpu"]["usageNanoCores"].as_u64());
            if let (Some(name), Some(cpu)) = (pod["podRef"]["name"].as_str(), cpu) {
                used.push((name.to_owned(), format!("{cpu}n")));
            }
        }
    }
    Ok(used)
}

/// The nodes and addresses of all that there may be, once each gets requests.
fn ready(hub: &Cluster) -> Result<Vec<(String, SocketAddr)>> {
    let slices = hub.get(&format!("endpointslices -n {NAMESPACE} -l kubernetes.io/service-name={NAME}"))?;
    let mut ready = Vec::new();
    for endpoint in slices["items"].as_array().into_iter().flatten().filter_map(|slice| slice["endpoints"].as_array()) {
        for one in endpoint.iter().filter(|one| one["conditions"]["ready"] == true) {
            let address = one["addresses"][0].as_str().context("no address")?.parse()?;
            let node = one["nodeName"].as_str().context("on no node")?;
            ready.push((node.to_owned(), SocketAddr::new(address, PORT)));
        }
    }
    ensure!(ready.len() == MOST, "{ready:?}");
    Ok(ready)
}
