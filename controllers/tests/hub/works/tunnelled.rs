//! A member that can be reached only through its agent.

use anyhow::{Result, ensure};
use hub_tests::hub::MemberSecret;
use hub_tests::promtool;
use hub_tests::testbed::Testbed;
use hub_tests::tunnel::{AgentCredential, AgentOptions};
use hub_tests::wait;
use serde_json::json;

use super::{Place, config_map};
use crate::fixture::SOON;
use crate::registration;

pub fn killed(testbed: &Testbed) -> Result<()> {
    let cluster = "works-tunnelled";
    registration::ports_are_left();
    let place = Place::start(testbed, cluster)?;
    let secret = MemberSecret::with_token(&testbed.member.server, &testbed.member_token).behind_tunnel();
    testbed.hub.register_member(cluster, &secret)?;
    let tunnelled = testbed.tunnelled()?;
    let token = testbed.hub.create_agent(cluster, &[cluster])?;
    let credential = AgentCredential::token(testbed.launcher(), cluster, &token)?;
    let options = AgentOptions::new(
        cluster,
        tunnelled.agent_address,
        testbed.tunnel.serving_authority_file(),
        testbed.member.server.address(),
        credential,
    );
    let agent = options.start()?;
    let map = |value: &str| [config_map(cluster, "far", &json!({"a": value}))];
    place.work("far", &map("b"), &json!({}))?;
    place.wait_applied("far")?;
    // Changes on the member are also seen through the tunnel.
    let change = |value: &str| {
        place.member().patch(&format!("configmap far -n {cluster}"), &json!({"data": {"a": value}})).map(drop)
    };
    let wait_data = |value: &str| {
        wait::until(&format!("far to have {value}"), SOON, || {
            let found = place.object("configmap", "far")?;
            ensure!(found["data"]["a"] == value, "{found}");
            Ok(())
        })
    };
    change("by hand")?;
    wait_data("b")?;

    drop(agent); // without a farewell
    let before = place.read("far")?["status"].clone();
    let away = || place.running.metric("cluster_gateway_delivery_member_requests_total", "code=\"50");
    let asked = away()?;
    change("meanwhile")?;
    place.work("far", &map("c"), &json!({}))?;
    wait::until_true("that it is asked in vain", SOON, || Ok(away()? > asked))?;
    promtool::evaluated(&place.running.metrics()?, &["ClusterGatewayDeliveryMemberFailing"])?;
    ensure!(place.read("far")?["status"] == before, "{}", place.read("far")?["status"]);
    let agent = options.start()?;
    wait_data("c")?;
    place.wait_applied("far")?;
    change("by hand")?;
    wait_data("c")?;
    place.end(&["far"])?;
    agent.stop()
}
