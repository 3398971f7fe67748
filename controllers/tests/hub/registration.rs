//! Clusters join as those of Open Cluster Management do, with upstream's kinds and the rights and
//! policies that the chart grants and installs.

mod acceptance;
mod admission;
mod agent;
mod another;
mod approved;
mod brought;
mod crowd;
mod denied;
mod heartbeat;
mod joining;
mod klusterlet;
mod requests;
mod rivals;
mod swap;
mod together;
mod troubled;
mod used;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use http::{Method, StatusCode};
use hub_tests::kubeconfig::Credential;
use hub_tests::kubectl::Kubectl;
use hub_tests::testbed::Testbed;
use hub_tests::trouble::Trouble;
use hub_tests::turns::{self, Alone};
use hub_tests::wait;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::argocd;
use crate::fixture::{Fixture, Running, SOON, apply, namespace, test};
use crate::rights::{NAME, rendered, started, started_over};

/// Two of these at once would replace each other, and taint the clusters of other tests.
pub const ALONE: &str = "ManagedClusters";
/// The tunnel's ports: a test's own tunnel-server uses them for a while, the testbed's until the
/// end.
const PORTS: &str = "ports of the tunnel";

const BOOTSTRAP: &str = "agent-registration-bootstrap";
/// For sets that are missing to be there, and for others that somebody altered to be as they were.
const SET_RIGHT: Duration = Duration::from_secs(1);

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(
            fixture,
            "registration: our agent joins with one kubeconfig, and a no ends its links at once",
            joining::joins,
        ),
        test(
            fixture,
            "registration: our agent brings the credential too, a no ends all streams, a yes brings all back",
            brought::works,
        ),
        test(fixture, "registration: a yes gives, a no takes at once, a deletion in order", acceptance::yes_and_no),
        test(fixture, "registration: a namespace that is somebody else's is no cluster's", acceptance::foreign),
        test(fixture, "registration: nothing is written that is there", acceptance::stillness),
        test(fixture, "registration: who may not accept, move or bind is refused", admission::refused),
        test(fixture, "registration: what the controllers' token may not do", admission::limits),
        test(fixture, "registration: without admission nobody is accepted", admission::removed),
        test(fixture, "registration: renewals are approved, and nothing of another", requests::renewals),
        test(fixture, "registration: a trusted user's first join, and a no that stays", requests::first_join),
        test(fixture, "registration: thousands of bad requests, and a good one among them", crowd::beside),
        test(fixture, "registration: an agent that is silent, to the second", heartbeat::silence),
        test(fixture, "registration: beside upstream's controllers it keeps out", rivals::keeps_out),
        test(fixture, "registration: the unmodified klusterlet joins", klusterlet::joins),
        test(fixture, "registration: none of its rights stands idle", used::all),
        test(fixture, "registration: together with all other parts, under the chart's policies", together::all),
        test(fixture, "registration: upstream's controllers, ours, and they again", swap::there_and_back),
        test(fixture, "registration: each call of a hub in trouble fails once", troubled::joins),
    ]
}

/// The path of all clusters.
const CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";

/// The part, as the chart installs it in `place`.
struct Registration {
    running: Running,
    /// The objects of the chart.
    objects: Vec<Value>,
    policies: Vec<Value>,
    _alone: Alone,
}

impl Registration {
    fn start(testbed: &Testbed, place: &str) -> Result<Self> {
        Self::with(testbed, place, "")
    }

    /// Starts the part with further values of the chart, each after a comma.
    fn with(testbed: &Testbed, place: &str, more: &str) -> Result<Self> {
        Self::started(testbed, place, more, alone())
    }

    /// The same, while no other test uses the tunnel's ports.
    fn with_ports(testbed: &Testbed, place: &str, more: &str) -> Result<Self> {
        Self::started(testbed, place, more, turns::alone(&[ALONE, argocd::ALONE, PORTS]))
    }

    fn started(testbed: &Testbed, place: &str, more: &str, alone: Alone) -> Result<Self> {
        let registration = Self::install(testbed, place, (more, None), alone)?;
        registration.wait_metric("cluster_gateway_controllers_ocm_stands_in", 1.0)?;
        Ok(registration)
    }

    /// With a hub in trouble.
    fn over(testbed: &Testbed, place: &str, trouble: &Trouble) -> Result<Self> {
        let registration = Self::install(testbed, place, ("", Some(trouble)), alone())?;
        registration.wait_metric("cluster_gateway_controllers_ocm_stands_in", 1.0)?;
        Ok(registration)
    }

    fn install(
        testbed: &Testbed,
        place: &str,
        (more, trouble): (&str, Option<&Trouble>),
        alone: Alone,
    ) -> Result<Self> {
        apply(testbed, &[namespace(place)])?;
        bootstrap_user(testbed, place)?;
        let values = format!(
            "controllers.ocmRegistration.enabled=true,controllers.ocmRegistration.autoApproveUsers={{{}}}{more}",
            user(place)
        );
        let objects = rendered(testbed, place, &values)?;
        let is_policy =
            |object: &&Value| object["kind"].as_str().is_some_and(|kind| kind.starts_with("ValidatingAdmissionPolicy"));
        let policies: Vec<Value> = objects.iter().filter(is_policy).cloned().collect();
        let own = policies.iter().filter(|policy| is_own(policy)).count();
        anyhow::ensure!(own == 6, "three policies and their bindings: {policies:?}");
        apply(testbed, &policies)?;
        let running = match trouble {
            Some(trouble) => started_over(testbed, place, &objects, trouble)?,
            None => started(testbed, place, &objects)?,
        };
        Ok(Self { running, objects, policies, _alone: alone })
    }

    fn wait_metric(&self, name: &str, value: f64) -> Result<()> {
        wait::until_true(&format!("{name} to be {value}"), SOON, || {
            let is_told = self.running.metrics()?.lines().any(|line| line.starts_with(name));
            Ok(is_told && (self.running.metric(name, "")? - value).abs() < 0.1)
        })
    }
}

/// Whether a policy belongs to the part.
fn is_own(policy: &Value) -> bool {
    let name = policy["metadata"]["name"].as_str().unwrap_or_default();
    admission::POLICIES.iter().any(|policy| name == format!("{NAME}-{policy}"))
}

/// Until it is dropped, no other test stands in for Open Cluster Management's controllers, or has
/// accepted clusters.
pub fn alone() -> Alone {
    turns::alone(&[ALONE, argocd::ALONE])
}

/// Waits until no test needs the tunnel's ports any more: the testbed's own tunnel-server keeps
/// them.
pub fn ports_are_left() {
    drop(turns::alone(&[PORTS]));
}

/// The user that may ask to join.
fn user(place: &str) -> String {
    format!("system:serviceaccount:{place}:{BOOTSTRAP}")
}

/// Upstream's role for this user (`bootstrap_cluster_role.yaml` of its chart), without the sets.
fn bootstrap_user(testbed: &Testbed, place: &str) -> Result<()> {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "open-cluster-management:bootstrap"},
        "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
            {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"],
                "verbs": ["create", "get", "list", "watch"]},
            {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters"],
                "verbs": ["get", "create", "list", "watch"]}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("open-cluster-management:bootstrap:{place}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "open-cluster-management:bootstrap"},
        "subjects": [{"kind": "ServiceAccount", "name": BOOTSTRAP, "namespace": place}],
    });
    apply(testbed, &[role, binding])
}

/// The bootstrap kubeconfig of a place.
fn bootstrap(testbed: &Testbed, place: &str) -> Result<Kubectl> {
    let token = testbed.hub.server.service_account_token(place, BOOTSTRAP)?;
    let path = testbed.hub.server.kubeconfig(&format!("bootstrap-{place}"), Credential::Token(token))?;
    Ok(testbed.launcher().kubectl(&path))
}

/// Creates a `ManagedCluster` as this user.
fn registers(user: &Kubectl, name: &str) -> Result<()> {
    let path = format!("{CLUSTERS}?fieldValidation=Strict");
    user.send(&Method::POST, &path, &[], &managed(name))?.expect(StatusCode::CREATED).map(drop)
}

/// Whether this user may read what is at `path`.
fn reads(user: &Kubectl, path: &str) -> Result<bool> {
    Ok(user.send(&Method::GET, path, &[], &Value::Null)?.status == StatusCode::OK)
}

/// From what `act` does, until `is_done`.
fn took(act: impl FnOnce() -> Result<()>, is_done: impl FnMut() -> Result<bool>) -> Result<Duration> {
    act()?;
    let start = Instant::now();
    wait::until_true("the effect", SOON, is_done)?;
    Ok(start.elapsed())
}

fn managed(name: &str) -> Value {
    json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name}, "spec": {"hubAcceptsClient": false, "leaseDurationSeconds": 60}})
}

/// Accepts or denies a cluster, as an administrator does.
fn accept(testbed: &Testbed, name: &str, is_yes: bool) -> Result<()> {
    testbed
        .hub
        .server
        .patch(&format!("managedcluster {name}"), &json!({"spec": {"hubAcceptsClient": is_yes}}))
        .map(drop)
}

fn get(testbed: &Testbed, line: &str) -> Result<Value> {
    let found = testbed.hub.server.read(line)?;
    anyhow::ensure!(!found.is_null(), "{line}: there is none");
    Ok(found)
}

/// Whether the object exists.
fn exists(testbed: &Testbed, line: &str) -> Result<bool> {
    Ok(!testbed.hub.server.read(line)?.is_null())
}

/// `status/reason` of a condition of a `ManagedCluster`.
fn condition(testbed: &Testbed, name: &str, of: &str) -> Result<String> {
    let cluster = get(testbed, &format!("managedcluster {name}"))?;
    let found = crate::fixture::condition(&cluster["status"], of);
    anyhow::ensure!(!found.is_null(), "no such condition");
    Ok(crate::fixture::said(found))
}

fn wait_condition(testbed: &Testbed, name: &str, of: &str, expected: &str) -> Result<()> {
    wait::until(&format!("{of} of {name} to be {expected}"), SOON, || {
        let found = condition(testbed, name, of)?;
        anyhow::ensure!(found == expected, "{found}");
        Ok(())
    })
}

/// Whether an agent of cluster `name` may do `what` on the hub: `VERB RESOURCE.GROUP[/NAME]
/// [SUBRESOURCE] [-n NAMESPACE]`.
fn may(testbed: &Testbed, name: &str, what: &str) -> Result<bool> {
    let (what, namespace) = what.split_once(" -n ").unwrap_or((what, "default"));
    let words: Vec<&str> = what.split(' ').collect();
    let (resource, of) = words[1].split_once('/').unwrap_or((words[1], ""));
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let attributes = json!({"verb": words[0], "group": group, "resource": resource, "name": of,
        "subresource": words.get(2), "namespace": namespace});
    let group = format!("system:open-cluster-management:{name}");
    testbed.hub.server.may_user("agent", &[&group], &attributes)
}
