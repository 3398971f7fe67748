//! `--ocm-integration` and `ManagedCluster`s that no administrator has accepted: any holder of a
//! bootstrap credential may create one, and no credential goes where it says.

use system_tests::prelude::*;

use super::ocm::{EFFECTIVE, FLAG, GATE, MANAGED, config, credential, fixture, member, until};
use super::{CLUSTERS, Fixture};

/// The way from a stranger's address to an administrator's word, and back.
const UNACCEPTED: [Value; 2] = [Value::Null, Value::Bool(false)];

fn managed(name: &str, accepted: &Value, member: &FakeMember) -> Value {
    let mut spec = json!({"managedClusterClientConfigs": [config(member)]});
    if !accepted.is_null() {
        spec["hubAcceptsClient"] = accepted.clone();
    }
    let condition = json!({"type": "ManagedClusterConditionAvailable", "status": "False", "reason": "Strangers"});
    json!({"metadata": {"name": name}, "spec": spec, "status": {"conditions": [condition]}})
}

/// The thief as fall-back: the first address is dead, so a request would come to it.
fn behind_a_dead_address(name: &str, thief: &FakeMember) -> Value {
    let mut managed = managed(name, &json!(false), thief);
    let configs = &mut managed["spec"]["managedClusterClientConfigs"];
    *configs = json!([{"url": "https://127.0.0.1:1"}, configs[0]]);
    managed
}

#[tokio::test]
async fn a_cluster_stays_where_its_secret_says_until_somebody_accepts() {
    let (own, thief) = (member("own").await, member("thief").await);
    for unaccepted in UNACCEPTED {
        let prepare = |hub: &FakeHub| {
            hub.install(MANAGED);
            hub.put(MANAGED, managed("a", &unaccepted, &thief));
            hub.put(MANAGED, behind_a_dead_address("b", &thief));
            hub.put_secret(cluster("a", &own));
            hub.put_secret(cluster("b", &own));
        };
        let fixture = fixture(prepare, &[FLAG]).await;
        for name in ["a", "b"] {
            assert_eq!(fixture.get(&proxied(name, "/api")).await.text(), "own", "{name} {unaccepted}");
            let object = fixture.get(&format!("{CLUSTERS}/{name}")).await.json();
            assert_eq!(object["spec"]["access"]["endpoint"]["const"]["address"], own.url(), "{object}");
        }
        assert_eq!((thief.request_count(), thief.connections_accepted()), (0, 0), "{unaccepted}");
    }
}

/// A bootstrap credential may create more of them than one answer of the hub has room for.
#[tokio::test]
async fn very_many_large_ones_keep_no_gateway_from_starting() {
    let own = member("own").await;
    let bundle = "A".repeat(1_400_000);
    let prepare = |hub: &FakeHub| {
        hub.install(MANAGED);
        for number in 0..100 {
            let config = json!({"url": "https://127.0.0.1:1", "caBundle": bundle});
            let name = format!("stranger{number}");
            hub.put(MANAGED, json!({"metadata": {"name": name}, "spec": {"managedClusterClientConfigs": [config]}}));
        }
        hub.put_secret(cluster("a", &own));
    };
    let fixture = fixture(prepare, &[FLAG]).await;
    assert_eq!(fixture.get(&proxied("a", "/api")).await.text(), "own");
    let shown = fixture.get("/apis/cluster.core.oam.dev/v1alpha1/virtualclusters").await.json();
    assert_eq!(shown["items"].as_array().map(Vec::len), Some(102), "these, the registered one, and the hub");
}

/// Waits until the gateway knows the objects that were put before: `marker` is reached where its
/// accepted `ManagedCluster`, put last, says.
async fn settled(fixture: &Fixture, own: &FakeMember, marker: &str) {
    fixture.hub.put_secret(credential(marker));
    fixture.hub.put(MANAGED, managed(marker, &json!(true), own));
    until(fixture, EFFECTIVE, marker, |answer| answer.text() == "own").await;
}

#[tokio::test]
async fn one_that_comes_later_moves_nothing_either() {
    let (own, thief) = (member("own").await, member("thief").await);
    let prepare = |hub: &FakeHub| {
        hub.install(MANAGED);
        hub.put_secret(cluster("a", &own));
    };
    let fixture = fixture(prepare, &[FLAG]).await;
    for (round, unaccepted) in UNACCEPTED.iter().enumerate() {
        fixture.hub.put(MANAGED, managed("a", unaccepted, &thief));
        settled(&fixture, &own, &format!("marker-{round}")).await;
        assert_eq!(fixture.get(&proxied("a", "/api")).await.text(), "own", "{unaccepted}");
        // A rewritten Secret is compared with it again.
        fixture.hub.put_secret(cluster("a", &own).annotation("touched", &round.to_string()));
        settled(&fixture, &own, &format!("touched-{round}")).await;
        assert_eq!(fixture.get(&proxied("a", "/api")).await.text(), "own", "{unaccepted}");
    }
    assert_eq!((thief.request_count(), thief.connections_accepted()), (0, 0));
}

#[tokio::test]
async fn acceptance_moves_a_cluster_and_its_end_moves_it_back() {
    let (own, other) = (member("own").await, member("other").await);
    let prepare = |hub: &FakeHub| {
        hub.install(MANAGED);
        hub.put(MANAGED, managed("a", &json!(false), &other));
        hub.put_secret(cluster("a", &own));
    };
    let fixture = fixture(prepare, &[FLAG]).await;
    for (accepted, expected) in [(false, "own"), (true, "other"), (false, "own"), (true, "other")] {
        fixture.hub.put(MANAGED, managed("a", &json!(accepted), &other));
        until(&fixture, EFFECTIVE, "a", |answer| answer.text() == expected).await;
    }
}

#[tokio::test]
async fn a_secret_without_endpoint_says_that_acceptance_is_missing() {
    let other = member("other").await;
    let prepare = |hub: &FakeHub| {
        hub.install(MANAGED);
        hub.put(MANAGED, managed("a", &json!(false), &other));
        hub.put_secret(credential("a"));
    };
    let fixture = fixture(prepare, &[FLAG]).await;
    let refused = fixture.get(&proxied("a", "/api")).await;
    let message = refused.status_message(503, "ServiceUnavailable");
    assert!(message.contains("ManagedCluster") && message.contains("spec.hubAcceptsClient"), "{message}");
    let shown = fixture.get(&format!("{CLUSTERS}/a")).await;
    assert!(shown.status_message(500, "InternalError").contains("spec.hubAcceptsClient"));
    assert_eq!(other.connections_accepted(), 0);

    fixture.hub.put(MANAGED, managed("a", &json!(true), &other));
    until(&fixture, EFFECTIVE, "a", |answer| answer.text() == "other").await;
    fixture.hub.put(MANAGED, managed("a", &json!(false), &other));
    until(&fixture, EFFECTIVE, "a", |answer| answer.status == 503).await;
}

#[tokio::test]
async fn a_strangers_conditions_are_nobodys_health() {
    let own = member("own").await;
    let prepare = |hub: &FakeHub| {
        hub.install(MANAGED);
        hub.put(MANAGED, managed("a", &json!(false), &own));
        hub.put_secret(cluster("a", &own).annotation("status.cluster.core.oam.dev/healthy", "true"));
    };
    let fixture = fixture(prepare, &[FLAG, GATE]).await;
    let status = async || fixture.get(&format!("{CLUSTERS}/a")).await.json()["status"].clone();
    assert_eq!(status().await, json!({"healthy": true}));
    fixture.hub.put(MANAGED, managed("a", &json!(true), &own));
    becomes(EFFECTIVE, "the accepted cluster's condition", async || status().await["healthy"] == false).await;
}
