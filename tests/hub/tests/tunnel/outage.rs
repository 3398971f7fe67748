//! An agent that is not linked yet, crashes, and comes back: callers learn which hop is missing,
//! open streams end, and the cluster can be used again.

use hub_tests::prelude::*;
use hub_tests::tunnel::AgentCredential;
use libtest_mimic::Trial;

use super::registration::agent;
use crate::access::bearer;
use crate::fixture::{Fixture, test};

const CLUSTER: &str = "wayward";
/// Time for an agent to link, and for the gateway to try it again.
const LIMIT: Duration = Duration::from_secs(30);
/// Time for open streams through a crashed agent to end.
const PROMPT: Duration = Duration::from_secs(5);

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(
        fixture,
        "tunnel::an agent that crashes ends what was under way, callers are told, its return is noticed",
        outage,
    )]
}

fn version(testbed: &Testbed, route: Route) -> Result<Response> {
    let path = format!("{}/version", Testbed::proxy_path(CLUSTER));
    testbed.client(route).get(&path, &[("authorization", &bearer(&testbed.token))])
}

fn no_agent(testbed: &Testbed) -> Result<()> {
    for route in Route::PROXIED {
        wait::until("the refusal", PROMPT, || {
            let status = version(testbed, route)?.expect(StatusCode::SERVICE_UNAVAILABLE)?.json()?;
            let message = status["message"].as_str().context("no message")?;
            let words = [CLUSTER, "no tunnel-agent of the cluster is linked"];
            ensure!(status["kind"] == "Status" && words.iter().all(|word| message.contains(word)), "{status}");
            Ok(())
        })?;
    }
    Ok(())
}

fn outage(testbed: &Testbed) -> Result<()> {
    testbed.tunnelled()?;
    let secret = MemberSecret::with_token(&testbed.member.server, &testbed.member_token).behind_tunnel();
    testbed.hub.register_member(CLUSTER, &secret)?;
    no_agent(testbed)?;
    let token = testbed.hub.create_agent("agent-wayward", &[CLUSTER])?;
    let options = agent(testbed, CLUSTER, AgentCredential::token(testbed.launcher(), CLUSTER, &token)?)?;
    let agent = options.start()?;
    let mut watches = Vec::new();
    for route in Route::PROXIED {
        wait::until("the cluster", LIMIT, || version(testbed, route)?.expect(StatusCode::OK))?;
        let kubectl = testbed.kubectl_as(route, CLUSTER, CLUSTER, Credential::Token(testbed.token.clone()))?;
        let mut watch = kubectl.args(["get", "namespace", "default", "-w"]).start()?;
        watch.next_line(LIMIT)?; // heading
        watch.next_line(LIMIT)?;
        watches.push(watch);
    }
    drop(agent); // without a farewell
    for watch in watches {
        watch.wait(PROMPT)?;
    }
    no_agent(testbed)?;
    let _agent = options.start()?;
    for route in Route::PROXIED {
        wait::until("the cluster's return", LIMIT, || version(testbed, route)?.expect(StatusCode::OK))?;
    }
    testbed.hub.forget_member(CLUSTER)
}
