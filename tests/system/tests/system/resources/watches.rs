//! Watches of `clustergateways`: one watch of the hub each, in other words.

use kit::hub::Call;
use serde_json::json;
use system_tests::{Http, across_http};

use super::{CLUSTERS, NAMESPACE, SECRETS, Stage, TABLE, readable};

/// The gateway's own watch of the Secrets is one of them.
const OWN: usize = 1;

#[tokio::test]
async fn what_there_is_comes_first_and_then_every_change() {
    let stage = Stage::set([readable("a"), readable("b")]).await;
    for start in ["", "&resourceVersion=0"] {
        let mut watch = stage.watch(&format!("{CLUSTERS}?watch=true{start}")).await;
        assert_eq!([watch.told().await, watch.told().await], ["ADDED a", "ADDED b"]);
        let version = stage.hub.put_secret(readable("b").label("x", "y"));
        let event = watch.next().await.expect("an event");
        assert_eq!((event.kind.as_str(), event.version()), ("MODIFIED", version.to_string().as_str()));
        assert_eq!(
            (&event.object["kind"], &event.object["apiVersion"]),
            (&json!("ClusterGateway"), &json!("cluster.core.oam.dev/v1alpha1"))
        );
        stage.hub.put_secret(readable("c"));
        assert_eq!(watch.told().await, "ADDED c");
        assert!(stage.hub.delete_secret(NAMESPACE, "c"));
        let event = watch.next().await.expect("an event");
        assert_eq!((event.kind.as_str(), event.name()), ("DELETED", "c"));
        // The last state, with the version of its deletion.
        assert_eq!(event.object["spec"]["access"]["credential"]["type"], "ServiceAccountToken");
        let list = stage.get(CLUSTERS).await.json();
        assert_eq!(list["metadata"]["resourceVersion"], event.version());
    }
}

#[tokio::test]
async fn a_watch_goes_on_from_a_list_and_from_any_event() {
    let stage = Stage::set([readable("a")]).await;
    let list = stage.get(CLUSTERS).await.json();
    let version = list["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    stage.hub.put_secret(readable("b"));
    stage.hub.put_secret(readable("c"));
    let mut watch = stage.watch(&format!("{CLUSTERS}?watch=true&resourceVersion={version}")).await;
    let first = watch.next().await.expect("an event");
    assert_eq!((first.kind.as_str(), first.name()), ("ADDED", "b"));
    let mut watch = stage.watch(&format!("{CLUSTERS}?watch=true&resourceVersion={}", first.version())).await;
    assert_eq!(watch.told().await, "ADDED c");
}

#[tokio::test]
async fn a_version_that_is_too_old_is_told_and_ends_the_watch() {
    let stage = Stage::set([readable("a")]).await;
    stage.hub.compact();
    let mut watch = stage.watch(&format!("{CLUSTERS}?watch=true&resourceVersion=1001")).await;
    let event = watch.next().await.expect("an event");
    assert_eq!(
        (event.kind.as_str(), &event.object["code"], &event.object["reason"]),
        ("ERROR", &json!(410), &json!("Expired"))
    );
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let stage = Stage::set([readable("a")]).await;
    let target = format!("{CLUSTERS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    for bookmarks in ["", "&allowWatchBookmarks=true"] {
        let mut watch = stage.watch(&format!("{target}{bookmarks}")).await;
        assert_eq!(watch.told().await, "ADDED a");
        let end = watch.next().await.expect("an event");
        assert_eq!((end.kind.as_str(), &end.object["kind"]), ("BOOKMARK", &json!("ClusterGateway")));
        assert_eq!(end.object["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
        let version = stage
            .hub
            .put_secret(readable("a").label("turn", bookmarks.trim_matches(['&', '=']).get(..5).unwrap_or("none")));
        let event = watch.next().await.expect("an event");
        assert_eq!((event.kind.as_str(), event.version()), ("MODIFIED", version.to_string().as_str()));
    }
}

#[tokio::test]
async fn bookmarks_are_the_hubs_for_those_who_want_them() {
    let stage = Stage::set([readable("a")]).await;
    stage.hub.watching(SECRETS, OWN).await;
    let mut with = stage.watch(&format!("{CLUSTERS}?watch=true&allowWatchBookmarks=true")).await;
    let mut without = stage.watch(&format!("{CLUSTERS}?watch=true")).await;
    assert_eq!([with.told().await, without.told().await], ["ADDED a", "ADDED a"]);
    stage.hub.watching(SECRETS, OWN + 2).await;
    stage.hub.bookmark();
    assert_eq!(with.next().await.expect("an event").kind, "BOOKMARK");
    stage.hub.put_secret(readable("b"));
    assert_eq!([with.told().await, without.told().await], ["ADDED b", "ADDED b"]);
}

#[tokio::test]
async fn a_watch_of_one_name_tells_of_that_alone() {
    let stage = Stage::set([readable("a"), readable("b")]).await;
    let mut watch = stage.watch(&format!("{CLUSTERS}?watch=true&fieldSelector=metadata.name%3Db")).await;
    assert_eq!(watch.told().await, "ADDED b");
    stage.hub.put_secret(readable("a").label("x", "y"));
    stage.hub.put_secret(readable("b").label("x", "y"));
    assert_eq!(watch.told().await, "MODIFIED b");
}

#[tokio::test]
async fn labels_bring_objects_in_and_out_of_sight() {
    let stage = Stage::set([readable("a")]).await;
    let mut watch = stage.watch(&format!("{CLUSTERS}?watch=true&labelSelector=tier%3Dgold")).await;
    stage.hub.watching(SECRETS, OWN + 1).await;
    stage.hub.put_secret(readable("a").label("tier", "gold"));
    assert_eq!(watch.told().await, "ADDED a");
    stage.hub.put_secret(readable("a").label("tier", "tin"));
    assert_eq!(watch.told().await, "DELETED a");
}

#[tokio::test]
async fn tables_define_their_columns_once() {
    let stage = Stage::set([readable("a")]).await;
    let mut watch = stage.watch_as(TABLE, &format!("{CLUSTERS}?watch=true")).await;
    let first = watch.next().await.expect("an event");
    assert_eq!((first.kind.as_str(), &first.object["kind"]), ("ADDED", &json!("Table")));
    assert_eq!(first.object["columnDefinitions"].as_array().map(Vec::len), Some(5));
    stage.hub.put_secret(readable("a").label("x", "y"));
    let second = watch.next().await.expect("an event");
    assert_eq!(
        (second.kind.as_str(), second.object["columnDefinitions"].as_array().map(Vec::len)),
        ("MODIFIED", Some(0))
    );
    assert_eq!(second.object["rows"][0]["cells"][0], "a");
    assert_eq!(second.object["rows"][0]["object"]["metadata"]["resourceVersion"], second.version());
}

#[tokio::test]
async fn bare_metadata_is_watched() {
    let stage = Stage::set([readable("a")]).await;
    let accept = ("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");
    let mut watch = stage.watch_as(accept, &format!("{CLUSTERS}?watch=true")).await;
    let event = watch.next().await.expect("an event");
    assert_eq!((&event.object["kind"], event.object.get("spec")), (&json!("PartialObjectMetadata"), None));
    assert_eq!(event.name(), "a");
}

across_http!(the_head_comes_before_any_event_and_the_hubs_end_is_ours);

async fn the_head_comes_before_any_event_and_the_hubs_end_is_ours(http: Http) {
    let stage = Stage::set([]).await;
    let mut connection = stage.connect(http).await;
    let mut watch = connection.open("GET", &format!("{CLUSTERS}?watch=true"), &[]).await.expect("a head");
    assert_eq!((watch.status, watch.header("content-length")), (200, None));
    stage.hub.watching(SECRETS, OWN + 1).await;
    stage.hub.put_secret(readable("a"));
    assert!(watch.line().await.expect("a line").expect("an event").contains("ADDED"));
    stage.hub.end_watches();
    assert_eq!(watch.line().await.expect("a proper end"), None);
}

#[tokio::test]
async fn a_hub_that_breaks_off_ends_the_watch_properly() {
    let stage = Stage::set([readable("a")]).await;
    let mut watch = stage.watch(&format!("{CLUSTERS}?watch=true")).await;
    assert_eq!(watch.told().await, "ADDED a");
    stage.hub.break_watches();
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn the_time_a_watcher_wishes_for_is_the_hubs_to_keep() {
    let stage = Stage::set([]).await;
    let mut watch = stage.watch(&format!("{CLUSTERS}?watch=true&timeoutSeconds=1")).await;
    assert_eq!(watch.next().await, None);
    stage.watch(&format!("{CLUSTERS}?watch=true")).await;
    let asked = stage.asked();
    let seconds = asked.split("timeoutSeconds=").nth(1).expect("a time").split('&').next().expect("a number");
    assert!((1800..3600).contains(&seconds.parse::<u64>().expect("a number")), "{asked}");
}

#[tokio::test]
async fn a_watcher_that_leaves_leaves_nothing_at_the_hub() {
    let stage = Stage::set([]).await;
    stage.hub.watching(SECRETS, OWN).await;
    let watch = stage.watch(&format!("{CLUSTERS}?watch=true")).await;
    stage.hub.watching(SECRETS, OWN + 1).await;
    drop(watch);
    stage.hub.watching(SECRETS, OWN).await;
}

#[tokio::test]
async fn watches_end_properly_when_the_gateway_leaves() {
    let stage = Stage::set([readable("a")]).await;
    let mut watch = stage.watch(&format!("{CLUSTERS}?watch=true")).await;
    assert_eq!(watch.told().await, "ADDED a");
    let stopping = tokio::spawn(stage.rig.stop());
    assert_eq!(watch.next().await, None);
    stopping.await.expect("the gateway stops");
}

#[tokio::test]
async fn the_head_of_a_watch_alone_opens_none() {
    let stage = Stage::set([]).await;
    stage.hub.watching(SECRETS, OWN).await;
    let answer = stage.call("HEAD", &format!("{CLUSTERS}?watch=true"), &[], b"").await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    stage.hub.watching(SECRETS, OWN).await;
    assert!(stage.hub.calls(Call::Watch(SECRETS)) <= OWN + 1);
}
