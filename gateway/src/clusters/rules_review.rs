//! Asks a member which users a cluster's credential may impersonate there, by a
//! `SelfSubjectRulesReview`.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use api::impersonable::{self, Impersonable, Untold};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Request, StatusCode};
use net::words::causes;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::cluster::Cluster;
use super::dynamic::NotIssued;
use crate::upstream::aside::{self, Unanswered};

/// Timeout of one question, including the dial.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer. A role with a rule for each of a thousand users has 200 KB.
const MOST_BYTES: usize = 1024 * 1024;

/// Why the users are unknown. The texts contain no secret.
#[derive(Debug, thiserror::Error)]
enum Unknown {
    #[error(transparent)]
    NoCredential(#[from] NotIssued),
    #[error(transparent)]
    NotSent(#[from] http::Error),
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    #[error("not within {PATIENCE:?}")]
    Late,
    #[error("the member answered {0}")]
    Refused(StatusCode),
    #[error("the answer cannot be read")]
    Unread(#[source] Box<dyn Error + Send + Sync>),
    #[error(transparent)]
    Unusable(#[from] Untold),
}

/// The users that `cluster`'s credential may impersonate. Asks on `runtime`, once for all that
/// wait.
pub async fn impersonable(cluster: &Arc<Cluster>, runtime: &Handle) -> Arc<Impersonable> {
    let asked = Arc::clone(cluster);
    cluster.rights().get(runtime, async move || review(&asked).await).await
}

async fn review(cluster: &Cluster) -> Option<Impersonable> {
    let answer = timeout(PATIENCE, ask(cluster)).await.unwrap_or(Err(Unknown::Late));
    let untold = |error: &Unknown| {
        tracing::debug!(
            cluster = cluster.name().as_str(),
            reason = causes(error),
            "the users and groups that its credential may impersonate are unknown: callers keep all their groups"
        );
    };
    answer.inspect_err(untold).ok()
}

async fn ask(cluster: &Cluster) -> Result<Impersonable, Unknown> {
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    let lease = cluster.acquire().await?;
    let mut request = Request::post(format!("{}{}", cluster.endpoint().base_path, impersonable::PATH))
        .header(USER_AGENT, "cluster-gateway")
        .header(ACCEPT, JSON)
        .header(CONTENT_TYPE, JSON)
        .body(impersonable::QUESTION.into())?;
    if let Some(authorization) = lease.authorization() {
        request.headers_mut().insert(AUTHORIZATION, authorization.clone());
    }
    let answer = aside::exchange(lease.upstream().target(), request, MOST_BYTES).await?;
    if !matches!(answer.status(), StatusCode::OK | StatusCode::CREATED) {
        return Err(Unknown::Refused(answer.status()));
    }
    let body = answer.into_body().map_err(Unknown::Unread)?;
    Ok(Impersonable::parse(&body)?)
}
