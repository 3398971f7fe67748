//! The gateway as a part of the hub: its API is available and in discovery, blocks no others, and
//! is back after a restart.

use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::fixture::{Fixture, exclusive, test};
use crate::streams;

const API_SERVICE: &str = "get apiservice v1alpha1.cluster.core.oam.dev -o";
/// Time for the hub's next check of a failed API, and slack for a busy machine.
const RECOVERY: Duration = Duration::from_secs(40);
/// Time for a stream's first line, and for its end after the gateway's.
const STREAM: Duration = Duration::from_secs(20);

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "aggregation::the APIService is available", available),
        test(fixture, "aggregation::kubectl lists clusters without their credentials", list),
        test(fixture, "aggregation::the API is in the hub's discovery", discovery),
        test(fixture, "aggregation::a namespace of the hub can be deleted", namespace_deletion),
    ]
}

/// Separate from the others, to run last: if the gateway does not come back, only this test fails.
pub(crate) fn last_trial(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![exclusive(
        fixture,
        "aggregation::a stopped gateway ends its streams, a restarted one serves, the hub untouched",
        restart,
    )]
}

fn available(testbed: &Testbed) -> Result<()> {
    let condition = r#"jsonpath={.status.conditions[?(@.type=="Available")].status},{.status.conditions[?(@.type=="Available")].reason}"#;
    let text = testbed.hub.server.kubectl().ok(&format!("{API_SERVICE} {condition}"))?;
    ensure!(text == "True,Passed", "{text}");
    Ok(())
}

fn list(testbed: &Testbed) -> Result<()> {
    let kubectl = testbed.hub.server.kubectl();
    let table = kubectl.ok("get clustergateways")?;
    let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let heading = lines.next().unwrap_or_default();
    ensure!(heading == ["NAME", "PROVIDER", "CREDENTIAL-TYPE", "ENDPOINT-TYPE", "HEALTHY"], "{table}");
    ensure!(lines.any(|line| line.starts_with(&[CLUSTER]) && line.contains(&"ServiceAccountToken")), "{table}");
    let object = kubectl.ok(&format!("get clustergateway {CLUSTER} -o json"))?;
    ensure!(object.contains(&testbed.member.server.url()), "no endpoint: {object}");
    ensure!(!object.contains(&testbed.member_token), "the token can be read");
    let absent = kubectl.args(["get", "clustergateway", "absent"]).run()?;
    ensure!(absent.status == 1 && absent.stderr.contains("(NotFound)"), "{absent:?}");
    Ok(())
}

fn discovery(testbed: &Testbed) -> Result<()> {
    let words = "api-resources --api-group=cluster.core.oam.dev --no-headers --cached=false";
    let text = testbed.hub.server.kubectl().ok(words)?;
    let resources: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    ensure!(resources.contains(&"clustergateways"), "{text}");
    Ok(())
}

/// The namespace controller asks every API group what to delete, and gives up if one does not
/// answer.
fn namespace_deletion(testbed: &Testbed) -> Result<()> {
    let kubectl = testbed.hub.server.kubectl();
    testbed.hub.server.create_namespace("short-lived")?;
    kubectl.ok("create configmap inside --from-literal=a=b -n short-lived")?;
    testbed.hub.server.delete("namespace short-lived")?;
    let gone = kubectl.args(["get", "namespace", "short-lived"]).run()?;
    ensure!(gone.stderr.contains("(NotFound)"), "{gone:?}");
    Ok(())
}

fn restart(testbed: &Testbed) -> Result<()> {
    let words = "get namespace default -o name";
    let generation = || testbed.hub.server.kubectl().ok(&format!("{API_SERVICE} jsonpath={{.spec}}"));
    let before = generation()?;
    streams::pod(testbed)?;
    let mut open = Vec::new();
    for route in Route::PROXIED {
        for words in ["get pods -n streams -w -o name", "exec shell -n streams -- sh -c echo;sleep${IFS}600"] {
            let mut running = testbed.kubectl(route).args(words.split(' ')).start()?;
            running.next_line(STREAM)?;
            open.push((route, words, running));
        }
    }
    testbed.gateway.restart(|| {
        let output = testbed.kubectl(Route::Hub).args(words.split(' ')).run()?;
        ensure!(output.status != 0, "something answers for a stopped gateway: {output:?}");
        Ok(())
    })?;
    for (route, words, running) in open {
        running.wait(STREAM).with_context(|| format!("{words} via {} outlived the gateway", route.name()))?;
    }
    let _in_use = testbed.gateway.in_use();
    for route in Route::PROXIED {
        wait::until(&format!("the way via {}", route.name()), RECOVERY, || testbed.kubectl(route).ok(words))?;
    }
    ensure!(generation()? == before, "the APIService was changed");
    Ok(())
}
