//! The tunnel-agent also brings the member's credential: one command and one bootstrap kubeconfig,
//! and kubectl reaches the member. Denial ends all streams; acceptance restores all of it.

use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::kubeconfig::Credential;
use hub_tests::testbed::{Route, Testbed};
use hub_tests::wait;
use serde_json::Value;

use super::denied::Place;
use super::joining::Member;
use super::{Registration, get, may};
use crate::fixture::Running;

const NAME: &str = "brought";
const PLACE: &str = "brought-place";
/// The name of the ServiceAccount on the member, and thus of the Secret on the hub. Other tests'
/// clusters have none of this name.
const ACCOUNT: &str = "brought-reader";
const AGAIN: Duration = Duration::from_mins(1);

pub fn works(testbed: &Testbed) -> Result<()> {
    let values = format!(",controllers.sources.ocm=true,controllers.ocm.credential={ACCOUNT}");
    let _registration = Registration::with_ports(testbed, PLACE, &values)?;
    // Runs the same source in the namespace of this testbed's gateway.
    let flags = ["--enable=ocm", &format!("--ocm-credential={ACCOUNT}"), "--leader-elect=false"];
    let _writing = Running::start(testbed, SECRET_NAMESPACE, &flags)?;
    testbed.member.server.create_namespace(NAME)?;
    testbed.member.run_pod(NAME, "talker", "before\n")?;
    let token_of_caller = testbed.hub.create_user("brought-caller", &[NAME], &["*"])?;
    let credential = Credential::Token(token_of_caller.clone());
    let caller = testbed.kubectl_as(Route::Hub, NAME, "brought-caller", credential)?;
    let place = Place { testbed, name: NAME, caller: &caller, token: &token_of_caller };

    let of_chart =
        format!(",register.credential.serviceAccount={ACCOUNT},register.credential.clusterRole=cluster-admin");
    let mut member = Member::prepare(testbed, NAME, PLACE, &of_chart)?;
    member.options = member.options.clone().flag(&format!("--credential-service-account=default/{ACCOUNT}"));
    let agent = member.options.start()?;
    member.two_yeses()?;
    agent.wait_ready(AGAIN)?;
    place.answers()?;
    is_upstreams(testbed)?;
    its_right_is_of_that_one(testbed)?;

    member.follows_roles()?;
    place.no_and_yes(&member)?;
    place.deletion(&member)?;

    // Another process keeps the valid token, and a deleted Secret is written again.
    let before = token(testbed)?;
    agent.stop()?;
    let agent = member.options.start()?;
    agent.wait_ready(AGAIN)?;
    place.answers()?;
    ensure!(token(testbed)? == before, "a good token was replaced");
    agent.stop()?;
    testbed.hub.server.delete(&format!("secret {ACCOUNT} -n {NAME}"))?;
    let agent = member.options.start()?;
    wait::until_true("another token", AGAIN, || Ok(token(testbed).is_ok_and(|token| token != before)))?;
    place.answers()?;
    agent.stop()?;
    testbed.hub.server.delete(&format!("managedcluster {NAME}"))
}

fn secret(testbed: &Testbed) -> Result<Value> {
    get(testbed, &format!("secret {ACCOUNT} -n {NAME}"))
}

fn token(testbed: &Testbed) -> Result<Value> {
    Ok(secret(testbed)?["data"]["token"].clone())
}

/// The Secret is as upstream's agent writes it, without an owner: there is no
/// `ManagedServiceAccount`.
fn is_upstreams(testbed: &Testbed) -> Result<()> {
    let secret = secret(testbed)?;
    let keys: Vec<&String> = secret["data"].as_object().into_iter().flat_map(|data| data.keys()).collect();
    ensure!(keys == ["ca.crt", "token"] && secret["type"] == "Opaque", "{keys:?}");
    let label = &secret["metadata"]["labels"]["authentication.open-cluster-management.io/is-managed-serviceaccount"];
    ensure!(label == "true", "{label}");
    Ok(())
}

/// The agent may fill this Secret only.
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
