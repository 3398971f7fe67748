//! The meaning of the hub's lines, and our lines in each form.

use proptest::prelude::*;

use super::*;
use crate::accept::MetaVersion;
use crate::cluster_gateway::{ClusterGateway, Credentials};
use crate::health::Health;
use crate::hub_object::SecretObject;
use crate::samples::token_cluster;
use crate::table::IncludeObject;

fn parse(line: &str) -> Result<HubEvent<Marked>, InvalidEvent> {
    HubEvent::parse(line.as_bytes())
}

impl PartialEq for Marked {
    fn eq(&self, other: &Self) -> bool {
        self.metadata == other.metadata
    }
}

impl std::fmt::Debug for Marked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.metadata.fmt(f)
    }
}

#[test]
fn every_kind_of_line_is_read() {
    let changed = parse(r#"{"type":"MODIFIED","object":{"kind":"Secret","metadata":{"name":"c1"}}}"#);
    let metadata = HubMeta { name: "c1".into(), ..HubMeta::default() };
    assert_eq!(changed, Ok(HubEvent::Change(Change::Modified, Marked { metadata })));
    let bookmark = |annotations: &str| {
        parse(&format!(r#"{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"9"{annotations}}}}}}}"#))
    };
    let expected = |initial_events_end| HubEvent::Bookmark { resource_version: "9".into(), initial_events_end };
    assert_eq!(bookmark(""), Ok(expected(false)));
    assert_eq!(bookmark(r#","annotations":{"k8s.io/initial-events-end":"true"}"#), Ok(expected(true)));
    let gone =
        parse(r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#);
    assert!(matches!(gone, Ok(HubEvent::Error(HubStatus { code: 410, .. }))), "{gone:?}");
    let line = |kind: &str| format!(r#"{{"type":"{kind}","object":{{"metadata":{{"resourceVersion":"7"}}}}}}"#);
    assert_eq!((version(line("DELETED").as_bytes()), version(line("BOOKMARK").as_bytes())), (Some(7), Some(7)));
    assert_eq!((version(line("ERROR").as_bytes()), version(b"<html>")), (None, None));
    for broken in ["", "{}", r#"{"type":"OTHER","object":{}}"#, r#"{"type":"ADDED","object":[1]}"#, "<html>"] {
        assert_eq!(parse(broken), Err(InvalidEvent), "{broken}");
    }
}

/// The version as it is in all metadata of the line.
fn version_of_all(line: &[u8]) -> Option<u64> {
    match HubEvent::<Marked>::parse(line).ok()? {
        HubEvent::Change(_, object) => object.metadata.resource_version.parse().ok(),
        HubEvent::Bookmark { resource_version, .. } => resource_version.parse().ok(),
        HubEvent::Error(_) => None,
    }
}

#[test]
fn the_version_alone_is_that_of_all_metadata() {
    let versions =
        [r#""7""#, r#""+7""#, r#""""#, r#""-7""#, r#""18446744073709551616""#, r#""\u0037""#, "7", "null", "[]"];
    let kinds = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "OTHER", "", r"\u0041DDED"];
    for (kind, number) in kinds.iter().flat_map(|kind| versions.iter().map(move |number| (kind, number))) {
        for object in [
            format!(r#"{{"kind":"Secret","metadata":{{"name":"a","labels":null,"resourceVersion":{number}}}}}"#),
            format!(r#"{{"metadata":{{"resourceVersion":{number},"resourceVersion":{number}}}}}"#),
        ] {
            let line = format!(r#"{{"object":{object},"type":"{kind}"}}"#);
            assert_eq!(version(line.as_bytes()), version_of_all(line.as_bytes()), "{line}");
        }
    }
    let not_utf8 = b"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"},\"a\":\"\xff\"}}";
    let broken: [&[u8]; 7] =
        [b"", b"{}", b"[]", b"<html>", br#"{"type":"ADDED"}"#, br#"{"type":"ADDED","object":{}}x"#, not_utf8];
    for line in broken {
        assert_eq!((version(line), version_of_all(line)), (None, None), "{line:?}");
    }
}

proptest! {
    #[test]
    fn the_version_alone_is_that_of_all_metadata_of_any_event(
        kind in prop::sample::select(vec!["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]),
        number in "[0-9]{0,21}|\\PC{0,4}",
        labels in prop::collection::btree_map(any::<String>(), any::<String>(), 0..4),
        data in any::<String>(),
        cut in 0_usize..400,
    ) {
        let metadata = serde_json::json!({"name": data, "resourceVersion": number, "labels": labels, "annotations": labels});
        let object = serde_json::json!({"metadata": metadata, "data": {"a": data, "resourceVersion": "8"}});
        let line = serde_json::json!({"type": kind, "object": object}).to_string().into_bytes();
        prop_assert_eq!(version(&line), version_of_all(&line));
        let line = &line[..cut.min(line.len())];
        prop_assert_eq!(version(line), version_of_all(line));
    }
}

#[test]
fn a_secret_inside_an_event_is_read_whole() {
    let line = br#"{"type":"ADDED","object":{"metadata":{"name":"c1"},"data":{"token":"dA=="}}}"#;
    let Ok(HubEvent::Change(Change::Added, secret)) = HubEvent::<SecretObject>::parse(line) else {
        panic!("an added Secret")
    };
    assert_eq!(secret.view().data["token"], b"t");
}

#[test]
fn events_in_every_form() {
    let spec = token_cluster("c1");
    let object = ClusterGateway::new(&spec, Health::default(), Credentials::Redacted);
    let forms = [
        Representation::Json,
        Representation::Table(MetaVersion::V1),
        Representation::Table(MetaVersion::V1beta1),
        Representation::Metadata(MetaVersion::V1),
    ];
    let mut lines = Vec::new();
    for representation in forms {
        let mut writer = EventWriter::new(Form { representation, include: IncludeObject::default() });
        lines.push(writer.change(Change::Added, &object));
        lines.push(writer.change(Change::Deleted, &object));
        lines.push(writer.bookmark::<ClusterGateway<'_>>("44", false));
        lines.push(writer.bookmark::<ClusterGateway<'_>>("45", true));
    }
    lines.push(EventWriter::error(&Status::internal_error("the hub is gone")));
    let lines: String = lines.iter().map(|line| std::str::from_utf8(line).expect("UTF-8")).collect();
    insta::assert_snapshot!(lines);
}
