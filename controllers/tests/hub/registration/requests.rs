//! Certificate requests on a hub that signs what is approved.

use anyhow::{Context as _, Result, ensure};
use hub_tests::kubectl::Kubectl;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::json;

use super::agent::{Asked, Subject, ask};
use super::{Registration, accept, another, approved, bootstrap, exists, get, managed, may, wait_condition};
use crate::fixture::{SOON, apply, event};
use crate::rights::nothing_refused;

/// The reason of an automatic approval.
pub const REASON: &str = "AutoApprovedByHubCSRApprovingController";
const CSR: &str = "cluster_gateway_controllers_csr_total";

/// What an agent of r1 may not do: nothing to r10, and little to its own cluster.
const OF_ANOTHER: [&str; 17] = [
    "get managedcluster r10",
    "get managedclusters",
    "label managedcluster r10 a=b",
    "delete managedcluster r10",
    "delete managedcluster r1",
    "get lease managed-cluster-lease -n r10",
    "delete lease managed-cluster-lease -n r10",
    "get secrets -n r1",
    "get secrets -n r10",
    "create secret generic stolen -n r1",
    "create secret generic stolen -n r10",
    "get manifestworks -n r10",
    "delete manifestworks --all -n r10",
    "create configmap stolen -n r10",
    "get rolebindings -n r10",
    "annotate namespace r10 a=b",
    "certificate approve bad-other",
];
/// What it may not do to its own cluster after a denial.
const AFTER_A_NO: [&str; 4] = [
    "get lease managed-cluster-lease -n r1",
    "get manifestworks -n r1",
    "label managedcluster r1 a=b",
    "get csr r1-first",
];

pub fn renewals(testbed: &Testbed) -> Result<()> {
    let place = "renewal-place";
    let registration = Registration::start(testbed, place)?;
    approved::followed(testbed).context("docs/registration.md")?;
    let hub = testbed.hub.server.kubectl();
    apply(testbed, &[managed("r1"), managed("r10")])?;
    accept(testbed, "r1", true)?;
    accept(testbed, "r10", true)?;
    wait_condition(testbed, "r1", "HubAcceptedManagedCluster", "True/HubClusterAdminAccepted")?;
    wait_condition(testbed, "r10", "HubAcceptedManagedCluster", "True/HubClusterAdminAccepted")?;
    // The first request is of a user that is not trusted: a person approves it.
    let first = ask(&hub, "r1", "r1-first")?;
    let note = wait::until("an Event", SOON, || event(testbed, "default", "r1-first", "RequestNotApproved"))?;
    ensure!(note.contains("left for a person") && !first.is_approved(testbed)?, "{note}");
    hub.ok("certificate approve r1-first")?;
    let agent = first.kubectl(testbed)?;
    // Renewals are automatic, for its own identity only.
    ensure!(ask(&agent, "r1", "r1-second")?.wait_approved(testbed)? == REASON);
    let own = "system:open-cluster-management:r1";
    let other = "system:open-cluster-management:r10";
    for (name, label, organization, common_name) in [
        ("bad-other", "r10", other, "system:open-cluster-management:r10:agent"),
        ("bad-prefix", "r1", own, "system:open-cluster-management:r10:agent"),
        ("bad-label", "r10", own, "system:open-cluster-management:r1:agent"),
        ("bad-organization", "r1", other, "system:open-cluster-management:r1:agent"),
        ("bad-agent", "r1", own, "system:open-cluster-management:r1:another"),
        ("bad-parts", "r1", own, "system:open-cluster-management:r1:agent:x"),
    ] {
        let asked = Subject { label, organization, common_name }.ask(&agent, name)?;
        let told = wait::until("an Event", SOON, || {
            event(testbed, "default", name, "RequestNotRecognized")
                .or_else(|_| event(testbed, "default", name, "RequestNotApproved"))
        })?;
        ensure!(!asked.is_approved(testbed)?, "{name}: {told}");
    }
    ensure!(registration.running.metric(CSR, "decision=\"renewed\"")? >= 1.0);
    ensure!(registration.running.metric(CSR, "decision=\"unrecognized\"")? >= 4.0);
    reaches_nothing_of_another(&agent)?;
    another::is_not_written(testbed, ("r1", "r10"))?;
    after_a_no(testbed, &registration, &agent)?;
    testbed.hub.server.delete("managedclusters r1 r10")?;
    nothing_refused(testbed, place)
}

fn after_a_no(testbed: &Testbed, registration: &Registration, agent: &Kubectl) -> Result<()> {
    let hub = testbed.hub.server.kubectl();
    // After a denial, the certificate is good for nothing but reading its own cluster.
    accept(testbed, "r1", false)?;
    let asks = "create certificatesigningrequests.certificates.k8s.io";
    wait::until_true("that it may not ask", SOON, || Ok(!may(testbed, "r1", asks)?))?;
    ensure!(ask(agent, "r1", "r1-denied").is_err(), "a denied agent asks");
    are_forbidden(agent, &AFTER_A_NO)?;
    are_forbidden(agent, &OF_ANOTHER)?;
    ensure!(agent.ok("get managedcluster r1").is_ok(), "it learns of a yes");
    let by_hub = ask(&hub, "r1", "r1-after-no")?;
    wait::until("an Event", SOON, || event(testbed, "default", "r1-after-no", "RequestNotApproved"))?;
    ensure!(!by_hub.is_approved(testbed)?);
    let late = renewal_at_a_no(testbed)?;
    accept(testbed, "r1", true)?;
    ensure!(late.wait_approved(testbed)? == REASON);
    let again = wait::until("that it may ask again", SOON, || ask(agent, "r1", "r1-again"))?;
    ensure!(again.wait_approved(testbed)? == REASON);
    // An agent that keeps asking gets ten approvals.
    for number in 0..12 {
        ask(agent, "r1", &format!("r1-storm-{number}"))?;
    }
    wait::until_true("that it is slowed down", SOON, || {
        Ok(registration.running.metric(CSR, "decision=\"paced\"")? >= 3.0)
    })
}

/// A renewal that the hub accepted from the agent just before it lost the right to ask, and that
/// the controllers judge after the denial.
fn renewal_at_a_no(testbed: &Testbed) -> Result<Asked> {
    let group = "late-renewals";
    let rule = json!({"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"],
        "verbs": ["create"]});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": group}, "rules": [rule]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": group},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": group},
        "subjects": [{"kind": "Group", "name": group, "apiGroup": "rbac.authorization.k8s.io"}]});
    apply(testbed, &[role, binding])?;
    let (own, agent) = ("system:open-cluster-management:r1", "system:open-cluster-management:r1:agent");
    let flags = ["--as", agent, "--as-group", own, "--as-group", group];
    let subject = Subject { label: "r1", organization: own, common_name: agent };
    let hub = testbed.hub.server.kubectl();
    let late = wait::until("that it may ask", SOON, || subject.ask_with(&hub, &flags, "r1-late"))?;
    wait::until("an Event", SOON, || event(testbed, "default", "r1-late", "RequestNotApproved"))?;
    ensure!(!late.is_approved(testbed)?);
    Ok(late)
}

/// Checks that the hub forbids it: the object's absence alone is not enough.
fn are_forbidden(agent: &Kubectl, lines: &[&str]) -> Result<()> {
    for line in lines {
        let told = agent.args(line.split(' ')).run()?;
        ensure!(
            told.stderr.to_lowercase().contains("forbidden"),
            "an agent may {line}: {}{}",
            told.stdout,
            told.stderr
        );
    }
    Ok(())
}

fn reaches_nothing_of_another(agent: &Kubectl) -> Result<()> {
    ensure!(agent.ok("get managedcluster r1").is_ok() && agent.ok("get lease -n r1").is_ok());
    are_forbidden(agent, &OF_ANOTHER)?;
    for name in ["r1", "r10"] {
        let what = [
            "auth",
            "can-i",
            "create",
            &format!("clustergateways.cluster.core.oam.dev/{name}"),
            "--subresource=tunnel",
        ];
        let answer = agent.args(what).run()?;
        ensure!((answer.stdout.trim() == "yes") == (name == "r1"), "{name}: {}", answer.stdout);
    }
    Ok(())
}

pub fn first_join(testbed: &Testbed) -> Result<()> {
    let place = "join-place";
    let registration = Registration::start(testbed, place)?;
    let user = bootstrap(testbed, place)?;
    let early = ask(&user, "j4", "j4-first")?;
    // The request may be created before the ManagedCluster.
    let asked = ask(&user, "j1", "j1-first")?;
    user.args(["create", "-f", "-"]).stdin(managed("j1").to_string()).run()?.success()?;
    ensure!(asked.wait_approved(testbed)? == REASON);
    wait_condition(testbed, "j1", "HubAcceptedManagedCluster", "True/HubClusterAdminAccepted")?;
    let cluster = get(testbed, "managedcluster j1")?;
    ensure!(cluster["metadata"]["annotations"]["open-cluster-management.io/automatically-accepted-on"].is_string());
    let agent = asked.kubectl(testbed)?;
    wait::until_true("what it got", SOON, || Ok(agent.ok("get managedcluster j1").is_ok()))?;
    // It has joined: from now on, a bootstrap credential alone cannot take its identity.
    let joined = json!({"type": "ManagedClusterJoined", "status": "True", "reason": "Joined", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let joined = json!({"status": {"conditions": [joined]}});
    testbed.hub.server.patch("managedcluster j1 --subresource=status", &joined)?;
    let thief = ask(&user, "j1", "j1-thief")?;
    wait::until("an Event", SOON, || event(testbed, "default", "j1-thief", "RequestNotApproved"))?;
    ensure!(!thief.is_approved(testbed)?);
    // A person's denial stays.
    accept(testbed, "j1", false)?;
    let again = ask(&user, "j1", "j1-again")?;
    wait::until("an Event", SOON, || event(testbed, "default", "j1-again", "RequestNotApproved"))?;
    ensure!(!again.is_approved(testbed)? && get(testbed, "managedcluster j1")?["spec"]["hubAcceptsClient"] == false);
    // No cluster gets a namespace of the hub's own.
    user.args(["create", "-f", "-"]).stdin(managed("kube-public").to_string()).run()?.success()?;
    let system = ask(&user, "kube-public", "system-first")?;
    wait::until("an Event", SOON, || event(testbed, "default", "system-first", "RequestNotApproved"))?;
    ensure!(!system.is_approved(testbed)?);
    let rights = "rolebinding open-cluster-management:managedcluster:kube-public:work -n kube-public";
    ensure!(!exists(testbed, rights)?);
    judged_by_a_person(testbed, &user)?;
    // A cluster that joined another way is not accepted automatically.
    let secret = json!({"name": "j3", "namespace": place});
    apply(testbed, &[json!({"apiVersion": "v1", "kind": "Secret", "metadata": secret})])?;
    user.args(["create", "-f", "-"]).stdin(managed("j3").to_string()).run()?.success()?;
    left_to_a_person(testbed, &user, "j3")?;
    // A request may also come long before its ManagedCluster.
    wait::until("an Event", 2 * SOON, || event(testbed, "default", "j4-first", "RequestNotApproved"))?;
    user.args(["create", "-f", "-"]).stdin(managed("j4").to_string()).run()?.success()?;
    ensure!(early.wait_approved(testbed)? == REASON);
    testbed.hub.server.delete("managedclusters j2 j3 j4")?;
    ensure!(registration.running.metric(CSR, "decision=\"joined\"")? >= 1.0);
    testbed.hub.server.delete("managedclusters j1 kube-public")
}

/// A cluster that a person accepted and denied, and whose agent removes from its status that it was
/// ever judged.
fn judged_by_a_person(testbed: &Testbed, user: &Kubectl) -> Result<()> {
    apply(testbed, &[managed("j2")])?;
    accept(testbed, "j2", true)?;
    wait_condition(testbed, "j2", "HubAcceptedManagedCluster", "True/HubClusterAdminAccepted")?;
    accept(testbed, "j2", false)?;
    wait_condition(testbed, "j2", "HubAcceptedManagedCluster", "False/HubClusterAdminDenied")?;
    let never = json!({"status": {"conditions": []}});
    testbed.hub.server.patch("managedcluster j2 --subresource=status", &never)?;
    left_to_a_person(testbed, user, "j2")?;
    wait_condition(testbed, "j2", "HubAcceptedManagedCluster", "False/HubClusterAdminDenied")
}

fn left_to_a_person(testbed: &Testbed, user: &Kubectl, name: &str) -> Result<()> {
    let request = format!("{name}-first");
    let asked = ask(user, name, &request)?;
    wait::until("an Event", SOON, || event(testbed, "default", &request, "RequestNotApproved"))?;
    let cluster = get(testbed, &format!("managedcluster {name}"))?;
    ensure!(!asked.is_approved(testbed)? && cluster["spec"]["hubAcceptsClient"] == false, "{name} was let in");
    Ok(())
}
