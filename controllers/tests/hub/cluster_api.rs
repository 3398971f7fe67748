//! Clusters of Cluster API: reachable with their kubeconfig, through each rotation, and gone with
//! their object.

mod manager;
mod rotations;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use hub_tests::testbed::Testbed;
use hub_tests::turns::{self, Alone};
use hub_tests::wait;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fixture::{Fixture, Running, SOON, apply, member_kubeconfig, namespace, secret_field, test};

/// The namespace in which the testbed's gateway reads clusters.
const CLUSTERS: &str = "vela-system";
const OBJECTS: &str = "cluster_gateway_controllers_source_objects";
/// An idle machine takes a tenth of this.
const AT_ONCE: Duration = Duration::from_secs(1);
/// A removal first waits for other removals at the same time (`register::removals`).
const ENDED: Duration = AT_ONCE.saturating_add(Duration::from_millis(700));

/// Controllers that write to the namespace of the testbed's gateway take turns by one Lease.
const ALONE: &str = "vela-system";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "capi: a cluster of upstream's own manager", manager::trial),
        test(fixture, "capi: a cluster's life, and a kubeconfig that changes under load", life),
    ]
}

/// Until it is dropped, no other controllers of these tests write to that namespace.
fn alone() -> Alone {
    turns::alone(&[ALONE])
}

fn cluster(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": name, "namespace": namespace, "labels": {"region": "north", "cluster.core.oam.dev/x": "y"}},
        "spec": {"controlPlaneEndpoint": {"host": "10.9.8.7", "port": 6443}},
    })
}

/// The kubeconfig Secret as `KubeadmControlPlane` writes it.
fn kubeconfig(testbed: &Testbed, namespace: &str, name: &str, token: &str) -> Result<Value> {
    let cluster = testbed.hub.server.read(&format!("clusters.cluster.x-k8s.io {name} -n {namespace}"))?;
    let uid = &cluster["metadata"]["uid"];
    Ok(json!({
        "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
        "metadata": {
            "name": format!("{name}-kubeconfig"), "namespace": namespace,
            "labels": {"cluster.x-k8s.io/cluster-name": name},
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": name, "uid": uid}],
        },
        "stringData": {"value": member_kubeconfig(testbed, token)},
    }))
}

fn through_hub(testbed: &Testbed, cluster: &str, path: &str) -> Result<String> {
    let path = format!("{}{path}", Testbed::proxy_path(cluster));
    let server = &testbed.hub.server;
    let answer = server.client(Some(server.admin())).get(&path, &[])?;
    ensure!(answer.status == 200, "{}", answer.text());
    Ok(answer.text())
}

fn life(testbed: &Testbed) -> Result<()> {
    let _alone = alone();
    let mut controllers =
        Running::start(testbed, CLUSTERS, &["--enable=capi,kubeconfig", "--watch-namespaces=fleet-load,fleet-life"])?;
    rotations::under_load(testbed)?;
    let fleet = "fleet-life";
    apply(testbed, &[namespace(fleet)])?;
    let mut lives = (0..).map(|number| format!("life{number}"));
    let mut name = String::new();
    let mut begin = |name: &mut String| {
        *name = lives.next().expect("there are endless");
        born(testbed, &controllers, fleet, name)
    };
    wait::timely("from the kubeconfig to the first answer", AT_ONCE, || begin(&mut name))?;
    controllers.wait_state(&format!("{fleet}/{name}"), "registered")?;
    paused(testbed, &controllers, fleet, &name)?;
    let labels = secret_field(testbed, CLUSTERS, &name, "/metadata/labels")?;
    ensure!(labels.contains("\"region\":\"north\"") && !labels.contains("cluster.core.oam.dev/x"), "{labels}");
    let mut seconds = (0..).map(|number| format!("capi-second{number}"));
    wait::timely("from the new kubeconfig to its use", AT_ONCE, || {
        rotation(testbed, fleet, &name, &seconds.next().expect("there are endless"))
    })?;
    let mut is_first = true;
    wait::timely("from the end of the cluster to that of its streams", ENDED, || {
        if !std::mem::take(&mut is_first) {
            begin(&mut name)?;
        }
        deletion(testbed, &controllers, fleet, &name)
    })?;
    controllers.stop()
}

/// Creates a cluster. Returns the time from its kubeconfig to the first answer of its member.
fn born(testbed: &Testbed, controllers: &Running, fleet: &str, name: &str) -> Result<Duration> {
    apply(testbed, &[cluster(fleet, name)])?;
    wait::until_true("that it waits for a kubeconfig", SOON, || {
        Ok(controllers.wait_state(&format!("{fleet}/{name}"), "waiting")?.contains("kubeconfig Secret"))
    })?;
    ensure!(controllers.metric(OBJECTS, "state=\"waiting\"")? >= 1.0, "{}", controllers.metrics()?);
    let first = testbed.member.create_admin(&format!("capi-{name}"))?;
    apply(testbed, &[kubeconfig(testbed, fleet, name, &first)?])?;
    let written = Instant::now();
    wait::until("an answer of the member", SOON, || through_hub(testbed, name, "/version"))?;
    Ok(written.elapsed())
}

/// While the cluster is paused, its registration stays and nothing is written.
fn paused(testbed: &Testbed, controllers: &Running, fleet: &str, name: &str) -> Result<()> {
    let (server, line) = (&testbed.hub.server, format!("clusters.cluster.x-k8s.io {name} -n {fleet}"));
    let version = || secret_field(testbed, CLUSTERS, name, "/metadata/resourceVersion");
    let before = version()?;
    server.patch(&line, &json!({"spec": {"paused": true}}))?;
    controllers.wait_state(&format!("{fleet}/{name}"), "paused")?;
    ensure!(controllers.metric(OBJECTS, "state=\"paused\"")? >= 1.0, "{}", controllers.metrics()?);
    server.label(&format!("{line} region=south"))?;
    ensure!(through_hub(testbed, name, "/version").is_ok(), "a pause ended the registration");
    controllers.wait_state(&format!("{fleet}/{name}"), "paused")?;
    ensure!(version()? == before, "written while it is paused");
    server.label(&format!("{line} region=north"))?;
    server.patch(&line, &json!({"spec": {"paused": null}}))?;
    controllers.wait_state(&format!("{fleet}/{name}"), "registered").map(drop)
}

/// The kubeconfig Secret is deleted and recreated: the open watch continues, and later requests use
/// the new credential. Returns the time from the new Secret to its use.
fn rotation(testbed: &Testbed, fleet: &str, name: &str, second: &str) -> Result<Duration> {
    let path =
        format!("{}/api/v1/namespaces/default/configmaps?watch=true&labelSelector={second}", Testbed::proxy_path(name));
    let mut watch = testbed.hub.server.kubectl().args(["get", "--raw", &path]).start()?;
    let mark = |name: &str| {
        let metadata = json!({"name": name, "namespace": "default", "labels": {second: ""}});
        testbed.member.server.apply(&[json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})])
    };
    mark("before")?;
    ensure!(watch.next_line(SOON)?.contains("before"));
    let token = testbed.member.create_admin(second)?;
    testbed.hub.server.delete(&format!("secret {name}-kubeconfig -n {fleet}"))?;
    ensure!(through_hub(testbed, name, "/version").is_ok(), "a Secret that is being replaced ended the registration");
    apply(testbed, &[kubeconfig(testbed, fleet, name, &token)?])?;
    let written = Instant::now();
    let me = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let path = format!("{}{me}", Testbed::proxy_path(name));
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).to_string();
    let (server, headers) = (&testbed.hub.server, [("content-type", "application/json")]);
    let caller = server.client(Some(server.admin()));
    wait::until_true("the new credential", SOON, || {
        Ok(caller.send(&Method::POST, &path, &headers, review.clone().into())?.text().contains(second))
    })?;
    let took = written.elapsed();
    mark("after")?;
    ensure!(watch.next_line(SOON)?.contains("after"), "the watch ended with the old credential");
    Ok(took)
}

/// Deletes the cluster. Returns the time until its watch ended.
fn deletion(testbed: &Testbed, controllers: &Running, fleet: &str, name: &str) -> Result<Duration> {
    let path = format!("{}/api/v1/namespaces/default/configmaps?watch=true", Testbed::proxy_path(name));
    let mut watch = testbed.hub.server.kubectl().args(["get", "--raw", &path]).start()?;
    watch.next_line(SOON).context("a ConfigMap of the member")?;
    testbed.hub.server.delete(&format!("clusters.cluster.x-k8s.io {name} -n {fleet}"))?;
    let gone = Instant::now();
    watch.wait(SOON)?;
    let took = gone.elapsed();
    wait::until_true("404", SOON, || {
        Ok(through_hub(testbed, name, "/version").is_err_and(|error| format!("{error:#}").contains("no such cluster")))
    })?;
    ensure!(controllers.report(&format!("{fleet}/{name}")).is_err(), "an object that is gone is told of");
    ensure!(controllers.metric("cluster_gateway_controllers_secret_writes_total", "delete")? >= 1.0);
    Ok(took)
}
