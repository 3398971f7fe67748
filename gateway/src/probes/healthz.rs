//! One question to one member.

use std::error::Error;
use std::fmt::Display;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, USER_AGENT};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Collected, Empty, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use net::tls;
use net::words::causes;
use tokio::time::timeout;

use super::reason::Reason;
use crate::clusters::Cluster;
use crate::upstream::ConnectError;

/// `/healthz` answers with two bytes; of anything else, this much is read.
const ANSWER_BYTES: usize = 1024;

/// What a probe found.
#[derive(Debug, PartialEq, Eq)]
pub enum Finding {
    Healthy,
    Unhealthy {
        reason: Reason,
        /// For the log: all that is known.
        detail: String,
    },
    /// Too many dials failed just now for another to be made.
    NotAsked,
}

/// Asks within `patience`.
pub async fn ask(cluster: &Cluster, patience: Duration) -> Finding {
    match timeout(patience, answer(cluster)).await {
        Ok(Ok(())) => Finding::Healthy,
        Ok(Err(finding)) => finding,
        Err(_) => unhealthy(Reason::ConnectionTimeout, format_args!("no answer within {patience:?}")),
    }
}

async fn answer(cluster: &Cluster) -> Result<(), Finding> {
    let held =
        cluster.acquire().await.map_err(|error| unhealthy(Reason::unknown("no credential was issued"), error))?;
    let target = held.upstream().target();
    let transport = target.connect_any(None).await.map_err(|error| undialled(&error))?;
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
        let (mut sender, connection) = handshake.await.map_err(lost)?;
        while_open(connection, async { judge(sender.send_request(request).await.map_err(lost)?).await }).await
    } else {
        request.headers_mut().insert(HOST, target.host_header.clone());
        let (mut sender, connection) = http1::handshake(TokioIo::new(transport)).await.map_err(lost)?;
        while_open(connection, async { judge(sender.send_request(request).await.map_err(lost)?).await }).await
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
        Err(error) = connection => Err(lost(error)),
    }
}

async fn judge(answer: Response<Incoming>) -> Result<(), Finding> {
    let status = answer.status();
    if status != StatusCode::OK {
        return Err(unknown(format_args!("/healthz answers {status}")));
    }
    match Limited::new(answer.into_body(), ANSWER_BYTES).collect().await.map(Collected::to_bytes) {
        Ok(body) if body == "ok" => Ok(()),
        Err(error) if !error.is::<LengthLimitError>() => Err(broken(&*error)),
        Ok(_) | Err(_) => Err(unknown("/healthz does not answer \"ok\"")),
    }
}

fn undialled(error: &ConnectError) -> Finding {
    Reason::of_dial(error).map_or(Finding::NotAsked, |reason| unhealthy(reason, error))
}

#[expect(clippy::needless_pass_by_value, reason = "an error to be mapped")]
fn lost(error: hyper::Error) -> Finding {
    broken(&error)
}

/// The exchange ended before the answer did; in which of the ways there are for that is for the
/// log.
fn broken(error: &(dyn Error + 'static)) -> Finding {
    let spoken = error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse);
    let what =
        if spoken { "/healthz is not answered in HTTP" } else { "the connection broke before /healthz was answered" };
    unhealthy(Reason::unknown(what), causes(error))
}

fn unhealthy(reason: Reason, detail: impl Display) -> Finding {
    Finding::Unhealthy { reason, detail: detail.to_string() }
}

/// A reason that tells everything.
fn unknown(what: impl Display) -> Finding {
    unhealthy(Reason::unknown(&what), what)
}
