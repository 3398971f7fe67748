//! Each right of the part is used, handed out, or asked for by the hub when somebody else's is
//! judged.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use hub_tests::audit::Right;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::agent::ask;
use super::requests::REASON;
use super::{Registration, accept, bootstrap, exists, get, managed, wait_condition};
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

/// By a trusted user's request, and by its own after that.
fn joins(testbed: &Testbed) -> Result<()> {
    let user = bootstrap(testbed, PLACE)?;
    let asked = ask(&user, NAME, "used1-first")?;
    user.args(["create", "-f", "-"]).stdin(managed(NAME).to_string()).run()?.success()?;
    ensure!(asked.wait_approved(testbed)? == REASON);
    wait_condition(testbed, NAME, ACCEPTED, "True/HubClusterAdminAccepted")?;
    let agent = asked.kubectl(testbed)?;
    let renewed = wait::until("that it may ask", SOON, || ask(&agent, NAME, "used1-second"))?;
    ensure!(renewed.wait_approved(testbed)? == REASON);
    // A look at the Lease itself comes before a word of its silence.
    testbed.hub.server.patch(&format!("managedcluster {NAME}"), &json!({"spec": {"leaseDurationSeconds": 1}}))?;
    wait_condition(testbed, NAME, "ManagedClusterConditionAvailable", "Unknown/ManagedClusterLeaseUpdateStopped")
}

/// Sets are made, kept as they are, and told of.
fn sets(testbed: &Testbed) -> Result<()> {
    // A run of this part before may have made it already.
    testbed.hub.server.delete("managedclusterset global")?;
    wait::until("the set to be made anew", SOON, || get(testbed, "managedclusterset global").map(drop))?;
    let other = json!({"spec": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}}});
    testbed.hub.server.patch("managedclusterset default", &other)?;
    wait::until_true("the set as it was", SOON, || {
        Ok(get(testbed, "managedclusterset default")?["spec"]["clusterSelector"]["selectorType"]
            == "ExclusiveClusterSetLabel")
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

/// What a no takes away, and a role that somebody changed.
fn no_and_yes(testbed: &Testbed) -> Result<()> {
    accept(testbed, NAME, false)?;
    wait_condition(testbed, NAME, ACCEPTED, "False/HubClusterAdminDenied")?;
    // A namespace of somebody who says nothing of clusters is looked at when it is in the way.
    apply(testbed, &[namespace("used-theirs"), managed("used-theirs")])?;
    accept(testbed, "used-theirs", true)?;
    wait::until("an Event", SOON, || event(testbed, "default", "used-theirs", "AcceptanceFailed"))?;
    testbed.hub.server.delete("managedcluster used-theirs")?;
    accept(testbed, NAME, true)?;
    wait_condition(testbed, NAME, ACCEPTED, "True/HubClusterAdminAccepted")?;
    let role = "clusterrole open-cluster-management:managedcluster:work";
    testbed.hub.server.patch(role, &json!({"rules": []}))?;
    wait::until_true("the role as it was", SOON, || Ok(get(testbed, role)?["rules"] != json!([])))
}

/// With what others have in its namespace.
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

/// The hub lets nobody give what they do not have.
fn handed_out(testbed: &Testbed) -> Result<BTreeSet<Right>> {
    let own = testbed.hub.server.read(&format!("clusterroles -l open-cluster-management.io/cluster-name={NAME}"))?;
    let mut roles: Vec<Value> = own["items"].as_array().cloned().unwrap_or_default();
    ensure!(roles.len() == 2, "one of the cluster, and one of its tunnel: {roles:?}");
    for common in ["registration", "work"] {
        roles.push(get(testbed, &format!("clusterrole open-cluster-management:managedcluster:{common}"))?);
    }
    Ok(roles.iter().flat_map(granted).collect())
}

/// What admission asks of whoever changes an object: by the policies, and by the hub itself of
/// whoever approves a request.
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
