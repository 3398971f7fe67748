//! The order of requests.

use serde_json::json;
use tokio::time::timeout;

use super::*;

fn map() -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "c1"}})
}

/// A part that has listed the hub's work, which waits for its turn.
fn waiting(hub: &Hub) -> (Part, Writer<DynamicObject>) {
    let (part, mut writer) = part(hub);
    for event in [Event::Init, Event::InitApply(told(&hub.told())), Event::InitDone] {
        writer.apply_watcher_event(&event);
    }
    part.wakes.push("c1", "w");
    (part, writer)
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_is_on_before_anything_is_on_the_member() {
    let hub = Hub::default();
    hub.edit(|work| {
        work["metadata"]["finalizers"] = json!([]);
        work["spec"]["workload"]["manifests"] = json!([map()]);
    });
    let (part, mut writer) = part(&hub);
    go_over(&part, &mut writer, &hub).await;
    let writes = hub.writes();
    let work = "PATCH /apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks/w";
    assert_eq!(writes[0], work, "{writes:?}");
    assert_eq!(hub.told()["metadata"]["finalizers"], json!([work::FINALIZER]));
    // Then the `AppliedManifestWork`, then the object, then the status.
    let place = |end: &str| writes.iter().position(|one| one.ends_with(end));
    let places = [work, "/appliedmanifestworks", "/configmaps", "/manifestworks/w/status"].map(place);
    assert!(places[0] == Some(0) && places.is_sorted() && places.iter().all(Option::is_some), "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_right_that_an_executor_gets_later_is_used_within_a_minute_by_itself() {
    let hub = Hub::default();
    hub.allows(false);
    hub.edit(|work| {
        let account = json!({"namespace": "n", "name": "e"});
        work["spec"] = json!({"workload": {"manifests": [map()]},
            "executor": {"subject": {"type": "ServiceAccount", "serviceAccount": account}}});
    });
    let (part, _writer) = waiting(&hub);
    let mut queue = Box::pin(work(Arc::new(part)));
    assert!(timeout(A_WHILE, &mut queue).await.is_err(), "it never ends");
    let told = hub.told()["status"]["resourceStatus"]["manifests"][0].clone();
    assert_eq!(said(&told, "Applied"), "False/AppliedManifestFailed");
    let (path, writes) = ("/api/v1/namespaces/c1/configmaps/m", hub.writes().len());
    // Nothing wakes it, and nothing else changes.
    hub.allows(true);
    assert!(timeout(Duration::from_secs(50), &mut queue).await.is_err());
    assert!(hub.object(path).is_null() && hub.writes().len() == writes, "it is not asked all the time");
    assert!(timeout(Duration::from_secs(10), &mut queue).await.is_err());
    assert!(!hub.object(path).is_null(), "within a minute");
    assert!(timeout(Duration::from_secs(6), &mut queue).await.is_err());
    let told = hub.told()["status"]["resourceStatus"]["manifests"][0].clone();
    assert_eq!(said(&told, "Applied"), "True/AppliedManifestComplete");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_comes_late_is_used_within_ten_seconds() {
    let hub = Hub::default();
    hub.edit(|work| {
        let late = json!({"apiVersion": "late.io/v1", "kind": "Late", "metadata": {"name": "l"}});
        work["spec"]["workload"]["manifests"] = json!([late, map()]);
    });
    let (part, _writer) = waiting(&hub);
    let part = Arc::new(part);
    let mut queue = Box::pin(work(Arc::clone(&part)));
    // By then, it is looked for every few minutes.
    assert!(timeout(Duration::from_mins(30), &mut queue).await.is_err(), "it never ends");
    assert!(!hub.object("/api/v1/namespaces/c1/configmaps/m").is_null());
    let target = part.target("c1").unwrap();
    assert!(target.sights.follows_definitions("w"), "nobody would tell of its definition");
    let defined = || target.sights.defined("lates.late.io").iter().for_each(|work| part.wakes.push("c1", work));
    // The definition is there before its kind is served.
    defined();
    assert!(timeout(A_WHILE, &mut queue).await.is_err());
    hub.defines_late();
    assert!(timeout(Duration::from_secs(9), &mut queue).await.is_err());
    assert!(!hub.object("/apis/late.io/v1/lates/l").is_null(), "{:?}", hub.told()["status"]);
    assert!(!target.sights.follows_definitions("w"), "it lacks nothing any more");
}
