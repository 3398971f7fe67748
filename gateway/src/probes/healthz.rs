//! One question to one member.

use std::fmt::Display;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, USER_AGENT};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use net::tls;
use tokio::time::timeout;

use crate::clusters::Cluster;
use crate::upstream::ConnectError;

/// `/healthz` answers with two bytes; of anything else, this much is read.
const ANSWER_BYTES: usize = 1024;

/// What a probe found.
#[derive(Debug, PartialEq, Eq)]
pub enum Finding {
    Healthy,
    /// Why, in the incumbent's words where it has some (`HealthyReasonType` in its `clustergateway_types.go`). Steady: the same
    /// cause gives the same text, or every probe would be news.
    Unhealthy(String),
    /// Too many dials failed just now for another to be made.
    NotAsked,
}

/// Asks within `patience`.
pub async fn ask(cluster: &Cluster, patience: Duration) -> Finding {
    match timeout(patience, answer(cluster)).await {
        Ok(Ok(())) => Finding::Healthy,
        Ok(Err(finding)) => finding,
        Err(_) => Finding::Unhealthy("ConnectionTimeout".into()),
    }
}

async fn answer(cluster: &Cluster) -> Result<(), Finding> {
    let held = cluster.acquire().await.map_err(|_| unknown("no credential was issued"))?;
    let target = held.upstream().target();
    let transport = target.connect_any().await.map_err(|error| undialled(&error))?;
    let mut request = Request::get(format!("{}/healthz", cluster.endpoint().base_path))
        .header(USER_AGENT, "cluster-gateway health probe")
        .body(Empty::<Bytes>::new())
        .map_err(unknown)?;
    if let Some(authorization) = held.authorization() {
        request.headers_mut().insert(AUTHORIZATION, authorization.clone());
    }
    if transport.alpn() == Some(tls::H2) {
        let mut uri = std::mem::take(request.uri_mut()).into_parts();
        (uri.scheme, uri.authority) = (Some(target.scheme.clone()), Some(target.authority.clone()));
        *request.uri_mut() = Uri::from_parts(uri).map_err(unknown)?;
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(transport));
        let (mut sender, connection) = handshake.await.map_err(unknown)?;
        while_open(connection, async { judge(sender.send_request(request).await.map_err(unknown)?).await }).await
    } else {
        request.headers_mut().insert(HOST, target.host_header.clone());
        let (mut sender, connection) = http1::handshake(TokioIo::new(transport)).await.map_err(unknown)?;
        while_open(connection, async { judge(sender.send_request(request).await.map_err(unknown)?).await }).await
    }
}

/// Drives the connection for as long as the exchange lasts.
async fn while_open(
    connection: impl Future<Output = hyper::Result<()>>,
    exchange: impl Future<Output = Result<(), Finding>>,
) -> Result<(), Finding> {
    tokio::select! {
        biased;
        answer = exchange => answer,
        // Ends with the exchange at the latest; an error before that is the exchange's too.
        Err(error) = connection => Err(unknown(error)),
    }
}

async fn judge(answer: Response<Incoming>) -> Result<(), Finding> {
    let status = answer.status();
    let body = Limited::new(answer.into_body(), ANSWER_BYTES).collect().await.map_err(unknown)?.to_bytes();
    match status {
        StatusCode::OK if body == "ok" => Ok(()),
        StatusCode::OK => Err(unknown("/healthz does not answer \"ok\"")),
        status => Err(unknown(format_args!("/healthz answers {status}"))),
    }
}

fn undialled(error: &ConnectError) -> Finding {
    match error {
        ConnectError::CircuitOpen(_) => Finding::NotAsked,
        error if error.is_timeout() => Finding::Unhealthy("ConnectionTimeout".into()),
        ConnectError::Tls { .. } => Finding::Unhealthy(format!("CertificateMismatch: {error}")),
        error => unknown(error),
    }
}

fn unknown(error: impl Display) -> Finding {
    Finding::Unhealthy(format!("Unknown: {error}"))
}
