//! Golden documents, the behaviour that a hub's cache needs, and a description of every field.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, IF_NONE_MATCH, VARY};
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::*;
use crate::health::Health;
use crate::route::{RawRequest, Route, parse};

/// 2026-11-21T10:00:00Z
const NOW: Duration = Duration::from_hours(498_682);

fn ask(
    asked: OpenApi,
    headers: &[(http::HeaderName, &str)],
    query: Option<&str>,
) -> Result<Response<Bytes>, NotAcceptable> {
    let headers: HeaderMap =
        headers.iter().map(|(name, value)| (name.clone(), value.parse().expect("header"))).collect();
    respond(asked, &headers, query, SystemTime::UNIX_EPOCH + NOW)
}

fn json_of(asked: OpenApi) -> Value {
    serde_json::from_slice(ask(asked, &[], None).expect("acceptable").body()).expect("JSON")
}

#[test]
fn golden_documents() {
    insta::assert_json_snapshot!("root", json_of(OpenApi::Root));
    insta::assert_json_snapshot!("document", json_of(OpenApi::Document));
    insta::assert_json_snapshot!("whole_root", json_of(OpenApi::WholeRoot));
    insta::assert_json_snapshot!("karmada_document", json_of(OpenApi::KarmadaDocument));
}

#[test]
fn the_root_leads_to_the_document_and_publishes_nothing_else() {
    let root = json_of(OpenApi::Root);
    let paths = root["paths"].as_object().expect("paths");
    assert_eq!(paths.keys().collect::<Vec<_>>(), ["apis/cluster.core.oam.dev/v1alpha1"]);
    let url = paths.values().next().expect("one")["serverRelativeURL"].as_str().expect("a URL");
    let (path, query) = url.split_once('?').expect("a hash");
    assert_eq!(parse(RawRequest::new(&http::Method::GET, path, Some(query))).route, Route::OpenApi(OpenApi::Document));
    let answer = ask(OpenApi::Document, &[], Some(query)).expect("acceptable");
    assert_eq!(answer.headers()[CACHE_CONTROL], "public, immutable");
    assert_eq!(answer.headers()[EXPIRES], "Sun, 21 Nov 2027 10:00:00 GMT");
    assert_eq!(answer.headers()[VARY], "Accept");
    assert_eq!(answer.headers()[ETAG], format!("\"{}\"", query.strip_prefix("hash=").expect("the hash")));
}

#[test]
fn a_stale_hash_gets_the_current_document_that_nobody_keeps() {
    for query in [None, Some(""), Some("hash="), Some("hash=0123456789ABCDEF")] {
        let answer = ask(OpenApi::Document, &[], query).expect("acceptable");
        assert_eq!(answer.status(), 200, "{query:?}");
        assert_eq!(answer.headers()[CACHE_CONTROL], "no-cache, private", "{query:?}");
        assert_eq!(answer.headers().get(EXPIRES), None, "{query:?}");
        assert!(!answer.body().is_empty());
    }
}

#[test]
fn unchanged_documents_are_not_sent_again() {
    for asked in [OpenApi::Root, OpenApi::WholeRoot, OpenApi::Document, OpenApi::KarmadaDocument] {
        let tag = ask(asked, &[], None).expect("acceptable").headers()[ETAG].clone();
        let again = ask(asked, &[(IF_NONE_MATCH, tag.to_str().expect("text"))], None).expect("acceptable");
        assert_eq!((again.status(), again.body().len()), (StatusCode::NOT_MODIFIED, 0));
        assert_eq!(again.headers()[ETAG], tag);
        assert_eq!(ask(asked, &[(IF_NONE_MATCH, "\"x\"")], None).expect("acceptable").status(), 200);
    }
}

#[test]
fn only_json_is_written() {
    const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
    for accept in ["application/json", "*/*", "application/*", &format!("{PROTOBUF},application/json;q=0.5"), ""] {
        let answer = ask(OpenApi::Document, &[(ACCEPT, accept)], None).expect(accept);
        assert_eq!(answer.headers()[CONTENT_TYPE], "application/json");
    }
    for accept in [PROTOBUF, "text/html"] {
        assert_eq!(ask(OpenApi::Document, &[(ACCEPT, accept)], None).map(|_| ()), Err(NotAcceptable), "{accept}");
    }
    // A hub asks for the list with any Accept header, and must get it.
    assert_eq!(ask(OpenApi::Root, &[(ACCEPT, PROTOBUF)], None).expect("JSON all the same").status(), 200);
}

#[test]
fn every_advertised_verb_has_an_operation_of_its_kind() {
    operations(&OURS, &json_of(OpenApi::Document));
    operations(&KARMADA, &json_of(OpenApi::KarmadaDocument));
}

fn operations(api: &Api, document: &Value) {
    let mut ids = BTreeSet::new();
    for resource in api.group.resources {
        let collection = format!("/apis/{}/{}", api.group.api_version, resource.plural);
        let object = format!("{collection}/{{name}}");
        let of_resource = resource.verbs.iter().map(|verb| match *verb {
            // The list's parameters include the watch.
            "list" | "watch" => (&collection, "get", "list"),
            "create" => (&collection, "post", "post"),
            "update" => (&object, "put", "put"),
            verb => (&object, verb, verb),
        });
        let of_resource: BTreeSet<_> = of_resource.collect();
        let of_resource = of_resource.into_iter();
        let mut expected: Vec<_> =
            of_resource.map(|(path, method, action)| (path.clone(), method, action, resource.kind)).collect();
        for subresource in resource.subresources {
            for verb in subresource.verbs {
                let (method, action) = match *verb {
                    "create" => ("post", "post"),
                    "update" => ("put", "put"),
                    verb => (verb, verb),
                };
                let action = if subresource.name == "proxy" { "connect" } else { action };
                let path = format!("{collection}/{{name}}/{}", subresource.name);
                expected.push((path, method, action, subresource.kind));
            }
        }
        for (path, method, action, kind) in expected {
            let operation = &document["paths"][&path][method];
            assert_eq!(operation["x-kubernetes-action"], action, "{method} {path}");
            assert_eq!(
                operation["x-kubernetes-group-version-kind"],
                schema::group_version_kind(api, kind),
                "{method} {path}"
            );
            assert!(ids.insert(operation["operationId"].to_string()), "{method} {path}: the id is taken");
        }
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_field_is_described() {
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    for document in [json_of(OpenApi::Document), json_of(OpenApi::KarmadaDocument)] {
        described(&document, references);
    }
}

fn described(document: &Value, references: fn(&Value, &mut BTreeSet<String>)) {
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    let mut found = BTreeSet::new();
    references(document, &mut found);
    for reference in found {
        let name = reference.strip_prefix("#/components/schemas/").expect("a schema");
        assert!(schemas.contains_key(name), "{name}");
    }
    for (name, schema) in schemas {
        for (field, property) in schema["properties"].as_object().expect("properties") {
            assert!(property["description"].as_str().is_some_and(|text| text.len() > 10), "{name}.{field}");
        }
    }
}

/// Fails for every field of `value` that the schema lacks.
fn check(document: &Value, schema: &Value, value: &Value, place: &str) {
    let schema = schema["allOf"].get(0).unwrap_or(schema);
    let resolved = match schema["$ref"].as_str() {
        Some(reference) => &document["components"]["schemas"][reference.rsplit('/').next().expect("a name")],
        None => schema,
    };
    match value {
        Value::Object(fields) if resolved["additionalProperties"].is_null() => {
            for (name, value) in fields {
                let property = &resolved["properties"][name];
                assert!(!property.is_null(), "{place}.{name} is served but not described");
                check(document, property, value, &format!("{place}.{name}"));
            }
            for name in resolved["required"].as_array().into_iter().flatten() {
                assert!(fields.contains_key(name.as_str().expect("a name")), "{place}.{name} is required but absent");
            }
        }
        Value::Object(_) => assert_eq!(resolved["type"], "object", "{place}"),
        Value::Array(items) => items.iter().for_each(|item| check(document, &resolved["items"], item, place)),
        Value::String(_) => assert_eq!(resolved["type"], "string", "{place}"),
        Value::Bool(_) => assert_eq!(resolved["type"], "boolean", "{place}"),
        Value::Number(_) => assert_eq!(resolved["type"], "integer", "{place}"),
        Value::Null => assert_eq!(resolved["nullable"], true, "{place}"),
    }
}

#[test]
fn what_is_served_is_what_is_described() {
    use crate::accept::Representation;
    use crate::cluster_gateway::{ClusterGateway, Credentials};
    use crate::samples::{certificate_cluster, proxied_cluster, token_cluster};
    use crate::served::{Form, ListMeta};
    use crate::table::IncludeObject;
    use crate::virtual_cluster::VirtualCluster;

    let document = json_of(OpenApi::Document);
    let karmada = json_of(OpenApi::KarmadaDocument);
    let health = Health { healthy: true, healthy_reason: "checked".into() };
    let specs = [token_cluster("c1"), certificate_cluster("c2"), proxied_cluster("c3")];
    let clusters: Vec<_> =
        specs.iter().map(|spec| ClusterGateway::new(spec, health.clone(), Credentials::Exposed)).collect();
    let form = Form { representation: Representation::Json, include: IncludeObject::Metadata };
    let metadata = ListMeta { resource_version: "1", next: Some("token"), remaining_item_count: Some(1) };
    let served: Value = serde_json::from_slice(&form.list(&clusters, metadata)).expect("JSON");
    check(&document, &schema::reference(&OURS, "ClusterGatewayList"), &served, "ClusterGatewayList");

    let virtual_clusters = [VirtualCluster::local(), aliased()];
    let served: Value = serde_json::from_slice(&form.list(&virtual_clusters, metadata)).expect("JSON");
    check(&document, &schema::reference(&OURS, "VirtualClusterList"), &served, "VirtualClusterList");

    let kept = r#"{"annotations":{"a":"b"},"spec":{"id":"x","taints":[{"key":"a","effect":"NoExecute","timeAdded":"2026"}],
        "zones":["a"],"secretRef":{"namespace":"a","name":"b"}},"status":{"kubernetesVersion":"v1"}}"#;
    let specs = specs.map(|spec| crate::secret::ClusterSpec { karmada: Some(kept.to_owned()), ..spec });
    let now = SystemTime::UNIX_EPOCH + NOW;
    let clusters = specs.each_ref().map(|spec| crate::karmada_cluster::cluster::Cluster::new(spec, &health, now));
    let served: Value = serde_json::from_slice(&form.list(&clusters, metadata)).expect("JSON");
    check(&karmada, &schema::reference(&KARMADA, "ClusterList"), &served, "ClusterList");

    let name = crate::cluster_name::ClusterName::parse("c1").expect("valid");
    let served = crate::traffic::ClusterTraffic::new(&name, traffic()).to_json();
    let served: Value = serde_json::from_slice(&served).expect("JSON");
    check(&document, &schema::reference(&OURS, "ClusterTraffic"), &served, "ClusterTraffic");
}

/// An object with every field.
fn traffic() -> crate::traffic::Traffic {
    use crate::traffic::{Bucket, Duration, Failures, RecentFailure, Requests, Traffic, TunnelHop, TunnelOpen};
    let bucket = |most_micros| Bucket { most_micros, count: 1 };
    Traffic {
        requests: vec![Requests::default()],
        failures: vec![Failures::default()],
        duration: Duration { sum_micros: 1, buckets: vec![bucket(Some(1_000)), bucket(None)] },
        recent_failures: vec![RecentFailure::default()],
        tunnel_open: Some(TunnelOpen {
            hops: vec![TunnelHop {
                round_trip_micros: Some(1),
                agent_micros: Some(1),
                dial_micros: Some(1),
                ..TunnelHop::default()
            }],
            ..TunnelOpen::default()
        }),
        ..Traffic::default()
    }
}

/// A virtual cluster with every field.
fn aliased() -> crate::virtual_cluster::VirtualCluster {
    use crate::secret::{ALIAS_ANNOTATION, CREDENTIAL_TYPE_LABEL, SecretView};
    let text = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let secret = SecretView {
        name: "c1",
        uid: "1",
        resource_version: "1",
        creation_timestamp: Some("2026-11-21T10:00:00Z"),
        labels: &[text(CREDENTIAL_TYPE_LABEL, "Dynamic"), text("tier", "a")].into(),
        annotations: &[text(ALIAS_ANNOTATION, "Berlin")].into(),
        data: &[("endpoint".to_owned(), b"https://m:6443".to_vec())].into(),
    };
    crate::virtual_cluster::VirtualCluster::of_secret(&secret).expect("a cluster")
}
