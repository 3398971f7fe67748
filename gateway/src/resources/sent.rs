//! Reads the bodies and parameters of writes to our own resources.

use std::time::Duration;

use api::status::Status;
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::weight::Weight;
use crate::error::Error;
use crate::hub::HubFailure;
use crate::limits::reports::{self, Permits};
use crate::request_body::RequestBody;

/// A body that has not arrived by then never will.
const WITHIN: Duration = Duration::from_secs(30);

pub const JSON: &str = "application/json";
pub const MERGE_PATCH: &str = "application/merge-patch+json";
pub const JSON_PATCH: &str = "application/json-patch+json";
pub const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// The media type of a body, in lower case and without parameters.
pub fn media(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The write's parameters, as a query for the hub.
pub fn query(query: Option<&str>) -> Result<String, Error> {
    let mut kept = Vec::new();
    for (key, value) in api::query::pairs(query.unwrap_or_default()) {
        match (&*key, &*value) {
            ("dryRun", "All") => kept.push("dryRun=All".to_owned()),
            ("dryRun", _) => return Err(Error::BadRequest("dryRun must be All")),
            ("fieldManager", "") => {}
            ("fieldManager", manager) if manager.len() <= 128 => {
                kept.push(format!("fieldManager={}", utf8_percent_encode(manager, NON_ALPHANUMERIC)));
            }
            ("fieldManager", _) => return Err(Error::BadRequest("fieldManager must be at most 128 characters")),
            _ => {}
        }
    }
    Ok(kept.join("&"))
}

/// A body, with its permit if it is long, and its count.
pub struct Body {
    pub bytes: Bytes,
    _permit: Option<OwnedSemaphorePermit>,
    _weight: Weight,
}

/// Reads the body of a write of `resource`, with at most `limit` bytes.
pub async fn body(
    request: Request<RequestBody>,
    limit: usize,
    permits: &Permits,
    resource: &'static str,
) -> Result<Body, Error> {
    let weight = Weight::of(&request);
    match timeout(WITHIN, collect(request.into_body(), limit, permits, weight)).await {
        Ok(body) => body.map_err(|failed| failed.of(resource)),
        Err(_) => Err(Error::BadRequest("the body did not arrive in time")),
    }
}

async fn collect(mut body: RequestBody, limit: usize, permits: &Permits, mut weight: Weight) -> Result<Body, Failed> {
    let (mut bytes, mut permit) = (BytesMut::new(), None);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Failed::CutOff)?;
        let Ok(data) = frame.into_data() else { continue };
        let length = bytes.len() + data.len();
        if length > limit {
            return Err(Failed::TooLarge(limit));
        }
        if length > reports::SHORT && permit.is_none() {
            permit = Some(permits.long_body().map_err(Failed::Busy)?);
        }
        bytes.extend_from_slice(&data);
        weight.set(bytes.capacity());
    }
    Ok(Body { bytes: bytes.freeze(), _permit: permit, _weight: weight })
}

/// Why there is no body.
enum Failed {
    CutOff,
    TooLarge(usize),
    Busy(HubFailure),
}

// === impl Failed ===

impl Failed {
    fn of(self, resource: &'static str) -> Error {
        match self {
            Self::CutOff => Error::BadRequest("the body was cut off"),
            Self::TooLarge(limit) => Error::of_caller(Status::too_large(limit)),
            Self::Busy(failure) => Error::hub(failure, resource),
        }
    }
}
