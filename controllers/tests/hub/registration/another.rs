//! An agent's writes to a cluster that is not its own. They are not made by kubectl, which reads
//! first and would be refused that read.

use anyhow::{Context as _, Result, ensure};
use http::{Method, StatusCode};
use hub_tests::http::Client;
use hub_tests::testbed::Testbed;
use kit::pki::Leaf;
use serde_json::{Value, json};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/{}/leases";
const CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters/{}";
const WORKS: &str = "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks";
const ADDONS: &str = "/apis/addon.open-cluster-management.io/v1alpha1/namespaces/{}/managedclusteraddons";

/// Objects to create, by the path of their kind's list.
const KINDS: [(&str, &str, &str); 3] = [
    (LEASES, "coordination.k8s.io/v1", "Lease"),
    (WORKS, "work.open-cluster-management.io/v1", "ManifestWork"),
    (ADDONS, "addon.open-cluster-management.io/v1alpha1", "ManagedClusterAddOn"),
];
/// Objects to patch and to replace. For those that do not exist, the answer must not tell so.
const OBJECTS: [(&str, &str); 7] = [
    (LEASES, "/managed-cluster-lease"),
    (CLUSTERS, ""),
    (CLUSTERS, "/status"),
    (WORKS, "/w"),
    (WORKS, "/w/status"),
    (ADDONS, "/a"),
    (ADDONS, "/a/status"),
];

/// Checks that an agent of `own` cannot write to the cluster `other`.
pub fn is_not_written(testbed: &Testbed, (own, other): (&str, &str)) -> Result<()> {
    let group = format!("system:open-cluster-management:{own}");
    let certificate = testbed.hub.server.authority().issue(&Leaf::client(format!("{group}:agent")).group(&group));
    let agent = testbed.hub.server.client(Some(&certificate));
    let touched = json!({"metadata": {"annotations": {"touched": "yes"}}});
    for (path, object) in OBJECTS {
        let path = path.replace("{}", other) + object;
        is_forbidden(&agent, &Method::PATCH, &path, &touched)?;
        is_forbidden(&agent, &Method::PUT, &path, &touched)?;
    }
    for (path, version, kind) in KINDS {
        let new = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "stolen"}, "spec": {}});
        is_forbidden(&agent, &Method::POST, &path.replace("{}", other), &new)?;
    }
    // It is the valid agent of its own cluster, which it may write.
    let status = CLUSTERS.replace("{}", own) + "/status";
    let (code, told) = send(&agent, &Method::PATCH, &status, &json!({"status": {"capacity": {"cpu": "1"}}}))?;
    ensure!(code == StatusCode::OK, "{status}: {code} {told}");
    Ok(())
}

fn is_forbidden(agent: &Client, method: &Method, path: &str, document: &Value) -> Result<()> {
    let (code, told) = send(agent, method, path, document)?;
    ensure!(code == StatusCode::FORBIDDEN, "{method} {path}: {code} {told}");
    Ok(())
}

fn send(agent: &Client, method: &Method, path: &str, document: &Value) -> Result<(StatusCode, String)> {
    let kind = if *method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let answer = agent.send(method, path, &[("content-type", kind)], document.to_string().into()).context("the hub")?;
    Ok((answer.status, answer.text()))
}
