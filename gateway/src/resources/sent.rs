//! Reads the bodies and parameters of writes to our own resources.

use std::borrow::Cow;
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
/// kube-apiserver's limit on a field manager (`k8s.io/apimachinery/pkg/apis/meta/v1/validation`).
const LONGEST_MANAGER: usize = 128;

pub const JSON: &str = "application/json";
pub const MERGE_PATCH: &str = "application/merge-patch+json";
pub const JSON_PATCH: &str = "application/json-patch+json";
pub const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// The media type of a body, in lower case and without parameters.
pub fn media(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The parameters of a write. Of those with one value, the first counts, as for kube-apiserver.
#[derive(Debug)]
pub struct WriteOptions<'a> {
    is_dry_run: bool,
    /// Empty for the hub's own choice.
    pub field_manager: Cow<'a, str>,
    /// Empty if the sender did not choose.
    pub field_validation: Cow<'a, str>,
}

// === impl WriteOptions ===

impl<'a> WriteOptions<'a> {
    /// # Errors
    ///
    /// The caller's: another dry run than of all stages, or a field manager of more than 128 bytes.
    pub fn read(query: Option<&'a str>) -> Result<Self, Error> {
        let (mut is_dry_run, mut manager, mut validation) = (false, None, None);
        for (key, value) in api::query::pairs(query.unwrap_or_default()) {
            match &*key {
                "dryRun" if value == "All" => is_dry_run = true,
                "dryRun" => return Err(Error::BadRequest("dryRun must be All")),
                "fieldManager" => manager = manager.or(Some(value)),
                "fieldValidation" => validation = validation.or(Some(value)),
                _ => {}
            }
        }
        let field_manager = manager.unwrap_or_default();
        if field_manager.len() > LONGEST_MANAGER {
            return Err(Error::BadRequest("fieldManager must be at most 128 characters"));
        }
        Ok(Self { is_dry_run, field_manager, field_validation: validation.unwrap_or_default() })
    }

    /// The query of the write on the hub.
    pub fn for_hub(&self) -> String {
        let dry_run = self.is_dry_run.then(|| "dryRun=All".to_owned());
        let manager = utf8_percent_encode(&self.field_manager, NON_ALPHANUMERIC);
        let manager = (!self.field_manager.is_empty()).then(|| format!("fieldManager={manager}"));
        dry_run.into_iter().chain(manager).collect::<Vec<_>>().join("&")
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A second value on the hub would be one that the gateway has not checked.
    #[test]
    fn the_hub_gets_the_parameters_that_were_read() {
        for (query, expected) in [
            ("", ""),
            ("fieldManager=me%20too&dryRun=All&pretty=true", "dryRun=All&fieldManager=me%20too"),
            ("fieldManager=&fieldManager=other", ""),
            ("fieldManager=me&fieldManager=other&dryRun=All&dryRun=All", "dryRun=All&fieldManager=me"),
        ] {
            let options = WriteOptions::read(Some(query)).unwrap();
            assert_eq!(options.for_hub(), expected, "{query}");
        }
        let options = WriteOptions::read(Some("fieldValidation=Strict&fieldValidation=Ignore")).unwrap();
        assert_eq!((&*options.field_manager, &*options.field_validation), ("", "Strict"));
        for refused in ["dryRun=", "dryRun=All&dryRun=None", format!("fieldManager={}", "m".repeat(129)).as_str()] {
            assert!(WriteOptions::read(Some(refused)).is_err(), "{refused}");
        }
    }
}
