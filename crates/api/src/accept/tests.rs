//! Headers of real clients (kubectl, client-go old and new, metadata clients) and malformed ones,
//! each with the form it must get.

use http::HeaderValue;

use super::*;
use crate::status::Status;

fn accept(lines: &[&str]) -> HeaderMap {
    lines.iter().map(|line| (ACCEPT, HeaderValue::from_str(line).expect("header"))).collect()
}

const TABLES: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io";

#[test]
fn representations() {
    let v1 = Representation::Table(MetaVersion::V1);
    let json = Representation::Json;
    for (lines, expected) in [
        (&[][..], Ok(json)),
        (&[""], Ok(json)),
        (&["*/*"], Ok(json)),
        (&["application/*"], Ok(json)),
        (&["APPLICATION/json; charset=utf-8"], Ok(json)),
        (&["application/json;pretty=1;profile=nopeer"], Ok(json)),
        // typed client-go
        (&["application/vnd.kubernetes.protobuf,application/json"], Ok(json)),
        (&["application/cbor", "application/json"], Ok(json)),
        // kubectl get
        (&[TABLES, "application/json"], Ok(v1)),
        (&["application/json;as=Table;v=v1beta1;g=meta.k8s.io"], Ok(Representation::Table(MetaVersion::V1beta1))),
        (&["application/json;q=0.5,application/json;as=Table;v=v1;g=meta.k8s.io;q=0.9"], Ok(v1)),
        (&["*/*,application/json;as=Table;v=v1;g=meta.k8s.io"], Ok(v1)),
        (&["application/json;as=Table;v=v2;g=meta.k8s.io,application/json"], Ok(json)),
        (&["application/json;as=Table,application/json"], Ok(json)),
        (&["application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"], Ok(json)),
        (
            &["application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"],
            Ok(Representation::Metadata(MetaVersion::V1)),
        ),
        (&["application/vnd.kubernetes.protobuf"], Err(NotAcceptable)),
        (&["application/yaml, text/html"], Err(NotAcceptable)),
        (&["application/json;as=Table;v=v2;g=meta.k8s.io"], Err(NotAcceptable)),
        (&["application/json;q=0"], Err(NotAcceptable)),
        (&["json"], Err(NotAcceptable)),
    ] {
        assert_eq!(representation(&accept(lines), Shape::List), expected, "{lines:?}");
    }
    let single = accept(&["application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"]);
    assert_eq!(representation(&single, Shape::Object), Ok(Representation::Metadata(MetaVersion::V1)));
}

#[test]
fn not_acceptable_is_a_406_that_says_what_is() {
    let status = Status::from(NotAcceptable);
    assert_eq!(status.code(), http::StatusCode::NOT_ACCEPTABLE);
    assert_eq!(status.message(), NotAcceptable.to_string());
}

#[test]
fn discovery_forms() {
    let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let v2beta1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    let nopeer = format!("{v2};profile=nopeer");
    let shuffled = "application/json;as=APIGroupDiscoveryList;profile=nopeer;v=v2;g=apidiscovery.k8s.io";
    for (lines, expected) in [
        (&[][..], DiscoveryForm::Plain),
        (&["application/json"], DiscoveryForm::Plain),
        (&["*/*"], DiscoveryForm::Plain),
        (&[v2, v2beta1, "application/json"], DiscoveryForm::AggregatedV2),
        (&[&nopeer, v2, "application/json"], DiscoveryForm::AggregatedV2),
        (&[shuffled], DiscoveryForm::AggregatedV2),
        // client-go 0.26 to 0.29: a v2 document would show it nothing
        (&[v2beta1, "application/json"], DiscoveryForm::Plain),
        (&[v2beta1], DiscoveryForm::Plain),
        (&["application/vnd.kubernetes.protobuf"], DiscoveryForm::Plain),
        (&["application/json;g=other;v=v2;as=APIGroupDiscoveryList,application/json"], DiscoveryForm::Plain),
        (&["application/json;v=v2;as=APIGroupDiscoveryList"], DiscoveryForm::Plain),
    ] {
        assert_eq!(discovery(&accept(lines)), expected, "{lines:?}");
    }
}

#[test]
fn errors_are_protobuf_for_those_who_read_nothing_else() {
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    for (lines, expected) in [
        (&[][..], StatusForm::Json),
        (&[""], StatusForm::Json),
        (&["*/*"], StatusForm::Json),
        (&["text/html"], StatusForm::Json),
        (&[PROTOBUF], StatusForm::Protobuf),
        (&["application/vnd.kubernetes.protobuf;stream=watch"], StatusForm::Protobuf),
        (&["application/vnd.kubernetes.protobuf, application/cbor"], StatusForm::Protobuf),
        (&["application/json;q=0", PROTOBUF], StatusForm::Protobuf),
        (&["application/vnd.kubernetes.protobuf,application/json;q=0.1"], StatusForm::Json),
        (&[PROTOBUF, "application/*"], StatusForm::Json),
        (&["application/vnd.kubernetes.protobuf, */*"], StatusForm::Json),
    ] {
        assert_eq!(status(&accept(lines)).pick(), expected, "{lines:?}");
    }
}
