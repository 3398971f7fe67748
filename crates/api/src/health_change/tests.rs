//! Which fields count in each kind of body, and the refusals.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::samples::token_cluster;

/// The version and uid of samples.
const VERSION: &str = "41";
const UID: &str = "7e3f2a52-0000-4000-8000-000000000001";

fn cluster() -> ClusterSpec {
    ClusterSpec { healthy: Some("true".into()), healthy_reason: Some("Before".into()), ..token_cluster("c1") }
}

fn object(metadata: &Value) -> Value {
    json!({"kind": KIND, "apiVersion": API_VERSION, "metadata": metadata,
        "status": {"healthy": false, "healthyReason": "After"}})
}

fn update(object: &Value) -> Result<HealthUpdate, Refused> {
    Change::update(object.to_string().as_bytes())?.wanted(&cluster())
}

fn after(pinned: bool) -> HealthUpdate {
    HealthUpdate { health: Health { healthy: false, healthy_reason: "After".into() }, pinned }
}

#[test]
fn an_update_is_checked_against_the_object() {
    let name = ClusterName::parse("c1").expect("a name");
    assert_eq!(update(&object(&json!({"name": "c1"}))), Ok(after(false)));
    assert_eq!(update(&object(&json!({"name": "c1", "resourceVersion": VERSION, "uid": UID}))), Ok(after(true)));
    for (metadata, expected) in [
        (json!({}), Refused::NoName),
        (json!({"name": "c2"}), Refused::Name("c2".into(), name.clone())),
        (json!({"name": "c1", "resourceVersion": "40"}), Refused::Version(name.clone())),
        (json!({"name": "c1", "uid": "other"}), Refused::Uid(name.clone())),
    ] {
        assert_eq!(update(&object(&metadata)), Err(expected), "{metadata}");
    }
    let mut other = object(&json!({"name": "c1"}));
    other["apiVersion"] = "v1".into();
    assert_eq!(update(&other), Err(Refused::Type));
    for broken in [json!([]), json!("x"), json!({"kind": 1}), json!({"status": {"healthy": "yes"}})] {
        assert_eq!(update(&broken), Err(Refused::Json), "{broken}");
    }
}

#[test]
fn a_status_that_says_nothing_means_unhealthy() {
    let wanted = update(&json!({"kind": KIND, "apiVersion": API_VERSION, "metadata": {"name": "c1"}, "status": null}));
    assert_eq!(wanted, Ok(HealthUpdate { health: Health::default(), pinned: false }));
}

#[test]
fn patches_apply_to_what_was_reported() {
    let merge = |patch: &Value| Change::merge(patch.to_string().as_bytes())?.wanted(&cluster());
    let reason = merge(&json!({"status": {"healthyReason": "After"}}));
    let expected = Health { healthy: true, healthy_reason: "After".into() };
    assert_eq!(reason, Ok(HealthUpdate { health: expected, pinned: false }));
    assert_eq!(merge(&json!({"metadata": {"resourceVersion": "40"}})).map_err(|_| ()), Err(()));
    assert_eq!(merge(&json!({"metadata": {"name": "c2"}})).map_err(|_| ()), Err(()));
    assert_eq!(merge(&json!([])), Err(Refused::Patch(PatchError::Invalid("a merge patch must be an object"))));

    let operations = |patch: &Value| Change::operations(patch.to_string().as_bytes())?.wanted(&cluster());
    let replace = json!([{"op": "test", "path": "/status/healthy", "value": true},
        {"op": "replace", "path": "/status/healthy", "value": false},
        {"op": "replace", "path": "/status/healthyReason", "value": "After"}]);
    assert_eq!(operations(&replace), Ok(after(false)));
    let failing = operations(&json!([{"op": "test", "path": "/status/healthy", "value": false}]));
    assert!(matches!(failing, Err(Refused::Patch(PatchError::Inapplicable(_)))), "{failing:?}");
    assert!(matches!(operations(&json!([{"op": "jump"}])), Err(Refused::Patch(_))));
}

#[test]
fn operations_are_few() {
    let many = vec![json!({"op": "test", "path": "", "value": 0}); MOST_OPERATIONS + 1];
    assert!(matches!(Change::operations(Value::from(many).to_string().as_bytes()), Err(Refused::Patch(_))));
}

#[test]
fn what_does_not_count_is_not_even_made_into_values() {
    // Larger than any number of serde_json.
    let body = format!(
        r#"{{"x": [1e999, {{"y": 1e999}}], "kind": "{KIND}", "apiVersion": "{API_VERSION}",
            "metadata": {{"name": "c1", "labels": {{"z": 1e999}}}}, "status": {{"healthy": false, "healthyReason": "After"}}}}"#
    );
    assert_eq!(Change::update(body.as_bytes()).and_then(|change| change.wanted(&cluster())), Ok(after(false)));
    assert_eq!(Change::update(format!(" \n{body}").as_bytes()).map(drop), Ok(()));
    for fields_in_order in [&b"[\"ClusterGateway\"]"[..], b" [1e999]", b"", b"1"] {
        assert_eq!(Change::update(fields_in_order), Err(Refused::Json));
    }
}

proptest! {
    #[test]
    fn no_body_panics(body in ".*") {
        for change in [Change::update(body.as_bytes()), Change::merge(body.as_bytes()), Change::operations(body.as_bytes())] {
            let _ = change.and_then(|change| change.wanted(&cluster()));
        }
    }
}
