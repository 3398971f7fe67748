//! Transitions of one watch, event by event.

use std::collections::BTreeMap;

use api::accept::Representation;
use api::secret::CREDENTIAL_TYPE_LABEL;
use api::served::Form;
use api::table::IncludeObject;
use serde_json::{Value, json};

use super::*;
use crate::clusters::View;
use crate::resources::kinds::Gateways;

fn watch(query: &str, unseen: &[&str]) -> Clusters<Gateways> {
    let form = Form { representation: Representation::Json, include: IncludeObject::Metadata };
    let options = WatchOptions::from_query(Some(query)).expect("valid options");
    let unseen = unseen.iter().map(|name| (*name).to_owned()).collect();
    Clusters::new(EventWriter::new(form), Gateways(View::default()), options, unseen)
}

fn line(kind: &str, name: &str, version: u32, data: &BTreeMap<&str, &str>) -> String {
    let labels = json!({CREDENTIAL_TYPE_LABEL: "ServiceAccountToken"});
    let metadata = json!({"name": name, "uid": "u", "resourceVersion": version.to_string(), "labels": labels});
    json!({"type": kind, "object": {"kind": "Secret", "metadata": metadata, "data": data}}).to_string()
}

fn good(kind: &str, version: u32) -> String {
    // https://m, t
    line(kind, "c1", version, &BTreeMap::from([("endpoint", "aHR0cHM6Ly9t"), ("token", "dA==")]))
}

/// A Secret without its endpoint, and with a token that must not be shown.
fn bad(kind: &str, version: u32) -> String {
    line(kind, "c1", version, &BTreeMap::from([("token", "Y2FuYXJ5")]))
}

/// Type and version of the event for the watcher; empty without an event.
fn event_summary(watch: &mut Clusters<Gateways>, line: &str) -> String {
    match watch.line(line.as_bytes()) {
        Step::Nothing => String::new(),
        Step::Send(bytes) => {
            assert!(!bytes.windows(6).any(|window| window == b"canary"));
            let event: Value = serde_json::from_slice(&bytes).expect("JSON");
            let version = event["object"]["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
            format!("{} {version}", event["type"].as_str().expect("a type"))
        }
        Step::Last(bytes) => {
            let event: Value = serde_json::from_slice(&bytes).expect("JSON");
            format!("last {} {}", event["type"].as_str().expect("a type"), event["object"]["code"])
        }
    }
}

fn all(watch: &mut Clusters<Gateways>, lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| event_summary(watch, line)).collect()
}

#[test]
fn readable_clusters_are_told_as_the_hub_tells_them() {
    let lines = [good("ADDED", 1), good("MODIFIED", 2), good("DELETED", 3)];
    assert_eq!(all(&mut watch("", &[]), &lines), ["ADDED 1", "MODIFIED 2", "DELETED 3"]);
}

#[test]
fn what_becomes_unreadable_is_deleted_once_and_then_added() {
    let lines = [
        good("ADDED", 1),
        bad("MODIFIED", 2),
        bad("MODIFIED", 3),
        good("MODIFIED", 4),
        bad("MODIFIED", 5),
        bad("DELETED", 6),
    ];
    assert_eq!(all(&mut watch("", &[]), &lines), ["ADDED 1", "DELETED 2", "", "ADDED 4", "DELETED 5", ""]);
}

#[test]
fn what_was_never_readable_is_not_told() {
    let lines = [bad("ADDED", 1), bad("MODIFIED", 2), bad("DELETED", 3)];
    assert_eq!(all(&mut watch("", &[]), &lines), ["", "", ""]);
    let lines = [bad("ADDED", 1), good("MODIFIED", 2)];
    assert_eq!(all(&mut watch("", &[]), &lines), ["", "ADDED 2"]);
}

#[test]
fn a_watch_that_goes_on_tells_deletions_of_what_it_does_not_know() {
    assert_eq!(all(&mut watch("resourceVersion=1", &[]), &[bad("MODIFIED", 2)]), ["DELETED 2"]);
    assert_eq!(all(&mut watch("resourceVersion=1", &[]), &[bad("DELETED", 2)]), ["DELETED 2"]);
    // The snapshot's presumption decides between "modified" and "added", and hides no deletion.
    let mut presumed = watch("resourceVersion=1", &["c1"]);
    assert_eq!(all(&mut presumed, &[good("MODIFIED", 2), good("MODIFIED", 3)]), ["ADDED 2", "MODIFIED 3"]);
    let mut presumed = watch("resourceVersion=1", &["c1"]);
    assert_eq!(all(&mut presumed, &[bad("MODIFIED", 2), good("MODIFIED", 3)]), ["DELETED 2", "ADDED 3"]);
}

#[test]
fn bookmarks_are_for_those_who_asked_but_the_end_of_the_beginning_is_for_all() {
    let bookmark = |annotations: &str| {
        format!(r#"{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"9"{annotations}}}}}}}"#)
    };
    let lines = [bookmark(""), bookmark(r#","annotations":{"k8s.io/initial-events-end":"true"}"#)];
    assert_eq!(all(&mut watch("", &[]), &lines), ["", "BOOKMARK 9"]);
    assert_eq!(all(&mut watch("allowWatchBookmarks=true", &[]), &lines), ["BOOKMARK 9", "BOOKMARK 9"]);
}

#[test]
fn another_name_or_namespace_is_not_told() {
    for query in ["fieldSelector=metadata.name%3Dc2", "fieldSelector=metadata.namespace%3Dvela-system"] {
        assert_eq!(all(&mut watch(query, &[]), &[good("ADDED", 1), bad("MODIFIED", 2)]), ["", ""], "{query}");
    }
}

#[test]
fn errors_end_the_watch() {
    let expired = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
    assert_eq!(event_summary(&mut watch("", &[]), expired), "last ERROR 410");
    assert_eq!(event_summary(&mut watch("", &[]), "<html>"), "last ERROR 500");
}
