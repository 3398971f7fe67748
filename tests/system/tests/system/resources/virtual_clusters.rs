//! `virtualclusters`: Secrets, `ManagedCluster`s and the hub itself, merged.

use system_tests::prelude::*;

use super::{Fixture, NAMESPACE, SECRETS, TABLE, Watch, names, readable, unreadable};

const PATH: &str = "/apis/cluster.core.oam.dev/v1alpha1/virtualclusters";
const MANAGED: Resource = Resource::ManagedClusters;
const LOCAL: &str = "local";

fn managed(name: &str, labels: &Value) -> Value {
    json!({"metadata": {"name": name, "labels": labels}, "spec": {"hubAcceptsClient": true,
        "managedClusterClientConfigs": [{"url": "https://managed.example"}]}})
}

/// A hub with both kinds.
async fn both(secrets: impl IntoIterator<Item = ClusterSecret>, clusters: &[Value]) -> Fixture {
    let hub = FakeHub::start().await;
    hub.install(MANAGED);
    for cluster in clusters {
        hub.put(MANAGED, cluster.clone());
    }
    for secret in secrets {
        hub.put_secret(secret);
    }
    let testbed = Testbed::builder().hub(&hub).start().await;
    hub.watching(MANAGED, 1).await;
    hub.watching(SECRETS, 1).await;
    Fixture { hub, testbed }
}

async fn watch(fixture: &Fixture, query: &str) -> Watch {
    fixture.watch(&format!("{PATH}?watch=true{query}")).await
}

fn version(list: &Value) -> String {
    list["metadata"]["resourceVersion"].as_str().expect("a version").to_owned()
}

across_http!(every_cluster_is_there_without_its_credential);

async fn every_cluster_is_there_without_its_credential(http: Http) {
    let aliased = readable("a").annotation("cluster.core.oam.dev/cluster-alias", "The First").label("tier", "gold");
    let fixture =
        both([aliased], &[managed("b", &json!({"region": "north"})), json!({"metadata": {"name": "bare"}})]).await;
    let mut connection = fixture.connect(http).await;
    let list = connection.get(PATH).await;
    let mut listed = names(&list);
    assert_eq!(listed.remove(0), LOCAL);
    listed.sort();
    assert_eq!(listed, ["a", "b"]);
    assert!(!list.text().contains("canary"));
    let a = connection.get(&format!("{PATH}/a")).await.json();
    assert_eq!(
        a["spec"],
        json!({"alias": "The First", "accepted": true, "endpoint": "Const", "credential-type": "ServiceAccountToken"})
    );
    assert_eq!(a["metadata"]["labels"], json!({"cluster.core.oam.dev/control-plane": "false", "tier": "gold"}));
    let secret = fixture.hub.get(SECRETS, NAMESPACE, "a").expect("a Secret");
    assert_eq!(
        (&a["metadata"]["uid"], &a["metadata"]["resourceVersion"]),
        (&secret["metadata"]["uid"], &secret["metadata"]["resourceVersion"])
    );
    let b = connection.get(&format!("{PATH}/b")).await.json();
    assert_eq!(b["spec"], json!({"accepted": true, "endpoint": "-", "credential-type": "ManagedCluster"}));
    let local = connection.get(&format!("{PATH}/{LOCAL}")).await.json();
    assert_eq!(local["spec"], json!({"accepted": true, "endpoint": "-", "credential-type": "Internal"}));
    assert_eq!(local["metadata"]["creationTimestamp"], Value::Null);
}

#[tokio::test]
async fn what_is_no_cluster_is_left_out_or_says_why() {
    let other = ClusterSecret::new(NAMESPACE, "other").endpoint("https://m");
    let invalid = json!({"metadata": {"name": "invalid", "namespace": NAMESPACE,
        "labels": {"cluster.core.oam.dev/cluster-credential-type": "ServiceAccountToken"}}});
    let fixture = both([other, unreadable("a")], &[json!({"metadata": {"name": "bare"}})]).await;
    fixture.hub.put_secret(invalid.clone());
    // A Secret that is no readable gateway is a cluster all the same.
    assert_eq!(names(&fixture.get(PATH).await), [LOCAL, "a"]);
    for name in ["absent", "other"] {
        let message = fixture.get(&format!("{PATH}/{name}")).await.status_message(404, "NotFound");
        assert_eq!(message, format!("virtualclusters.cluster.core.oam.dev \"{name}\" not found"));
    }
    let answer = fixture.get(&format!("{PATH}/invalid")).await;
    assert_eq!(answer.json()["details"]["causes"][0]["reason"], "Hub", "the caller cannot mend it");
    let message = answer.status_message(500, "InternalError");
    assert!(message.contains("invalid") && message.contains("endpoint"), "{message}");
    // An agent may create such a cluster: no side has failed.
    let answer = fixture.get(&format!("{PATH}/bare")).await;
    assert_eq!(answer.json()["details"]["causes"], Value::Null);
    let message = answer.status_message(404, "NotFound");
    assert!(message.contains("cluster bare") && message.contains("no client config"), "{message}");
    // If one of the two is in order, that one is shown.
    fixture.hub.put(MANAGED, managed("invalid", &json!({})));
    assert_eq!(fixture.get(&format!("{PATH}/invalid")).await.json()["spec"]["credential-type"], "ManagedCluster");
    assert_eq!(names(&fixture.get(PATH).await).len(), 3);
}

#[tokio::test]
async fn a_secret_wins_over_a_managed_cluster_of_its_name() {
    let fixture = both([readable("a"), readable(LOCAL)], &[managed("a", &json!({})), managed(LOCAL, &json!({}))]).await;
    let list = fixture.get(PATH).await;
    assert_eq!(names(&list), [LOCAL, "a"]);
    let kinds: Vec<_> = list.json()["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| item["spec"]["credential-type"].clone())
        .collect();
    assert_eq!(kinds, ["Internal", "ServiceAccountToken"]);
    assert_eq!(fixture.get(&format!("{PATH}/a")).await.json()["spec"]["credential-type"], "ServiceAccountToken");
}

#[tokio::test]
async fn selectors_see_the_merged_labels() {
    let fixture = both([readable("a").label("region", "north")], &[managed("b", &json!({"region": "south"}))]).await;
    for (selector, expected) in [
        ("labelSelector=region%3Dnorth", &["a"][..]),
        ("labelSelector=region", &["a", "b"]),
        ("labelSelector=cluster.core.oam.dev%2Fcontrol-plane%3Dtrue", &[LOCAL]),
        ("labelSelector=cluster.core.oam.dev%2Fcontrol-plane!%3Dtrue", &["a", "b"]),
        ("labelSelector=cluster.core.oam.dev%2Fcluster-credential-type", &[]),
        ("fieldSelector=metadata.name%3Db", &["b"]),
        ("fieldSelector=metadata.name!%3Dlocal&labelSelector=region%3Dsouth", &["b"]),
    ] {
        let mut found = names(&fixture.get(&format!("{PATH}?{selector}")).await);
        found.sort();
        assert_eq!(found, expected, "{selector}");
    }
    fixture.get(&format!("{PATH}?continue=abc")).await.status_message(400, "BadRequest");
    assert_eq!(names(&fixture.get(&format!("{PATH}?limit=1")).await).len(), 3);
}

#[tokio::test]
async fn tables_have_the_go_gateways_columns() {
    let fixture = both([readable("a").label("b", "2").label("a", "1")], &[]).await;
    let table = fixture.call("GET", PATH, &[TABLE], b"").await.json();
    let columns: Vec<_> =
        table["columnDefinitions"].as_array().expect("columns").iter().map(|column| column["name"].clone()).collect();
    assert_eq!(columns, ["Name", "Alias", "Credential_Type", "Endpoint", "Accepted", "Labels", "Creation_Timestamp"]);
    let labels = "a=1,b=2,cluster.core.oam.dev/control-plane=false";
    assert_eq!(
        table["rows"][1]["cells"],
        json!(["a", "", "ServiceAccountToken", "Const", true, labels, "2026-01-01T00:00:00Z"])
    );
}

#[tokio::test]
async fn a_hub_without_managed_clusters_is_a_hub_like_any_other() {
    let fixture = Fixture::set([readable("a")]).await;
    assert_eq!(names(&fixture.get(PATH).await), [LOCAL, "a"]);
    fixture.get(&format!("{PATH}/absent")).await.status_message(404, "NotFound");
    let mut watch = watch(&fixture, "").await;
    assert_eq!([watch.next_summary().await, watch.next_summary().await], ["ADDED local", "ADDED a"]);
    // Nor is a hub that does not permit anyone to read them.
    fixture.hub.install(MANAGED);
    for call in [Call::List(MANAGED), Call::Get(MANAGED), Call::Watch(MANAGED)] {
        fixture.hub.fail(call, Fault::Status(403));
    }
    assert_eq!(names(&fixture.get(PATH).await), [LOCAL, "a"]);
    fixture.get(&format!("{PATH}/absent")).await.status_message(404, "NotFound");
    // Any other failure is one.
    fixture.hub.fail(Call::List(MANAGED), Fault::Status(503));
    fixture.get(PATH).await.status_message(503, "ServiceUnavailable");
}

#[tokio::test]
async fn both_sources_are_watched_as_one() {
    let fixture = both([readable("a")], &[managed("b", &json!({}))]).await;
    let mut watch = watch(&fixture, "").await;
    let mut first = [watch.next_summary().await, watch.next_summary().await, watch.next_summary().await];
    first.sort();
    assert_eq!(first, ["ADDED a", "ADDED b", "ADDED local"]);
    fixture.hub.put_secret(readable("b"));
    let event = watch.next().await.expect("an event");
    assert_eq!(
        (event.kind.as_str(), &event.object["spec"]["credential-type"]),
        ("MODIFIED", &json!("ServiceAccountToken"))
    );
    fixture.hub.put(MANAGED, managed("c", &json!({})));
    assert_eq!(watch.next_summary().await, "ADDED c");
    fixture.hub.delete_secret(NAMESPACE, "b");
    let event = watch.next().await.expect("an event");
    assert_eq!((event.kind.as_str(), &event.object["spec"]["credential-type"]), ("MODIFIED", &json!("ManagedCluster")));
    fixture.hub.delete(MANAGED, "", "b");
    assert_eq!(watch.next_summary().await, "DELETED b");
}

#[tokio::test]
async fn a_watch_goes_on_from_a_list() {
    let fixture = both([readable("a"), readable("b")], &[managed("b", &json!({})), managed("c", &json!({}))]).await;
    let list = fixture.get(PATH).await.json();
    fixture.hub.put(MANAGED, managed("c", &json!({"x": "y"})));
    let mut watch = watch(&fixture, &format!("&resourceVersion={}", version(&list))).await;
    assert_eq!(watch.next_summary().await, "MODIFIED c");
    fixture.hub.delete_secret(NAMESPACE, "b");
    let event = watch.next().await.expect("an event");
    assert_eq!(
        (event.kind.as_str(), event.name(), &event.object["spec"]["credential-type"]),
        ("MODIFIED", "b", &json!("ManagedCluster"))
    );
    fixture.hub.compact();
    let mut late = fixture.watch(&format!("{PATH}?watch=true&resourceVersion={}", version(&list))).await;
    let event = late.next().await.expect("an event");
    assert_eq!((event.kind.as_str(), &event.object["code"]), ("ERROR", &json!(410)));
}

#[tokio::test]
async fn initial_events_end_once_and_bookmarks_are_of_both() {
    let fixture = both([readable("a")], &[managed("b", &json!({}))]).await;
    let query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = watch(&fixture, query).await;
    for _ in 0..3 {
        assert_eq!(watch.next().await.expect("an event").kind, "ADDED");
    }
    let end = watch.next().await.expect("an event");
    assert_eq!((end.kind.as_str(), &end.object["kind"]), ("BOOKMARK", &json!("VirtualCluster")));
    assert_eq!(end.object["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    // The hub's bookmarks come on both streams; the reader gets one, of a version both have passed.
    fixture.hub.watching(MANAGED, 2).await;
    fixture.hub.watching(SECRETS, 2).await;
    fixture.hub.put_secret(readable("a").label("x", "y"));
    assert_eq!(watch.next_summary().await, "MODIFIED a");
    fixture.hub.bookmark();
    let event = watch.next().await.expect("an event");
    assert_eq!((event.kind.as_str(), event.object["metadata"].get("annotations")), ("BOOKMARK", None));
    assert_eq!(event.version(), version(&fixture.get(PATH).await.json()));
}

#[tokio::test]
async fn watchers_list_anew_when_the_hub_gets_or_loses_its_managed_clusters() {
    let fixture = Fixture::set([readable("a")]).await;
    let before = fixture.get(PATH).await.json();
    let mut watch = watch(&fixture, "").await;
    assert_eq!([watch.next_summary().await, watch.next_summary().await], ["ADDED local", "ADDED a"]);
    fixture.hub.install(MANAGED);
    fixture.hub.put(MANAGED, managed("b", &json!({})));
    // A watch that resumed from a list that lacks it would never hear of it.
    let target = format!("{PATH}?watch=true&resourceVersion={}", version(&before));
    fixture.get(&target).await.status_message(410, "Expired");
    // The gateway has noticed by that: open watches learn of it too.
    let event = watch.next().await.expect("an event");
    assert_eq!((event.kind.as_str(), &event.object["code"]), ("ERROR", &json!(410)));
    fixture.get(&target).await.status_message(410, "Expired");
    let mut listed = names(&fixture.get(PATH).await);
    listed.sort();
    assert_eq!(listed, ["a", "b", LOCAL]);

    fixture.hub.watching(MANAGED, 1).await;
    let list = fixture.get(PATH).await.json();
    let mut watch = fixture.watch(&format!("{PATH}?watch=true&resourceVersion={}", version(&list))).await;
    fixture.hub.watching(MANAGED, 2).await;
    fixture.hub.uninstall(MANAGED);
    let mut next_summary = Vec::new();
    while let Some(event) = watch.next().await {
        next_summary.push((event.kind.clone(), event.object["code"].clone()));
    }
    assert_eq!(next_summary.last(), Some(&("ERROR".to_owned(), json!(410))), "{next_summary:?}");
    assert_eq!(names(&fixture.get(PATH).await), [LOCAL, "a"]);
}

#[tokio::test]
async fn who_would_miss_what_is_still_on_its_way_lists_anew() {
    for drained in [true, false] {
        for known in [true, false] {
            let fixture = both([readable("a")], &[managed("b", &json!({}))]).await;
            let list = fixture.get(PATH).await.json();
            let query = format!("&allowWatchBookmarks=true&resourceVersion={}", version(&list));
            let mut watch = watch(&fixture, &query).await;
            fixture.hub.watching(MANAGED, 2).await;
            fixture.hub.put_secret(readable("a").label("x", "y"));
            assert_eq!(watch.next_summary().await, "MODIFIED a");
            if known {
                // By now everything older has come.
                fixture.hub.bookmark();
                assert_eq!(watch.next().await.expect("an event").kind, "BOOKMARK");
            }
            let stopping = if drained { Some(tokio::spawn(fixture.testbed.stop())) } else { None };
            if !drained {
                fixture.hub.end_watches();
            }
            let last = watch.next().await.map(|event| (event.kind, event.object["code"].clone()));
            assert_eq!(last, (!known).then(|| ("ERROR".to_owned(), json!(410))), "drained: {drained}");
            drop(watch);
            if let Some(stopping) = stopping {
                stopping.await.expect("it stops");
            }
        }
    }
}

#[tokio::test]
async fn without_a_hub_there_are_the_files_and_here() {
    let testbed =
        Testbed::builder().cluster("a", readable("a").label("tier", "gold")).cluster("b", readable("b")).start().await;
    let list = testbed.get(PATH).await;
    let mut listed = names(&list);
    assert_eq!(listed.remove(0), LOCAL);
    assert_eq!(listed.len(), 2);
    assert_eq!(names(&testbed.get(&format!("{PATH}?labelSelector=tier%3Dgold")).await), ["a"]);
    assert_eq!(testbed.get(&format!("{PATH}/b")).await.json()["spec"]["credential-type"], "ServiceAccountToken");
    testbed.get(&format!("{PATH}/c")).await.status_message(404, "NotFound");
    let target = format!("{PATH}?watch=true&resourceVersion={}", version(&list.json()));
    let mut watch = Watch::open(testbed.connect(Http::H2).await, &target).await;
    testbed.register("c", readable("c"));
    assert_eq!(watch.next_summary().await, "ADDED c");
    testbed.unregister("a");
    assert_eq!(watch.next_summary().await, "DELETED a");
    let mut all = Watch::open(testbed.connect(Http::H2).await, &format!("{PATH}?watch=true")).await;
    assert_eq!(
        [all.next_summary().await, all.next_summary().await, all.next_summary().await],
        ["ADDED local", "ADDED b", "ADDED c"]
    );
}
