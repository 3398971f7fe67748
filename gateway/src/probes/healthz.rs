//! One question to one member.

use std::fmt::Display;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, USER_AGENT};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use crate::clusters::{Cluster, Held};
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
    let transport = held.upstream().dial_upgrade().await.map_err(|error| undialled(&error))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(transport)).await.map_err(unknown)?;
    let asking = async {
        let answer = sender.send_request(request(cluster, &held)?).await.map_err(unknown)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES).collect().await;
        let body = body.map_err(unknown)?.to_bytes();
        match status {
            StatusCode::OK if body == "ok" => Ok(()),
            StatusCode::OK => Err(unknown("/healthz does not answer \"ok\"")),
            status => Err(unknown(format_args!("/healthz answers {status}"))),
        }
    };
    tokio::select! {
        biased;
        answer = asking => answer,
        // Ends with the answer at the latest; an error before it is the answer's too.
        Err(error) = connection => Err(unknown(error)),
    }
}

fn request(cluster: &Cluster, held: &Held<'_>) -> Result<Request<Empty<Bytes>>, Finding> {
    let mut request =
        Request::get(format!("{}/healthz", cluster.endpoint().base_path)).body(Empty::new()).map_err(unknown)?;
    let headers = request.headers_mut();
    headers.insert(HOST, held.upstream().target().host_header.clone());
    headers.insert(USER_AGENT, HeaderValue::from_static("cluster-gateway health probe"));
    if let Some(authorization) = held.authorization() {
        headers.insert(AUTHORIZATION, authorization.clone());
    }
    Ok(request)
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
