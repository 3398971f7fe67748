//! The same resource without a hub: from manifests, with versions of the gateway's own.

use system_tests::prelude::*;

use super::{CLUSTERS, Watch, names, readable, unreadable};

async fn testbed(clusters: &[(&str, ClusterSecret)]) -> Testbed {
    clusters
        .iter()
        .fold(Testbed::builder(), |testbed, (name, secret)| testbed.cluster(name, secret.clone()))
        .start()
        .await
}

async fn watch(testbed: &Testbed, query: &str) -> Watch {
    Watch::open(testbed.connect(Http::H2).await, &format!("{CLUSTERS}?watch=true{query}")).await
}

fn metadata(object: &Value) -> [String; 3] {
    ["uid", "resourceVersion", "creationTimestamp"]
        .map(|field| object["metadata"][field].as_str().unwrap_or_else(|| panic!("{field}: {object}")).to_owned())
}

#[tokio::test]
async fn objects_have_versions_that_change_with_them_alone() {
    let testbed = testbed(&[("a", readable("a")), ("b", readable("b"))]).await;
    let mut watch = watch(&testbed, "").await;
    assert_eq!([watch.next_summary().await, watch.next_summary().await], ["ADDED a", "ADDED b"]);
    let [a, b] =
        [testbed.get(&format!("{CLUSTERS}/a")).await.json(), testbed.get(&format!("{CLUSTERS}/b")).await.json()];
    testbed.register("a", readable("a").label("x", "y"));
    let event = watch.next().await.expect("an event");
    assert_eq!((event.kind.as_str(), event.name()), ("MODIFIED", "a"));
    let [uid, version, created] = metadata(&event.object);
    let before = metadata(&a);
    assert_eq!((&uid, &created), (&before[0], &before[2]));
    assert_ne!(version, before[1]);
    assert_eq!(metadata(&testbed.get(&format!("{CLUSTERS}/b")).await.json()), metadata(&b));
    let list = testbed.get(CLUSTERS).await.json();
    assert_eq!(list["metadata"]["resourceVersion"], version);
}

#[tokio::test]
async fn clusters_come_break_and_go() {
    let testbed = testbed(&[("a", readable("a"))]).await;
    let list = testbed.get(CLUSTERS).await;
    let version = list.json()["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    let mut watch = watch(&testbed, &format!("&resourceVersion={version}")).await;
    testbed.register("b", readable("b"));
    assert_eq!(watch.next_summary().await, "ADDED b");
    testbed.register("a", unreadable("a"));
    let event = watch.next().await.expect("an event");
    assert_eq!((event.kind.as_str(), event.name()), ("DELETED", "a"));
    testbed.get(&format!("{CLUSTERS}/a")).await.status_message(500, "InternalError");
    testbed.register("a", readable("a"));
    assert_eq!(watch.next_summary().await, "ADDED a");
    testbed.unregister("b");
    let event = watch.next().await.expect("an event");
    assert_eq!((event.kind.as_str(), event.name()), ("DELETED", "b"));
    let list = testbed.get(CLUSTERS).await;
    assert_eq!(
        (names(&list), list.json()["metadata"]["resourceVersion"].as_str()),
        (vec!["a".to_owned()], Some(event.version()))
    );
}

#[tokio::test]
async fn only_the_current_version_can_be_watched_from() {
    let testbed = testbed(&[("a", readable("a"))]).await;
    for version in ["1", "5", "99999999999999"] {
        let answer = testbed.get(&format!("{CLUSTERS}?watch=true&resourceVersion={version}")).await;
        answer.status_message(410, "Expired");
    }
    testbed
        .get(&format!("{CLUSTERS}?resourceVersion=5&resourceVersionMatch=Exact"))
        .await
        .status_message(410, "Expired");
    testbed.get(&format!("{CLUSTERS}?continue=abc")).await.status_message(400, "BadRequest");
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let testbed = testbed(&[("a", readable("a"))]).await;
    let mut watch = watch(&testbed, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan").await;
    assert_eq!(watch.next_summary().await, "ADDED a");
    let end = watch.next().await.expect("an event");
    assert_eq!(end.object["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    assert_eq!(end.version(), testbed.get(CLUSTERS).await.json()["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn labels_bring_objects_in_and_out_of_sight() {
    let testbed = testbed(&[("a", readable("a"))]).await;
    let mut watch = watch(&testbed, "&labelSelector=tier%3Dgold").await;
    testbed.register("a", readable("a").label("tier", "gold"));
    assert_eq!(watch.next_summary().await, "ADDED a");
    testbed.register("a", readable("a"));
    assert_eq!(watch.next_summary().await, "DELETED a");
}

#[tokio::test]
async fn watches_end_when_their_time_is_over_and_when_the_gateway_leaves() {
    let testbed = testbed(&[]).await;
    assert_eq!(watch(&testbed, "&timeoutSeconds=1").await.next().await, None);
    let mut watch = watch(&testbed, "").await;
    let stopping = tokio::spawn(testbed.stop());
    assert_eq!(watch.next().await, None);
    stopping.await.expect("the gateway stops");
}

/// As many as with a hub, where each takes a place there.
#[tokio::test]
async fn one_reader_cannot_have_all_watches() {
    const MOST: usize = 128;
    const VIRTUAL: &str = "/apis/cluster.core.oam.dev/v1alpha1/virtualclusters";
    let testbed = testbed(&[("a", readable("a"))]).await;
    let (mut connections, mut open) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        connections.push(testbed.connect(Http::H2).await);
    }
    for connection in &connections {
        for _ in 0..MOST / 2 {
            let watch = connection.open_beside("GET", &format!("{CLUSTERS}?watch=true")).await.expect("a head");
            assert_eq!(watch.status, 200);
            open.push(watch);
        }
    }
    for resource in [CLUSTERS, VIRTUAL] {
        let answer = testbed.get(&format!("{resource}?watch=true")).await;
        let message = answer.status_message(429, "TooManyRequests");
        assert!(message.starts_with("too many watches open: this gateway serves 128 per user"), "{message}");
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    let metrics = testbed.get("/metrics").await.text();
    assert!(metrics.contains("cluster_gateway_requests_rejected_total{reason=\"watches_user\"} 2"), "{metrics}");
    open.pop();
    let other = &connections[0];
    becomes(WAIT, "room again", async || {
        other.open_beside("GET", &format!("{CLUSTERS}?watch=true")).await.expect("a head").status == 200
    })
    .await;
}

/// Each watch remembers the objects it has sent, and nothing for longer than it lasts.
#[tokio::test]
async fn what_a_watch_has_seen_counts() {
    const WATCHES: usize = 50;
    let names: Vec<_> = (0..40).map(|number| format!("{}-{number}", "n".repeat(200))).collect();
    let clusters: Vec<_> = names.iter().map(|name| (name.as_str(), readable(name))).collect();
    let testbed = testbed(&clusters).await;
    let held = async || testbed.metric("cluster_gateway_held_bytes").await;
    let before = held().await;
    let connection = testbed.connect(Http::H2).await;
    let mut open = Vec::new();
    for _ in 0..WATCHES {
        let target = format!("{CLUSTERS}?watch=true&resourceVersion={}", version(&testbed).await);
        open.push(connection.open_beside("GET", &target).await.expect("a head"));
    }
    // The names alone, and the amount that each watch counts as a request.
    let least = before + u64::try_from(WATCHES * (names.len() * 200 + 4096)).expect("small");
    let now = held().await;
    assert!(now >= least, "{now} of {least}");
    drop((open, connection));
    becomes(WAIT, "nothing to count", async || held().await < before + (64 << 10)).await;
}

async fn version(testbed: &Testbed) -> String {
    testbed.get(CLUSTERS).await.json()["metadata"]["resourceVersion"].as_str().expect("a version").to_owned()
}
