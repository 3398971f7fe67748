//! Asks a member whom a cluster's credential may impersonate there, by a `SelfSubjectRulesReview`.

use std::sync::Arc;
use std::time::Duration;

use api::impersonable::{self, Impersonable};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Request, StatusCode};
use net::words::causes;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::cluster::Cluster;
use crate::upstream::aside;

/// For one question, dialling included.
const PATIENCE: Duration = Duration::from_secs(5);
/// Of an answer. A role with a rule for each of a thousand users has 200 KB.
const MOST_BYTES: usize = 1024 * 1024;

/// Whom `cluster`'s credential may impersonate. Asks on `runtime`, once for all who wait.
pub async fn impersonable(cluster: &Arc<Cluster>, runtime: &Handle) -> Arc<Impersonable> {
    let asked = Arc::clone(cluster);
    cluster.rights().get(runtime, async move || review(&asked).await).await
}

async fn review(cluster: &Cluster) -> Option<Impersonable> {
    let answer = timeout(PATIENCE, ask(cluster)).await.unwrap_or_else(|_| Err(format!("not within {PATIENCE:?}")));
    let untold = |reason: &String| {
        tracing::debug!(
            cluster = cluster.name().as_str(),
            reason,
            "whom its credential may impersonate is not known: callers are passed on with all their groups"
        );
    };
    answer.inspect_err(untold).ok()
}

async fn ask(cluster: &Cluster) -> Result<Impersonable, String> {
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    let lease = cluster.acquire().await.map_err(|error| error.to_string())?;
    let mut request = Request::post(format!("{}{}", cluster.endpoint().base_path, impersonable::PATH))
        .header(USER_AGENT, "cluster-gateway")
        .header(ACCEPT, JSON)
        .header(CONTENT_TYPE, JSON)
        .body(impersonable::QUESTION.into())
        .map_err(|error| error.to_string())?;
    if let Some(authorization) = lease.authorization() {
        request.headers_mut().insert(AUTHORIZATION, authorization.clone());
    }
    let answer = aside::exchange(lease.upstream().target(), request, MOST_BYTES).await;
    let answer = answer.map_err(|error| causes(&error))?;
    if !matches!(answer.status(), StatusCode::OK | StatusCode::CREATED) {
        return Err(format!("the answer is {}", answer.status()));
    }
    let body = answer.into_body().map_err(|error| causes(&*error))?;
    Impersonable::parse(&body).map_err(|error| error.to_string())
}
