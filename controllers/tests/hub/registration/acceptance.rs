//! The effects of acceptance and denial by an administrator.

use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{Registration, SET_RIGHT, accept, condition, exists, get, managed, may, took, wait_condition};
use crate::fixture::{SOON, apply, event, namespace};
use crate::rights::nothing_refused;

const ACCEPTED: &str = "HubAcceptedManagedCluster";
const SET: &str = "cluster.open-cluster-management.io/clusterset";
const RIGHTS: &[&str] = &[
    "create clustergateways.cluster.core.oam.dev/yes1 tunnel",
    "update leases.coordination.k8s.io -n yes1",
    "update manifestworks.work.open-cluster-management.io -n yes1",
    "update managedclusters.cluster.open-cluster-management.io/yes1",
    "create certificatesigningrequests.certificates.k8s.io",
];

pub fn yes_and_no(testbed: &Testbed) -> Result<()> {
    let _registration = Registration::start(testbed, "yes-place")?;
    apply(testbed, &[managed("yes1")])?;
    let cluster = || get(testbed, "managedcluster yes1");
    wait::timely("from a cluster without a set to the default set", SET_RIGHT, || {
        let none = json!({"metadata": {"labels": {SET: null}}});
        let is_default = || Ok(cluster()?["metadata"]["labels"][SET] == "default");
        took(|| testbed.hub.server.patch("managedcluster yes1", &none).map(drop), is_default)
    })?;
    ensure!(!exists(testbed, "namespace yes1")? && !rights(testbed)?.contains(&true), "before the yes");
    accept(testbed, "yes1", true)?;
    wait_condition(testbed, "yes1", ACCEPTED, "True/HubClusterAdminAccepted")?;
    wait::until_true("the rights", SOON, || Ok(!rights(testbed)?.contains(&false)))?;
    ensure!(!may(testbed, "yes1", "create clustergateways.cluster.core.oam.dev/yes2 tunnel")?, "another's tunnel");
    ensure!(!may(testbed, "yes1", "get leases.coordination.k8s.io -n kube-system")?, "another's namespace");
    let taints = &cluster()?["spec"]["taints"];
    ensure!(taints[0]["key"] == "cluster.open-cluster-management.io/unreachable", "{taints}");
    ensure!(taints[0]["effect"] == "NoSelect" && taints[0]["timeAdded"].is_string(), "{taints}");
    let lease = get(testbed, "lease managed-cluster-lease -n yes1")?;
    ensure!(lease["spec"]["holderIdentity"] == "managed-cluster-lease", "{lease}");
    for set in ["default", "global"] {
        ensure!(exists(testbed, &format!("managedclusterset {set}"))?, "{set}");
    }
    wait::until_true("the default set to count it", SOON, || {
        let set = get(testbed, "managedclusterset default")?;
        Ok(set["status"]["conditions"][0]["reason"] == "ClustersSelected")
    })?;
    deny(testbed)?;
    accept(testbed, "yes1", true)?;
    wait::until_true("the rights again", SOON, || Ok(!rights(testbed)?.contains(&false)))?;
    delete(testbed)?;
    nothing_refused(testbed, "yes-place")
}

fn rights(testbed: &Testbed) -> Result<Vec<bool>> {
    RIGHTS.iter().map(|what| may(testbed, "yes1", what)).collect()
}

fn deny(testbed: &Testbed) -> Result<()> {
    // The agent still has works to end; denial does not wait for them.
    apply(testbed, &[work("yes1")])?;
    let took = took(|| accept(testbed, "yes1", false), || Ok(!rights(testbed)?.contains(&true)))?;
    ensure!(took < Duration::from_secs(5), "the rights were there for {took:?} after the no");
    wait_condition(testbed, "yes1", ACCEPTED, "False/HubClusterAdminDenied")?;
    ensure!(may(testbed, "yes1", "get managedclusters.cluster.open-cluster-management.io/yes1")?, "it learns of a yes");
    ensure!(exists(testbed, "namespace yes1")?, "the namespace stays");
    Ok(())
}

/// A work that stays until its finalizer is removed.
pub fn work(namespace: &str) -> Value {
    json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "w", "namespace": namespace, "finalizers": ["test.example/hold"]}, "spec": {}})
}

fn delete(testbed: &Testbed) -> Result<()> {
    testbed.hub.server.delete("managedcluster yes1 --wait=false")?;
    wait::until_true("the tunnel right to go first", SOON, || Ok(!may(testbed, "yes1", RIGHTS[0])?))?;
    wait::until_true("its work to be asked to go", SOON, || {
        Ok(get(testbed, "manifestwork w -n yes1")?["metadata"]["deletionTimestamp"].is_string())
    })?;
    ensure!(exists(testbed, "managedcluster yes1")?, "it went before its work");
    ensure!(may(testbed, "yes1", RIGHTS[2])?, "the agent can end its works");
    testbed.hub.server.patch("manifestwork w -n yes1", &json!({"metadata": {"finalizers": null}}))?;
    wait::until_true("its end", SOON, || Ok(!exists(testbed, "managedcluster yes1")?))?;
    ensure!(!rights(testbed)?.contains(&true), "rights are left");
    let left =
        testbed.hub.server.names("clusterroles,clusterrolebindings -l open-cluster-management.io/cluster-name=yes1")?;
    ensure!(left.is_empty(), "{left:?}");
    ensure!(exists(testbed, "namespace yes1")?, "the namespace stays");
    Ok(())
}

pub fn foreign(testbed: &Testbed) -> Result<()> {
    let _registration = Registration::start(testbed, "foreign-place")?;
    apply(testbed, &[namespace("theirs"), labelled_binding()])?;
    for (name, word) in [("kube-system", "reserved"), ("foreign-place", "reserved"), ("theirs", "is not the cluster's")]
    {
        apply(testbed, &[managed(name)])?;
        accept(testbed, name, true)?;
        wait_condition(testbed, name, ACCEPTED, "False/Error")?;
        // A busy hub may enforce the policies late: it is tried again. The Event keeps that first
        // note, and the condition says the last.
        let late = "is not in force";
        let note = wait::until("its Event", SOON, || event(testbed, "default", name, "AcceptanceFailed"))?;
        ensure!(note.contains(word) || note.contains(late), "{name}: {note}");
        wait::until("why", 3 * SOON, || {
            let conditions = get(testbed, &format!("managedcluster {name}"))?["status"]["conditions"].to_string();
            ensure!(conditions.contains(word), "{name}: {conditions}");
            Ok(())
        })?;
        ensure!(!exists(
            testbed,
            &format!("rolebinding open-cluster-management:managedcluster:{name}:work -n {name}")
        )?);
    }
    // The namespace's owner gives it to the cluster.
    testbed.hub.server.label("namespace theirs open-cluster-management.io/cluster-name=theirs")?;
    wait_condition(testbed, "theirs", ACCEPTED, "True/HubClusterAdminAccepted")?;
    ensure!(exists(testbed, "clusterrole open-cluster-management:managedcluster:work")?, "all agents lost a role");
    testbed.hub.server.delete("managedclusters kube-system foreign-place theirs")?;
    ending(testbed)
}

/// The cluster's own namespace, still being deleted from before.
fn ending(testbed: &Testbed) -> Result<()> {
    let mut own = namespace("ending");
    own["metadata"]["labels"] = json!({"open-cluster-management.io/cluster-name": "ending"});
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "held", "namespace": "ending", "finalizers": ["test.example/hold"]}});
    apply(testbed, &[own, held])?;
    testbed.hub.server.delete("namespace ending --wait=false")?;
    apply(testbed, &[managed("ending")])?;
    accept(testbed, "ending", true)?;
    wait_condition(testbed, "ending", ACCEPTED, "False/Error")?;
    let note = wait::until("an Event", SOON, || event(testbed, "default", "ending", "AcceptanceFailed"))?;
    ensure!(note.contains("the cluster's namespace is being deleted"), "{note}");
    ensure!(!may(testbed, "ending", "create clustergateways.cluster.core.oam.dev/ending tunnel")?, "a right too soon");
    testbed.hub.server.patch("configmap held -n ending", &json!({"metadata": {"finalizers": null}}))?;
    wait_condition(testbed, "ending", ACCEPTED, "True/HubClusterAdminAccepted")?;
    ensure!(get(testbed, "namespace ending")?["metadata"]["deletionTimestamp"].is_null(), "the old one");
    testbed.hub.server.delete("managedcluster ending")
}

/// A person's binding with the label of a cluster named `work`, so that the cluster's own role
/// would have the name of the role of all clusters.
fn labelled_binding() -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "mine", "namespace": "theirs", "labels": {"open-cluster-management.io/cluster-name": "work"}},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}})
}

pub fn stillness(testbed: &Testbed) -> Result<()> {
    let mut registration = Registration::start(testbed, "still-place")?;
    let names = ["still1", "still2", "still3"];
    for name in names {
        apply(testbed, &[managed(name)])?;
        accept(testbed, name, true)?;
    }
    for name in names {
        wait_condition(testbed, name, ACCEPTED, "True/HubClusterAdminAccepted")?;
        wait::until_true("its Lease", SOON, || exists(testbed, &format!("lease managed-cluster-lease -n {name}")))?;
    }
    // A right that is taken away is restored, and the others are not touched.
    let binding = "rolebinding open-cluster-management:managedcluster:still1:registration -n still1";
    testbed.hub.server.delete(binding)?;
    wait::until_true("the right again", SOON, || exists(testbed, binding))?;
    let before = versions(testbed, &names)?;
    registration.running.restart()?;
    registration.wait_metric("cluster_gateway_controllers_ocm_stands_in", 1.0)?;
    // It has looked at every cluster once it counts all of them.
    wait::until_true("all to be counted", SOON, || {
        let counted =
            registration.running.metric("cluster_gateway_controllers_managed_clusters", "accepted=\"true\"")?;
        Ok(counted >= 3.0)
    })?;
    testbed.hub.server.annotate("managedcluster still3 touched=yes")?;
    accept(testbed, "still3", false)?;
    wait_condition(testbed, "still3", ACCEPTED, "False/HubClusterAdminDenied")?;
    let after = versions(testbed, &names[..2])?;
    ensure!(before[..after.len()] == after[..], "written again: {before:?} {after:?}");
    ensure!(condition(testbed, "still1", ACCEPTED)?.starts_with("True"));
    testbed.hub.server.delete("managedclusters still1 still2 still3")
}

/// The versions of everything that belongs to the clusters.
fn versions(testbed: &Testbed, names: &[&str]) -> Result<Vec<Vec<String>>> {
    let kinds = "namespaces,clusterroles,clusterrolebindings,rolebindings,leases.coordination.k8s.io";
    let of = |name: &&str| {
        let line = format!("{kinds},managedclusters -A -l open-cluster-management.io/cluster-name={name}");
        let all = crate::fixture::versions(&testbed.hub.server, &line)?;
        let own = get(testbed, &format!("managedcluster {name}"))?["metadata"]["resourceVersion"].to_string();
        Ok([all, vec![own]].concat())
    };
    names.iter().map(of).collect()
}
