//! Certificate requests on a hub that signs what is approved.

use anyhow::{Context as _, Result, ensure};
use http::{Method, StatusCode};
use hub_tests::kubectl::Kubectl;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::agent::{Asked, Subject, ask};
use super::{
    Registration, accept, another, approved, bootstrap, exists, get, managed, may, reads, registers, wait_condition,
};
use crate::fixture::{SOON, apply, event};
use crate::rights::nothing_refused;

/// The reason of an automatic approval.
pub const REASON: &str = "AutoApprovedByHubCSRApprovingController";
const CSR: &str = "cluster_gateway_controllers_csr_total";

/// What an agent of r1 may not do: nothing to r10, and little to its own cluster.
const OF_ANOTHER: [(Method, &str); 17] = [
    (Method::GET, "/apis/cluster.open-cluster-management.io/v1/managedclusters/r10"),
    (Method::GET, "/apis/cluster.open-cluster-management.io/v1/managedclusters"),
    (Method::PATCH, "/apis/cluster.open-cluster-management.io/v1/managedclusters/r10"),
    (Method::DELETE, "/apis/cluster.open-cluster-management.io/v1/managedclusters/r10"),
    (Method::DELETE, OWN),
    (Method::GET, "/apis/coordination.k8s.io/v1/namespaces/r10/leases/managed-cluster-lease"),
    (Method::DELETE, "/apis/coordination.k8s.io/v1/namespaces/r10/leases/managed-cluster-lease"),
    (Method::GET, "/api/v1/namespaces/r1/secrets"),
    (Method::GET, "/api/v1/namespaces/r10/secrets"),
    (Method::POST, "/api/v1/namespaces/r1/secrets"),
    (Method::POST, "/api/v1/namespaces/r10/secrets"),
    (Method::GET, "/apis/work.open-cluster-management.io/v1/namespaces/r10/manifestworks"),
    (Method::DELETE, "/apis/work.open-cluster-management.io/v1/namespaces/r10/manifestworks"),
    (Method::POST, "/api/v1/namespaces/r10/configmaps"),
    (Method::GET, "/apis/rbac.authorization.k8s.io/v1/namespaces/r10/rolebindings"),
    (Method::PATCH, "/api/v1/namespaces/r10"),
    (Method::PUT, "/apis/certificates.k8s.io/v1/certificatesigningrequests/bad-other/approval"),
];
/// What it may not do to its own cluster after a denial.
const AFTER_A_NO: [(Method, &str); 4] = [
    (Method::GET, "/apis/coordination.k8s.io/v1/namespaces/r1/leases/managed-cluster-lease"),
    (Method::GET, "/apis/work.open-cluster-management.io/v1/namespaces/r1/manifestworks"),
    (Method::PATCH, OWN),
    (Method::GET, "/apis/certificates.k8s.io/v1/certificatesigningrequests/r1-first"),
];
/// The cluster r1.
const OWN: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters/r1";

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
    ensure!(reads(agent, OWN)?, "it learns of a yes");
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
    let user = [("impersonate-user", agent), ("impersonate-group", own), ("impersonate-group", group)];
    let subject = Subject { label: "r1", organization: own, common_name: agent };
    let hub = testbed.hub.server.kubectl();
    let late = wait::until("that it may ask", SOON, || subject.ask_with(&hub, &user, "r1-late"))?;
    wait::until("an Event", SOON, || event(testbed, "default", "r1-late", "RequestNotApproved"))?;
    ensure!(!late.is_approved(testbed)?);
    Ok(late)
}

/// Checks that the hub forbids it: the object's absence alone is not enough.
fn are_forbidden(agent: &Kubectl, requests: &[(Method, &str)]) -> Result<()> {
    for (method, path) in requests {
        // The hub asks for rights before it reads what is sent.
        let (kind, body) = match *method {
            Method::PATCH => ("application/merge-patch+json", json!({"metadata": {"labels": {"a": "b"}}})),
            Method::GET | Method::DELETE => ("application/json", Value::Null),
            _ => ("application/json", json!({"metadata": {"name": "stolen"}})),
        };
        let told = agent.send(method, path, &[("content-type", kind)], &body)?;
        ensure!(told.status == StatusCode::FORBIDDEN, "an agent may {method} {path}: {}", told.text());
    }
    Ok(())
}

fn reaches_nothing_of_another(agent: &Kubectl) -> Result<()> {
    ensure!(reads(agent, OWN)? && reads(agent, "/apis/coordination.k8s.io/v1/namespaces/r1/leases")?);
    are_forbidden(agent, &OF_ANOTHER)?;
    for name in ["r1", "r10"] {
        let link = json!({"verb": "create", "group": "cluster.core.oam.dev", "resource": "clustergateways",
            "subresource": "tunnel", "name": name});
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": link}});
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let answer = agent.send(&Method::POST, path, &[], &review)?.expect(StatusCode::CREATED)?.json()?;
        ensure!(answer["status"]["allowed"] == (name == "r1"), "{name}: {answer}");
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
    registers(&user, "j1")?;
    ensure!(asked.wait_approved(testbed)? == REASON);
    wait_condition(testbed, "j1", "HubAcceptedManagedCluster", "True/HubClusterAdminAccepted")?;
    let cluster = get(testbed, "managedcluster j1")?;
    ensure!(cluster["metadata"]["annotations"]["open-cluster-management.io/automatically-accepted-on"].is_string());
    let agent = asked.kubectl(testbed)?;
    let own = OWN.replace("r1", "j1");
    wait::until_true("what it got", SOON, || reads(&agent, &own))?;
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
    registers(&user, "kube-public")?;
    let system = ask(&user, "kube-public", "system-first")?;
    wait::until("an Event", SOON, || event(testbed, "default", "system-first", "RequestNotApproved"))?;
    ensure!(!system.is_approved(testbed)?);
    let rights = "rolebinding open-cluster-management:managedcluster:kube-public:work -n kube-public";
    ensure!(!exists(testbed, rights)?);
    judged_by_a_person(testbed, &user)?;
    // A cluster that joined another way is not accepted automatically.
    let secret = json!({"name": "j3", "namespace": place});
    apply(testbed, &[json!({"apiVersion": "v1", "kind": "Secret", "metadata": secret})])?;
    registers(&user, "j3")?;
    left_to_a_person(testbed, &user, "j3")?;
    // A request may also come long before its ManagedCluster.
    wait::until("an Event", 2 * SOON, || event(testbed, "default", "j4-first", "RequestNotApproved"))?;
    registers(&user, "j4")?;
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
