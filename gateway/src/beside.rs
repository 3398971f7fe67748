//! Karmada's group if the gateway stands beside a Karmada: forwards requests that are not for a
//! member to the Karmada upstream, as a hub's aggregator would.
//!
//! A hub sends no requests for a group without a description, and two documents describe our own
//! group together with Karmada's. Neither members nor our own group may depend on a working
//! Karmada. Without one, discovery has what we know of its group, and a warning.

use std::sync::Arc;
use std::time::Duration;

use api::beside as documents;
use api::route::{Discovery, MemberRequest, OpenApi, SharedDocument};
use auth::Permission;
use bytes::Bytes;
use http::header::{ACCEPT, USER_AGENT, VIA};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Limited};
use hyper::upgrade::OnUpgrade;
use tokio::time::timeout;

use crate::body::ResponseBody;
use crate::clusters::KarmadaUpstream;
use crate::connection::Connection;
use crate::error::Error;
use crate::exchange::ActingAs;
use crate::headers;
use crate::holding::Account;
use crate::limits::Kind;
use crate::needs::RequestNeeds;
use crate::proxy::{Answer, Call, forward as plain, upgrade};
use crate::record::Admitted;
use crate::request::upgrade::Upgrade;
use crate::request_body::{BoxedRequest, RequestBody};
use crate::resources;

/// Timeout for its part of a document: a hub allows five seconds for the whole document.
const WITHIN: Duration = Duration::from_secs(3);
/// Largest part: discovery of a large Karmada has some KiB.
const MOST: usize = 4 * 1024 * 1024;
const LONGEST_WARNED: usize = 512;
const WARNING: &str =
    "Karmada's API server does not describe cluster.karmada.io: the gateway says what it knows, and why in its log";

/// A call of the Karmada upstream, reported to `admitted`.
pub fn call<'a>(
    connection: &Arc<Connection>,
    asks: &'a MemberRequest<'a>,
    admitted: Admitted<'_>,
    permission: Permission,
    account: &Account,
) -> Result<Call<'a>, Error> {
    let gateway = connection.gateway();
    let cluster = upstream(gateway)?.cluster();
    let sent = admitted.sent_to(&cluster, asks.resource(), &gateway.limits, &permission);
    sent.map_err(|error| named(gateway, error.into()))?;
    Ok(Call::new(connection, cluster, ("", asks), permission, ActingAs::FrontProxied, account).counted())
}

/// Forwards the request, which may read a `description` of the group.
pub async fn forward(
    call: &Call<'_>,
    description: Option<Discovery>,
    asked: Option<Upgrade>,
    request: BoxedRequest,
    client: &mut Option<OnUpgrade>,
) -> Result<Answer, Error> {
    let answer = match (asked, description) {
        (Some(asked), _) => upgrade::serve(call, asked, request, client).await,
        (None, Some(document)) => described(call, document, request).await.map(Answer::from),
        (None, None) => plain::serve(call, request).await.map(Answer::from),
    };
    answer.map_err(|error| named(call.connection.gateway(), error))
}

/// Responds with the upstream's document, or ours if the upstream does not answer.
async fn described(
    call: &Call<'_>,
    document: Discovery,
    request: BoxedRequest,
) -> Result<Response<ResponseBody>, Error> {
    let (path, headers) = (request.uri().path().to_owned(), request.headers().clone());
    let why = match timeout(WITHIN, plain::serve(call, request)).await {
        Ok(Ok(answer)) if !answer.status().is_server_error() => return Ok(answer),
        Ok(Ok(answer)) => format!("it answers {}", answer.status()),
        Ok(Err(error)) if error.is_unanswered() => named(call.connection.gateway(), error).to_string(),
        Ok(Err(error)) => return Err(error),
        Err(_) => late(),
    };
    Ok(from_memory(resources::discovery(document, &headers), &path, &why))
}

fn late() -> String {
    format!("no answer within {WITHIN:?}")
}

fn from_memory(mut answer: Response<ResponseBody>, path: &str, why: &str) -> Response<ResponseBody> {
    tracing::warn!(path, why, "Karmada's API server does not describe its group");
    // Any client may ask, so addresses and causes are only for the log.
    headers::warn(answer.headers_mut(), WARNING, LONGEST_WARNED);
    answer
}

/// Responds with a document to which the upstream contributes a part.
pub async fn shared(
    connection: &Arc<Connection>,
    document: SharedDocument,
    permission: Permission,
    request: &Request<RequestBody>,
    account: &Account,
) -> Result<Response<ResponseBody>, Error> {
    let asked = timeout(WITHIN, theirs(connection, document, permission, request, account)).await;
    let why = match asked {
        Ok(Ok(theirs)) => match documents::respond(document, &theirs, request.headers()) {
            Some(answer) => return Ok(answer.map(ResponseBody::full)),
            None => format!("{} does not tell of the group", request.uri().path()),
        },
        Ok(Err(why)) => why,
        Err(_) => late(),
    };
    let answer = match document {
        SharedDocument::Groups => resources::discovery(Discovery::AllGroups, request.headers()),
        // No server has a document for its group.
        SharedDocument::OpenApiRoot => resources::open_api(OpenApi::Root, request)?,
    };
    Ok(from_memory(answer, request.uri().path(), &why))
}

/// The upstream's document, or why there is none.
async fn theirs(
    connection: &Arc<Connection>,
    document: SharedDocument,
    permission: Permission,
    request: &Request<RequestBody>,
    account: &Account,
) -> Result<Bytes, String> {
    let gateway = connection.gateway();
    let cluster = upstream(gateway).map_err(|error| error.to_string())?.cluster();
    let permit = gateway.limits.of_cluster(cluster.name(), cluster.load(), permission.user(), Kind::Short);
    let _permit = permit.map_err(|error| named(gateway, error.into()).to_string())?;
    let asks = MemberRequest::read(&Method::GET, request.uri().path(), None, false);
    let call = Call::new(connection, cluster, ("", &asks), permission, ActingAs::FrontProxied, account).counted();
    let response = plain::serve(&call, question(document, request, account)).await;
    let response = response.map_err(|error| named(gateway, error).to_string())?;
    if response.status() != StatusCode::OK {
        return Err(format!("it answers {}", response.status()));
    }
    let body = Limited::new(response.into_body(), MOST).collect().await;
    Ok(body.map_err(|error| net::words::causes(&*error))?.to_bytes())
}

/// A gateway without an upstream has no route here.
fn upstream(gateway: &RequestNeeds) -> Result<&Arc<KarmadaUpstream>, Error> {
    gateway.karmada_upstream.as_ref().ok_or(Error::NotFound)
}

/// Names the upstream in a failure that was made as for a member.
fn named(gateway: &RequestNeeds, error: Error) -> Error {
    match upstream(gateway) {
        Ok(upstream) => error.of_karmada_upstream(&upstream.url()),
        Err(_) => error,
    }
}

/// A request with only those of the client's headers that identify the caller and its way here.
fn question(document: SharedDocument, request: &Request<RequestBody>, account: &Account) -> BoxedRequest {
    let mut headers = HeaderMap::new();
    for name in [USER_AGENT, VIA] {
        for value in request.headers().get_all(&name) {
            headers.append(name.clone(), value.clone());
        }
    }
    headers.insert(ACCEPT, documents::accepted(document, request.headers()));
    let mut question = Request::new(RequestBody::empty(Some(account.clone())));
    *question.headers_mut() = headers;
    *question.uri_mut() = Uri::try_from(request.uri().path()).unwrap_or_default();
    Box::new(question)
}
