//! A request and its answer, with one more attempt where the member rejected the credential and
//! that is safe.
//!
//! A 401 says that nothing was done (RFC 9110 §15.5.2), and a request without a body is whole as
//! long as its head is kept. So one for which a program's credential did not open the door is sent
//! again, once, with the next.

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

/// The head of a request that may be sent once more.
struct RetryHead(Request<Option<Account>>);

/// How one attempt is made.
pub trait Attempt {
    type Body: Body<Data = Bytes> + Unpin;

    fn call(&self) -> &Call<'_>;

    /// The request as the member shall see it, its credential included.
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

/// The member's answer, which is no rejection of the credential, and the credential it was given
/// for.
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

/// Costs nothing where the credential is the Secret's own: no other would be had.
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

/// A member that does not take a client certificate ends the connection, and says nothing about it
/// in HTTP. So a connection that was refused or broken has the program asked again, for later
/// requests; how often is limited as for a 401.
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

/// The member rejected `lease`: the request with another credential, if it may be sent again and
/// there is one.
async fn next<'a>(
    again: Option<RetryHead>,
    cluster: &'a Cluster,
    lease: &CredentialLease<'_>,
) -> Result<Option<(CredentialLease<'a>, Request<RequestBody>)>, Error> {
    let Some(RetryHead(head)) = again else {
        // For later requests: begun when it is first polled, and nothing to wait for here.
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
