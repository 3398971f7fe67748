//! Forwards plain requests, and streams both bodies.

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Request, Response};
use traces::Trace;

use super::Call;
use super::attempt::{self, Attempt};
use super::location::{self, Origin};
use crate::body::ResponseBody;
use crate::clusters::CredentialLease;
use crate::error::{Cause, Error};
use crate::headers;
use crate::request_body::{BoxedRequest, RequestBody};
use crate::upstream::{Author, SendError, UpstreamBody};

struct Plain<'a>(&'a Call<'a>);

/// Sends the request to the member and returns its response as it begins.
pub async fn serve(call: &Call<'_>, request: BoxedRequest) -> Result<Response<ResponseBody>, Error> {
    let plain = Plain(call);
    let (lease, answer) = attempt::answer(&plain, request).await?;
    let cluster = &call.cluster;
    let (mut head, body) = answer.into_parts();
    if head.headers.len() > headers::MOST_LINES {
        let error =
            SendError::Broken(format!("its response has more than {} header lines", headers::MOST_LINES).into());
        return Err(Cause::sending(error).at(cluster.name()));
    }
    if head.status.is_informational() {
        return Err(Cause::Unexpected(head.status).at(cluster.name()));
    }
    let target = lease.upstream().target();
    let base_path = &cluster.endpoint().base_path;
    let origin = Origin { scheme: &target.scheme, authority: &target.authority, base_path };
    location::rewrite(head.status, &mut head.headers, call.prefix, origin)
        .map_err(|_| Cause::Redirected.at(cluster.name()))?;
    headers::to_client(&mut head.headers);
    let mut body = ResponseBody::member(body);
    if call.asks.is_endless() && head.status.is_success() && !head.headers.contains_key(CONTENT_LENGTH) {
        body = body.lasting();
        // Clients do not begin a followed log again: it is cut off like a download, or ends with
        // its pod.
        if call.asks.is_watch() {
            body = body.ending_with(call.drain().soft(), is_lines(&head.headers));
        }
    }
    // The response has our HTTP version, not that of the member's message.
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    Ok(response)
}

// === impl Plain ===

impl Attempt for Plain<'_> {
    type Body = UpstreamBody;

    fn call(&self) -> &Call<'_> {
        self.0
    }

    fn prepare(&self, lease: &CredentialLease<'_>, request: &mut Request<RequestBody>) -> Result<(), Error> {
        let Self(call) = self;
        super::to_member(call, request)?;
        call.set_credential(lease, request.headers_mut())
    }

    async fn send(
        &self,
        lease: &CredentialLease<'_>,
        request: BoxedRequest,
        trace: Option<&Trace>,
    ) -> Result<Response<UpstreamBody>, Error> {
        let Self(call) = self;
        let author = if call.asks.is_behind_proxy() { Author::Workload } else { Author::Member };
        let sent = lease.upstream().send(call.connection.core(), author, request, &|| call.lingers(), trace).await;
        sent.map_err(|error| {
            attempt::suspect(&call.cluster, lease, &error);
            Cause::sending(error).at(call.cluster.name())
        })
    }
}

/// JSON watches consist of lines; protobuf and compressed bodies do not.
fn is_lines(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], |kind| kind.as_bytes());
    !headers.contains_key(CONTENT_ENCODING) && kind.starts_with(b"application/json")
}
