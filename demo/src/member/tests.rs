//! The member over real TLS, by both HTTP versions, as a client meets it.

use ::http::{Request, Response, StatusCode};
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::{body::Incoming, client::conn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kit::pki::Trust;
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    },
};

use super::*;

const PATIENCE: Duration = Duration::from_secs(10);
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

#[derive(Clone, Copy)]
enum Version {
    Http1,
    Http2,
}

async fn member() -> Result<Member> {
    Ok(Member::start(&BERLIN, SecretString::from("sesame"), Pace::Manual).await?)
}

async fn send(member: &Member, version: Version, request: Request<Empty<Bytes>>) -> Result<Response<Incoming>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(member.ca_pem().as_bytes())?)?;
    let alpn = match version {
        Version::Http1 => pki::ALPN_H1,
        Version::Http2 => pki::ALPN_H2,
    };
    let connector = TlsConnector::from(pki::client_config(Trust::Roots(&roots), None, alpn));
    let socket = TcpStream::connect(member.address()).await?;
    let io = TokioIo::new(connector.connect(ServerName::try_from("127.0.0.1")?, socket).await?);
    let response = match version {
        Version::Http1 => {
            let (mut sender, connection) = conn::http1::handshake(io).await?;
            tokio::spawn(connection);
            timeout(PATIENCE, sender.send_request(request)).await??
        }
        Version::Http2 => {
            let (mut sender, connection) = conn::http2::handshake(TokioExecutor::new(), io).await?;
            tokio::spawn(connection);
            timeout(PATIENCE, sender.send_request(request)).await??
        }
    };
    Ok(response)
}

fn request(method: &str, path: &str, accept: &str) -> Result<Request<Empty<Bytes>>> {
    let request = Request::builder().method(method).uri(format!("https://member{path}")).header("host", "member");
    Ok(request.header("authorization", "Bearer sesame").header("accept", accept).body(Empty::new())?)
}

async fn open(member: &Member, version: Version, path: &str, accept: &str) -> Result<Response<Incoming>> {
    send(member, version, request("GET", path, accept)?).await
}

async fn json(response: Response<Incoming>) -> Result<(StatusCode, Value)> {
    let status = response.status();
    let body = timeout(PATIENCE, response.into_body().collect()).await??.to_bytes();
    Ok((status, serde_json::from_slice(&body)?))
}

async fn get(member: &Member, path: &str) -> Result<(StatusCode, Value)> {
    json(open(member, Version::Http2, path, "application/json").await?).await
}

/// The next piece of a streamed answer.
async fn piece(response: &mut Response<Incoming>) -> Result<String> {
    let frame = timeout(PATIENCE, response.frame()).await?.context("the stream ended")??;
    Ok(String::from_utf8(frame.into_data().ok().context("no trailers are sent")?.to_vec())?)
}

#[tokio::test]
async fn only_the_token_opens_the_door() -> Result<()> {
    let member = member().await?;
    for value in [None, Some("Bearer wrong"), Some("Bearer sesame2"), Some("Basic sesame")] {
        let mut request = request("GET", "/version", "*/*")?;
        request.headers_mut().remove("authorization");
        if let Some(value) = value {
            request.headers_mut().insert("authorization", value.parse()?);
        }
        let (status, body) = json(send(&member, Version::Http1, request).await?).await?;
        assert_eq!((status, &body["reason"]), (StatusCode::UNAUTHORIZED, &json!("Unauthorized")), "{value:?}");
    }
    let (status, body) = get(&member, "/version").await?;
    assert_eq!((status, &body["gitVersion"]), (StatusCode::OK, &json!(BERLIN.version)));
    Ok(())
}

#[tokio::test]
async fn lists_come_plain_or_as_tables_by_both_versions() -> Result<()> {
    let member = member().await?;
    for version in [Version::Http1, Version::Http2] {
        let path = "/api/v1/namespaces/shop/pods?labelSelector=app%3Dcart&limit=500";
        let (_, plain) = json(open(&member, version, path, "application/json").await?).await?;
        let (_, table) = json(open(&member, version, path, TABLE).await?).await?;
        assert_eq!((&plain["kind"], plain["items"].as_array().map(Vec::len)), (&json!("PodList"), Some(2)));
        assert_eq!((&table["kind"], table["rows"].as_array().map(Vec::len)), (&json!("Table"), Some(2)));
        assert_eq!(table["rows"][0]["cells"][1], "2/2");
        assert_eq!(plain["metadata"]["resourceVersion"], table["metadata"]["resourceVersion"]);
    }
    let (_, events) = get(&member, "/api/v1/events?fieldSelector=involvedObject.name%3Dweb").await?;
    assert_eq!(events["items"], json!([]));
    Ok(())
}

#[tokio::test]
async fn refusals_are_statuses() -> Result<()> {
    let member = member().await?;
    let pod = "/api/v1/namespaces/shop/pods/none";
    for (method, path, code) in [
        ("GET", "/api/v1/namespaces/shop/pods?labelSelector=%28", 400),
        ("GET", "/api/v1/pods?fieldSelector=spec.color%3Dred", 400),
        ("GET", pod, 404),
        ("GET", "/apis/apps/v1/deployments", 404),
        ("GET", "/openapi/v2", 404),
        ("DELETE", pod, 405),
        ("GET", "/api/v1/pods?watch=1&resourceVersion=1", 410),
        ("GET", "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", 422),
        ("POST", "/api/v1/namespaces/shop/pods/none/exec?command=sh", 501),
    ] {
        let (status, body) = json(send(&member, Version::Http2, request(method, path, "*/*")?).await?).await?;
        assert_eq!((status.as_u16(), &body["kind"], &body["code"]), (code, &json!("Status"), &json!(code)), "{path}");
    }
    let protobuf = open(&member, Version::Http2, pod, "application/vnd.kubernetes.protobuf").await?;
    assert_eq!(protobuf.status(), StatusCode::NOT_ACCEPTABLE);
    Ok(())
}

#[tokio::test]
async fn a_watch_shows_the_life_of_the_member() -> Result<()> {
    let member = member().await?;
    for version in [Version::Http1, Version::Http2] {
        let (_, list) = get(&member, "/api/v1/namespaces/default/pods").await?;
        let since = list["metadata"]["resourceVersion"].as_str().context("a list has a version")?;
        let path = format!("/api/v1/namespaces/default/pods?watch=true&resourceVersion={since}");
        let mut watch = open(&member, version, &path, "application/json").await?;
        assert_eq!(watch.status(), StatusCode::OK);
        let mut seen = Vec::new();
        for _ in 0..4 {
            (0..BEATS_PER_STEP).for_each(|_| member.beat());
            let event: Value = serde_json::from_str(&piece(&mut watch).await?)?;
            seen.push((event["type"].clone(), event["object"]["status"]["phase"].clone()));
        }
        let expected =
            [("ADDED", "Pending"), ("MODIFIED", "Running"), ("MODIFIED", "Succeeded"), ("DELETED", "Succeeded")];
        assert_eq!(seen, expected.map(|(kind, phase)| (json!(kind), json!(phase))));
    }
    Ok(())
}

#[tokio::test]
async fn a_followed_log_arrives_line_by_line() -> Result<()> {
    let member = member().await?;
    let (_, pods) = get(&member, "/api/v1/namespaces/default/pods?labelSelector=app%3Dcache").await?;
    let name = pods["items"][0]["metadata"]["name"].as_str().context("berlin has a cache")?;
    let path = format!("/api/v1/namespaces/default/pods/{name}/log?follow=true&tailLines=2");
    for version in [Version::Http1, Version::Http2] {
        let mut log = open(&member, version, &path, "application/json, */*").await?;
        assert_eq!(piece(&mut log).await?.lines().count(), 2);
        for _ in 0..3 {
            member.beat();
            let text = piece(&mut log).await?;
            ensure!(text.lines().count() == 1, "one second, one line: {text:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_stop_ends_open_streams_cleanly() -> Result<()> {
    let member = member().await?;
    let watch = open(&member, Version::Http2, "/api/v1/nodes?watch=true", "application/json").await?;
    let address = member.address();
    timeout(PATIENCE, member.stop()).await?;
    let body = timeout(PATIENCE, watch.into_body().collect()).await?.context("no reset, an end")?.to_bytes();
    assert_eq!(std::str::from_utf8(&body)?.lines().count(), BERLIN.nodes.len());
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    Ok(())
}
