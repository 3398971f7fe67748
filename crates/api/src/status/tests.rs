//! Golden bodies: the text that clients parse and people search for must not change unnoticed.
//! Hostile names must come out as plain text, neither as markup nor as a new line.

use http::StatusCode;

use super::{Details, Reason, Status, StatusCause};
use crate::access::{Attributes, ResourceAttributes, Verb};

fn text(status: &Status) -> String {
    String::from_utf8(status.to_json().to_vec()).expect("JSON is UTF-8")
}

fn proxy(name: &str) -> ResourceAttributes {
    ResourceAttributes {
        verb: Verb::Get,
        group: crate::GROUP.into(),
        version: crate::VERSION.into(),
        resource: "clustergateways".into(),
        subresource: "proxy".into(),
        namespace: None,
        name: Some(name.into()),
        field_selector: None,
        label_selector: None,
    }
}

#[test]
fn unauthorized() {
    insta::assert_snapshot!(text(&Status::unauthorized()));
}

#[test]
fn forbidden_subresource_with_reason() {
    let status = Status::forbidden("u", &Attributes::Resource(proxy("c1")), "no rule matched");
    assert_eq!(
        status.message(),
        "clustergateways.cluster.core.oam.dev \"c1\" is forbidden: User \"u\" cannot get resource \
         \"clustergateways/proxy\" in API group \"cluster.core.oam.dev\" at the cluster scope: no rule matched"
    );
    insta::assert_snapshot!(text(&status));
}

#[test]
fn forbidden_without_name_in_a_namespace() {
    let attributes = ResourceAttributes {
        verb: Verb::List,
        subresource: "".into(),
        namespace: Some("team".into()),
        name: None,
        ..proxy("unused")
    };
    insta::assert_snapshot!(text(&Status::forbidden("u", &Attributes::Resource(attributes), "")));
}

#[test]
fn forbidden_path() {
    let attributes = Attributes::NonResource { path: "/x".into(), verb: "get".into() };
    insta::assert_snapshot!(text(&Status::forbidden("system:anonymous", &attributes, "")));
}

#[test]
fn hostile_user_name_is_neither_markup_nor_a_new_line() {
    let status = Status::forbidden("<b>&\"x\"\n\u{202e}\u{1f600}\0", &Attributes::Resource(proxy("c1")), "<i>\u{2028}");
    insta::assert_snapshot!(text(&status));
}

#[test]
fn object_not_found() {
    insta::assert_snapshot!(text(&Status::object_not_found("clustergateways", "c1")));
}

#[test]
fn generic_answers() {
    let answers = [
        Status::bad_request("the path has dot segments"),
        Status::path_not_found(),
        Status::method_not_allowed(),
        Status::not_acceptable("application/json"),
        Status::internal_error("review failed"),
        Status::new(StatusCode::BAD_GATEWAY, Reason::Unknown, "no reason"),
    ];
    insta::assert_snapshot!(answers.iter().map(text).collect::<String>());
}

#[test]
fn refused_writes() {
    let cause = |field: &'static str, message: &'static str| StatusCause {
        reason: "FieldValueRequired".into(),
        message: message.into(),
        field: field.into(),
    };
    let (name, value) = (cause("metadata.name", "Required value"), cause("status", "Required value: write it"));
    let answers = [
        Status::conflict(
            "clustergateways",
            "c1",
            "the object has been modified; please apply your changes to the latest",
        ),
        Status::expired("too old resource version: 1 (5)"),
        Status::too_large(3 << 20),
        Status::invalid("ClusterGateway", "c1", vec![name.clone()]),
        Status::invalid("ClusterGateway", "c1", vec![name, value]),
        Status::invalid("ClusterGateway", "", Vec::new()),
    ];
    insta::assert_snapshot!(answers.iter().map(text).collect::<String>());
}

#[test]
fn every_detail_in_kubernetes_order() {
    let status = Status::new(StatusCode::UNPROCESSABLE_ENTITY, Reason::Invalid, "bad").with_details(Details {
        name: "c1".into(),
        group: "g".into(),
        kind: "clustergateways".into(),
        uid: "7".into(),
        causes: vec![StatusCause { reason: "FieldValueInvalid".into(), message: "m".into(), field: "f".into() }],
        retry_after_seconds: 1,
    });
    insta::assert_snapshot!(text(&status));
}
