//! `--ocm-integration`: a cluster's address, and whether it is there, come from its
//! `ManagedCluster`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use system_tests::prelude::*;

use super::{CLUSTERS, Fixture, NAMESPACE, names};

pub(super) const FLAG: &str = "--ocm-integration";
pub(super) const GATE: &str = "--feature-gates=HealthinessCheck=true,OCMClusterCache=false,SecretCache=false";
pub(super) const MANAGED: Resource = Resource::ManagedClusters;
/// How soon a change takes effect, on a busy machine too.
pub(super) const EFFECTIVE: Duration = Duration::from_secs(5);

pub(super) async fn member(name: &'static str) -> FakeMember {
    let member = FakeMember::start(MemberOptions::default()).await;
    member.on_any(move |_| Reply::full(200, &[], name));
    member
}

pub(super) fn config(member: &FakeMember) -> Value {
    json!({"url": member.url(), "caBundle": STANDARD.encode(member.ca_pem())})
}

fn managed(name: &str, configs: &Value, available: Option<&str>) -> Value {
    let conditions: Vec<_> = available
        .map(|status| json!({"type": "ManagedClusterConditionAvailable", "status": status, "reason": "LeaseUpdate"}))
        .into_iter()
        .collect();
    json!({"metadata": {"name": name}, "spec": {"hubAcceptsClient": true, "managedClusterClientConfigs": configs},
        "status": {"conditions": conditions}})
}

/// A Secret as an addon of Open Cluster Management writes it: a credential, and no way to the
/// cluster.
pub(super) fn credential(name: &str) -> ClusterSecret {
    ClusterSecret::new(NAMESPACE, name).token("t").data("ca.crt", "")
}

pub(super) async fn fixture(prepare: impl FnOnce(&FakeHub), arguments: &[&str]) -> Fixture {
    let hub = FakeHub::start().await;
    prepare(&hub);
    let testbed =
        arguments.iter().fold(Testbed::builder().hub(&hub), |testbed, argument| testbed.arg(argument)).start().await;
    Fixture { hub, testbed }
}

/// Asks `name` until it is answered as `expected`.
pub(super) async fn until(
    fixture: &Fixture,
    limit: Duration,
    name: &str,
    expected: impl Fn(&Answer) -> bool,
) -> Answer {
    fixture.connect(Http::H2).await.until(limit, &proxied(name, "/api"), expected).await
}

#[tokio::test]
async fn a_secret_without_endpoint_is_a_cluster_where_its_managed_cluster_is() {
    let (one, two) = (member("one").await, member("two").await);
    let prepare = |hub: &FakeHub| {
        hub.install(MANAGED);
        hub.put(MANAGED, managed("a", &json!([config(&one)]), None));
        hub.put_secret(credential("a"));
    };
    let fixture = fixture(prepare, &[FLAG]).await;
    // At once: the gateway was not ready before it knew both halves.
    assert_eq!(until(&fixture, EFFECTIVE, "a", |_| true).await.text(), "one");
    let object = fixture.get(&format!("{CLUSTERS}/a")).await.json();
    let fixed = &object["spec"]["access"]["endpoint"]["const"];
    assert_eq!((&fixed["address"], &fixed["caBundle"]), (&json!(one.url()), &config(&one)["caBundle"]));

    fixture.hub.put(MANAGED, managed("a", &json!([config(&two)]), None));
    until(&fixture, EFFECTIVE, "a", |answer| answer.text() == "two").await;
    fixture.hub.delete(MANAGED, "", "a");
    let answer = until(&fixture, EFFECTIVE, "a", |answer| answer.status == 503).await;
    assert!(answer.text().contains("endpoint"), "{}", answer.text());
    fixture.get(&format!("{CLUSTERS}/a")).await.status_message(500, "InternalError");
    fixture.hub.put(MANAGED, managed("a", &json!([config(&one)]), None));
    until(&fixture, EFFECTIVE, "a", |answer| answer.text() == "one").await;
}

#[tokio::test]
async fn managed_clusters_come_before_secrets_which_remain_for_the_rest() {
    let (own, other) = (member("own").await, member("other").await);
    let prepare = |hub: &FakeHub| {
        hub.install(MANAGED);
        hub.put(MANAGED, managed("both", &json!([config(&other)]), None));
        hub.put(MANAGED, managed("nowhere", &json!([]), None));
        for name in ["both", "nowhere", "alone"] {
            hub.put_secret(cluster(name, &own));
        }
    };
    let with = fixture(prepare, &[FLAG]).await;
    for (name, expected) in [("both", "other"), ("nowhere", "own"), ("alone", "own")] {
        assert_eq!(until(&with, EFFECTIVE, name, |_| true).await.text(), expected, "{name}");
    }
    let without = fixture(prepare, &[]).await;
    for name in ["both", "nowhere", "alone"] {
        assert_eq!(until(&without, EFFECTIVE, name, |_| true).await.text(), "own", "{name}");
    }
    let object = without.get(&format!("{CLUSTERS}/both")).await.json();
    assert_eq!(object["spec"]["access"]["endpoint"]["const"]["address"], own.url());
}

#[tokio::test]
async fn the_kind_may_come_later_without_a_restart() {
    let (own, other) = (member("own").await, member("other").await);
    let fixture = fixture(|hub| _ = hub.put_secret(cluster("a", &own)), &[FLAG]).await;
    assert_eq!(until(&fixture, EFFECTIVE, "a", |_| true).await.text(), "own");
    fixture.hub.install(MANAGED);
    fixture.hub.put(MANAGED, managed("a", &json!([config(&other)]), None));
    // A read of the clusters by a user wakes the gateway; without one it would take half a minute.
    fixture.get("/apis/cluster.core.oam.dev/v1alpha1/virtualclusters").await;
    until(&fixture, EFFECTIVE, "a", |answer| answer.text() == "other").await;
    fixture.hub.watching(MANAGED, 1).await;
    fixture.hub.uninstall(MANAGED);
    until(&fixture, 2 * EFFECTIVE, "a", |answer| answer.text() == "own").await;
}

#[tokio::test]
async fn a_hub_that_does_not_answer_about_them_is_asked_again() {
    let other = member("other").await;
    let hub = FakeHub::start().await;
    hub.install(MANAGED);
    hub.put(MANAGED, managed("a", &json!([config(&other)]), None));
    hub.put_secret(credential("a"));
    hub.fail_next(Call::List(MANAGED), 1, Fault::Status(500));
    let testbed = Testbed::builder().hub(&hub).arg(FLAG).launch().await;
    hub.called(Call::List(MANAGED), 2).await;
    testbed.ready().await;
    let fixture = Fixture { hub, testbed };
    assert_eq!(until(&fixture, EFFECTIVE, "a", |_| true).await.text(), "other");
    // Watches end and expire.
    fixture.hub.watching(MANAGED, 1).await;
    fixture.hub.compact();
    fixture.hub.end_watches();
    fixture.hub.put(MANAGED, managed("a", &json!([]), None));
    until(&fixture, 2 * EFFECTIVE, "a", |answer| answer.status == 503).await;
}

#[tokio::test]
async fn absence_beats_what_was_reported() {
    const HEALTHY: &str = "status.cluster.core.oam.dev/healthy";
    let own = member("own").await;
    let reported = |name: &str| cluster(name, &own).annotation(HEALTHY, "true");
    let prepare = |hub: &FakeHub| {
        hub.install(MANAGED);
        for (name, available) in
            [("away", Some("False")), ("lost", Some("Unknown")), ("there", Some("True")), ("silent", None)]
        {
            hub.put(MANAGED, managed(name, &json!([]), available));
            hub.put_secret(reported(name));
        }
        hub.put_secret(reported("alone"));
    };
    let fixture = fixture(prepare, &[FLAG, GATE]).await;
    let list = fixture.get(CLUSTERS).await;
    assert_eq!(names(&list), ["alone", "away", "lost", "silent", "there"]);
    let healthy: Vec<_> =
        list.json()["items"].as_array().expect("items").iter().map(|item| item["status"].clone()).collect();
    let (yes, no) = (json!({"healthy": true}), json!({"healthy": false, "healthyReason": "LeaseUpdate"}));
    assert_eq!(healthy, [yes.clone(), no.clone(), no, yes.clone(), yes]);
}

#[tokio::test]
async fn without_a_hub_the_flag_means_nothing() {
    let own = member("own").await;
    let testbed = Testbed::builder().cluster("a", cluster("a", &own)).arg(FLAG).start().await;
    assert_eq!(testbed.get(&proxied("a", "/api")).await.text(), "own");
}
