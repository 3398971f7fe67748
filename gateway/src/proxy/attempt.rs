//! Sends a request, and once more if the member rejected its credential or identity, there is
//! another to try, and a repetition is safe.
//!
//! A 401 means that the member did nothing (RFC 9110 §15.5.2), and so does a 403 about the
//! impersonation, which an API server checks first. The head of a request without a body is the
//! whole request. So such a request is sent again, once, if the member rejected a credential that a
//! program issued, and once if it refused a part of the caller's identity that can be omitted.

use std::sync::Arc;

use api::impersonable::Impersonable;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::header::AUTHORIZATION;
use http::{Request, Response};
use hyper::body::Body;
use traces::{Span, Trace};

use super::Call;
use super::workload::{self, Judged};
use crate::body::Peeked;
use crate::clusters::{Cluster, CredentialLease, rights};
use crate::error::{Cause, Error};
use crate::exchange::NotAHeader;
use crate::holding::Account;
use crate::request_body::{BoxedRequest, RequestBody};
use crate::spans;
use crate::upstream::{ConnectError, SendError};

/// The head of a request that may be sent again.
struct RetryHead(Request<Option<Account>>);

/// The parts of an attempt in which plain requests and upgrades differ.
pub trait Attempt {
    type Body: Body<Data = Bytes> + Unpin;

    fn call(&self) -> &Call<'_>;

    /// Makes the request what the member must see, with its credential.
    fn prepare(&self, lease: &CredentialLease<'_>, request: &mut Request<RequestBody>) -> Result<(), Error>;

    fn send(
        &self,
        lease: &CredentialLease<'_>,
        request: BoxedRequest,
        trace: Option<&Trace>,
    ) -> impl Future<Output = Result<Response<Self::Body>, Error>> + Send;
}

/// Returns the member's response, unless it rejects the credential, and the credential in use.
pub async fn answer<A: Attempt>(
    attempt: &A,
    mut request: BoxedRequest,
) -> Result<(CredentialLease<'_>, Response<Peeked<A::Body>>), Error> {
    let call = attempt.call();
    let cluster = &call.cluster;
    let mut lease = cluster.acquire().await.map_err(|error| Cause::NotIssued(error).at(cluster.name()))?;
    attempt.prepare(&lease, &mut request)?;
    let again = keep(&lease, call, &request);
    let mut answer = once(attempt, &lease, request).await?;
    if answer.is_rejection
        && let Some((next, request)) = next(again.as_deref(), cluster, &lease).await?
    {
        drop(answer);
        lease = next;
        // Boxed, as below: rare, and too large for every request's future.
        answer = Box::pin(once(attempt, &lease, request)).await?;
    }
    if let Some(rights) = call.acting.within()
        && workload::refuses_identity(&mut answer.response, call.asks).await
        && let Some(narrower) = cluster.rights().refused(rights)
        && let Some(request) = narrowed(again.as_deref(), call, &lease, &narrower)?
    {
        drop(answer);
        answer = Box::pin(async {
            let mut answer = once(attempt, &lease, request).await?;
            if workload::refuses_identity(&mut answer.response, call.asks).await {
                cluster.rights().refused(&narrower);
            }
            Ok::<_, Error>(answer)
        })
        .await?;
    }
    match answer {
        Judged { is_rejection: true, .. } => Err(Cause::rejected(&lease).at(cluster.name())),
        Judged { mut response, .. } => {
            if call.is_disbelieved(&mut response).await {
                return Err(Cause::rejected(&lease).at(cluster.name()));
            }
            Ok((lease, response))
        }
    }
}

async fn once<A: Attempt>(
    attempt: &A,
    lease: &CredentialLease<'_>,
    mut request: BoxedRequest,
) -> Result<Judged<A::Body>, Error> {
    let call = attempt.call();
    let span = spans::member(call.trace, &lease.upstream().target().authority, &mut request);
    let sent = attempt.send(lease, request, span.as_ref().map(Span::trace)).await;
    spans::member_ended(span, &sent, Error::side_word);
    Ok(workload::judge(sent?, call.asks).await)
}

/// None if there is nothing else to try, neither another credential than the Secret's own nor a
/// narrower identity: then nothing is copied.
fn keep(lease: &CredentialLease<'_>, call: &Call<'_>, request: &Request<RequestBody>) -> Option<Box<RetryHead>> {
    let may_change =
        !matches!(lease, CredentialLease::Fixed(_)) || call.acting.within().is_some_and(rights::is_everything);
    if !may_change || !request.body().is_end_stream() || !call.asks.may_be_repeated() {
        return None;
    }
    let mut head = Request::new(request.body().account().cloned());
    *head.method_mut() = request.method().clone();
    *head.uri_mut() = request.uri().clone();
    *head.version_mut() = request.version();
    *head.headers_mut() = request.headers().clone();
    Some(Box::new(RetryHead(head)))
}

/// A member that rejects a client certificate ends the connection without a response in HTTP. So a
/// refused or broken connection makes the program issue another one for later requests, as often as
/// after a 401.
pub fn suspect(cluster: &Cluster, lease: &CredentialLease<'_>, error: &SendError) {
    let may_be_it = match error {
        SendError::Connect(error) => matches!(**error, ConnectError::Tls { .. } | ConnectError::Http2 { .. }),
        SendError::Broken(_) => true,
        SendError::Exhausted(_)
        | SendError::Refused
        | SendError::Shed
        | SendError::Unfit(_)
        | SendError::UnfitAnswer(_)
        | SendError::ClientGone(_) => false,
    };
    if may_be_it && matches!(lease, CredentialLease::Issued(issued) if issued.has_certificate()) {
        let _ = cluster.renew(lease).now_or_never();
    }
}

/// The member rejected `lease`. Returns the request with another credential, if it may be sent
/// again and there is one.
async fn next<'a>(
    again: Option<&RetryHead>,
    cluster: &'a Cluster,
    lease: &CredentialLease<'_>,
) -> Result<Option<(CredentialLease<'a>, BoxedRequest)>, Error> {
    let Some(head) = again else {
        // For later requests: the renewal starts with its first poll, and this request does not
        // wait.
        let _ = cluster.renew(lease).now_or_never();
        return Ok(None);
    };
    let renewed = Box::pin(cluster.renew(lease)).await;
    let Some(next) = renewed.map_err(|error| Cause::NotIssued(error).at(cluster.name()))? else {
        return Ok(None);
    };
    let request = head.with(&next);
    Ok(Some((next, request)))
}

/// The member refused a part of the caller's identity. Returns the request without what `rights` do
/// not allow, if it may be sent again and that is another identity.
fn narrowed(
    again: Option<&RetryHead>,
    call: &Call<'_>,
    lease: &CredentialLease<'_>,
    rights: &Arc<Impersonable>,
) -> Result<Option<BoxedRequest>, Error> {
    let Some(head) = again else { return Ok(None) };
    let mut request = head.with(lease);
    let refused = request.headers().clone();
    let narrow = call.acting.narrow(Arc::clone(rights), call.permission.user(), request.headers_mut());
    narrow.map_err(|NotAHeader| Error::IDENTITY)?;
    Ok(Some(request).filter(|request| *request.headers() != refused))
}

// === impl RetryHead ===

impl RetryHead {
    /// The request with the credential of `lease`.
    fn with(&self, lease: &CredentialLease<'_>) -> BoxedRequest {
        let Self(head) = self;
        let mut request = head.clone().map(RequestBody::empty);
        request.headers_mut().remove(AUTHORIZATION);
        if let Some(authorization) = lease.authorization() {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        Box::new(request)
    }
}
