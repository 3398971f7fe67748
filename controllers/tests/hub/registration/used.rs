//! Each right of the part is used, granted to others, or checked by the hub when it authorizes
//! another request.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use hub_tests::audit::Right;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::agent::ask;
use super::requests::REASON;
use super::{Registration, SET_RIGHT, accept, bootstrap, exists, get, managed, registers, took, wait_condition};
use crate::fixture::{SOON, apply, event, namespace};
use crate::rights::used::{granted, none_idle};

const PLACE: &str = "audited-registration";
const NAME: &str = "used1";
const ACCEPTED: &str = "HubAcceptedManagedCluster";

pub fn all(testbed: &Testbed) -> Result<()> {
    let mark = testbed.audit.mark()?;
    let registration = Registration::start(testbed, PLACE)?;
    joins(testbed)?;
    let handed_out = handed_out(testbed)?;
    sets(testbed)?;
    no_and_yes(testbed)?;
    leaves(testbed)?;
    let asked = asked_for(&registration.policies, &registration.objects);
    none_idle(testbed, PLACE, &registration.objects, mark, &(&handed_out | &asked))
}

/// A cluster joins by a trusted user's request, and renews by its own.
fn joins(testbed: &Testbed) -> Result<()> {
    let user = bootstrap(testbed, PLACE)?;
    let asked = ask(&user, NAME, "used1-first")?;
    registers(&user, NAME)?;
    ensure!(asked.wait_approved(testbed)? == REASON);
    wait_condition(testbed, NAME, ACCEPTED, "True/HubClusterAdminAccepted")?;
    let agent = asked.kubectl(testbed)?;
    let renewed = wait::until("that it may ask", SOON, || ask(&agent, NAME, "used1-second"))?;
    ensure!(renewed.wait_approved(testbed)? == REASON);
    // The part reads the Lease itself before it reports that the agent is silent.
    testbed.hub.server.patch(&format!("managedcluster {NAME}"), &json!({"spec": {"leaseDurationSeconds": 1}}))?;
    wait_condition(testbed, NAME, "ManagedClusterConditionAvailable", "Unknown/ManagedClusterLeaseUpdateStopped")
}

/// Sets are created, restored, and have a status.
fn sets(testbed: &Testbed) -> Result<()> {
    // A run of this part before may have made it already.
    wait::timely("the set to be made anew", SET_RIGHT, || {
        let delete = || testbed.hub.server.delete("managedclusterset global");
        took(delete, || exists(testbed, "managedclusterset global"))
    })?;
    wait::timely("the set as it was", SET_RIGHT, || {
        let other = json!({"spec": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}}});
        let is_as_it_was = || {
            Ok(get(testbed, "managedclusterset default")?["spec"]["clusterSelector"]["selectorType"]
                == "ExclusiveClusterSetLabel")
        };
        took(|| testbed.hub.server.patch("managedclusterset default", &other).map(drop), is_as_it_was)
    })?;
    let binding = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta2",
        "kind": "ManagedClusterSetBinding", "metadata": {"name": "default", "namespace": "used-bound"},
        "spec": {"clusterSet": "default"}});
    apply(testbed, &[namespace("used-bound"), binding])?;
    wait::until("the binding to be Bound", SOON, || {
        let binding = get(testbed, "managedclustersetbinding default -n used-bound")?;
        let said = crate::fixture::said(crate::fixture::condition(&binding["status"], "Bound"));
        ensure!(said.starts_with("True/"), "{said}");
        Ok(())
    })
}

/// A denial, an acceptance, and a role and a binding that are restored after a change.
fn no_and_yes(testbed: &Testbed) -> Result<()> {
    accept(testbed, NAME, false)?;
    wait_condition(testbed, NAME, ACCEPTED, "False/HubClusterAdminDenied")?;
    // A namespace without a label of clusters is read when it conflicts with a cluster's.
    apply(testbed, &[namespace("used-theirs"), managed("used-theirs")])?;
    accept(testbed, "used-theirs", true)?;
    wait::until("an Event", SOON, || event(testbed, "default", "used-theirs", "AcceptanceFailed"))?;
    testbed.hub.server.delete("managedcluster used-theirs")?;
    accept(testbed, NAME, true)?;
    wait_condition(testbed, NAME, ACCEPTED, "True/HubClusterAdminAccepted")?;
    let role = "clusterrole open-cluster-management:managedcluster:work";
    testbed.hub.server.patch(role, &json!({"rules": []}))?;
    wait::until_true("the role as it was", SOON, || Ok(get(testbed, role)?["rules"] != json!([])))?;
    // What is not there is created: only one that somebody changed is applied.
    let binding = format!("clusterrolebinding open-cluster-management:managedcluster:{NAME}");
    testbed.hub.server.patch(&binding, &json!({"subjects": null}))?;
    wait::until_true("the binding as it was", SOON, || Ok(get(testbed, &binding)?["subjects"].is_array()))
}

/// The cluster leaves, with objects of others in its namespace.
fn leaves(testbed: &Testbed) -> Result<()> {
    let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "w", "namespace": NAME}, "spec": {}});
    let addon = json!({"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
        "metadata": {"name": "a", "namespace": NAME}, "spec": {}});
    apply(testbed, &[work, addon])?;
    testbed.hub.server.delete(&format!("managedcluster {NAME}"))?;
    for line in ["manifestwork w", "managedclusteraddon a"] {
        ensure!(!exists(testbed, &format!("{line} -n {NAME}"))?, "{line} is left");
    }
    Ok(())
}

/// The rights that the part grants to agents: the hub lets no one grant rights that they lack.
fn handed_out(testbed: &Testbed) -> Result<BTreeSet<Right>> {
    let own = testbed.hub.server.read(&format!("clusterroles -l open-cluster-management.io/cluster-name={NAME}"))?;
    let mut roles: Vec<Value> = own["items"].as_array().cloned().unwrap_or_default();
    ensure!(roles.len() == 2, "one of the cluster, and one of its tunnel: {roles:?}");
    for common in ["registration", "work"] {
        roles.push(get(testbed, &format!("clusterrole open-cluster-management:managedcluster:{common}"))?);
    }
    Ok(roles.iter().flat_map(granted).collect())
}

/// The rights that admission checks: the policies for a change of an object, and the hub itself for
/// the approval of a request.
fn asked_for(policies: &[Value], roles: &[Value]) -> BTreeSet<Right> {
    let asked: String = policies.iter().map(Value::to_string).collect();
    let is_asked = |right: &Right| {
        let Some((resource, subresource)) = right.resource.split_once('/') else { return right.resource == "signers" };
        let authorizer =
            format!("authorizer.group('{}').resource('{resource}').subresource('{subresource}')", right.group);
        asked.contains(&authorizer)
    };
    roles.iter().flat_map(granted).filter(is_asked).collect()
}
