//! The chart grants each source what it needs, and the source works with no more.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use hub_tests::helm::{Chart, Helm};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture::{
    Fixture, Running, SOON, apply, definition, event, kubeconfig_secret, member_kubeconfig, namespace, test, wait_gone,
    wait_secret,
};

const NAME: &str = "door-cluster-gateway-controllers";
const RIGHTS: [&str; 5] = ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "rights: each source with what the chart grants it", each),
        test(fixture, "rights: one without a right says which, and registers nothing", less),
    ]
}

/// The controllers' objects of a rendering.
pub fn rendered(testbed: &Testbed, place: &str, values: &str) -> Result<Vec<Value>> {
    let directory = testbed.directory("controllers-helm")?;
    let helm = Helm::prepare(&directory, &testbed.hub.server.kubectl().kubeconfig)?.with(Chart::Gateway);
    let mut objects = helm.template("door", place, &[format!("--set=controllers.enabled=true,{values}")])?;
    objects.retain(|object| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        name.contains(NAME) || object["kind"] == "RoleBinding" && name.starts_with(NAME)
    });
    Ok(objects)
}

/// The program as its pod would run it, with the rights that it was given.
pub fn started(testbed: &Testbed, place: &str, objects: &[Value]) -> Result<Running> {
    let rights: Vec<Value> = objects
        .iter()
        .filter(|object| RIGHTS.iter().any(|kind| object["kind"] == *kind))
        .map(|object| {
            let mut object = object.clone();
            // helm fills these in.
            if object["metadata"]["namespace"].is_null()
                && !object["kind"].as_str().unwrap_or_default().starts_with("Cluster")
            {
                object["metadata"]["namespace"] = place.into();
            }
            object
        })
        .collect();
    apply(testbed, &rights)?;
    let kubeconfig = hub_tests::helm::account_kubeconfig(&testbed.hub.server, place, NAME)?;
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").context("a Deployment")?;
    let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().context("arguments")?;
    // The gateway's Service has no address here: the hub leads to the gateway.
    let is_of_pod = |argument: &&str| argument.starts_with("--gateway-");
    let arguments: Vec<&str> = arguments.iter().filter_map(Value::as_str).filter(|it| !is_of_pod(it)).collect();
    Running::as_user(place, &kubeconfig, &arguments)
}

fn each(testbed: &Testbed) -> Result<()> {
    let kubeconfig = member_kubeconfig(testbed, "token");
    let kubectl = testbed.hub.server.kubectl();
    // Two namespaces of one: only there.
    let place = "rights-narrow";
    apply(testbed, &[namespace(place), namespace("rights-fleet")])?;
    let values =
        "controllers.sources.kubeconfig=true,controllers.sources.capi=true,controllers.watchNamespaces={rights-fleet}";
    let running = started(testbed, place, &rendered(testbed, place, values)?)?;
    apply(testbed, &[kubeconfig_secret("rights-fleet", "narrow", &kubeconfig)])?;
    wait_secret(testbed, place, "narrow")?;
    let me = format!("system:serviceaccount:{place}:{NAME}");
    let may = |verb: &str, resource: &str, namespace: &str| -> Result<bool> {
        let words = ["auth", "can-i", verb, resource, "-n", namespace, "--as", &me];
        Ok(kubectl.args(words).run()?.stdout.trim() == "yes")
    };
    ensure!(may("get", "secrets", "rights-fleet")? && !may("patch", "secrets", "rights-fleet")?);
    ensure!(!may("get", "secrets", "kube-system")? && !may("update", "secrets", place)?, "more than it needs");
    ensure!(!may("create", "pods", place)? && !may("impersonate", "users", place)?);
    wait::until("an Event", SOON, || event(testbed, "rights-fleet", "narrow", "ClusterRegistered"))?;
    kubectl.ok("delete secret narrow -n rights-fleet")?;
    wait_gone(testbed, place, "narrow")?;
    drop(running);
    karmada(testbed)
}

/// Secrets of one namespace, objects without one.
fn karmada(testbed: &Testbed) -> Result<()> {
    let place = "rights-karmada";
    let kind = definition("cluster.karmada.io", "Cluster", "v1alpha1", "Cluster");
    let token = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "rights", "namespace": "karmada-cluster"},
        "stringData": {"token": "token"},
    });
    apply(testbed, &[namespace(place), namespace("karmada-cluster"), kind, token])?;
    testbed
        .hub
        .server
        .kubectl()
        .ok("wait --for=condition=Established crd/clusters.cluster.karmada.io --timeout=30s")?;
    let running = started(testbed, place, &rendered(testbed, place, "controllers.sources.karmada=true")?)?;
    let cluster = json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "rights"},
        "spec": {"syncMode": "Push", "apiEndpoint": "https://10.9.8.7",
            "secretRef": {"namespace": "karmada-cluster", "name": "rights"}},
    });
    apply(testbed, &[cluster])?;
    wait_secret(testbed, &running.namespace, "rights")?;
    testbed.hub.server.kubectl().ok("delete clusters.cluster.karmada.io rights")?;
    wait_gone(testbed, place, "rights")
}

fn less(testbed: &Testbed) -> Result<()> {
    let place = "rights-less";
    apply(testbed, &[namespace(place), namespace("rights-poor")])?;
    let values = "controllers.sources.kubeconfig=true,controllers.watchNamespaces={rights-poor}";
    let mut objects = rendered(testbed, place, values)?;
    for object in &mut objects {
        if object["kind"] == "Role" {
            object["rules"][0]["verbs"] = json!(["get", "list", "watch", "create", "delete"]);
        }
    }
    let running = started(testbed, place, &objects)?;
    apply(testbed, &[kubeconfig_secret("rights-poor", "poor", &member_kubeconfig(testbed, "token"))])?;
    let why = wait::until("that it says why", SOON, || {
        let report = running.report("rights-poor/poor")?;
        let why = report["reason"].as_str().unwrap_or_default().to_owned();
        ensure!(why.contains("cannot patch resource"), "{report}");
        Ok(why)
    })?;
    ensure!(!why.contains("token:"), "{why}");
    ensure!(running.metric("cluster_gateway_controllers_failures_total", "")? >= 1.0);
    Ok(())
}
