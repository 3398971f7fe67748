//! Transitions of one merged watch, event by event.

use std::collections::HashSet;

use api::accept::Representation;
use api::secret::CREDENTIAL_TYPE_LABEL;
use api::served::Form;
use api::table::IncludeObject;
use serde_json::{Value, json};

use super::*;

fn watch(query: &str, known: ObjectsAtStart) -> Tracker {
    let form = Form { representation: Representation::Json, include: IncludeObject::Metadata };
    let options = WatchOptions::from_query(Some(query)).expect("valid options");
    Tracker::new(EventWriter::new(form), options, true, known)
}

fn initial(query: &str) -> Tracker {
    watch(query, ObjectsAtStart::default())
}

fn secret(kind: &str, version: u32, region: &str) -> (Source, String) {
    let labels = json!({CREDENTIAL_TYPE_LABEL: "ServiceAccountToken", "region": region});
    let metadata = json!({"name": "c1", "uid": "s", "resourceVersion": version.to_string(), "labels": labels});
    let data = json!({"endpoint": "aHR0cHM6Ly9t"});
    (Source::Secrets, json!({"type": kind, "object": {"metadata": metadata, "data": data}}).to_string())
}

/// A Secret that has lost its endpoint.
fn invalid(kind: &str, version: u32) -> (Source, String) {
    let (source, line) = secret(kind, version, "north");
    (source, line.replace("endpoint", "nothing"))
}

fn managed_object(name: &str, version: u32, region: &str) -> Value {
    let labels = json!({"region": region});
    json!({"metadata": {"name": name, "uid": "m", "resourceVersion": version.to_string(), "labels": labels},
        "spec": {"hubAcceptsClient": true, "managedClusterClientConfigs": [{"url": "https://m"}]}})
}

fn managed(kind: &str, version: u32, region: &str) -> (Source, String) {
    (Source::Managed, json!({"type": kind, "object": managed_object("c1", version, region)}).to_string())
}

fn bookmark(source: Source, version: u32, end: bool) -> (Source, String) {
    let annotations = if end { json!({"k8s.io/initial-events-end": "true"}) } else { json!({}) };
    let metadata = json!({"resourceVersion": version.to_string(), "annotations": annotations});
    (source, json!({"type": "BOOKMARK", "object": {"metadata": metadata}}).to_string())
}

/// Type, credential type and version of the event for the watcher; empty without an event.
fn event_summary(tracker: &mut Tracker, (source, line): &(Source, String)) -> String {
    let bytes = match tracker.line(*source, line.as_bytes()) {
        Step::Nothing => return String::new(),
        Step::Send(bytes) | Step::Last(bytes) => bytes,
    };
    let event: Value = serde_json::from_slice(&bytes).expect("JSON");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&event["object"]["spec"]["credential-type"]).replace("ServiceAccountToken", "Secret");
    let version = text(&event["object"]["metadata"]["resourceVersion"]);
    format!("{} {kind} {version}", text(&event["type"])).replace("  ", " ")
}

fn all(tracker: &mut Tracker, lines: &[(Source, String)]) -> Vec<String> {
    lines.iter().map(|line| event_summary(tracker, line)).collect()
}

#[test]
fn a_secret_wins_while_it_is_there() {
    let lines = [
        managed("ADDED", 1, "north"),
        secret("ADDED", 2, "north"),
        managed("MODIFIED", 3, "south"),
        secret("MODIFIED", 4, "north"),
        secret("DELETED", 5, "north"),
        managed("MODIFIED", 6, "south"),
        managed("DELETED", 7, "south"),
    ];
    let expected = [
        "ADDED ManagedCluster 1",
        "MODIFIED Secret 2",
        "",
        "MODIFIED Secret 4",
        "MODIFIED ManagedCluster 3",
        "MODIFIED ManagedCluster 6",
        "DELETED ManagedCluster 7",
    ];
    assert_eq!(all(&mut initial(""), &lines), expected);
}

#[test]
fn an_invalid_secret_gives_way() {
    let lines = [
        secret("ADDED", 1, "north"),
        invalid("MODIFIED", 2),
        managed("ADDED", 3, "north"),
        secret("MODIFIED", 4, "north"),
    ];
    let expected = ["ADDED Secret 1", "DELETED 2", "ADDED ManagedCluster 3", "MODIFIED Secret 4"];
    assert_eq!(all(&mut initial(""), &lines), expected);
    let never = [invalid("ADDED", 1), invalid("MODIFIED", 2), invalid("DELETED", 3)];
    assert_eq!(all(&mut initial(""), &never), ["", "", ""]);
}

#[test]
fn labels_of_the_merged_object_decide() {
    let lines = [
        secret("ADDED", 1, "south"),
        secret("MODIFIED", 2, "north"),
        managed("ADDED", 3, "south"),
        secret("MODIFIED", 4, "south"),
        secret("MODIFIED", 5, "north"),
        secret("DELETED", 6, "north"),
    ];
    let expected = ["", "ADDED Secret 2", "", "DELETED Secret 4", "ADDED Secret 5", "DELETED Secret 6"];
    assert_eq!(all(&mut initial("labelSelector=region%3Dnorth"), &lines), expected);
    let control_plane = "labelSelector=cluster.core.oam.dev%2Fcontrol-plane%3Dtrue";
    assert_eq!(all(&mut initial(control_plane), &lines[..2]), ["", ""]);
    assert!(initial(control_plane).local().is_some());
    assert!(initial("labelSelector=region%3Dnorth").local().is_none());
}

#[test]
fn a_watch_that_goes_on_knows_what_there_is() {
    let both = || {
        let object = serde_json::from_value(managed_object("c1", 1, "north")).expect("a ManagedCluster");
        let managed = VirtualCluster::of_managed(&object).expect("valid");
        ObjectsAtStart {
            secrets: HashSet::from(["c1".to_owned()]),
            managed: HashMap::from([("c1".to_owned(), managed)]),
        }
    };
    assert_eq!(all(&mut watch("resourceVersion=1", both()), &[managed("MODIFIED", 2, "north")]), [""]);
    let gone = [secret("DELETED", 2, "north"), managed("MODIFIED", 3, "north")];
    assert_eq!(
        all(&mut watch("resourceVersion=1", both()), &gone),
        ["MODIFIED ManagedCluster 1", "MODIFIED ManagedCluster 3"]
    );
    let none = ObjectsAtStart::default;
    assert_eq!(all(&mut watch("resourceVersion=1", none()), &[secret("DELETED", 2, "north")]), ["DELETED Secret 2"]);
    assert_eq!(
        all(&mut watch("resourceVersion=1", none()), &[managed("MODIFIED", 2, "north")]),
        ["MODIFIED ManagedCluster 2"]
    );
    // The selector may have matched before, unless it did not match the deleted object.
    let query = "resourceVersion=1&labelSelector=region%3Dnorth";
    assert_eq!(all(&mut watch(query, none()), &[secret("MODIFIED", 2, "south")]), ["DELETED Secret 2"]);
    assert_eq!(all(&mut watch(query, none()), &[secret("DELETED", 2, "south")]), [""]);
    assert_eq!(all(&mut watch(query, none()), &[secret("ADDED", 2, "south")]), [""]);
}

#[test]
fn a_new_secret_changes_what_a_watcher_saw_before() {
    let one = |version| {
        let object = serde_json::from_value(managed_object("c1", version, "north")).expect("a ManagedCluster");
        let managed = VirtualCluster::of_managed(&object).expect("valid");
        ObjectsAtStart {
            secrets: HashSet::from(["c1".to_owned()]),
            managed: HashMap::from([("c1".to_owned(), managed)]),
        }
    };
    let added = |region| [secret("ADDED", 3, region)];
    assert_eq!(all(&mut watch("resourceVersion=2", one(2)), &added("north")), ["MODIFIED Secret 3"]);
    let query = "resourceVersion=2&labelSelector=region%3Dnorth";
    assert_eq!(all(&mut watch(query, one(2)), &added("south")), ["DELETED Secret 3"]);
    let query = "resourceVersion=2&labelSelector=region%3Dsouth";
    assert_eq!(all(&mut watch(query, one(2)), &added("south")), ["ADDED Secret 3"]);
    // It was written after `start`, so it may also be new since.
    assert_eq!(all(&mut watch("resourceVersion=1", one(2)), &added("north")), ["ADDED Secret 3"]);
}

#[test]
fn bookmarks_promise_what_both_streams_have_passed() {
    let lines = [
        bookmark(Source::Secrets, 9, false),
        bookmark(Source::Managed, 5, false),
        bookmark(Source::Secrets, 10, false),
        managed("ADDED", 8, "north"),
        bookmark(Source::Managed, 12, false),
    ];
    let expected = ["", "BOOKMARK 5", "", "ADDED ManagedCluster 8", "BOOKMARK 10"];
    assert_eq!(all(&mut initial("allowWatchBookmarks=true"), &lines), expected);
    assert_eq!(all(&mut initial(""), &lines), ["", "", "", "ADDED ManagedCluster 8", ""]);
    let form = Form { representation: Representation::Json, include: IncludeObject::Metadata };
    let options = WatchOptions::from_query(Some("allowWatchBookmarks=true")).expect("valid options");
    let mut alone = Tracker::new(EventWriter::new(form), options, false, ObjectsAtStart::default());
    assert_eq!(all(&mut alone, &lines[..1]), ["BOOKMARK 9"]);
}

#[test]
fn the_beginning_ends_when_it_has_ended_in_both_streams() {
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let lines = [
        bookmark(Source::Managed, 7, true),
        bookmark(Source::Managed, 8, false),
        bookmark(Source::Secrets, 9, true),
        bookmark(Source::Secrets, 10, false),
    ];
    assert_eq!(all(&mut initial(query), &lines), ["", "", "BOOKMARK 8", ""]);
    let with = format!("{query}&allowWatchBookmarks=true");
    let more = [&lines[..], &[bookmark(Source::Managed, 11, false)]].concat();
    assert_eq!(all(&mut initial(&with), &more), ["", "", "BOOKMARK 8", "", "BOOKMARK 10"]);
}

#[test]
fn the_control_plane_is_nobody_elses_name() {
    let (source, line) = secret("ADDED", 1, "north");
    assert_eq!(event_summary(&mut initial(""), &(source, line.replace("c1", LOCAL))), "");
}

#[test]
fn errors_end_the_watch() {
    let expired = r#"{"type":"ERROR","object":{"code":410,"reason":"Expired","message":"too old"}}"#;
    for source in [Source::Secrets, Source::Managed] {
        assert!(matches!(initial("").line(source, expired.as_bytes()), Step::Last(_)));
        assert!(matches!(initial("").line(source, b"<html>"), Step::Last(_)));
    }
}

/// Each watch has a copy of every `ManagedCluster`.
#[test]
fn what_is_kept_of_each_name_counts_until_it_is_gone() {
    const LABEL: usize = 10_000;
    let region = "x".repeat(LABEL);
    let mut tracker = initial("");
    assert_eq!(tracker.held(), 0);
    all(&mut tracker, &[managed("ADDED", 1, &region)]);
    let one = tracker.held();
    assert!((LABEL..2 * LABEL).contains(&one), "{one}");
    all(&mut tracker, &[secret("ADDED", 2, "north"), managed("MODIFIED", 3, &region)]);
    assert_eq!(tracker.held(), one, "hidden, and kept");
    all(&mut tracker, &[managed("MODIFIED", 4, &region.repeat(2))]);
    assert!(tracker.held() >= one + LABEL);
    all(&mut tracker, &[managed("DELETED", 5, "south")]);
    assert!(tracker.held() < LABEL, "{}", tracker.held());
    for number in 0..100 {
        let object = managed_object(&format!("c-{number}"), 6, &region);
        tracker.line(Source::Managed, json!({"type": "ADDED", "object": object}).to_string().as_bytes());
    }
    assert!(tracker.held() >= 100 * LABEL);
}

#[test]
fn what_a_watch_from_a_version_has_looked_at_counts_once() {
    const LABEL: usize = 10_000;
    let cluster: ManagedCluster =
        serde_json::from_value(managed_object("c1", 3, &"x".repeat(LABEL))).expect("an object");
    let cluster = VirtualCluster::of_managed(&cluster).expect("a cluster");
    let known = ObjectsAtStart { secrets: ["c1".to_owned()].into(), managed: [("c1".to_owned(), cluster)].into() };
    let mut tracker = watch("resourceVersion=5", known);
    let before = tracker.held();
    assert!((LABEL..2 * LABEL).contains(&before), "{before}");
    // From here on it counts as received, and no longer as listed.
    all(&mut tracker, &[secret("DELETED", 6, "north")]);
    assert!((before..before + 1000).contains(&tracker.held()), "{}", tracker.held());
}
