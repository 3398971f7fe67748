//! Plain requests: one in, one out, bodies streamed both ways.

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Request, Response, Uri};

use super::{Call, attempt, credential, location, uri, workload};
use crate::body::ResponseBody;
use crate::clusters::Held;
use crate::error::Error;
use crate::headers;
use crate::record::Record;
use crate::request_body::RequestBody;
use crate::upstream::{SendError, UpstreamBody};

/// Sends the request to the member and returns its response as it begins.
pub async fn serve(
    call: Call<'_>,
    request: Request<RequestBody>,
    record: &mut Record,
) -> Result<Response<ResponseBody>, Error> {
    let cluster = &call.cluster;
    let mut held = cluster.acquire().await.map_err(|error| Error::not_issued(cluster.name(), &error))?;
    let request = prepare(&call, &held, request)?;
    let again = attempt::keep(&held, call.asks, &request);
    let mut answer = workload::judge(send(&call, &held, request).await?, call.asks).await;
    if answer.is_rejection
        && let Some((next, request)) = attempt::next(again, cluster, &held).await?
    {
        drop(answer);
        held = next;
        answer = workload::judge(send(&call, &held, request).await?, call.asks).await;
    }
    let (mut head, body) = answer.response.into_parts();
    if head.headers.len() > headers::MOST_LINES {
        let error = SendError::Broken(format!("its response has more than {} header lines", headers::MOST_LINES));
        return Err(Error::Upstream { cluster: cluster.name().clone(), error });
    }
    if head.status.is_informational() {
        return Err(Error::Unasked { cluster: cluster.name().clone(), status: head.status });
    }
    if answer.is_rejection {
        return Err(Error::rejected(cluster.name(), &held));
    }
    let base_path = &cluster.endpoint().base_path;
    location::rewrite(head.status, &mut head.headers, cluster.name(), base_path, held.upstream().target())
        .map_err(|_| Error::Redirected(cluster.name().clone()))?;
    headers::to_client(&mut head.headers);
    let mut body = ResponseBody::member(body);
    if call.asks.is_endless() && head.status.is_success() && !head.headers.contains_key(CONTENT_LENGTH) {
        record.is_stream();
        body = body.ending_with(call.drain().soft_token().cancelled_owned(), is_lines(&head.headers));
    }
    // The version of the member's message says nothing about ours.
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    Ok(response)
}

async fn send(
    call: &Call<'_>,
    held: &Held<'_>,
    request: Request<RequestBody>,
) -> Result<Response<UpstreamBody>, Error> {
    let sent = held.upstream().send(call.connection.core(), request, &|| call.lingers()).await;
    sent.map_err(|error| {
        attempt::suspect(&call.cluster, held, &error);
        Error::Upstream { cluster: call.cluster.name().clone(), error }
    })
}

/// The request as the member shall see it, its credential included.
fn prepare(call: &Call<'_>, held: &Held<'_>, request: Request<RequestBody>) -> Result<Request<RequestBody>, Error> {
    let (mut parts, body) = request.into_parts();
    parts.uri = Uri::from(uri::rewrite(call.cluster.endpoint(), &parts.uri, call.remainder)?);
    headers::to_member(&mut parts.headers, call.connection.address())
        .map_err(|_| Error::Loop(call.cluster.name().clone()))?;
    credential::apply(call, held, &mut parts.headers)?;
    Ok(Request::from_parts(parts, body))
}

/// JSON watches and logs are lines; protobuf, and anything compressed, is not.
fn is_lines(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], |kind| kind.as_bytes());
    !headers.contains_key(CONTENT_ENCODING)
        && (kind.starts_with(b"application/json") || kind.starts_with(b"text/plain"))
}
