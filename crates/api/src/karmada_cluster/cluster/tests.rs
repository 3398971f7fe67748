//! Golden objects and Tables, and the source of each field.

use std::time::{Duration, UNIX_EPOCH};

use super::columns::age;
use super::*;
use crate::accept::{MetaVersion, Representation};
use crate::karmada::{PROVIDER_LABEL, REGION_LABEL, ZONE_LABEL};
use crate::object::{Cell, Served};
use crate::samples::{certificate_cluster, proxied_cluster, token_cluster};
use crate::served::{Form, ListMeta};
use crate::table::IncludeObject;

/// A cordoned Cluster, with the status that Karmada's controllers report.
const KEPT: &str = r#"{"annotations":{"team":"a"},"spec":{"id":"7e","secretRef":{"namespace":"karmada-cluster","name":"c1"},
    "taints":[{"key":"cluster.karmada.io/unschedulable","effect":"NoSchedule"}],"region":"eu","apiEndpoint":"https://other"},
    "status":{"kubernetesVersion":"v1.35.0","conditions":[{"type":"Ready","status":"False"}]}}"#;

fn kept() -> ClusterSpec {
    let mut cluster = ClusterSpec { karmada: Some(KEPT.to_owned()), ..token_cluster("c1") };
    cluster.labels.insert("tier".to_owned(), "a".to_owned());
    cluster.labels.insert(REGION_LABEL.to_owned(), "us".to_owned());
    cluster.labels.insert(ZONE_LABEL.to_owned(), "a__b".to_owned());
    cluster.labels.insert(PROVIDER_LABEL.to_owned(), "metal".to_owned());
    cluster
}

fn shown(cluster: &ClusterSpec) -> Cluster<'_> {
    // Half a minute after the samples' creation.
    let now = UNIX_EPOCH + Duration::from_secs(1_795_255_230);
    Cluster::new(cluster, &Health { healthy: true, healthy_reason: "Checked".into() }, now)
}

fn rendered(clusters: &[ClusterSpec], representation: Representation) -> String {
    let objects: Vec<_> = clusters.iter().map(shown).collect();
    let form = Form { representation, include: IncludeObject::None };
    let json = form.list(&objects, ListMeta { resource_version: "42", ..ListMeta::default() });
    String::from_utf8(json.to_vec()).expect("JSON is UTF-8")
}

#[test]
fn golden_objects_and_table() {
    let clusters = [kept(), certificate_cluster("c2"), proxied_cluster("c3")];
    let list = rendered(&clusters, Representation::Json);
    assert!(!list.contains("canary"), "{list}");
    insta::assert_snapshot!("list", list);
    insta::assert_snapshot!("table", rendered(&clusters, Representation::Table(MetaVersion::V1)));
}

#[test]
fn an_annotation_that_nobody_can_read_hides_no_cluster() {
    let broken = ClusterSpec { karmada: Some("{".to_owned()), ..token_cluster("c1") };
    assert_eq!(shown(&broken).spec, shown(&token_cluster("c1")).spec);
}

#[test]
fn a_cluster_has_another_uid_than_its_secret() {
    let secret = token_cluster("c1");
    assert_eq!(secret.uid, "7e3f2a52-0000-4000-8000-000000000001");
    assert_eq!(shown(&secret).uid(), "7e3f2a52-0000-8000-8000-000000000001");
}

#[test]
fn readiness_is_what_was_reported_and_else_unknown() {
    let cluster = token_cluster("c1");
    let ready = |healthy, reason: &str| {
        let health = Health { healthy, healthy_reason: reason.to_owned() };
        match Cluster::new(&cluster, &health, UNIX_EPOCH).cells().swap_remove(3) {
            Cell::Text(text) => text.to_owned(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((&*ready(true, ""), &*ready(false, "Down"), &*ready(false, "")), ("True", "False", "Unknown"));
}

#[test]
fn ages_are_worded_as_kubectl_words_them() {
    const DAY: i64 = 86_400;
    for (seconds, expected) in [
        (-2, "<invalid>"),
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (179 * 60 + 59, "179m"),
        (180 * 60, "3h"),
        (7 * 3600 + 60, "7h1m"),
        (8 * 3600, "8h"),
        (2 * DAY, "2d"),
        (2 * DAY + 3600, "2d1h"),
        (8 * DAY + 3600, "8d"),
        (730 * DAY, "2y"),
        (731 * DAY, "2y1d"),
        (2921 * DAY, "8y"),
    ] {
        assert_eq!(age(seconds), expected, "{seconds}");
    }
}

#[test]
fn an_age_is_the_time_since_the_beginning() {
    let now = UNIX_EPOCH + Duration::from_secs(90);
    assert_eq!(age_since(Some("1970-01-01T00:00:00Z"), now), "90s");
    assert_eq!((age_since(None, now), age_since(Some("soon"), now)), ("<unknown>".to_owned(), "<unknown>".to_owned()));
}
