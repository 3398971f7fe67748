use std::collections::BTreeMap;

use api::access::Verb;
use http::HeaderMap;

use super::*;

fn user(name: &str) -> Arc<User> {
    Arc::new(User { name: name.to_owned(), ..User::default() })
}

/// A small event with `uri`.
pub(crate) fn event(uri: &str) -> Box<Event> {
    Box::new(Event {
        id: AuditId::of(&HeaderMap::new()),
        stage: Stage::ResponseComplete,
        request_uri: uri.into(),
        verb: Cow::Borrowed("get"),
        user: None,
        impersonated: None,
        source_ips: vec!["10.0.0.9".parse().unwrap()],
        user_agent: Box::default(),
        object: None,
        code: 200,
        received: SystemTime::UNIX_EPOCH + Duration::from_micros(1_782_907_445_000_042),
        latency: Duration::from_micros(1234),
        cluster: None,
        dialect: None,
        decision: None,
        side: None,
    })
}

fn text(event: &Event) -> String {
    let mut line = Vec::new();
    event.write_line(&mut line);
    String::from_utf8(line).expect("JSON is text")
}

fn with_id(mut event: Box<Event>) -> Box<Event> {
    let headers = HeaderMap::from_iter([(crate::AUDIT_ID, http::HeaderValue::from_static("id-1"))]);
    event.id = AuditId::of(&headers);
    event
}

#[test]
fn all_that_an_event_keeps_has_a_weight() {
    let empty = event("/x").weight();
    let more = |change: &dyn Fn(&mut Event)| {
        let mut event = event("/x");
        change(&mut event);
        event.weight() - empty
    };
    let long = "n".repeat(400);
    let object = ResourceAttributes {
        verb: Verb::Get,
        group: "g".repeat(400).into(),
        version: "v1".into(),
        resource: "r".repeat(400).into(),
        subresource: "s".repeat(400).into(),
        namespace: Some(long.as_str().into()),
        name: Some(long.as_str().into()),
        field_selector: None,
        label_selector: None,
    };
    assert!(more(&|event| event.asks(&Attributes::Resource(object.clone()))) >= 2000);
    assert!(more(&|event| event.decision = Some(Decision::forbid(&long))) >= 400);
    assert!(more(&|event| event.source_ips = vec!["10.0.0.9".parse().unwrap(); 100]) >= 99 * size_of::<IpAddr>());
    assert!(more(&|event| event.cluster = Some(long.as_str().into())) >= 400);
    let named = User { uid: Some(long.clone()), ..User::default() };
    assert!(more(&|event| event.user = Some(Arc::new(named.clone()))) >= 400);
}

#[test]
fn a_long_reason_is_cut_between_characters() {
    let Decision::Forbid { reason } = Decision::forbid(&"ü".repeat(1 << 20)) else { panic!("it forbids") };
    assert!(reason.starts_with("üü") && (500..530).contains(&reason.len()), "{} bytes", reason.len());
    let odd = format!("x{}", "ü".repeat(300));
    let Decision::Forbid { reason } = Decision::forbid(&odd) else { panic!("it forbids") };
    assert!(reason.starts_with(&odd[..511]) && !reason.starts_with(&odd[..513]), "{reason}");
    assert_eq!(Decision::forbid("no rule"), Decision::Forbid { reason: "no rule".into() });
}

#[test]
fn a_proxied_request_in_full() {
    let mut event = with_id(event("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy/api/v1/x"));
    event.asks(&Attributes::Resource(ResourceAttributes {
        verb: Verb::Watch,
        group: "apps".into(),
        version: "v1".into(),
        resource: "deployments".into(),
        subresource: "status".into(),
        namespace: Some("ns".into()),
        name: Some("web".into()),
        field_selector: None,
        label_selector: None,
    }));
    let extra = BTreeMap::from([("scopes".to_owned(), vec!["a".to_owned(), "b".to_owned()])]);
    let groups = vec!["devs".to_owned(), "system:authenticated".to_owned()];
    event.user = Some(Arc::new(User { name: "alice".to_owned(), uid: Some("7".to_owned()), groups, extra }));
    event.impersonated = Some(user("bob"));
    event.user_agent = "kubectl/v1.33".into();
    event.stage = Stage::ResponseStarted;
    event.cluster = Some("c1".into());
    event.decision = Some(Decision::Allow);
    insta::assert_snapshot!(text(&event));
}

#[test]
fn a_spelling_that_is_not_the_gateways_own_is_named() {
    let mut event = event("/clusters/c1/api");
    assert!(!text(&event).contains("dialect"));
    event.dialect = Some("kcp");
    assert!(text(&event).contains(r#""cluster.core.oam.dev/dialect":"kcp""#), "{}", text(&event));
}

#[test]
fn a_stranger_in_full() {
    let mut event = with_id(event("/version"));
    event.asks(&Attributes::NonResource { path: "/version".into(), verb: "get".into() });
    event.code = 403;
    event.decision = Some(Decision::Forbid { reason: "no rule".into() });
    insta::assert_snapshot!(text(&event));
}

#[test]
fn whatever_a_caller_writes_stays_on_one_line() {
    let mut event = event("/x\n{\"kind\":\"Event\"}");
    event.user = Some(user("eve\r\n\u{2028}{\"forged\":true}\0"));
    event.user_agent = "a\nb\"".into();
    let text = text(&event);
    assert_eq!(text.lines().count(), 1);
    let read: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
    assert_eq!(read["user"]["username"], "eve\r\n\u{2028}{\"forged\":true}\0");
    assert_eq!(read["userAgent"], "a\nb\"");
}

#[test]
fn parts_of_an_absurd_size_are_cut() {
    let mut event = event("/x");
    event.asks(&Attributes::NonResource { path: "/".into(), verb: "x".repeat(60_000).into() });
    assert!(text(&event).len() < 2000);
    let huge: Arc<str> = "n".repeat(60_000).into();
    event.asks(&Attributes::Resource(ResourceAttributes {
        verb: Verb::Get,
        group: huge.to_string().into(),
        version: huge.to_string().into(),
        resource: huge.to_string().into(),
        subresource: huge.to_string().into(),
        namespace: Some(Arc::clone(&huge)),
        name: Some(huge),
        field_selector: None,
        label_selector: None,
    }));
    assert!(text(&event).len() < 6 * LONGEST_PART + 2000);
}
