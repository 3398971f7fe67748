//! A member that goes down and comes back: callers get an error, and the next request after its
//! return is served.

use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::access::{bearer, client};
use crate::fixture::{Fixture, test};

const CLUSTER: &str = "unsteady";
const MAPS: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/unsteady/proxy/api/v1/configmaps";
/// Time to notice pooled connections that died with the member.
const LIMIT: Duration = Duration::from_secs(5);

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(
        fixture,
        "outage::a killed member is unreachable, a restarted one is used at once, watches begin again",
        outage,
    )]
}

/// The current version on the member.
fn newest(testbed: &Testbed) -> Result<String> {
    let answer = client(testbed, Route::Gateway).get(MAPS, &[("authorization", &bearer(&testbed.token))])?;
    let list = answer.expect(StatusCode::OK)?.json()?;
    Ok(list["metadata"]["resourceVersion"].as_str().context("a list without a version")?.to_owned())
}

fn outage(testbed: &Testbed) -> Result<()> {
    let mut server = testbed.start_api_server(CLUSTER)?;
    server.wait_ready()?;
    testbed.hub.register_member(CLUSTER, &MemberSecret::with_certificate(&server, server.admin()))?;
    let version = |route| -> Result<Response> {
        let path = format!("{}/version", Testbed::proxy_path(CLUSTER));
        client(testbed, route).get(&path, &[("authorization", &bearer(&testbed.token))])
    };
    for route in Route::PROXIED {
        wait::until("the cluster", LIMIT, || version(route)?.expect(StatusCode::OK))?;
    }
    let before = newest(testbed)?;
    for name in ["first", "second"] {
        server.kubectl().ok(&format!("create configmap {name}"))?;
    }
    server.stop()?;
    for route in Route::PROXIED {
        let status = version(route)?.expect(StatusCode::SERVICE_UNAVAILABLE)?.json()?;
        ensure!(status["message"].as_str().unwrap_or_default().contains("dial tcp"), "{status}");
    }
    server.start_again()?;
    server.wait_ready()?;
    for route in Route::PROXIED {
        version(route)?.expect(StatusCode::OK)?;
        // A restarted member does not know earlier changes: its own answer makes watchers start
        // over.
        let path = format!("{MAPS}?watch=true&timeoutSeconds=1&resourceVersion={before}");
        let watch =
            client(testbed, route).get(&path, &[("authorization", &bearer(&testbed.token))])?.expect(StatusCode::OK)?;
        let event = watch.json()?;
        ensure!(event["type"] == "ERROR" && event["object"]["reason"] == "Expired", "{event}");
    }
    testbed.hub.forget_member(CLUSTER)
}
