//! The agents of a cluster of the pictures: one that links it, and the Deployment that they are of.

use std::any::Any;

use anyhow::{Context as _, Result};
use hub_tests::testbed::Testbed;
use hub_tests::tunnel::{AgentCredential, AgentOptions};
use hub_tests::wait;
use serde_json::json;

use super::LINKED;
use crate::dashboard::LIMIT;

const NAME: &str = "pictures-agents";

/// Links it until it is dropped.
pub fn start(testbed: &Testbed) -> Result<Box<dyn Any>> {
    let server = testbed.tunnelled()?.agent_address;
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
    let path = "jsonpath={.status.readyReplicas}/{.spec.replicas}";
    wait::until_true("both agents", LIMIT, || {
        Ok(member.kubectl().ok(&format!("get deployment {NAME} -n default -o {path}"))? == "2/2")
    })?;
    Ok(Box::new(agent))
}

pub fn forget(testbed: &Testbed) -> Result<()> {
    testbed.member.server.delete(&format!("deployment {NAME} -n default"))
}
