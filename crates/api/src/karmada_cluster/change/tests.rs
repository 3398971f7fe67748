//! Which changes are allowed, and their results.

use std::time::UNIX_EPOCH;

use serde_json::json;

use super::*;
use crate::health::Health;
use crate::karmada::{API_VERSION, KIND};
use crate::samples::token_cluster;
use crate::status::Status;

const NOW: &str = "2026-11-26T12:00:00Z";

fn cluster() -> ClusterSpec {
    let kept = json!({"spec": {"secretRef": {"namespace": "karmada-cluster", "name": "c1"}},
        "status": {"kubernetesVersion": "v1.35.0"}});
    ClusterSpec { karmada: Some(kept.to_string()), ..token_cluster("c1") }
}

fn new(spec: &Value) -> Value {
    json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "c1"}, "spec": spec})
}

fn created(body: &Value) -> Result<DesiredCluster, Refused> {
    Sent::object(body.to_string().as_bytes())?.created(NOW)
}

fn changed(sent: &Sent, part: Part) -> Result<DesiredCluster, Refused> {
    let secret = cluster();
    sent.changed(
        &Cluster::new(&secret, &Health { healthy: true, healthy_reason: String::new() }, UNIX_EPOCH),
        part,
        NOW,
    )
}

/// The code, and the message without the text before the fields.
fn refusal(refused: Refused) -> String {
    let status = Status::from(refused);
    let message = status.message().trim_start_matches("Cluster.cluster.karmada.io \"c1\" is invalid: ");
    format!("{} {message}", status.code().as_u16())
}

#[test]
fn each_field_is_validated_as_upstream_does() {
    let base = json!({"syncMode": "Push", "apiEndpoint": "https://10.0.0.1:6443"});
    let with = |changes: Value| {
        let mut spec = base.clone();
        json_patch::merge(&mut spec, &changes);
        spec
    };
    let long = "x".repeat(64);
    let specs = [
        with(json!({})),
        with(json!({"syncMode": null})),
        with(json!({"syncMode": "Pull", "apiEndpoint": null})),
        with(json!({"syncMode": "push"})),
        with(json!({"apiEndpoint": "10.0.0.1:6443"})),
        with(json!({"apiEndpoint": "https://"})),
        with(json!({"apiEndpoint": "https://user:canary@host/"})),
        with(json!({"apiEndpoint": "https://host/?canary=1"})),
        with(json!({"apiEndpoint": "https://host/#part"})),
        with(json!({"secretRef": {}})),
        with(json!({"impersonatorSecretRef": {"name": "x"}})),
        with(json!({"proxyURL": "socks5://proxy:1080"})),
        with(json!({"proxyURL": "ftp://user:canary@proxy"})),
        with(json!({"provider": long, "region": "-x"})),
        with(json!({"zone": "a", "zones": ["b"]})),
        with(json!({"zones": ["a", "b c"]})),
        with(json!({"taints": [{"key": "a/b", "effect": "NoSchedule"}, {"key": "a/b", "effect": "NoExecute"}]})),
        with(json!({"taints": [{"key": "-", "value": "a b"}, {"key": "x", "effect": "PreferNoSchedule"}]})),
        with(json!({"taints": [{"key": "x", "effect": "NoSchedule"}, {"key": "x", "effect": "NoSchedule"}]})),
        with(json!({"zones": "a"})),
    ];
    let line = |spec: &Value| match created(&new(spec)) {
        Ok(_) => format!("{spec}\n    valid\n"),
        Err(refused) => format!("{spec}\n    {}\n", refusal(refused)),
    };
    let table: String = specs.iter().map(line).collect();
    // Only the request itself may repeat values that may be credentials.
    assert!(table.lines().filter(|line| line.starts_with("    ")).all(|line| !line.contains("user:canary")));
    insta::assert_snapshot!(table);
}

#[test]
fn names_of_new_clusters_are_dns_labels_of_48() {
    let named = |name: &str| {
        let body = json!({"metadata": {"name": name}, "spec": {"syncMode": "Pull"}});
        created(&body).map(|wanted| wanted.name).map_err(|refused| Status::from(refused).code().as_u16())
    };
    let (longest, longer) = ("x".repeat(48), "x".repeat(49));
    assert_eq!(named(&longest), Ok(longest.clone()));
    for (name, code) in [(longer.as_str(), 422), ("a.b", 422), ("-a", 422), ("A", 422), ("", 400)] {
        assert_eq!(named(name), Err(code), "{name}");
    }
}

#[test]
fn what_upstream_defaults_is_defaulted() {
    let taint = |effect: &str| json!({"key": "x", "effect": effect});
    let spec = json!({"syncMode": "Pull", "zone": "a", "taints": [taint("NoExecute"), taint("NoSchedule")]});
    let mut body = new(&spec);
    body["status"] = json!({"kubernetesVersion": "v1"});
    let wanted = created(&body).expect("valid");
    assert_eq!((wanted.spec.zone.as_str(), &wanted.spec.zones[..]), ("", &["a".to_owned()][..]));
    let added: Vec<_> = wanted.spec.taints.iter().map(|taint| taint.time_added.as_deref()).collect();
    assert_eq!(added, [Some(NOW), None]);
    assert!(wanted.status.is_none(), "a new cluster has no status");
}

#[test]
fn bodies_that_are_no_new_cluster_are_refused() {
    let of = |changes: Value| {
        let mut body = new(&json!({"syncMode": "Pull"}));
        json_patch::merge(&mut body, &changes);
        refusal(created(&body).expect_err("refused"))
    };
    let lines = [
        of(json!({"kind": "Pod"})),
        of(json!({"apiVersion": "cluster.karmada.io/v1"})),
        of(json!({"metadata": {"resourceVersion": "1"}})),
        of(json!({"metadata": {"name": null, "generateName": "c-"}})),
        of(json!({"metadata": {"labels": {"cluster.core.oam.dev/cluster-credential-type": "Dynamic"}}})),
        of(json!({"metadata": {"labels": {"a b": "c"}}})),
    ];
    insta::assert_snapshot!(lines.join("\n"));
    for body in ["", "[]", "null", "{", "\"x\""] {
        assert!(matches!(Sent::object(body.as_bytes()), Err(Refused::Json)), "{body}");
    }
}

#[test]
fn fields_that_are_dropped_are_told() {
    let mut body = new(&json!({"syncMode": "Pull", "apiendpoint": "x"}));
    body["extra"] = json!(1);
    body["metadata"]["finalizers"] = json!(["karmada.io/cluster-controller"]);
    let unknown = created(&body).expect("valid").unknown;
    assert_eq!(unknown, ["extra", "spec.apiendpoint", "metadata.finalizers"]);
    let strict = Status::from(Refused::Strict(unknown));
    assert_eq!(strict.code(), 400);
    assert!(strict.message().starts_with("strict decoding error: unknown field \"extra\", unknown field"));
}

/// The patch that `karmadactl cordon` sends.
#[test]
fn a_patch_changes_the_spec_and_keeps_the_status() {
    let patch = br#"{"spec":{"taints":[{"effect":"NoSchedule","key":"cluster.karmada.io/unschedulable"}]}}"#;
    let wanted = changed(&Sent::merge(patch).expect("a patch"), Part::Whole).expect("valid");
    assert!(!wanted.pinned);
    let kept: Value = serde_json::from_str(&wanted.kept(&cluster()).expect("small")).expect("JSON");
    assert_eq!(
        kept,
        json!({"spec": {"secretRef": {"namespace": "karmada-cluster", "name": "c1"},
            "taints": [{"key": "cluster.karmada.io/unschedulable", "effect": "NoSchedule"}]},
            "status": {"kubernetesVersion": "v1.35.0"}}),
        "what the Secret's own keys say is not said twice, and what was not written is not kept"
    );
    let current = cluster();
    let current = Cluster::new(&current, &Health::default(), UNIX_EPOCH);
    assert!(!wanted.spec.reaches_otherwise(&current.spec));
    let moved = Sent::operations(br#"[{"op":"replace","path":"/spec/apiEndpoint","value":"https://evil"}]"#);
    let moved = changed(&moved.expect("a patch"), Part::Whole).expect("valid");
    assert!(moved.spec.reaches_otherwise(&current.spec));
}

#[test]
fn a_status_is_written_without_the_rest() {
    let body = br#"{"metadata":{"name":"c1"},"spec":{"syncMode":"Pull"},"status":{"kubernetesVersion":"v2"}}"#;
    let wanted = changed(&Sent::object(body).expect("an object"), Part::Status).expect("valid");
    let status = r#"{"kubernetesVersion":"v2"}"#;
    assert_eq!((wanted.spec.sync_mode.as_str(), wanted.status.get()), ("Push", Some(status)));
}

#[test]
fn identity_and_version_must_be_those_of_the_object() {
    let of = |metadata: Value| {
        let body = json!({"metadata": metadata, "spec": {"syncMode": "Push", "apiEndpoint": "https://m:6443/prefix"}});
        let sent = Sent::object(body.to_string().as_bytes()).expect("an object");
        changed(&sent, Part::Whole).map(|wanted| wanted.pinned).map_err(|refused| Status::from(refused).code().as_u16())
    };
    assert_eq!(of(json!({"name": "c1"})), Ok(false));
    let uid = "7e3f2a52-0000-8000-8000-000000000001";
    assert_eq!(of(json!({"name": "c1", "resourceVersion": "41", "uid": uid})), Ok(true));
    for (metadata, code) in [
        (json!({}), 400),
        (json!({"name": "c2"}), 400),
        (json!({"name": "c1", "resourceVersion": "40"}), 409),
        (json!({"name": "c1", "uid": "7e3f2a52-0000-4000-8000-000000000001"}), 409),
    ] {
        assert_eq!(of(metadata.clone()), Err(code), "{metadata}");
    }
}

#[test]
fn what_is_kept_has_a_limit() {
    let patch = json!({"metadata": {"annotations": {"x": "y".repeat(MOST_KEPT)}}}).to_string();
    let wanted = changed(&Sent::merge(patch.as_bytes()).expect("a patch"), Part::Whole).expect("valid");
    let refused = wanted.kept(&cluster()).expect_err("too large");
    assert_eq!(Status::from(refused).code(), 413);
}

/// A few bytes of `[{}]` take up many bytes in memory.
#[test]
fn values_have_a_limit_before_they_are_made() {
    let bomb = format!(r#"{{"status":{{"a":[{}0]}}}}"#, r#"{"a":0},"#.repeat(12_000));
    for sent in [Sent::object(bomb.as_bytes()), Sent::merge(bomb.as_bytes()), Sent::operations(bomb.as_bytes())] {
        assert_eq!(Status::from(sent.expect_err("too many")).code(), 413);
    }
    let taint = |index| json!({"key": format!("k{index}"), "effect": "NoSchedule"});
    let with = |count| created(&new(&json!({"syncMode": "Pull", "taints": (0..count).map(taint).collect::<Vec<_>>()})));
    assert!(with(256).is_ok());
    let refused = refusal(with(257).expect_err("too many"));
    assert!(refused.contains("422 spec.taints: Too many: 257"), "{refused}");
}
