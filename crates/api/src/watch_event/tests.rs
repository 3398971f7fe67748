//! The meaning of the hub's lines, and our lines in each form.

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
