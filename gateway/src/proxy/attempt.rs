//! Sends a request, and once more with another credential if the member rejected the first and a
//! repetition is safe.
//!
//! A 401 means that the member did nothing (RFC 9110 §15.5.2), and the head of a request without a
//! body is the whole request. So such a request is sent again, once, if the member rejected a
//! credential that a program issued.

use api::route::MemberRequest;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::header::AUTHORIZATION;
use http::{Request, Response};
use hyper::body::Body;
use traces::{Span, Trace};

use super::Call;
use super::workload::{self, Judged};
use crate::body::Peeked;
use crate::clusters::{Cluster, CredentialLease};
use crate::error::{Cause, Error};
use crate::holding::Account;
use crate::request_body::RequestBody;
use crate::spans;
use crate::upstream::{ConnectError, SendError};

/// The head of a request that may be sent again.
struct RetryHead(Request<Option<Account>>);

/// The parts of an attempt in which plain requests and upgrades differ.
pub trait Attempt {
    type Body: Body<Data = Bytes> + Unpin;

    fn call(&self) -> &Call<'_>;

    /// The request as the member must see it, with its credential.
    fn prepare(
        &self,
        lease: &CredentialLease<'_>,
        request: Request<RequestBody>,
    ) -> Result<Request<RequestBody>, Error>;

    fn send(
        &self,
        lease: &CredentialLease<'_>,
        request: Request<RequestBody>,
        trace: Option<&Trace>,
    ) -> impl Future<Output = Result<Response<Self::Body>, Error>> + Send;
}

/// Returns the member's response, unless it rejects the credential, and the credential in use.
pub async fn answer<A: Attempt>(
    attempt: &A,
    request: Request<RequestBody>,
) -> Result<(CredentialLease<'_>, Response<Peeked<A::Body>>), Error> {
    let call = attempt.call();
    let cluster = &call.cluster;
    let mut lease = cluster.acquire().await.map_err(|error| Cause::NotIssued(error).at(cluster.name()))?;
    let request = attempt.prepare(&lease, request)?;
    let again = keep(&lease, call.asks, &request);
    let (span, request) = spans::member(call.trace, &lease.upstream().target().authority, request);
    let sent = attempt.send(&lease, request, span.as_ref().map(Span::trace)).await;
    let mut answer = workload::judge(spans::member_ended(span, sent, Error::side_word)?, call.asks).await;
    if answer.is_rejection
        && let Some((next, request)) = next(again, cluster, &lease).await?
    {
        drop(answer);
        lease = next;
        let (span, request) = spans::member(call.trace, &lease.upstream().target().authority, request);
        let sent = attempt.send(&lease, request, span.as_ref().map(Span::trace)).await;
        answer = workload::judge(spans::member_ended(span, sent, Error::side_word)?, call.asks).await;
    }
    match answer {
        Judged { is_rejection: true, .. } => Err(Cause::rejected(&lease).at(cluster.name())),
        Judged { mut response, .. } => {
            if call.is_disbelieved(&mut response).await {
                return Err(Cause::rejected(&lease).at(cluster.name()));
            }
            if let Some(rights) = call.acting.within()
                && workload::refuses_identity(&mut response, call.asks).await
            {
                cluster.rights().refused(rights);
            }
            Ok((lease, response))
        }
    }
}

/// None for the Secret's own credential, because there is no other to try: then nothing is copied.
fn keep(lease: &CredentialLease<'_>, asks: &MemberRequest<'_>, request: &Request<RequestBody>) -> Option<RetryHead> {
    if matches!(lease, CredentialLease::Fixed(_)) || !request.body().is_end_stream() || !asks.may_be_repeated() {
        return None;
    }
    let mut head = Request::new(request.body().account().cloned());
    *head.method_mut() = request.method().clone();
    *head.uri_mut() = request.uri().clone();
    *head.version_mut() = request.version();
    *head.headers_mut() = request.headers().clone();
    Some(RetryHead(head))
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
    again: Option<RetryHead>,
    cluster: &'a Cluster,
    lease: &CredentialLease<'_>,
) -> Result<Option<(CredentialLease<'a>, Request<RequestBody>)>, Error> {
    let Some(RetryHead(head)) = again else {
        // For later requests: the renewal starts with its first poll, and this request does not
        // wait.
        let _ = cluster.renew(lease).now_or_never();
        return Ok(None);
    };
    let renewed = Box::pin(cluster.renew(lease)).await;
    let Some(next) = renewed.map_err(|error| Cause::NotIssued(error).at(cluster.name()))? else {
        return Ok(None);
    };
    let mut request = head.map(RequestBody::empty);
    request.headers_mut().remove(AUTHORIZATION);
    if let Some(authorization) = next.authorization() {
        request.headers_mut().insert(AUTHORIZATION, authorization.clone());
    }
    Ok(Some((next, request)))
}
