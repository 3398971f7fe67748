//! One request and its response, within a deadline and a size.

use std::error::Error;

use api::hub_status::HubStatus;
use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::Client;
use kube::client::Body;
use net::words::{Causes, chain};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use super::Meter;
use crate::bounded::TooLarge;
use crate::failure::{Cause, Incomplete};

/// Largest accepted error response.
const LARGEST_ERROR: usize = 64 << 10;

pub(super) async fn permit(permits: &Semaphore, deadline: Instant) -> Result<SemaphorePermit<'_>, Cause> {
    timeout_at(deadline, permits.acquire()).await.ok().and_then(Result::ok).ok_or(Cause::Busy)
}

/// The target consists of a configured namespace and a parsed name, so it always parses.
pub(super) fn request(method: Method, target: &str, body: Body) -> Request<Body> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = target.parse().unwrap_or_default();
    let headers = request.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    request
}

pub(super) fn with_json(method: Method, target: &str, body: Vec<u8>) -> Request<Body> {
    let mut request = request(method, target, Body::from(body));
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    request
}

/// Returns a successful response's head. Reads any other response and returns it as the error.
pub(super) async fn send(client: &Client, request: Request<Body>, deadline: Instant) -> Result<Response<Body>, Cause> {
    let response = head(client, request, deadline).await?;
    let code = response.status();
    if matches!(code, StatusCode::OK | StatusCode::CREATED | StatusCode::ACCEPTED) {
        return Ok(response);
    }
    let headers = response.headers().clone();
    let body = read(response, LARGEST_ERROR, deadline, None).await.unwrap_or_default();
    Err(Cause::Status(HubStatus::parse(code, &headers, &body)))
}

/// The head of the response, whatever its status.
pub(crate) async fn head(
    client: &Client,
    request: Request<Body>,
    deadline: Instant,
) -> Result<Response<Body>, Incomplete> {
    let sent = timeout_at(deadline, client.send(request)).await.map_err(|_| Incomplete::Timeout)?;
    sent.map_err(|error| Incomplete::Unreachable(Causes::of(error)))
}

pub(crate) async fn read(
    response: Response<Body>,
    most: usize,
    deadline: Instant,
    meter: Option<&dyn Meter>,
) -> Result<Bytes, Incomplete> {
    let body = response.into_body().map_frame(|frame| {
        if let (Some(meter), Some(data)) = (meter, frame.data_ref()) {
            meter.received(data.len());
        }
        frame
    });
    let read = timeout_at(deadline, Limited::new(body, most).collect()).await;
    match read.map_err(|_| Incomplete::Timeout)? {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if is_too_large(&*error) => Err(Incomplete::TooLarge),
        Err(error) => Err(Incomplete::Unreachable(Causes::of(error))),
    }
}

/// Whether this limit was exceeded or the limit of all responses ([`TooLarge`]), whichever is
/// lower.
fn is_too_large(error: &(dyn Error + 'static)) -> bool {
    chain(error).any(|error| error.is::<LengthLimitError>() || error.is::<TooLarge>())
}
