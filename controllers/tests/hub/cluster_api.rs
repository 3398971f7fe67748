//! Clusters of Cluster API: reachable with their kubeconfig, through every rotation, gone with
//! their object.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fixture::{Fixture, Running, SOON, apply, member_kubeconfig, namespace, secret_field, test};

/// Where the testbed's gateway reads clusters.
const CLUSTERS: &str = "vela-system";
/// A machine that does nothing else takes a tenth of this.
const AT_ONCE: Duration = Duration::from_secs(1);

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(fixture, "capi: a cluster's life", life)]
}

fn cluster(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": name, "namespace": namespace, "labels": {"region": "north", "cluster.core.oam.dev/x": "y"}},
        "spec": {},
    })
}

/// As `KubeadmControlPlane` writes it.
fn kubeconfig(testbed: &Testbed, namespace: &str, name: &str, token: &str) -> Result<Value> {
    let line = format!("get clusters.cluster.x-k8s.io {name} -n {namespace} -o jsonpath={{.metadata.uid}}");
    let uid = testbed.hub.server.kubectl().ok(&line)?;
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
    testbed.hub.server.kubectl().args(["get", "--raw", &path]).run()?.success()
}

fn life(testbed: &Testbed) -> Result<()> {
    let controllers = Running::start(testbed, CLUSTERS, &["--enable=capi"])?;
    let (fleet, name) = ("fleet-life", "life");
    apply(testbed, &[namespace(fleet), cluster(fleet, name)])?;
    wait::until_true("that it waits for a kubeconfig", SOON, || {
        Ok(controllers.wait_state("fleet-life/life", "waiting")?.contains("kubeconfig Secret"))
    })?;
    let first = testbed.member.create_admin("capi-first")?;
    let secret = kubeconfig(testbed, fleet, name, &first)?;
    wait::timely("from the kubeconfig to the first answer", AT_ONCE + SOON, || {
        apply(testbed, std::slice::from_ref(&secret))?;
        let written = Instant::now();
        wait::until("an answer of the member", SOON, || through_hub(testbed, name, "/version"))?;
        Ok(written.elapsed())
    })?;
    controllers.wait_state("fleet-life/life", "registered")?;
    let labels = secret_field(testbed, CLUSTERS, name, "{.metadata.labels}")?;
    ensure!(labels.contains("\"region\":\"north\"") && !labels.contains("cluster.core.oam.dev/x"), "{labels}");
    rotation(testbed, fleet, name)?;
    deletion(testbed, &controllers, fleet, name)
}

/// The Secret is deleted and made anew: the watch that is open goes on, and what comes after it is
/// sent with the new credential.
fn rotation(testbed: &Testbed, fleet: &str, name: &str) -> Result<()> {
    let path =
        format!("{}/api/v1/namespaces/default/configmaps?watch=true&labelSelector=life", Testbed::proxy_path(name));
    let mut watch = testbed.hub.server.kubectl().args(["get", "--raw", &path]).start()?;
    let mark = |name: &str| {
        testbed.member.server.kubectl().apply(&format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: default, labels: {{life: \"\"}}}}}}"
        ))
    };
    mark("before")?;
    ensure!(watch.next_line(SOON)?.contains("before"));
    let second = testbed.member.create_admin("capi-second")?;
    testbed.hub.server.kubectl().ok(&format!("delete secret {name}-kubeconfig -n {fleet}"))?;
    ensure!(through_hub(testbed, name, "/version").is_ok(), "a Secret that is being replaced ended the registration");
    apply(testbed, &[kubeconfig(testbed, fleet, name, &second)?])?;
    let me = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let path = format!("{}{me}", Testbed::proxy_path(name));
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).to_string();
    wait::until_true("the new credential", SOON, || {
        let words = ["create", "--raw", &path, "-f", "-"];
        let answer = testbed.hub.server.kubectl().args(words).stdin(review.clone()).run()?.success()?;
        Ok(answer.contains("capi-second"))
    })?;
    mark("after")?;
    ensure!(watch.next_line(SOON)?.contains("after"), "the watch ended with the old credential");
    Ok(())
}

fn deletion(testbed: &Testbed, controllers: &Running, fleet: &str, name: &str) -> Result<()> {
    let path = format!("{}/api/v1/namespaces/default/configmaps?watch=true", Testbed::proxy_path(name));
    let mut watch = testbed.hub.server.kubectl().args(["get", "--raw", &path]).start()?;
    watch.next_line(SOON).context("a ConfigMap of the member")?;
    let started = Instant::now();
    testbed.hub.server.kubectl().ok(&format!("delete clusters.cluster.x-k8s.io {name} -n {fleet}"))?;
    watch.wait(SOON)?;
    let ended = started.elapsed();
    ensure!(ended < SOON, "a watch lived on for {ended:?}");
    wait::until_true("404", SOON, || {
        Ok(through_hub(testbed, name, "/version").is_err_and(|error| format!("{error:#}").contains("no such cluster")))
    })?;
    ensure!(controllers.report("fleet-life/life").is_err(), "an object that is gone is told of");
    ensure!(controllers.metric("cluster_gateway_controllers_secret_writes_total", "delete")? >= 1.0);
    Ok(())
}
