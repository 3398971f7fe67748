//! Answers of the hub: JSON, and a Status for everything that went wrong.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;

use crate::server::{Aborted, Body};
use crate::status::status;

/// A JSON answer.
pub(super) fn json_response(status: u16, body: &Value) -> Response<Body> {
    respond(status, body.to_string().into())
}

fn respond(status: u16, bytes: Bytes) -> Response<Body> {
    let body = Full::new(bytes).map_err(|never| -> Aborted { match never {} }).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).expect("the hub answers valid statuses");
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Why there is no proper answer.
#[derive(Debug)]
pub(super) enum Refusal {
    /// A Status with this code and message.
    Status(u16, String),
    /// Come again in as many seconds.
    Busy(u16),
    /// A body that is no JSON, with status 200.
    Garbage,
    /// This status, content type and body.
    Answer(u16, &'static str, Bytes),
}

/// A refusal with a Status.
pub(super) fn refuse(code: u16, message: impl Into<String>) -> Refusal {
    Refusal::Status(code, message.into())
}

impl From<Refusal> for Response<Body> {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Status(code, message) => json_response(code, &status(code, &message)),
            Refusal::Busy(seconds) => {
                let mut response = respond(429, Bytes::from_static(b"Too many requests, please try again later."));
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
                response
            }
            Refusal::Answer(code, kind, body) => {
                let mut response = respond(code, body);
                response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
                response
            }
            Refusal::Garbage => respond(200, Bytes::from_static(b"<html>")),
        }
    }
}
