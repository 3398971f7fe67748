//! Accounts beside upstream's agent, and as credentials of clusters from Open Cluster Management.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hub_tests::kubeconfig::Credential;
use hub_tests::page::block;
use hub_tests::process::Process;
use hub_tests::testbed::{CLUSTER, Route, Testbed};
use hub_tests::tools::{self, Tool};
use hub_tests::wait;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    ALONE_HERE, CLUSTERS, FINALIZER, KIND, LABEL, PLACE, account, claims, filled_one, on_member, read, register, start,
    value,
};
use crate::fixture::{Running, SOON, apply, namespace, script, secret_field, wait_secret};

const PAGE: &str = include_str!("../../../../docs/registration.md");
const MANAGER: &str = "cluster-gateway-controllers";
/// The default lifetime in upstream's definition.
const LIFE: i64 = 8640 * 3600;

/// Upstream's agent for one cluster, as its Deployment starts it. It listens on port 8000, which no
/// flag changes.
fn agent(testbed: &Testbed, cluster: &str) -> Result<Process> {
    let hub = testbed.hub.server.kubectl().kubeconfig.display().to_string();
    let member = testbed.member.server.kubectl().kubeconfig.display().to_string();
    let program = tools::provide(Tool::AccountAgent)?.display().to_string();
    let args = [
        format!("NAMESPACE={PLACE}"),
        format!("HUB_KUBECONFIG={hub}"),
        program,
        "agent".to_owned(),
        format!("--cluster-name={cluster}"),
        format!("--kubeconfig={hub}"),
        format!("--spoke-kubeconfig={member}"),
        "--metrics-bind-address=0".to_owned(),
        "--health-probe-bind-address=0".to_owned(),
    ];
    Process::start("account-agent", Path::new("env"), args, &testbed.launcher().directory)
}

/// An object without what differs between any two: names of clusters, uids, times, tokens.
fn shape(object: &Value, cluster: &str) -> Result<Value> {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().context("metadata")?;
    for of_the_hub in ["creationTimestamp", "managedFields", "resourceVersion", "uid", "generation"] {
        metadata.remove(of_the_hub);
    }
    for owner in metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten() {
        owner["uid"] = "uid".into();
    }
    if let Some(token) = object["data"]["token"].as_str() {
        ensure!(!token.is_empty(), "an empty token");
        object["data"]["token"] = "token".into();
    }
    Ok(serde_json::from_str(&object.to_string().replace(cluster, "cluster"))?)
}

/// A status whose times are checked and then masked.
fn told(account: &Value) -> Result<Value> {
    let mut status = account["status"].clone();
    let moment = |value: &Value| -> Result<i64> {
        let text = value.as_str().context("a moment")?;
        ensure!(text.len() == "2026-01-02T03:04:05Z".len(), "{text}");
        Ok(text.parse::<Timestamp>()?.as_second())
    };
    let refreshed = moment(&status["tokenSecretRef"]["lastRefreshTimestamp"])?;
    let life = moment(&status["expirationTimestamp"])? - refreshed;
    ensure!((life - LIFE).abs() <= 5, "{life}");
    ensure!((Timestamp::now().as_second() - refreshed).abs() < 600, "{status}");
    status["expirationTimestamp"] = "T".into();
    status["tokenSecretRef"]["lastRefreshTimestamp"] = "T".into();
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        moment(&condition["lastTransitionTime"])?;
        condition["lastTransitionTime"] = "T".into();
    }
    Ok(status)
}

pub fn upstream(testbed: &Testbed) -> Result<()> {
    let (ours, theirs) = ("accounts-ours", "accounts-theirs");
    register(testbed, ours)?;
    register(testbed, theirs)?;
    let addon = json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
        "metadata": {"name": "managed-serviceaccount", "namespace": theirs}, "spec": {},
    });
    apply(testbed, &[addon, account(theirs, "equal"), account(ours, "equal")])?;
    testbed.member.server.apply(&[namespace(PLACE)])?;
    let controllers = start(testbed)?;
    let (our_account, our_secret) = filled_one(testbed, ours, "equal")?;
    // Our controllers have had time to act by now; they must not have written anything there.
    let untouched = read(testbed, KIND, theirs, "equal")?;
    ensure!(untouched["status"].is_null() && untouched["metadata"]["finalizers"].is_null(), "{untouched}");
    ensure!(read(testbed, "secret", theirs, "equal")?.is_null(), "a Secret beside the add-on");
    let mut agent = agent(testbed, theirs)?;
    let filled = filled_one(testbed, theirs, "equal");
    agent.check()?;
    let (their_account, their_secret) = filled.with_context(|| agent.log_tail())?;
    ensure!(shape(&our_secret, ours)? == shape(&their_secret, theirs)?, "{our_secret}\n{their_secret}");
    ensure!(told(&our_account)? == told(&their_account)?, "{our_account}\n{their_account}");
    ensure!(!their_account.to_string().contains(MANAGER) && !their_secret.to_string().contains(MANAGER));
    ensure!(on_member(testbed, "equal")?["metadata"]["labels"] == json!({LABEL: "true"}));
    let claims = claims(&value(&our_secret, "token")?)?;
    ensure!(claims["sub"] == format!("system:serviceaccount:{PLACE}:equal"), "{claims}");
    // The member accepts the token.
    let token = Credential::Token(value(&our_secret, "token")?);
    let me = testbed.kubectl_as(Route::Direct, CLUSTER, "account", token)?;
    let name = me.ok("auth whoami -o jsonpath={.status.userInfo.username}")?;
    ensure!(name == format!("system:serviceaccount:{PLACE}:equal"), "{name}");
    // If a concurrent write ended the pass over the account, the pass is repeated, and counts it.
    wait::until("it to count", SOON, || {
        let filled = controllers.metric("cluster_gateway_controllers_managed_serviceaccounts", "filled")?;
        ensure!(filled >= 1.0, "{}", controllers.metrics()?);
        Ok(())
    })?;
    // With the add-on there, our controllers stay out and release their finalizer, since they do
    // not manage that account.
    drop(agent);
    // The state that the agent left: after its start it issues a second token before it sees its
    // first.
    let (their_account, their_secret) = filled_one(testbed, theirs, "equal")?;
    let addon = json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
        "metadata": {"name": "managed-serviceaccount", "namespace": ours}, "spec": {},
    });
    apply(testbed, &[addon])?;
    wait::until_true("our finalizer to go", SOON, || {
        Ok(read(testbed, KIND, ours, "equal")?["metadata"]["finalizers"].is_null())
    })?;
    // Without the add-on, our controllers continue with what the agent left.
    let addons = "managedclusteraddons.addon.open-cluster-management.io managed-serviceaccount";
    testbed.hub.server.delete(&format!("{addons} -n {theirs}"))?;
    wait::until_true("our finalizer", SOON, || {
        Ok(read(testbed, KIND, theirs, "equal")?["metadata"]["finalizers"] == json!([FINALIZER]))
    })?;
    let adopted = read(testbed, "secret", theirs, "equal")?;
    ensure!(adopted["data"] == their_secret["data"], "another token");
    ensure!(read(testbed, KIND, theirs, "equal")?["status"] == their_account["status"], "another status");
    Ok(())
}

/// The account of the cluster itself, until its Secret is there.
fn as_the_page_shows(testbed: &Testbed, cluster: &str) -> Result<()> {
    let directory = testbed.directory("accounts-by-hand")?;
    let lines = block(PAGE, "sh", "kubectl apply -f account.yaml")?.replace("berlin", cluster);
    let document = block(PAGE, "yaml", "kind: ManagedServiceAccount\n")?;
    std::fs::write(directory.join("account.yaml"), document.replace("berlin", cluster))?;
    wait::until("the account's Secret", SOON, || script(testbed, &directory, &lines)).map(drop)
}

pub fn ocm(testbed: &Testbed) -> Result<()> {
    let cluster = "accounts-ocm";
    register(testbed, cluster)?;
    let authority = std::fs::read(testbed.member.server.authority_file())?;
    let managed = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": cluster}, "spec": {"hubAcceptsClient": true, "managedClusterClientConfigs": [
            {"url": testbed.member.server.url(),
                "caBundle": STANDARD.encode(authority)}]},
    });
    apply(testbed, &[managed])?;
    let controllers = Running::start(testbed, CLUSTERS, &["--enable=managed-serviceaccount,ocm", ALONE_HERE])?;
    as_the_page_shows(testbed, cluster)?;
    let (_, secret) = filled_one(testbed, cluster, "cluster-gateway")?;
    // A name has one owner: for now a person, by the Secret written by hand.
    controllers.wait_state(&format!("ManagedCluster//{cluster}"), "taken")?;
    // On the member, RBAC limits the account.
    testbed.member.server.bind(cluster, "cluster-admin", (PLACE, "cluster-gateway"))?;
    testbed.hub.forget_member(cluster)?;
    wait_secret(testbed, CLUSTERS, cluster)?;
    let source = "/metadata/labels/cluster.core.oam.dev~1source";
    ensure!(secret_field(testbed, CLUSTERS, cluster, source)? == "ocm");
    let registered = read(testbed, "secret", CLUSTERS, cluster)?;
    ensure!(registered["data"]["token"] == secret["data"]["token"], "another token than the account's");
    let tester = testbed.kubectl_as(Route::Hub, cluster, "accounts", Credential::Token(testbed.token.clone()))?;
    let who = || tester.ok("auth whoami -o jsonpath={.status.userInfo.username}");
    let name = wait::until("the cluster", SOON, who)?;
    ensure!(name == format!("system:serviceaccount:{PLACE}:cluster-gateway"), "{name}");
    // It fills other accounts, and its own.
    apply(testbed, &[account(cluster, "reader")])?;
    filled_one(testbed, cluster, "reader")?;
    testbed.hub.server.delete(&format!("secret cluster-gateway -n {cluster}"))?;
    let (_, renewed) = filled_one(testbed, cluster, "cluster-gateway")?;
    ensure!(renewed["metadata"]["uid"] != secret["metadata"]["uid"], "the same Secret");
    wait::until_true("the new token to be registered", SOON, || {
        Ok(read(testbed, "secret", CLUSTERS, cluster)?["data"]["token"] == renewed["data"]["token"])
    })?;
    ensure!(who()? == name);
    testbed.hub.server.delete(&format!("managedcluster {cluster}"))
}
