//! Requests that are not for a member, sent to Karmada's own server, to the gateway, and to the
//! hub.

use hub_tests::http::Client;
use hub_tests::karmada::Karmada;
use hub_tests::prelude::*;
use hub_tests::product::Product;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const NEW: &str = r#"{"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "oslo"},
    "spec": {"syncMode": "Pull"}}"#;
const BAD: &str = r#"{"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "Oslo"}}"#;

/// Method, path after the group's version, `Accept`, body.
const REQUESTS: [(&str, &str, &str, &str); 20] = [
    ("GET", "/clusters", JSON, ""),
    ("GET", "/clusters/", JSON, ""),
    ("GET", "/clusters", TABLE, ""),
    ("GET", "/clusters?fieldSelector=metadata.name%3Dbeside-berlin", YAML, ""),
    ("GET", "/clusters/beside-berlin", JSON, ""),
    ("GET", "/clusters/beside-berlin", YAML, ""),
    ("GET", "/clusters/beside-berlin", PROTOBUF, ""),
    ("GET", "/clusters/beside-berlin", TABLE, ""),
    ("GET", "/clusters/beside-berlin/status", JSON, ""),
    ("HEAD", "/clusters/beside-berlin", JSON, ""),
    ("GET", "/clusters/nowhere", JSON, ""),
    ("GET", "/clusters?watch=true&timeoutSeconds=1&resourceVersion=0", JSON, ""),
    ("GET", "/clusters?watch=x&resourceVersion=x", JSON, ""),
    ("POST", "/clusters?dryRun=All", JSON, NEW),
    ("POST", "/clusters?dryRun=All", JSON, BAD),
    ("POST", "/clusters", JSON, "{"),
    ("PATCH", "/clusters/beside-berlin?dryRun=All", JSON, r#"{"spec": {"region": "eu"}}"#),
    ("DELETE", "/clusters/nowhere", JSON, ""),
    ("GET", "/nothing", JSON, ""),
    ("GET", "", JSON, ""),
];

/// Documents that the hub generates itself.
const DOCUMENTS: [(&str, &str); 4] = [
    ("/apis/cluster.karmada.io", JSON),
    ("/openapi/v3/apis/cluster.karmada.io/v1alpha1", JSON),
    ("/openapi/v2", JSON),
    ("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"),
];

pub(super) fn answers(testbed: &Testbed, karmada: &Karmada, gateway: &Product) -> Result<()> {
    let admin = Some(testbed.hub.server.admin());
    let theirs = karmada.client(admin);
    let through_us = [("the gateway", gateway.client(admin)), ("the hub", testbed.hub.server.client(admin))];
    for (method, rest, accept, body) in REQUESTS {
        let path = format!("/apis/cluster.karmada.io/v1alpha1{rest}");
        let expected = answer(&theirs, method, &path, accept, body)?;
        for (name, client) in &through_us {
            let found = answer(client, method, &path, accept, body)?;
            ensure!(found == expected, "{method} {path} as {accept} by {name}: {found:?} in place of {expected:?}");
        }
    }
    let [(_, gateway), _] = &through_us;
    for (path, accept) in DOCUMENTS {
        let (found, expected) = (answer(gateway, "GET", path, accept, "")?, answer(&theirs, "GET", path, accept, "")?);
        let lengths = (found.2.len(), expected.2.len());
        ensure!(found == expected && found.0 == StatusCode::OK, "{path} as {accept}: {} {lengths:?}", found.0);
    }
    Ok(())
}

/// Status, media type and bytes, without what differs between two answers.
fn answer(
    client: &Client,
    method: &str,
    path: &str,
    accept: &str,
    body: &str,
) -> Result<(StatusCode, String, Vec<u8>)> {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { JSON };
    let headers = [("accept", accept), ("content-type", kind)];
    let response = client.send(&method.parse()?, path, &headers, Bytes::copy_from_slice(body.as_bytes()))?;
    let media_type =
        response.headers.get("content-type").map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned());
    let bytes = match std::str::from_utf8(&response.body) {
        Ok(text) => still(text).into_bytes(),
        Err(_) => response.body.to_vec(),
    };
    Ok((response.status, media_type.unwrap_or_default(), bytes))
}

/// JSON or YAML without versions of lists, ages, and fields that are generated for an object that
/// is not stored.
fn still(text: &str) -> String {
    const VARY: [&str; 4] = ["resourceVersion", "uid", "creationTimestamp", "time"];
    let pieces: Vec<&str> = text.split('"').collect();
    let still = pieces.iter().enumerate().map(|(at, piece)| {
        let is_value = at > 1 && pieces[at - 1].trim() == ":" && VARY.contains(&pieces[at - 2]);
        let is_in_yaml = at > 0 && VARY.iter().any(|key| pieces[at - 1].ends_with(&format!("{key}: ")));
        let is_age = piece.len() > 1
            && piece.ends_with(['s', 'm', 'h'])
            && piece.bytes().all(|byte| byte.is_ascii_digit() || b"smh".contains(&byte));
        if is_value || is_in_yaml || is_age { "..." } else { piece }
    });
    still.collect::<Vec<_>>().join("\"")
}
