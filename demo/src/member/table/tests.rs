use super::*;
use crate::member::{
    sample::{BERLIN, LIMA, OSAKA, Profile},
    selector::Selection,
};

/// A table as text, wide columns included: what `kubectl get -o wide` shows.
fn printed(profile: &Profile, kind: Kind) -> String {
    let now = OffsetDateTime::from_unix_timestamp(1_790_000_000).unwrap();
    let header: Vec<String> = layout(kind).iter().map(|column| column.name.to_uppercase()).collect();
    let mut lines = vec![header.join(" | ")];
    for object in profile.populate(now).list(&Selection::all(kind, None)) {
        let row = cells(kind, &object.body, now);
        assert_eq!(row.len(), layout(kind).len(), "a cell for each column");
        let row: Vec<&str> = row.iter().map(|cell| cell.as_str().expect("cells are text")).collect();
        lines.push(row.join(" | "));
    }
    lines.join("\n")
}

#[test]
fn tables_of_the_sample_clusters() {
    insta::assert_snapshot!("berlin_pods", printed(&BERLIN, Kind::Pod));
    insta::assert_snapshot!("osaka_pods", printed(&OSAKA, Kind::Pod));
    insta::assert_snapshot!("berlin_nodes", printed(&BERLIN, Kind::Node));
    insta::assert_snapshot!("berlin_leases", printed(&BERLIN, Kind::Lease));
    insta::assert_snapshot!("lima_namespaces", printed(&LIMA, Kind::Namespace));
}

#[test]
fn columns_say_which_are_wide() {
    insta::assert_json_snapshot!("pod_columns", columns(Kind::Pod));
}

#[test]
fn a_pod_with_a_deletion_timestamp_is_terminating() {
    let pod =
        json!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}});
    assert_eq!(cells(Kind::Pod, &pod, OffsetDateTime::UNIX_EPOCH)[2], "Terminating");
}

#[test]
fn a_cordoned_node_says_so() {
    let node =
        json!({"spec": {"unschedulable": true}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    assert_eq!(cells(Kind::Node, &node, OffsetDateTime::UNIX_EPOCH)[1], "NotReady,SchedulingDisabled");
}
