//! Secrets that stop or start being readable clusters, as watchers see it.

use super::{CLUSTERS, Fixture, NAMESPACE, names, readable, unreadable};

#[tokio::test]
async fn a_cluster_that_breaks_is_deleted_and_one_that_is_mended_is_added() {
    let fixture = Fixture::set([readable("a"), unreadable("b")]).await;
    let mut watch = fixture.watch(&format!("{CLUSTERS}?watch=true")).await;
    assert_eq!(watch.next_summary().await, "ADDED a");
    let broken = fixture.hub.put_secret(unreadable("a"));
    let event = watch.next().await.expect("an event");
    assert_eq!((event.kind.as_str(), event.name(), event.version()), ("DELETED", "a", broken.to_string().as_str()));
    assert!(!event.object.to_string().contains("canary"));
    fixture.hub.put_secret(unreadable("a").label("still", "broken"));
    fixture.hub.put_secret(readable("b"));
    assert_eq!(watch.next_summary().await, "ADDED b");
    fixture.hub.put_secret(readable("a"));
    assert_eq!(watch.next_summary().await, "ADDED a");
    fixture.hub.put_secret(unreadable("b"));
    assert_eq!(watch.next_summary().await, "DELETED b");
    fixture.hub.delete_secret(NAMESPACE, "b");
    fixture.hub.delete_secret(NAMESPACE, "a");
    assert_eq!(watch.next_summary().await, "DELETED a");
}

#[tokio::test]
async fn a_cluster_left_out_of_a_list_is_added_when_it_is_mended() {
    let fixture = Fixture::set([readable("a"), unreadable("b")]).await;
    let list = fixture.get(CLUSTERS).await;
    assert_eq!(names(&list), ["a"]);
    let version = list.json()["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    let mut watch = fixture.watch(&format!("{CLUSTERS}?watch=true&resourceVersion={version}")).await;
    fixture.hub.put_secret(readable("b"));
    assert_eq!(watch.next_summary().await, "ADDED b");
    fixture.hub.put_secret(readable("b").label("x", "y"));
    assert_eq!(watch.next_summary().await, "MODIFIED b");
}

#[tokio::test]
async fn a_cluster_that_broke_between_two_watches_is_deleted() {
    let fixture = Fixture::set([readable("a"), readable("last")]).await;
    let list = fixture.get(CLUSTERS).await.json();
    let version = list["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    fixture.hub.put_secret(unreadable("a"));
    let mut watch = fixture.watch(&format!("{CLUSTERS}?watch=true&resourceVersion={version}")).await;
    assert_eq!(watch.next_summary().await, "DELETED a");
    // Also when the gateway itself has known for long that the Secret is broken.
    let mut watch = fixture.watch(&format!("{CLUSTERS}?watch=true&resourceVersion={version}")).await;
    assert_eq!(watch.next_summary().await, "DELETED a");
}
