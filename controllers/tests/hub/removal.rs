//! A source that disappears takes no cluster with it.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use hub_tests::testbed::Testbed;
use hub_tests::trouble::Trouble;
use hub_tests::turns::{self, Alone};
use hub_tests::{tools, wait};
use kit::lines;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fixture::{
    Fixture, Running, SOON, apply, definition, event, kubeconfig_secret, member_kubeconfig, namespace, test, wait_gone,
    wait_secret,
};
use crate::others::{FOLLOWED, is_reachable, rotation};
use crate::program::Program;
use crate::rights::{grant, grant_without, installed, nothing_refused, rendered, started, started_over};

/// Two complete lists are a minute apart.
const TWO_LISTS: Duration = Duration::from_secs(61);
/// More than may be removed within a minute.
const FLEET: usize = 24;
/// Where their clusters are.
const CROWD: &str = "crowd-clusters";
/// Clusters of a kind that is deleted.
const OF_A_KIND: usize = 50;
/// A kind's deletion deletes its objects everywhere.
const ALONE: &str = "KubeFedClusters";
/// The name of a member's Secret, as `kubefedctl join` has it generated.
const FED_SECRET: &str = "fed-member-x7k2p";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "removal: a kind that goes takes no cluster with it", kind),
        test(fixture, "removal: too many at once wait", crowd),
        test(fixture, "removal: an uninstallation takes what sources wrote, if it is to", uninstalled),
        test(fixture, "removal: a list that is forbidden removes nothing, and what ended meanwhile counts", forbidden),
    ]
}

/// Until it is dropped, no other test uses `KubeFed`, whose kind a test here deletes.
pub fn alone() -> Alone {
    turns::alone(&[ALONE])
}

fn kubefed(name: &str) -> Value {
    json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"name": name, "namespace": "removal-kind"},
        "spec": {"apiEndpoint": "https://10.9.8.7", "secretRef": {"name": "token"}},
    })
}

/// The Secrets that sources wrote.
fn sourced(testbed: &Testbed, namespace: &str) -> Result<Vec<String>> {
    testbed.hub.server.names(&format!("secrets -n {namespace} -l cluster.core.oam.dev/source"))
}

fn clusters(testbed: &Testbed, namespace: &str) -> Result<usize> {
    Ok(sourced(testbed, namespace)?.len())
}

fn kind(testbed: &Testbed) -> Result<()> {
    let _alone = alone();
    let kind = tools::kubefed_kind()?;
    let token = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": "removal-kind"},
        "stringData": {"token": "token"},
    });
    testbed.hub.server.apply_text(&kind)?;
    apply(testbed, &[namespace("removal-kind"), token])?;
    // High enough that this limit is not what keeps them.
    let values = "controllers.sources.kubefed=true,controllers.kubefedNamespace=removal-kind,\
                  controllers.sourceRemovalLimit=100";
    let controllers = installed(testbed, "removal-kind-clusters", values)?;
    let all: Vec<_> = (0..OF_A_KIND).map(|number| kubefed(&format!("fed-{number}"))).collect();
    apply(testbed, &all)?;
    let clusters = || clusters(testbed, &controllers.namespace);
    wait::until_true("all of them", SOON, || Ok(clusters()? == OF_A_KIND))?;
    member(testbed, &controllers)?;
    testbed.hub.server.delete("crd kubefedclusters.core.kubefed.io")?;
    let available = || controllers.metric("cluster_gateway_controllers_source_available", "kubefed");
    wait::until_true("the source to be unavailable", SOON, || Ok(available()? < 1.0))?;
    testbed.hub.server.apply_text(&kind)?;
    wait::until_true("the source to be back", SOON, || Ok(available()? >= 1.0))?;
    ensure!(clusters()? == OF_A_KIND, "the end of a kind was the end of its clusters");
    // One cluster's object comes back; its deletion by itself counts.
    apply(testbed, &all[..1])?;
    controllers.wait_state("removal-kind/fed-0", "registered")?;
    testbed.hub.server.delete("kubefedclusters.core.kubefed.io fed-0 -n removal-kind")?;
    wait_gone(testbed, &controllers.namespace, "fed-0")?;
    ensure!(clusters()? == OF_A_KIND - 1);
    // The next lists lack all the others, and remove none of them, either.
    let held = || controllers.metric("cluster_gateway_controllers_removals_held", "kubefed");
    let left = f64::from(u32::try_from(OF_A_KIND - 1)?);
    wait::until_true("their removal to be held", TWO_LISTS + SOON, || Ok(held()? >= left))?;
    ensure!(clusters()? == OF_A_KIND - 1, "a kind that is back without its objects ended their clusters");
    nothing_refused(testbed, &controllers.namespace)?;
    drop(controllers);
    other_version(testbed)
}

/// The source waits for a kind that is served only in an unknown version, and reports so.
fn other_version(testbed: &Testbed) -> Result<()> {
    testbed.hub.server.delete("crd kubefedclusters.core.kubefed.io")?;
    apply(testbed, &[definition("core.kubefed.io", "KubeFedCluster", "v9", "Namespaced")])?;
    let mut strange = kubefed("strange");
    strange["apiVersion"] = "core.kubefed.io/v9".into();
    apply(testbed, &[strange])?;
    let flags = ["--enable=kubefed,kubeconfig", "--kubefed-namespace=removal-kind", "--watch-namespaces=removal-kind"];
    let controllers = Running::start(testbed, "removal-version-clusters", &flags)?;
    // Other sources do not wait for it.
    apply(testbed, &[kubeconfig_secret("removal-kind", "beside", &member_kubeconfig(testbed, "token"))])?;
    wait_secret(testbed, &controllers.namespace, "beside")?;
    let available = || controllers.metric("cluster_gateway_controllers_source_available", "kubefed");
    ensure!(available()? < 1.0 && clusters(testbed, &controllers.namespace)? == 1);
    let said = testbed.log()?;
    ensure!(lines::has(&said, "the hub does not serve it in a version that is understood"), "it says nothing of it");
    testbed.hub.server.delete("crd kubefedclusters.core.kubefed.io")?;
    testbed.hub.server.apply_text(&tools::kubefed_kind()?)?;
    apply(testbed, &[kubefed("known")])?;
    wait_secret(testbed, &controllers.namespace, "known")?;
    ensure!(available()? >= 1.0);
    Ok(())
}

/// A member of `KubeFed` is reached with its token, and with the next one.
fn member(testbed: &Testbed, controllers: &Running) -> Result<()> {
    let mut cluster = kubefed("fed-member");
    let authority = std::fs::read(testbed.member.server.authority_file())?;
    cluster["spec"] = json!({"apiEndpoint": testbed.member.server.url(), "caBundle": STANDARD.encode(authority),
        "secretRef": {"name": FED_SECRET}});
    let token = |token: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": FED_SECRET, "namespace": "removal-kind"},
            "stringData": {"token": token}})
    };
    let [first, second] = ["fed-first", "fed-second"].map(|name| testbed.member.create_admin(name));
    apply(testbed, &[token(&first?), cluster])?;
    wait_secret(testbed, &controllers.namespace, "fed-member")?;
    is_reachable(testbed, &controllers.namespace, "fed-member")?;
    testbed.member.server.delete("serviceaccount fed-first -n default")?;
    let registered = (&*controllers.namespace, "fed-member");
    let mut tokens = (0..).map(|number| format!("rotated-{number}"));
    wait::timely("from a rotated token of KubeFed's to its write", FOLLOWED, || {
        let next = tokens.next().expect("there are endless");
        rotation(testbed, &token(&next), registered, ("token", &next))
    })?;
    let second = second?;
    rotation(testbed, &token(&second), registered, ("token", &second))?;
    is_reachable(testbed, &controllers.namespace, "fed-member")?;
    testbed.hub.server.delete("kubefedclusters.core.kubefed.io fed-member -n removal-kind")?;
    wait_gone(testbed, &controllers.namespace, "fed-member")
}

fn crowd(testbed: &Testbed) -> Result<()> {
    let fleet = "removal-crowd";
    let kubeconfig = member_kubeconfig(testbed, "token");
    let all: Vec<_> =
        (0..FLEET).map(|number| kubeconfig_secret(fleet, &format!("crowd-{number}"), &kubeconfig)).collect();
    apply(testbed, &[namespace(fleet), namespace(CROWD)])?;
    apply(testbed, &all)?;
    let flags = ["--enable=kubeconfig", "--watch-namespaces=removal-crowd"];
    let mut controllers = Program::with_account(testbed, "removal-crowd", CROWD, &flags)?;
    let clusters = || clusters(testbed, CROWD);
    wait::until_true("all of them", SOON, || Ok(clusters()? == FLEET))?;
    // Objects that are deleted a moment before the others would be removed on their own. However
    // long the hub takes, the controllers see all deletions at once: watches are fed from the
    // cache that a list of any version is from.
    controllers.process.signal("STOP")?;
    let server = &testbed.hub.server;
    let (client, path) = (server.client(Some(server.admin())), format!("/api/v1/namespaces/{fleet}/secrets"));
    client.send(&Method::DELETE, &path, &[], Vec::new().into())?.expect(StatusCode::OK)?;
    wait::until_true("the deletions to reach watches", SOON, || {
        let cached = client.get(&format!("{path}?resourceVersion=0"), &[])?.expect(StatusCode::OK)?.json()?;
        Ok(cached["items"].as_array().context("a list")?.is_empty())
    })?;
    controllers.process.signal("CONT")?;
    let held = || controllers.metric("cluster_gateway_controllers_removals_held", "kubeconfig");
    wait::until_true("their removal to be held", SOON, || Ok(held()? >= f64::from(u32::try_from(FLEET)?)))?;
    ensure!(clusters()? == FLEET, "a fleet went at once");
    let note = wait::until("an Event", SOON, || event(testbed, CROWD, "crowd-0", "RemovalHeld"))?;
    ensure!(note.contains("--source-removal-limit"), "{note}");
    // Most come back; the few that do not are below the limit.
    apply(testbed, &all[4..])?;
    wait::until_true("the few to go", SOON, || Ok(clusters()? == FLEET - 4))?;
    Ok(())
}

fn forbidden(testbed: &Testbed) -> Result<()> {
    let place = "removal-list";
    let kind = definition("cluster.karmada.io", "Cluster", "v1alpha1", "Cluster");
    let token = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": place, "namespace": "karmada-cluster"},
        "stringData": {"token": "token"}});
    apply(testbed, &[namespace(place), namespace("karmada-cluster"), token, kind])?;
    let [kept, ended] = ["removal-kept", "removal-ended"];
    let cluster = |name: &str| {
        json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
            "spec": {"syncMode": "Push", "apiEndpoint": "https://10.9.8.7",
                "secretRef": {"namespace": "karmada-cluster", "name": place}}})
    };
    let objects = rendered(testbed, place, "controllers.sources.karmada=true")?;
    let mut running = started(testbed, place, &objects)?;
    apply(testbed, &[cluster(kept), cluster(ended)])?;
    wait_secret(testbed, place, kept)?;
    wait_secret(testbed, place, ended)?;
    running.stop()?;
    let narrowed = grant_without(testbed, place, &objects, ("clusters", "list"))?;
    // The hub itself would send the list as events of a watch.
    let paged = Trouble::start(testbed.hub.server.client(None))?;
    let running = started_over(testbed, place, &narrowed, &paged)?;
    let available = || running.metric("cluster_gateway_controllers_source_available", "karmada");
    wait::until_true("the source to be unavailable", SOON, || Ok(available()? < 1.0))?;
    testbed.hub.server.delete(&format!("clusters.cluster.karmada.io {ended}"))?;
    let are_there = || -> Result<[bool; 2]> {
        let there = sourced(testbed, place)?;
        Ok([kept, ended].map(|name| there.iter().any(|other| other == name)))
    };
    grant(testbed, place, &objects)?;
    wait::until_true("the source to be back", 2 * SOON, || Ok(available()? >= 1.0))?;
    let back = Instant::now();
    ensure!(are_there()? == [true, true], "nothing was listed without it yet");
    wait::until_true("the end of what ended", TWO_LISTS + SOON, || Ok(are_there()? == [true, false]))?;
    // The first list was made a little before the source was seen to be back.
    ensure!(back.elapsed() + SOON > TWO_LISTS, "one list without it was enough: {:?}", back.elapsed());
    testbed.hub.server.delete(&format!("clusters.cluster.karmada.io {kept}"))
}

/// Runs the release's Job, with its rights.
fn uninstalled(testbed: &Testbed) -> Result<()> {
    let place = "removal-uninstalled";
    let values = "controllers.sources.kubeconfig=true,controllers.watchNamespaces={removal-uninstalled-fleet}";
    ensure!(job(&rendered(testbed, place, values)?).is_none(), "by default");
    let fleet = "removal-uninstalled-fleet";
    apply(testbed, &[namespace(fleet)])?;
    let mut running = installed(testbed, place, values)?;
    let kubeconfig = member_kubeconfig(testbed, "token");
    apply(testbed, &[kubeconfig_secret(fleet, "sourced", &kubeconfig)])?;
    wait_secret(testbed, place, "sourced")?;
    running.stop()?;
    let persons = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "persons", "namespace": place,
        "labels": {"cluster.core.oam.dev/source": "kubeconfig"}}});
    apply(testbed, &[persons])?;
    let objects = rendered(testbed, place, &format!("{values},controllers.removeClusters=true"))?;
    grant(testbed, place, &objects)?;
    let job = job(&objects).context("a Job")?;
    let pod = &job["spec"]["template"]["spec"];
    let account = pod["serviceAccountName"].as_str().context("an account")?;
    let account = hub_tests::helm::account_kubeconfig(&testbed.hub.server, place, account)?;
    let arguments = pod["containers"][0]["args"].as_array().context("arguments")?;
    let output = Command::new(env!("CARGO_BIN_EXE_cluster-gateway-controllers"))
        .args(arguments.iter().filter_map(Value::as_str))
        .arg(format!("--kubeconfig={}", account.display()))
        .output()?;
    ensure!(output.status.success() && output.stdout == b"cluster sourced removed\n", "{output:?}");
    let left = sourced(testbed, place)?;
    ensure!(left == ["persons"], "{left:?}");
    testbed.hub.server.delete(&format!("namespace {fleet} --wait=false"))
}

fn job(objects: &[Value]) -> Option<Value> {
    objects.iter().find(|object| object["kind"] == "Job").cloned()
}
