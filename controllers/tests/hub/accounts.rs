//! `ManagedServiceAccounts` are filled through the gateway, without an agent on the member.

mod ended;
mod filled;
mod kept;
mod refused;
mod troubled;

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hub_tests::hub::MemberSecret;
use hub_tests::testbed::Testbed;
use hub_tests::{tools, turns, wait};
use k8s_openapi::jiff::Timestamp;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture::{Fixture, Running, SOON, apply, condition, namespace, test};

/// The namespace of the clusters that the testbed's gateway serves.
const CLUSTERS: &str = "vela-system";
/// The member's namespace for the `ServiceAccounts`.
pub const PLACE: &str = "open-cluster-management-agent-addon";
pub const LABEL: &str = "authentication.open-cluster-management.io/is-managed-serviceaccount";
const FINALIZER: &str = "cluster.core.oam.dev/managed-serviceaccount";
pub const KIND: &str = "managedserviceaccounts.authentication.open-cluster-management.io";
const ENABLE: &str = "--enable=managed-serviceaccount";
/// Tests run one at a time, so that none waits for another's Lease to expire.
const ALONE_HERE: &str = "--leader-elect=false";
/// Upstream's module, and the path of its definition there; the hub has the other kinds.
const DEFINITION: [&str; 2] = [
    "open-cluster-management.io/managed-serviceaccount",
    "config/crd/bases/authentication.open-cluster-management.io_managedserviceaccounts.yaml",
];

/// Controllers of one test fill the accounts of all tests, so only one test runs at a time.
pub const ALONE: &str = "ManagedServiceAccounts";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let alone = |name: &str, run: fn(&Testbed) -> Result<()>| {
        test(fixture, name, move |testbed| {
            let _alone = turns::alone(&[ALONE]);
            prepare(testbed)?;
            run(testbed)
        })
    };
    vec![
        alone(
            "accounts: Secret and status as upstream's agent writes them, and nothing where that is",
            filled::upstream,
        ),
        alone("accounts: a cluster of Open Cluster Management lives on its own account", filled::ocm),
        alone("accounts: what is there is not written again", kept::still),
        alone("accounts: a ServiceAccount that was deleted, and a Secret, are made again", kept::healed),
        alone("accounts: a token is renewed after four fifths of its life", kept::renewed),
        alone("accounts: the end of one takes its ServiceAccount from the member", ended::deleted),
        alone("accounts: one that ends by itself", ended::by_itself),
        alone("accounts: the end waits for a member that is away", ended::away),
        alone("accounts: what the page lets go of", ended::let_go),
        alone("accounts: others' Secrets and ServiceAccounts are not touched", refused::others),
        alone("accounts: a cluster that cannot be reached yet is waited for", refused::waiting),
        alone("accounts: what a member forbids is told", refused::forbidden),
        alone("accounts: with what the chart grants", refused::rights),
        alone("accounts: each call of a hub in trouble fails once", troubled::outlived),
    ]
}

/// Installs upstream's own definition.
pub fn prepare(testbed: &Testbed) -> Result<()> {
    let [module, path] = DEFINITION;
    testbed.hub.server.apply_text(&tools::account_file(module, path)?)
}

/// Registers the member as `cluster`, with a Secret written by hand.
fn register(testbed: &Testbed, cluster: &str) -> Result<()> {
    apply(testbed, &[namespace(cluster)])?;
    testbed.hub.register_member(cluster, &MemberSecret::with_token(&testbed.member.server, &testbed.member_token))
}

pub fn account(cluster: &str, name: &str) -> Value {
    json!({
        "apiVersion": "authentication.open-cluster-management.io/v1beta1", "kind": "ManagedServiceAccount",
        "metadata": {"name": name, "namespace": cluster}, "spec": {"rotation": {}},
    })
}

/// Starts controllers with this part only.
fn start(testbed: &Testbed) -> Result<Running> {
    Running::start(testbed, CLUSTERS, &[ENABLE, ALONE_HERE])
}

/// Reads an object of the hub; null if it does not exist.
fn read(testbed: &Testbed, kind: &str, cluster: &str, name: &str) -> Result<Value> {
    testbed.hub.server.read(&format!("{kind} {name} -n {cluster}"))
}

/// Waits until a `ManagedServiceAccount` reports its token; returns the account and its Secret.
pub fn filled_one(testbed: &Testbed, cluster: &str, name: &str) -> Result<(Value, Value)> {
    wait::until(&format!("{cluster}/{name} to be filled"), SOON, || {
        let account = read(testbed, KIND, cluster, name)?;
        ensure!(condition(&account["status"], "TokenReported")["status"] == "True", "{}", account["status"]);
        let secret = read(testbed, "secret", cluster, name)?;
        ensure!(!secret.is_null(), "no Secret");
        Ok((account, secret))
    })
}

/// Waits until the account's condition reports a failure; returns its message.
fn failed_one(testbed: &Testbed, cluster: &str, name: &str) -> Result<String> {
    wait::until(&format!("{cluster}/{name} to fail"), SOON, || {
        let account = read(testbed, KIND, cluster, name)?;
        let condition = condition(&account["status"], "TokenReported");
        ensure!(condition["status"] == "False" && condition["reason"] == "TokenReportFailed", "{}", account["status"]);
        Ok(condition["message"].as_str().unwrap_or_default().to_owned())
    })
}

fn gone(testbed: &Testbed, kind: &str, cluster: &str, name: &str) -> Result<()> {
    wait::until_true(&format!("the end of {kind} {cluster}/{name}"), SOON, || {
        Ok(read(testbed, kind, cluster, name)?.is_null())
    })
}

/// Reads the ServiceAccount on the member; null if it does not exist.
fn on_member(testbed: &Testbed, name: &str) -> Result<Value> {
    testbed.member.server.read(&format!("serviceaccount {name} -n {PLACE}"))
}

fn value(secret: &Value, key: &str) -> Result<String> {
    Ok(String::from_utf8(STANDARD.decode(secret["data"][key].as_str().context("a key")?)?)?)
}

fn claims(token: &str) -> Result<Value> {
    Ok(serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(1).context("a JWT")?)?)?)
}

/// A forged token for the ServiceAccount `uid`, issued `ago` seconds ago and valid for `life`
/// seconds.
fn forged(name: &str, uid: &Value, ago: i64, life: i64) -> String {
    let issued = Timestamp::now().as_second() - ago;
    let claims = json!({"iat": issued, "exp": issued + life, "sub": format!("system:serviceaccount:{PLACE}:{name}"),
        "kubernetes.io": {"namespace": PLACE, "serviceaccount": {"name": name, "uid": uid}}});
    format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// Replaces the token in a Secret, as any user with that right could.
fn put_token(testbed: &Testbed, cluster: &str, name: &str, token: &str) -> Result<()> {
    let patch = json!({"data": {"token": STANDARD.encode(token)}});
    testbed.hub.server.patch(&format!("secret {name} -n {cluster}"), &patch).map(drop)
}

fn version(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}
