//! The agents of a cluster of the pictures: one that links it, and the Deployment that they are of;
//! and the pod of the tunnel-server, as the hub's API server reaches it.

use std::any::Any;
use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use hub_tests::gate::Gate;
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::testbed::Testbed;
use hub_tests::tunnel::{AgentCredential, AgentOptions};
use hub_tests::{ports, wait};
use serde_json::json;

use super::LINKED;
use crate::dashboard::LIMIT;
use crate::fixture::has_both;

const NAME: &str = "pictures-agents";
/// A name as a Deployment gives it.
const SERVER: &str = "cluster-gateway-tunnel-server-abcde";

/// Links it until it is dropped.
pub fn start(testbed: &Testbed) -> Result<Box<dyn Any>> {
    let tunnelled = testbed.tunnelled()?;
    let reached = reachable(testbed, tunnelled.admin_address())?;
    let server = tunnelled.agent_address;
    let token = testbed.hub.create_agent(NAME, &[LINKED])?;
    let credential = AgentCredential::token(testbed.launcher(), NAME, &token)?;
    let (authority, member) = (testbed.tunnel.serving_authority_file(), &testbed.member.server);
    let agent = AgentOptions::new(LINKED, server, authority, member.address(), credential).start()?;
    agent.wait_ready(LIMIT).context("the agent")?;
    let labels = json!({"app.kubernetes.io/name": "tunnel-agent", "app.kubernetes.io/instance": NAME});
    let containers = json!([{"name": "tunnel-agent", "image": "none", "args": [format!("--cluster={LINKED}")]}]);
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
    member.apply(&[json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": "default", "labels": labels},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}})])?;
    wait::until_true("both agents", LIMIT, || has_both(member, &format!("{NAME} -n default")))?;
    Ok(Box::new((agent, reached)))
}

/// Makes the tunnel-server a pod of the hub with the port `admin`, until it is dropped.
fn reachable(testbed: &Testbed, admin: SocketAddr) -> Result<Gate> {
    let own = ports::own_address()?;
    let own = own.context("API servers do not connect to pods on loopback, and this machine has no other address")?;
    let gate = Gate::start_at(own, vec![admin])?;
    let metadata = json!({"name": SERVER, "namespace": SECRET_NAMESPACE,
        "labels": {"app.kubernetes.io/name": "tunnel-server"}});
    let ports = json!([{"name": "admin", "containerPort": gate.port()}]);
    let containers = json!([{"name": "tunnel-server", "image": "none", "ports": ports}]);
    let hub = &testbed.hub.server;
    hub.apply(&[json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}})])?;
    let status = json!({"status": {"phase": "Running", "podIP": own, "podIPs": [{"ip": own}]}});
    hub.patch(&format!("pod {SERVER} -n {SECRET_NAMESPACE} --subresource=status"), &status)?;
    Ok(gate)
}

pub fn forget(testbed: &Testbed) -> Result<()> {
    testbed.hub.server.delete(&format!("pod {SERVER} -n {SECRET_NAMESPACE}"))?;
    testbed.member.server.delete(&format!("deployment {NAME} -n default"))
}
