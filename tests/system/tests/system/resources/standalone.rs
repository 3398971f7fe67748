//! The same resource without a hub: from manifests, with versions of the gateway's own.

use kit::hub::ClusterSecret;
use serde_json::{Value, json};
use system_tests::{Http, Rig};

use super::{CLUSTERS, Watch, names, readable, unreadable};

async fn rig(clusters: &[(&str, ClusterSecret)]) -> Rig {
    clusters.iter().fold(Rig::builder(), |rig, (name, secret)| rig.cluster(name, secret.clone())).start().await
}

async fn watch(rig: &Rig, query: &str) -> Watch {
    Watch::open(rig.connect(Http::H2).await, &format!("{CLUSTERS}?watch=true{query}")).await
}

fn metadata(object: &Value) -> [String; 3] {
    ["uid", "resourceVersion", "creationTimestamp"]
        .map(|field| object["metadata"][field].as_str().unwrap_or_else(|| panic!("{field}: {object}")).to_owned())
}

#[tokio::test]
async fn objects_have_versions_that_change_with_them_alone() {
    let rig = rig(&[("a", readable("a")), ("b", readable("b"))]).await;
    let mut watch = watch(&rig, "").await;
    assert_eq!([watch.told().await, watch.told().await], ["ADDED a", "ADDED b"]);
    let [a, b] = [rig.get(&format!("{CLUSTERS}/a")).await.json(), rig.get(&format!("{CLUSTERS}/b")).await.json()];
    rig.register("a", readable("a").label("x", "y"));
    let event = watch.next().await.expect("an event");
    assert_eq!((event.kind.as_str(), event.name()), ("MODIFIED", "a"));
    let [uid, version, created] = metadata(&event.object);
    let before = metadata(&a);
    assert_eq!((&uid, &created), (&before[0], &before[2]));
    assert_ne!(version, before[1]);
    assert_eq!(metadata(&rig.get(&format!("{CLUSTERS}/b")).await.json()), metadata(&b));
    let list = rig.get(CLUSTERS).await.json();
    assert_eq!(list["metadata"]["resourceVersion"], version);
}

#[tokio::test]
async fn clusters_come_break_and_go() {
    let rig = rig(&[("a", readable("a"))]).await;
    let list = rig.get(CLUSTERS).await;
    let version = list.json()["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    let mut watch = watch(&rig, &format!("&resourceVersion={version}")).await;
    rig.register("b", readable("b"));
    assert_eq!(watch.told().await, "ADDED b");
    rig.register("a", unreadable("a"));
    let event = watch.next().await.expect("an event");
    assert_eq!((event.kind.as_str(), event.name()), ("DELETED", "a"));
    rig.get(&format!("{CLUSTERS}/a")).await.status_message(500, "InternalError");
    rig.register("a", readable("a"));
    assert_eq!(watch.told().await, "ADDED a");
    rig.unregister("b");
    let event = watch.next().await.expect("an event");
    assert_eq!((event.kind.as_str(), event.name()), ("DELETED", "b"));
    let list = rig.get(CLUSTERS).await;
    assert_eq!(
        (names(&list), list.json()["metadata"]["resourceVersion"].as_str()),
        (vec!["a".to_owned()], Some(event.version()))
    );
}

#[tokio::test]
async fn only_the_current_version_can_be_watched_from() {
    let rig = rig(&[("a", readable("a"))]).await;
    for version in ["1", "5", "99999999999999"] {
        let answer = rig.get(&format!("{CLUSTERS}?watch=true&resourceVersion={version}")).await;
        answer.status_message(410, "Expired");
    }
    rig.get(&format!("{CLUSTERS}?resourceVersion=5&resourceVersionMatch=Exact")).await.status_message(410, "Expired");
    rig.get(&format!("{CLUSTERS}?continue=abc")).await.status_message(400, "BadRequest");
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let rig = rig(&[("a", readable("a"))]).await;
    let mut watch = watch(&rig, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan").await;
    assert_eq!(watch.told().await, "ADDED a");
    let end = watch.next().await.expect("an event");
    assert_eq!(end.object["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    assert_eq!(end.version(), rig.get(CLUSTERS).await.json()["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn labels_bring_objects_in_and_out_of_sight() {
    let rig = rig(&[("a", readable("a"))]).await;
    let mut watch = watch(&rig, "&labelSelector=tier%3Dgold").await;
    rig.register("a", readable("a").label("tier", "gold"));
    assert_eq!(watch.told().await, "ADDED a");
    rig.register("a", readable("a"));
    assert_eq!(watch.told().await, "DELETED a");
}

#[tokio::test]
async fn watches_end_when_their_time_is_over_and_when_the_gateway_leaves() {
    let rig = rig(&[]).await;
    assert_eq!(watch(&rig, "&timeoutSeconds=1").await.next().await, None);
    let mut watch = watch(&rig, "").await;
    let stopping = tokio::spawn(rig.stop());
    assert_eq!(watch.next().await, None);
    stopping.await.expect("the gateway stops");
}
