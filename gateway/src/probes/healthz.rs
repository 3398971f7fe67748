//! Probes one member once.

use std::error::Error;
use std::fmt::Display;
use std::time::Duration;

use http::header::{AUTHORIZATION, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body_util::{Full, LengthLimitError};
use net::words::causes;
use tokio::time::timeout;

use super::reason::Reason;
use crate::clusters::Cluster;
use crate::upstream::ConnectError;
use crate::upstream::aside::{self, Unanswered};

/// `/healthz` responds with two bytes. This much is read of any other response.
const ANSWER_BYTES: usize = 1024;

/// The result of a probe.
#[derive(Debug, PartialEq, Eq)]
pub enum Finding {
    Healthy,
    Unhealthy {
        reason: Reason,
        /// All details, for the log.
        detail: String,
    },
    /// Too many dials have failed recently for another try.
    NotAsked,
}

/// Asks with a timeout of `patience`.
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
    let mut request = Request::get(format!("{}/healthz", cluster.endpoint().base_path))
        .header(USER_AGENT, "cluster-gateway health probe")
        .body(Full::default())
        .map_err(unknown)?;
    if let Some(authorization) = held.authorization() {
        request.headers_mut().insert(AUTHORIZATION, authorization.clone());
    }
    judge(aside::exchange(held.upstream().target(), request, ANSWER_BYTES).await.map_err(unanswered)?)
}

fn judge(answer: Response<aside::Read>) -> Result<(), Finding> {
    let status = answer.status();
    if status != StatusCode::OK {
        return Err(unknown(format_args!("/healthz answers {status}")));
    }
    match answer.into_body() {
        Ok(body) if body == "ok" => Ok(()),
        Err(error) if !error.is::<LengthLimitError>() => Err(broken(&*error)),
        Ok(_) | Err(_) => Err(unknown("/healthz does not answer \"ok\"")),
    }
}

fn unanswered(error: Unanswered) -> Finding {
    match error {
        Unanswered::Connect(error) => undialled(&error),
        Unanswered::Broken(error) => broken(&error),
        Unanswered::Unfit(error) => unknown(error),
    }
}

fn undialled(error: &ConnectError) -> Finding {
    Reason::of_dial(error).map_or(Finding::NotAsked, |reason| unhealthy(reason, error))
}

/// The exchange ended before the response did. Only the log has the exact way.
fn broken(error: &(dyn Error + 'static)) -> Finding {
    let spoken = error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse);
    let what =
        if spoken { "/healthz is not answered in HTTP" } else { "the connection broke before /healthz was answered" };
    unhealthy(Reason::unknown(what), causes(error))
}

fn unhealthy(reason: Reason, detail: impl Display) -> Finding {
    Finding::Unhealthy { reason, detail: detail.to_string() }
}

/// A reason that is also the whole detail.
fn unknown(what: impl Display) -> Finding {
    unhealthy(Reason::unknown(&what), what)
}
