//! Watches of `clustergateways`: one watch of the hub each, in other words.

use system_tests::prelude::*;

use super::{CLUSTERS, Fixture, NAMESPACE, SECRETS, TABLE, readable};

/// The gateway's own watch of the Secrets is one of them.
const OWN: usize = 1;

#[tokio::test]
async fn what_there_is_comes_first_and_then_every_change() {
    let fixture = Fixture::set([readable("a"), readable("b")]).await;
    for start in ["", "&resourceVersion=0"] {
        let mut watch = fixture.watch(&format!("{CLUSTERS}?watch=true{start}")).await;
        assert_eq!([watch.next_summary().await, watch.next_summary().await], ["ADDED a", "ADDED b"]);
        let version = fixture.hub.put_secret(readable("b").label("x", "y"));
        let event = watch.next().await.expect("an event");
        assert_eq!((event.kind.as_str(), event.version()), ("MODIFIED", version.to_string().as_str()));
        assert_eq!(
            (&event.object["kind"], &event.object["apiVersion"]),
            (&json!("ClusterGateway"), &json!("cluster.core.oam.dev/v1alpha1"))
        );
        fixture.hub.put_secret(readable("c"));
        assert_eq!(watch.next_summary().await, "ADDED c");
        assert!(fixture.hub.delete_secret(NAMESPACE, "c"));
        let event = watch.next().await.expect("an event");
        assert_eq!((event.kind.as_str(), event.name()), ("DELETED", "c"));
        // The last state, with the version of its deletion.
        assert_eq!(event.object["spec"]["access"]["credential"]["type"], "ServiceAccountToken");
        let list = fixture.get(CLUSTERS).await.json();
        assert_eq!(list["metadata"]["resourceVersion"], event.version());
    }
}

#[tokio::test]
async fn a_watch_goes_on_from_a_list_and_from_any_event() {
    let fixture = Fixture::set([readable("a")]).await;
    let list = fixture.get(CLUSTERS).await.json();
    let version = list["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    fixture.hub.put_secret(readable("b"));
    fixture.hub.put_secret(readable("c"));
    let mut watch = fixture.watch(&format!("{CLUSTERS}?watch=true&resourceVersion={version}")).await;
    let first = watch.next().await.expect("an event");
    assert_eq!((first.kind.as_str(), first.name()), ("ADDED", "b"));
    let mut watch = fixture.watch(&format!("{CLUSTERS}?watch=true&resourceVersion={}", first.version())).await;
    assert_eq!(watch.next_summary().await, "ADDED c");
}

#[tokio::test]
async fn a_version_that_is_too_old_is_told_and_ends_the_watch() {
    let fixture = Fixture::set([readable("a")]).await;
    fixture.hub.compact();
    let mut watch = fixture.watch(&format!("{CLUSTERS}?watch=true&resourceVersion=1001")).await;
    let event = watch.next().await.expect("an event");
    assert_eq!(
        (event.kind.as_str(), &event.object["code"], &event.object["reason"]),
        ("ERROR", &json!(410), &json!("Expired"))
    );
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let fixture = Fixture::set([readable("a")]).await;
    let target = format!("{CLUSTERS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    for bookmarks in ["", "&allowWatchBookmarks=true"] {
        let mut watch = fixture.watch(&format!("{target}{bookmarks}")).await;
        assert_eq!(watch.next_summary().await, "ADDED a");
        let end = watch.next().await.expect("an event");
        assert_eq!((end.kind.as_str(), &end.object["kind"]), ("BOOKMARK", &json!("ClusterGateway")));
        assert_eq!(end.object["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
        let version = fixture
            .hub
            .put_secret(readable("a").label("turn", bookmarks.trim_matches(['&', '=']).get(..5).unwrap_or("none")));
        let event = watch.next().await.expect("an event");
        assert_eq!((event.kind.as_str(), event.version()), ("MODIFIED", version.to_string().as_str()));
    }
}

#[tokio::test]
async fn bookmarks_are_the_hubs_for_those_who_want_them() {
    let fixture = Fixture::set([readable("a")]).await;
    fixture.hub.watching(SECRETS, OWN).await;
    let mut with = fixture.watch(&format!("{CLUSTERS}?watch=true&allowWatchBookmarks=true")).await;
    let mut without = fixture.watch(&format!("{CLUSTERS}?watch=true")).await;
    assert_eq!([with.next_summary().await, without.next_summary().await], ["ADDED a", "ADDED a"]);
    fixture.hub.watching(SECRETS, OWN + 2).await;
    fixture.hub.bookmark();
    assert_eq!(with.next().await.expect("an event").kind, "BOOKMARK");
    fixture.hub.put_secret(readable("b"));
    assert_eq!([with.next_summary().await, without.next_summary().await], ["ADDED b", "ADDED b"]);
}

#[tokio::test]
async fn a_watch_of_one_name_tells_of_that_alone() {
    let fixture = Fixture::set([readable("a"), readable("b")]).await;
    let mut watch = fixture.watch(&format!("{CLUSTERS}?watch=true&fieldSelector=metadata.name%3Db")).await;
    assert_eq!(watch.next_summary().await, "ADDED b");
    fixture.hub.put_secret(readable("a").label("x", "y"));
    fixture.hub.put_secret(readable("b").label("x", "y"));
    assert_eq!(watch.next_summary().await, "MODIFIED b");
}

#[tokio::test]
async fn labels_bring_objects_in_and_out_of_sight() {
    let fixture = Fixture::set([readable("a")]).await;
    let mut watch = fixture.watch(&format!("{CLUSTERS}?watch=true&labelSelector=tier%3Dgold")).await;
    fixture.hub.watching(SECRETS, OWN + 1).await;
    fixture.hub.put_secret(readable("a").label("tier", "gold"));
    assert_eq!(watch.next_summary().await, "ADDED a");
    fixture.hub.put_secret(readable("a").label("tier", "tin"));
    assert_eq!(watch.next_summary().await, "DELETED a");
}

#[tokio::test]
async fn tables_define_their_columns_once() {
    let fixture = Fixture::set([readable("a")]).await;
    let mut watch = fixture.watch_as(TABLE, &format!("{CLUSTERS}?watch=true")).await;
    let first = watch.next().await.expect("an event");
    assert_eq!((first.kind.as_str(), &first.object["kind"]), ("ADDED", &json!("Table")));
    assert_eq!(first.object["columnDefinitions"].as_array().map(Vec::len), Some(5));
    fixture.hub.put_secret(readable("a").label("x", "y"));
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
    let fixture = Fixture::set([readable("a")]).await;
    let accept = ("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");
    let mut watch = fixture.watch_as(accept, &format!("{CLUSTERS}?watch=true")).await;
    let event = watch.next().await.expect("an event");
    assert_eq!((&event.object["kind"], event.object.get("spec")), (&json!("PartialObjectMetadata"), None));
    assert_eq!(event.name(), "a");
}

across_http!(the_head_comes_before_any_event_and_the_hubs_end_is_ours);

async fn the_head_comes_before_any_event_and_the_hubs_end_is_ours(http: Http) {
    let fixture = Fixture::set([]).await;
    let mut connection = fixture.connect(http).await;
    let mut watch = connection.open("GET", &format!("{CLUSTERS}?watch=true"), &[]).await.expect("a head");
    assert_eq!((watch.status, watch.header("content-length")), (200, None));
    fixture.hub.watching(SECRETS, OWN + 1).await;
    fixture.hub.put_secret(readable("a"));
    assert!(watch.event().await.contains("ADDED"));
    fixture.hub.end_watches();
    assert_eq!(watch.line().await.expect("a proper end"), None);
}

#[tokio::test]
async fn a_hub_that_breaks_off_ends_the_watch_properly() {
    let fixture = Fixture::set([readable("a")]).await;
    let mut watch = fixture.watch(&format!("{CLUSTERS}?watch=true")).await;
    assert_eq!(watch.next_summary().await, "ADDED a");
    fixture.hub.break_watches();
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn the_time_a_watcher_wishes_for_is_the_hubs_to_keep() {
    let fixture = Fixture::set([]).await;
    let mut watch = fixture.watch(&format!("{CLUSTERS}?watch=true&timeoutSeconds=1")).await;
    assert_eq!(watch.next().await, None);
    fixture.watch(&format!("{CLUSTERS}?watch=true")).await;
    let asked = fixture.asked();
    let seconds = asked.split("timeoutSeconds=").nth(1).expect("a time").split('&').next().expect("a number");
    assert!((1800..3600).contains(&seconds.parse::<u64>().expect("a number")), "{asked}");
}

#[tokio::test]
async fn a_watcher_that_leaves_leaves_nothing_at_the_hub() {
    let fixture = Fixture::set([]).await;
    fixture.hub.watching(SECRETS, OWN).await;
    let watch = fixture.watch(&format!("{CLUSTERS}?watch=true")).await;
    fixture.hub.watching(SECRETS, OWN + 1).await;
    drop(watch);
    fixture.hub.watching(SECRETS, OWN).await;
}

#[tokio::test]
async fn watches_end_properly_when_the_gateway_leaves() {
    let fixture = Fixture::set([readable("a")]).await;
    let mut watch = fixture.watch(&format!("{CLUSTERS}?watch=true")).await;
    assert_eq!(watch.next_summary().await, "ADDED a");
    let stopping = tokio::spawn(fixture.testbed.stop());
    assert_eq!(watch.next().await, None);
    stopping.await.expect("the gateway stops");
}

#[tokio::test]
async fn the_head_of_a_watch_alone_opens_none() {
    let fixture = Fixture::set([]).await;
    fixture.hub.watching(SECRETS, OWN).await;
    let answer = fixture.call("HEAD", &format!("{CLUSTERS}?watch=true"), &[], b"").await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    fixture.hub.watching(SECRETS, OWN).await;
    assert!(fixture.hub.calls(Call::Watch(SECRETS)) <= OWN + 1);
}
