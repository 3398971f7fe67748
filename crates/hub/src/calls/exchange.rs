//! One request and its response, within a deadline and a size.

use std::error::Error;
use std::time::Duration;

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
use crate::failure::Cause;

/// Largest accepted error response.
const LARGEST_ERROR: usize = 64 << 10;

/// Until when a call must be complete.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    /// The time that the call had at its beginning.
    within: Duration,
}

// === impl Deadline ===

impl Deadline {
    /// So long from now.
    pub(crate) fn after(within: Duration) -> Self {
        Self { at: Instant::now() + within, within }
    }

    async fn bound<T>(self, step: impl Future<Output = T>) -> Result<T, Cause> {
        timeout_at(self.at, step).await.map_err(|_| Cause::Timeout(self.within))
    }
}

pub(super) async fn permit(permits: &Semaphore, deadline: Deadline) -> Result<SemaphorePermit<'_>, Cause> {
    deadline.bound(permits.acquire()).await.ok().and_then(Result::ok).ok_or(Cause::Busy)
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
pub(super) async fn send(client: &Client, request: Request<Body>, deadline: Deadline) -> Result<Response<Body>, Cause> {
    let response = head(client, request, deadline).await?;
    if matches!(response.status(), StatusCode::OK | StatusCode::CREATED | StatusCode::ACCEPTED) {
        return Ok(response);
    }
    Err(Cause::Status(refusal(response, deadline).await))
}

/// What an unsuccessful response says. If its body cannot be read, that is its code.
pub(crate) async fn refusal(response: Response<Body>, deadline: Deadline) -> HubStatus {
    let (code, headers) = (response.status(), response.headers().clone());
    let body = read(response, LARGEST_ERROR, deadline, None).await.unwrap_or_default();
    HubStatus::parse(code, &headers, &body)
}

/// The head of the response, whatever its status.
pub(crate) async fn head(client: &Client, request: Request<Body>, deadline: Deadline) -> Result<Response<Body>, Cause> {
    deadline.bound(client.send(request)).await?.map_err(|error| Cause::Unreachable(Causes::of(error)))
}

pub(crate) async fn read(
    response: Response<Body>,
    most: usize,
    deadline: Deadline,
    meter: Option<&dyn Meter>,
) -> Result<Bytes, Cause> {
    let body = response.into_body().map_frame(|frame| {
        if let (Some(meter), Some(data)) = (meter, frame.data_ref()) {
            meter.received(data.len());
        }
        frame
    });
    match deadline.bound(Limited::new(body, most).collect()).await? {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) => Err(match exceeded(&*error, most) {
            Some(most) => Cause::TooLarge { most, unit: "bytes" },
            None => Cause::Unreachable(Causes::of(error)),
        }),
    }
}

/// The limit that was exceeded, in bytes, if that is why reading failed: this one or that of all
/// responses ([`TooLarge`]), whichever is lower.
fn exceeded(error: &(dyn Error + 'static), most: usize) -> Option<usize> {
    chain(error).find_map(|error| match error.downcast_ref::<TooLarge>() {
        Some(TooLarge::Answer { most: of_all, .. } | TooLarge::Event { most: of_all, .. }) => Some(most.min(*of_all)),
        None => error.is::<LengthLimitError>().then_some(most),
    })
}
