//! The member over real TLS, by both HTTP versions, as a client meets it.

use anyhow::{Context as _, Result, ensure};
use kit::{
    client::{Client, H1Connection, H2Connection, H2Response},
    pki::Trust,
};
use serde_json::{Value, json};

use super::*;

/// Seconds between two events of a watch.
const BEATS_PER_STEP: usize = 2;
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

#[derive(Clone, Copy)]
enum Version {
    Http1,
    Http2,
}

/// A streamed answer, by either version.
enum Stream {
    Http1(H1Connection),
    Http2(#[expect(dead_code, reason = "the stream lives as long as it")] H2Connection, H2Response),
}

async fn member() -> Member {
    Member::start(&BERLIN, SecretString::from("sesame"), Pace::Manual).await
}

fn client(member: &Member) -> Client {
    Client::new(member.address(), Trust::Authority(&member.authority), None)
}

async fn send(member: &Member, version: Version, method: &str, path: &str, accept: &str) -> Result<(u16, Value)> {
    send_as(member, version, method, path, &[("authorization", "Bearer sesame"), ("accept", accept)]).await
}

async fn send_as(
    member: &Member,
    version: Version,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<(u16, Value)> {
    Ok(match version {
        Version::Http1 => {
            let mut connection = client(member).h1().await?;
            let (head, body) = connection.call(method, path, headers, b"").await?;
            (head.status, serde_json::from_slice(&body)?)
        }
        Version::Http2 => {
            let connection = client(member).h2().await?;
            let answer = connection.call(method.parse()?, path, headers, "").await?;
            (answer.status(), answer.json().await)
        }
    })
}

async fn get(member: &Member, path: &str) -> Result<(u16, Value)> {
    send(member, Version::Http2, "GET", path, "application/json").await
}

async fn open(member: &Member, version: Version, path: &str) -> Result<Stream> {
    let headers = [("authorization", "Bearer sesame"), ("accept", "application/json, */*")];
    Ok(match version {
        Version::Http1 => {
            let mut connection = client(member).h1().await?;
            connection.request("GET", path, &headers, b"").await?;
            assert_eq!(connection.head().await?.status, 200);
            Stream::Http1(connection)
        }
        Version::Http2 => {
            let connection = client(member).h2().await?;
            let answer = connection.get(path, &headers).await?;
            assert_eq!(answer.status(), 200);
            Stream::Http2(connection, answer)
        }
    })
}

impl Stream {
    /// The next piece of a streamed answer.
    async fn piece(&mut self) -> Result<String> {
        let bytes = match self {
            Self::Http1(connection) => connection.chunk().await?.context("the stream ended")?,
            Self::Http2(_, answer) => answer.body.chunk().await.context("the stream ended")??,
        };
        Ok(String::from_utf8(bytes.to_vec())?)
    }
}

#[tokio::test]
async fn only_the_token_opens_the_door() -> Result<()> {
    let member = member().await;
    for value in [None, Some("Bearer wrong"), Some("Bearer sesame2"), Some("Basic sesame")] {
        let headers: Vec<_> = value.map(|value| ("authorization", value)).into_iter().collect();
        let (status, body) = send_as(&member, Version::Http1, "GET", "/version", &headers).await?;
        assert_eq!((status, &body["reason"]), (401, &json!("Unauthorized")), "{value:?}");
    }
    let (status, body) = get(&member, "/version").await?;
    assert_eq!((status, &body["gitVersion"]), (200, &json!(member.version())));
    assert_eq!((&body["major"], &body["minor"]), (&json!("1"), &json!("32")));
    Ok(())
}

#[tokio::test]
async fn lists_come_plain_or_as_tables_by_both_versions() -> Result<()> {
    let member = member().await;
    for version in [Version::Http1, Version::Http2] {
        let path = "/api/v1/namespaces/shop/pods?labelSelector=app%3Dcart&limit=500";
        let (_, plain) = send(&member, version, "GET", path, "application/json").await?;
        let (_, table) = send(&member, version, "GET", path, TABLE).await?;
        assert_eq!((&plain["kind"], plain["items"].as_array().map(Vec::len)), (&json!("PodList"), Some(2)));
        assert_eq!((&table["kind"], table["rows"].as_array().map(Vec::len)), (&json!("Table"), Some(2)));
        assert_eq!(table["rows"][0]["cells"][1], "2/2");
        assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(plain["metadata"]["resourceVersion"], table["metadata"]["resourceVersion"]);
        let (_, whole) = send(&member, version, "GET", &format!("{path}&includeObject=Object"), TABLE).await?;
        assert_eq!(whole["rows"][0]["object"], plain["items"][0]);
    }
    let (_, events) = get(&member, "/api/v1/events?fieldSelector=involvedObject.name%3Dweb").await?;
    assert_eq!(events["items"], json!([]));
    Ok(())
}

#[tokio::test]
async fn a_client_gets_the_first_form_of_its_choice_that_a_member_has() -> Result<()> {
    let member = member().await;
    let discovery = |version: &str| {
        format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList,application/json")
    };
    let meta = |kind: &str, version: &str| format!("application/json;as={kind};v={version};g=meta.k8s.io");
    let (list, one) = ("/api/v1/nodes", "/api/v1/nodes/berlin-a");
    for (path, accept, kind, api_version) in [
        ("/api", discovery("v2"), "APIGroupDiscoveryList", Some("apidiscovery.k8s.io/v2")),
        // A client of the beta gets plain discovery.
        ("/api", discovery("v2beta1"), "APIVersions", None),
        (list, "*/*".to_owned(), "NodeList", Some("v1")),
        (list, "application/vnd.kubernetes.protobuf,application/json".to_owned(), "NodeList", Some("v1")),
        (list, meta("Table", "v1beta1"), "Table", Some("meta.k8s.io/v1beta1")),
        (list, meta("PartialObjectMetadataList", "v1"), "PartialObjectMetadataList", Some("meta.k8s.io/v1")),
        (one, meta("PartialObjectMetadata", "v1"), "PartialObjectMetadata", Some("meta.k8s.io/v1")),
    ] {
        let (status, body) = send(&member, Version::Http2, "GET", path, &accept).await?;
        let form = (body["kind"].as_str(), body["apiVersion"].as_str());
        assert_eq!((status, form), (200, (Some(kind), api_version)), "{path} as {accept}");
    }
    let (_, names) = send(&member, Version::Http2, "GET", list, &meta("PartialObjectMetadataList", "v1")).await?;
    assert_eq!(names["items"][0]["metadata"]["name"], "berlin-a");
    assert_eq!(
        (&names["items"][0]["kind"], &names["items"][0]["spec"]),
        (&json!("PartialObjectMetadata"), &json!(null))
    );
    Ok(())
}

#[tokio::test]
async fn one_object_is_read_by_its_name() -> Result<()> {
    let member = member().await;
    for path in ["/api/v1/nodes/berlin-a", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/berlin-a"] {
        let (status, plain) = get(&member, path).await?;
        assert_eq!((status, &plain["metadata"]["name"]), (200, &json!("berlin-a")), "{path}");
        let (_, table) = send(&member, Version::Http2, "GET", path, TABLE).await?;
        assert_eq!(table["rows"][0]["cells"][0], "berlin-a", "{path}");
        let missing = path.replace("berlin-a", "none");
        let (status, body) = get(&member, &missing).await?;
        let resource = if path.starts_with("/api/") { "nodes" } else { "leases.coordination.k8s.io" };
        assert_eq!((status, &body["message"]), (404, &json!(format!("{resource} \"none\" not found"))));
    }
    Ok(())
}

#[tokio::test]
async fn refusals_are_statuses() -> Result<()> {
    let member = member().await;
    let pod = "/api/v1/namespaces/shop/pods/none";
    let all = "*/*";
    for (method, path, accept, code) in [
        ("GET", "/api/v1/namespaces/shop/pods?labelSelector=%28", all, 400),
        ("GET", "/api/v1/pods?fieldSelector=spec.color%3Dred", all, 400),
        ("GET", "/api/v1/pods?watch=1&resourceVersion=x", all, 400),
        ("GET", pod, all, 404),
        ("GET", "/apis/apps/v1/deployments", all, 404),
        ("GET", "/openapi/v2", all, 404),
        ("DELETE", pod, all, 405),
        ("GET", pod, "application/vnd.kubernetes.protobuf", 406),
        ("GET", "/api/v1/pods?watch=1&resourceVersion=1", all, 410),
        ("GET", "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", all, 422),
        ("POST", "/api/v1/namespaces/shop/pods/none/exec?command=sh", all, 501),
    ] {
        let (status, body) = send(&member, Version::Http2, method, path, accept).await?;
        assert_eq!((status, &body["kind"], &body["code"]), (code, &json!("Status"), &json!(code)), "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn a_watch_shows_the_life_of_the_member() -> Result<()> {
    let member = member().await;
    for version in [Version::Http1, Version::Http2] {
        let (_, list) = get(&member, "/api/v1/namespaces/default/pods").await?;
        let since = list["metadata"]["resourceVersion"].as_str().context("a list has a version")?;
        let path = format!("/api/v1/namespaces/default/pods?watch=true&resourceVersion={since}");
        let mut watch = open(&member, version, &path).await?;
        let mut running = open(&member, version, &format!("{path}&fieldSelector=status.phase%3DRunning")).await?;
        let mut seen = Vec::new();
        for _ in 0..4 {
            (0..BEATS_PER_STEP).for_each(|_| member.beat());
            let event: Value = serde_json::from_str(&watch.piece().await?)?;
            seen.push((event["type"].clone(), event["object"]["status"]["phase"].clone()));
        }
        let expected =
            [("ADDED", "Pending"), ("MODIFIED", "Running"), ("MODIFIED", "Succeeded"), ("DELETED", "Succeeded")];
        assert_eq!(seen, expected.map(|(kind, phase)| (json!(kind), json!(phase))));
        let mut text = String::new();
        while text.lines().count() < 2 {
            text += &running.piece().await?;
        }
        let events: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let kinds: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
        assert_eq!(kinds, ["ADDED", "DELETED"], "a pod that stops matching leaves the watch");
    }
    Ok(())
}

#[tokio::test]
async fn a_followed_log_arrives_line_by_line() -> Result<()> {
    let member = member().await;
    let (_, pods) = get(&member, "/api/v1/namespaces/default/pods?labelSelector=app%3Dcache").await?;
    let name = pods["items"][0]["metadata"]["name"].as_str().context("berlin has a cache")?;
    let path = format!("/api/v1/namespaces/default/pods/{name}/log?follow=true&tailLines=2");
    for version in [Version::Http1, Version::Http2] {
        let mut log = open(&member, version, &path).await?;
        assert_eq!(log.piece().await?.lines().count(), 2);
        for _ in 0..3 {
            member.beat();
            let text = log.piece().await?;
            ensure!(text.lines().count() == 1, "one second, one line: {text:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_log_of_a_pod_ends_with_the_pod_and_begins_with_its_start() -> Result<()> {
    let member = member().await;
    let path = "/api/v1/namespaces/default/pods/report-0001/log?follow=true&tailLines=1";
    (0..BEATS_PER_STEP).for_each(|_| member.beat());
    let (status, body) = get(&member, path).await?;
    let message = body["message"].as_str().context("a Status")?;
    assert!(status == 400 && message.contains("waiting to start: ContainerCreating"), "{status}: {message}");
    (0..BEATS_PER_STEP).for_each(|_| member.beat());
    let mut log = open(&member, Version::Http2, path).await?;
    log.piece().await?;
    (0..BEATS_PER_STEP).for_each(|_| member.beat());
    let end = loop {
        match log.piece().await {
            Ok(piece) => ensure!(piece.is_empty(), "nothing more is said: {piece:?}"),
            Err(end) => break end,
        }
    };
    assert_eq!(end.to_string(), "the stream ended");
    Ok(())
}
