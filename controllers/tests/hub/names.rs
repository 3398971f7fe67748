//! One name, one owner.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fixture::{
    Fixture, Running, SOON, apply, event, kubeconfig_secret, member_kubeconfig, namespace, print, secret_field, test,
    wait_gone, wait_secret,
};
use crate::others::{is_reachable, value};
use crate::program::Program;

/// From an owner's end: 0.7 s of it a removal waits for others of the same moment
/// (`register::removals`).
const TAKE_OVER: Duration = Duration::from_secs(1);

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "names: the first has it, and the next after it", owners),
        test(fixture, "names: a person's Secret is never touched", persons),
        test(fixture, "names: of two sources, the first has it, and the other a moment after its end", sources),
        test(fixture, "names: a field that somebody else has set is theirs", fields),
        test(fixture, "names: a label that somebody else has set is theirs, and stops no rotation", labels),
        test(fixture, "names: long ones, and flags that choose and name, from the environment", chosen),
    ]
}

fn owners(testbed: &Testbed) -> Result<()> {
    let kubeconfig = member_kubeconfig(testbed, "token");
    let (one, two) = ("names-one", "names-two");
    apply(testbed, &[namespace(one), namespace(two)])?;
    apply(testbed, &[kubeconfig_secret(two, "shared", &kubeconfig)])?;
    // Creation times have whole seconds: within the same second, the uid decides.
    let made = Instant::now();
    wait::until_true("the next second", SOON, || Ok(made.elapsed() > Duration::from_millis(1100)))?;
    apply(testbed, &[kubeconfig_secret(one, "shared", &kubeconfig)])?;
    // Both exist when the controllers start, and the younger comes first in the list.
    let flags = ["--enable=kubeconfig", "--watch-namespaces=names-one,names-two"];
    let controllers = Running::start(testbed, "names-clusters", &flags)?;
    wait_secret(testbed, &controllers.namespace, "shared")?;
    let origin = "/metadata/annotations/cluster.core.oam.dev~1source-object";
    let owner = || secret_field(testbed, &controllers.namespace, "shared", origin);
    ensure!(owner()?.ends_with("names-two/shared"), "the younger has it: {}", owner()?);
    let why = controllers.wait_state("names-one/shared", "taken")?;
    ensure!(why.contains("core/Secret/names-two/shared"), "{why}");
    let note = wait::until("an Event", SOON, || event(testbed, one, "shared", "ClusterNameTaken"))?;
    ensure!(note.contains("core/Secret/names-two/shared"), "{note}");
    let mut order = [two, one];
    wait::timely("from the owner's end to the next one's registration", TAKE_OVER, || {
        let [first, next] = order;
        order = [next, first];
        testbed.hub.server.delete(&format!("secret shared -n {first}"))?;
        let ended = Instant::now();
        wait::until_true("the next to take over", SOON, || {
            Ok(owner().is_ok_and(|owner| owner.ends_with(&format!("{next}/shared"))))
        })?;
        let took = ended.elapsed();
        print(&format!("the next object took over after {took:?}"));
        controllers.wait_state(&format!("{next}/shared"), "registered")?;
        // For another run.
        apply(testbed, &[kubeconfig_secret(first, "shared", &kubeconfig)])?;
        controllers.wait_state(&format!("{first}/shared"), "taken")?;
        Ok(took)
    })
}

fn persons(testbed: &Testbed) -> Result<()> {
    let fleet = "names-person";
    let by_hand = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine", "namespace": "person-clusters"},
        "stringData": {"endpoint": "https://by.hand"},
    });
    // A Secret of a source that these controllers do not run.
    let of_another = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "left", "namespace": "person-clusters",
            "labels": {"cluster.core.oam.dev/source": "kubefed"},
            "annotations": {"cluster.core.oam.dev/source-object": "core.kubefed.io/KubeFedCluster/f/left"}},
    });
    apply(testbed, &[namespace(fleet), namespace("person-clusters"), by_hand.clone(), of_another])?;
    let version = secret_field(testbed, "person-clusters", "mine", "/metadata/resourceVersion")?;
    let flags = ["--enable=kubeconfig", "--watch-namespaces=names-person"];
    let controllers = Running::start(testbed, "person-clusters", &flags)?;
    apply(testbed, &[kubeconfig_secret(fleet, "mine", &member_kubeconfig(testbed, "token"))])?;
    let why = controllers.wait_state("names-person/mine", "taken")?;
    ensure!(why.contains("not created by this program"), "{why}");
    let note = wait::until("an Event", SOON, || event(testbed, fleet, "mine", "ClusterNameTaken"))?;
    ensure!(note.contains("a Secret that was not created by this program"), "{note}");
    apply(testbed, &[kubeconfig_secret(fleet, "left", &member_kubeconfig(testbed, "token"))])?;
    let why = controllers.wait_state("names-person/left", "taken")?;
    ensure!(why.contains("the source kubefed, which is turned off"), "{why}");
    testbed.hub.server.delete("secret mine -n names-person")?;
    // Another object comes and goes, which gives the controllers time for a mistake.
    apply(testbed, &[kubeconfig_secret(fleet, "other", &member_kubeconfig(testbed, "token"))])?;
    wait_secret(testbed, &controllers.namespace, "other")?;
    testbed.hub.server.delete("secret other -n names-person")?;
    wait_gone(testbed, &controllers.namespace, "other")?;
    let now = secret_field(testbed, "person-clusters", "mine", "/metadata/resourceVersion")?;
    ensure!(now == version, "a person's Secret was written");
    // The name is free when they give it up.
    wait::timely("from the end of a person's Secret to the object's registration", TAKE_OVER, || {
        apply(testbed, std::slice::from_ref(&by_hand))?;
        apply(testbed, &[kubeconfig_secret(fleet, "mine", &member_kubeconfig(testbed, "token"))])?;
        controllers.wait_state("names-person/mine", "taken")?;
        testbed.hub.server.delete("secret mine -n person-clusters")?;
        let given_up = Instant::now();
        let source = "/metadata/labels/cluster.core.oam.dev~1source";
        wait::until_true("the object to take over", SOON, || {
            Ok(secret_field(testbed, "person-clusters", "mine", source).is_ok_and(|source| source == "kubeconfig"))
        })?;
        let took = given_up.elapsed();
        print(&format!("a name that a person gave up was taken over after {took:?}"));
        // For another run.
        testbed.hub.server.delete("secret mine -n names-person")?;
        wait_gone(testbed, "person-clusters", "mine")?;
        Ok(took)
    })
}

/// A `Cluster` and a kubeconfig Secret with the same name; the older one is deleted.
fn sources(testbed: &Testbed) -> Result<()> {
    let (first, second, place) = ("names-capi", "names-kubeconfig", "sources-clusters");
    apply(testbed, &[namespace(first), namespace(second)])?;
    let flags = ["--enable=capi,kubeconfig", "--watch-namespaces=names-capi,names-kubeconfig"];
    let controllers = Running::start(testbed, place, &flags)?;
    let mut names = (0..).map(|number| format!("both{number}"));
    wait::timely("from the owner's end to the next one's registration", TAKE_OVER, || {
        let name = names.next().expect("there are endless");
        let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": name, "namespace": first},
            "spec": {"controlPlaneEndpoint": {"host": "10.9.8.7", "port": 6443}}});
        apply(testbed, &[cluster])?;
        let line = format!("clusters.cluster.x-k8s.io {name} -n {first}");
        let uid = testbed.hub.server.read(&line)?["metadata"]["uid"].clone();
        let owner = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": name, "uid": uid});
        let of_it = json!({"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": {"name": format!("{name}-kubeconfig"), "namespace": first, "ownerReferences": [owner],
                "labels": {"cluster.x-k8s.io/cluster-name": name}},
            "stringData": {"value": member_kubeconfig(testbed, "of-cluster-api")}});
        apply(testbed, &[of_it])?;
        wait_secret(testbed, place, &name)?;
        apply(testbed, &[kubeconfig_secret(second, &name, &member_kubeconfig(testbed, "of-a-secret"))])?;
        let why = controllers.wait_state(&format!("core/Secret/{second}/{name}"), "taken")?;
        let owner = format!("cluster.x-k8s.io/Cluster/{first}/{name}");
        ensure!(why.contains(&owner), "{why}");
        let note = wait::until("an Event", SOON, || event(testbed, second, &name, "ClusterNameTaken"))?;
        ensure!(note.contains(&owner), "{note}");
        ensure!(value(testbed, place, &name, "token")? == "of-cluster-api");
        testbed.hub.server.delete(&line)?;
        let ended = Instant::now();
        wait::until_true("the other to take over", SOON, || {
            Ok(value(testbed, place, &name, "token").is_ok_and(|token| token == "of-a-secret"))
        })?;
        let took = ended.elapsed();
        print(&format!("the other source took over after {took:?}"));
        Ok(took)
    })
}

/// The last writer of a field keeps it: apply is not forced.
fn fields(testbed: &Testbed) -> Result<()> {
    let (fleet, place, name) = ("names-fields", "fields-clusters", "contested");
    let source = |token: &str| kubeconfig_secret(fleet, name, &member_kubeconfig(testbed, token));
    apply(testbed, &[namespace(fleet), source("first")])?;
    let controllers = Running::start(testbed, place, &["--enable=kubeconfig", "--watch-namespaces=names-fields"])?;
    wait_secret(testbed, place, name)?;
    let managers = || -> Result<Vec<String>> {
        let secret = testbed.hub.server.read(&format!("secret {name} -n {place}"))?;
        let entries = secret["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let of = |entry: &Value| format!("{}/{}", entry["manager"], entry["operation"]).replace('"', "");
        Ok(entries.iter().map(of).collect())
    };
    ensure!(managers()? == ["cluster-gateway-controllers/Apply"], "{:?}", managers()?);
    let line = format!("secret {name} -n {place} --field-manager=somebody");
    testbed.hub.server.patch(&line, &json!({"data": {"token": STANDARD.encode("theirs")}}))?;
    apply(testbed, &[source("second")])?;
    let why = controllers.wait_state(&format!("{fleet}/{name}"), "refused")?;
    ensure!(why.contains("somebody") && why.contains(".data.token") && !why.contains("second"), "{why}");
    let note = wait::until("an Event", SOON, || event(testbed, fleet, name, "SecretConflict"))?;
    ensure!(note.contains("somebody") && !note.contains("second"), "{note}");
    // Other clusters are registered meanwhile, and nothing of this one is written.
    apply(testbed, &[kubeconfig_secret(fleet, "beside", &member_kubeconfig(testbed, "token"))])?;
    wait_secret(testbed, place, "beside")?;
    ensure!(value(testbed, place, name, "token")? == "theirs", "somebody's field was overwritten");
    // When the other manager gives the field up, the cluster follows its source again.
    testbed.hub.server.patch(&line, &json!({"data": {"token": null}}))?;
    wait::until_true("the token", SOON, || {
        Ok(value(testbed, place, name, "token").is_ok_and(|token| token == "second"))
    })?;
    controllers.wait_state(&format!("{fleet}/{name}"), "registered").map(drop)
}

/// A label that a person changes, and one that the object gets only after the person's.
fn labels(testbed: &Testbed) -> Result<()> {
    let (fleet, place, name) = ("names-labels", "labels-clusters", "labelled");
    let source = |token: &str, labels: &[(&str, &str)]| {
        let mut secret = kubeconfig_secret(fleet, name, &member_kubeconfig(testbed, token));
        for (key, value) in labels {
            secret["metadata"]["labels"][key] = (*value).into();
        }
        secret
    };
    apply(testbed, &[namespace(fleet), source("first", &[("region", "north")])])?;
    let mut controllers = Running::start(testbed, place, &["--enable=kubeconfig", "--watch-namespaces=names-labels"])?;
    wait_secret(testbed, place, name)?;
    let label = |key: &str| secret_field(testbed, place, name, &format!("/metadata/labels/{key}"));
    ensure!(label("region")? == "north", "{}", label("region")?);
    let line = format!("secret {name} -n {place} --field-manager=somebody");
    testbed.hub.server.patch(&line, &json!({"metadata": {"labels": {"region": "south", "stage": "live"}}}))?;
    let theirs = [("region", "north"), ("stage", "test"), ("team", "a")];
    let mut tokens = (0..).map(|number| format!("token{number}"));
    wait::timely("from a rotation to its write, beside somebody's labels", TAKE_OVER, || {
        let token = tokens.next().expect("there are endless");
        apply(testbed, &[source(&token, &theirs)])?;
        let rotated = Instant::now();
        wait::until_true("the token", SOON, || {
            Ok(value(testbed, place, name, "token").is_ok_and(|written| written == token))
        })?;
        let took = rotated.elapsed();
        print(&format!("beside somebody's labels, a token was written after {took:?}"));
        Ok(took)
    })?;
    let read = [label("region")?, label("stage")?, label("team")?];
    ensure!(read == ["south", "live", "a"], "{read:?}");
    controllers.wait_state(&format!("{fleet}/{name}"), "registered")?;
    let note = wait::until("an Event", SOON, || event(testbed, fleet, name, "SecretConflict"))?;
    ensure!(note.contains("region, stage") && !note.contains("south") && !note.contains("team"), "{note}");
    // What was left out is not written again, by the next leader either.
    let version = || secret_field(testbed, place, name, "/metadata/resourceVersion");
    let written = version()?;
    controllers.restart()?;
    controllers.wait_state(&format!("{fleet}/{name}"), "registered")?;
    ensure!(version()? == written, "written again");
    // A label that they give up follows the object from the next change on.
    testbed.hub.server.patch(&line, &json!({"metadata": {"labels": {"region": null}}}))?;
    apply(testbed, &[source("last", &theirs)])?;
    wait::until_true("the label", SOON, || Ok(label("region")? == "north"))?;
    ensure!(label("stage")? == "live" && value(testbed, place, name, "token")? == "last");
    controllers.wait_state(&format!("{fleet}/{name}"), "registered").map(drop)
}

/// All flags come from the environment: the Secrets of multicluster-runtime, with names from a
/// template.
fn chosen(testbed: &Testbed) -> Result<()> {
    let (fleet, place) = ("names-chosen", "chosen-clusters");
    apply(testbed, &[namespace(fleet), namespace(place)])?;
    let long = "a".repeat(64);
    let secret = |name: &str, label: &str| {
        json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "namespace": fleet, "labels": {label: "true"}},
            "stringData": {"kubeconfig": member_kubeconfig(testbed, &testbed.member_token)}})
    };
    let label = "sigs.k8s.io/multicluster-runtime-kubeconfig";
    // The template makes a name from it that is longer than any name may be.
    let endless = format!("{}.{}", "b".repeat(63), "c".repeat(180));
    let names = ["one", &long, "with.dots", &endless];
    apply(testbed, &names.map(|name| secret(name, label)))?;
    apply(testbed, &[secret("other", "cluster.core.oam.dev/kubeconfig")])?;
    let variables = [
        ("KUBECONFIG", testbed.hub.server.kubectl().kubeconfig.display().to_string()),
        ("SECRET_NAMESPACE", place.to_owned()),
        ("ADMIN_LISTEN", "127.0.0.1:0".to_owned()),
        ("ENABLE", "kubeconfig,capi".to_owned()),
        ("WATCH_NAMESPACES", fleet.to_owned()),
        ("KUBECONFIG_SELECTOR", format!("{label}=true")),
        ("NAME_TEMPLATE", "kubeconfig={namespace}.{name},capi=x-{name}".to_owned()),
    ];
    let mut program = Program::with_environment(testbed, "chosen", &variables)?;
    program.wait_to_say("leading")?;
    for name in &names[..3] {
        wait_secret(testbed, place, &format!("{fleet}.{name}"))?;
    }
    let note = wait::until("an Event", SOON, || event(testbed, fleet, &endless, "InvalidClusterName"))?;
    ensure!(note.contains("253"), "{note}");
    let all = testbed.hub.server.names(&format!("secrets -n {place} -l cluster.core.oam.dev/source=kubeconfig"))?;
    ensure!(all.len() == 3, "{all:?}");
    ensure!(program.metric("cluster_gateway_controllers_registration_seconds_count", "")? >= 3.0);
    // Some names are too long for a label, but the gateway serves these clusters, too.
    let copy = is_reachable(testbed, place, &format!("{fleet}.{long}"));
    copy.context("a name of more than 63 characters")
}
