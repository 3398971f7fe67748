//! The tunnel-agent brings the member's credential too: one command and one bootstrap kubeconfig,
//! and kubectl reaches the member. A no ends whatever runs; a yes brings all of it back.

use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::kubeconfig::Credential;
use hub_tests::kubectl::Kubectl;
use hub_tests::testbed::{Route, Testbed};
use hub_tests::wait;
use serde_json::Value;
use tokio::time::Instant;

use super::joining::Member;
use super::{Registration, accept, get, may};
use crate::fixture::{Running, SOON};

const NAME: &str = "brought";
const PLACE: &str = "brought-place";
/// Of the ServiceAccount on the member, and so of the Secret on the hub. Other clusters of the
/// tests have none of this name.
const ACCOUNT: &str = "brought-reader";
/// From a no to the end of all streams and links.
const AT_ONCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_mins(1);

pub fn works(testbed: &Testbed) -> Result<()> {
    let values = format!(",controllers.sources.ocm=true,controllers.ocm.credential={ACCOUNT}");
    let _registration = Registration::with(testbed, PLACE, &values)?;
    // The same source, where the gateway of this testbed looks.
    let flags = ["--enable=ocm", &format!("--ocm-credential={ACCOUNT}"), "--leader-elect=false"];
    let _writing = Running::start(testbed, SECRET_NAMESPACE, &flags)?;
    testbed.member.create_admin(ACCOUNT)?;
    testbed.member.server.create_namespace(NAME)?;
    testbed.member.run_pod(NAME, "talker", "before\n")?;
    let caller = testbed.hub.create_user("brought-caller", &[NAME], &["*"])?;
    let caller = testbed.kubectl_as(Route::Hub, NAME, "brought-caller", Credential::Token(caller))?;

    let mut member = Member::prepare(testbed, NAME, PLACE)?;
    member.options = member.options.clone().flag(&format!("--credential-service-account=default/{ACCOUNT}"));
    let agent = member.options.start()?;
    member.two_yeses()?;
    agent.wait_ready(AGAIN)?;
    answers(&caller)?;
    is_upstreams(testbed)?;
    its_right_is_of_that_one(testbed)?;

    denied_and_accepted(testbed, &member, &caller)?;

    // Another process finds the token good, and one that is gone is there again.
    let before = token(testbed)?;
    agent.stop()?;
    let agent = member.options.start()?;
    agent.wait_ready(AGAIN)?;
    answers(&caller)?;
    ensure!(token(testbed)? == before, "a good token was replaced");
    agent.stop()?;
    testbed.hub.server.delete(&format!("secret {ACCOUNT} -n {NAME}"))?;
    let agent = member.options.start()?;
    wait::until_true("another token", AGAIN, || Ok(token(testbed).is_ok_and(|token| token != before)))?;
    answers(&caller)?;
    agent.stop()?;
    testbed.hub.server.delete(&format!("managedcluster {NAME}"))
}

/// kubectl on the hub, through the gateway, the tunnel-server and the agent.
fn answers(caller: &Kubectl) -> Result<()> {
    wait::until("the member's answer", AGAIN, || {
        let pods = caller.ok(&format!("get pods -n {NAME} -o name"))?;
        ensure!(pods.contains("pod/talker"), "{pods}");
        Ok(())
    })
}

fn secret(testbed: &Testbed) -> Result<Value> {
    get(testbed, &format!("secret {ACCOUNT} -n {NAME}"))
}

fn token(testbed: &Testbed) -> Result<Value> {
    Ok(secret(testbed)?["data"]["token"].clone())
}

/// What upstream's agent writes, less the owner: there is no `ManagedServiceAccount`.
fn is_upstreams(testbed: &Testbed) -> Result<()> {
    let secret = secret(testbed)?;
    let keys: Vec<&String> = secret["data"].as_object().into_iter().flat_map(|data| data.keys()).collect();
    ensure!(keys == ["ca.crt", "token"] && secret["type"] == "Opaque", "{keys:?}");
    let label = &secret["metadata"]["labels"]["authentication.open-cluster-management.io/is-managed-serviceaccount"];
    ensure!(label == "true", "{label}");
    Ok(())
}

/// The agent may fill that Secret, and do nothing to any other.
fn its_right_is_of_that_one(testbed: &Testbed) -> Result<()> {
    for (what, is_allowed) in [
        (format!("get secrets/{ACCOUNT} -n {NAME}"), true),
        (format!("patch secrets/{ACCOUNT} -n {NAME}"), true),
        (format!("delete secrets/{ACCOUNT} -n {NAME}"), false),
        (format!("list secrets -n {NAME}"), false),
        (format!("create secrets -n {NAME}"), false),
        (format!("get secrets/another -n {NAME}"), false),
        (format!("get secrets/{ACCOUNT} -n {PLACE}"), false),
        (format!("get secrets/{ACCOUNT} -n {SECRET_NAMESPACE}"), false),
        (format!("get serviceaccounts/{ACCOUNT} -n {NAME}"), false),
    ] {
        ensure!(may(testbed, NAME, &what)? == is_allowed, "{what}");
    }
    Ok(())
}

fn denied_and_accepted(testbed: &Testbed, member: &Member<'_>, caller: &Kubectl) -> Result<()> {
    member.follows_roles()?;
    let line = |line: &str| caller.args(line.split(' ')).start();
    let mut watch = line(&format!("get pods -n {NAME} --watch --no-headers"))?;
    ensure!(watch.next_line(SOON)?.starts_with("talker"), "the watch");
    let mut log = line(&format!("logs -f talker -n {NAME}"))?;
    ensure!(log.next_line(SOON)? == "before", "the log");
    accept(testbed, NAME, false)?;
    let said = Instant::now();
    let code = log.wait(AT_ONCE)?;
    ensure!(code != 0, "a log that was cut off looks finished");
    watch.wait(AT_ONCE)?;
    wait::until_true("the links' end", AGAIN, || Ok(!member.is_linked()))?;
    ensure!(said.elapsed() < AT_ONCE, "it took {:?}", said.elapsed());
    let refused = caller.args(["get", "pods", "-n", NAME]).run()?;
    ensure!(refused.success().is_err(), "it is reached after a no");
    accept(testbed, NAME, true)?;
    member.wait_linked()?;
    answers(caller)?;
    let mut log = line(&format!("logs -f talker -n {NAME}"))?;
    ensure!(log.next_line(SOON)? == "before", "the log");
    Ok(())
}
