//! Copies `Retry-After` into the Status, where its readers look.
//!
//! The gateway uses only the header to say that nothing has reached the member and the request may
//! be sent again, but kube's errors hold only the Status.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Body as HttpBody;
use serde_json::Value;
use tower::BoxError;

use crate::sender::{Streamed, streamed};

/// Longest error that is parsed, in bytes. Longer ones, and those of unknown length, pass
/// unchanged.
const LONGEST: usize = 64 << 10;

/// Returns the response. A Status in it that does not say when to retry gets the header's value.
pub async fn into_status<B>(response: Response<B>) -> Result<Response<Streamed>, kube::Error>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let response = response.map(streamed);
    let code = response.status();
    if !(code.is_client_error() || code.is_server_error()) {
        return Ok(response);
    }
    let Some(seconds) = seconds(response.headers()).filter(|_| is_short_json(response.headers())) else {
        return Ok(response);
    };
    let (mut head, body) = response.into_parts();
    let read = body.collect().await?.to_bytes();
    let written = with_details(&read, seconds).unwrap_or(read);
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(written.len()));
    Ok(Response::from_parts(head, streamed(Full::new(written))))
}

/// The header's value, if it is a positive number.
pub fn of(headers: &HeaderMap) -> Option<Duration> {
    seconds(headers).filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds.into()))
}

/// Kubernetes does not write the header's other form, a date (RFC 9110 §10.2.3).
fn seconds(headers: &HeaderMap) -> Option<u32> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()
}

fn is_short_json(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    text(CONTENT_TYPE).is_some_and(|kind| kind.starts_with("application/json"))
        && text(CONTENT_LENGTH).and_then(|length| length.parse().ok()).is_some_and(|length: usize| length <= LONGEST)
        && !headers.contains_key(CONTENT_ENCODING)
}

/// `None` if the body is not a Status, or has its own value.
fn with_details(body: &[u8], seconds: u32) -> Option<Bytes> {
    let mut status: Value = serde_json::from_slice(body).ok()?;
    if status["kind"] != "Status" {
        return None;
    }
    let details = status.as_object_mut()?.entry("details").or_insert_with(|| Value::Object(serde_json::Map::new()));
    let details = details.as_object_mut()?;
    if details.get("retryAfterSeconds").and_then(Value::as_u64).is_some_and(|seconds| seconds > 0) {
        return None;
    }
    details.insert("retryAfterSeconds".to_owned(), seconds.into());
    serde_json::to_vec(&status).ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn passed(content_type: &str, body: &'static str) -> String {
        let response = Response::builder()
            .status(503)
            .header(RETRY_AFTER, "7")
            .header(CONTENT_TYPE, content_type)
            .header(CONTENT_LENGTH, body.len())
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let response = into_status(response).await.unwrap();
        let length = response.headers()[CONTENT_LENGTH].to_str().unwrap().to_owned();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(length, body.len().to_string());
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_status_says_what_the_header_does() {
        for bare in [r#"{"kind":"Status"}"#, r#"{"kind":"Status","details":{"causes":[{"reason":"Hub"}]}}"#] {
            let status: Value = serde_json::from_str(&passed("application/json", bare).await).unwrap();
            assert_eq!(status["details"]["retryAfterSeconds"], 7, "{status}");
        }
    }

    #[tokio::test]
    async fn what_is_no_status_or_says_it_already_passes_as_it_is() {
        let already = r#"{"kind":"Status","details":{"retryAfterSeconds":1}}"#;
        assert_eq!(passed("application/json", already).await, already);
        assert_eq!(passed("application/json", r#"{"kind":"Pod"}"#).await, r#"{"kind":"Pod"}"#);
        assert_eq!(passed("application/json", "[]").await, "[]");
        assert_eq!(passed("text/plain", "service unavailable").await, "service unavailable");
    }

    #[tokio::test]
    async fn long_answers_are_not_gathered() {
        let length = LONGEST + 1;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        assert!(!is_short_json(&headers), "of unknown length");
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        assert!(!is_short_json(&headers));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(LONGEST));
        assert!(is_short_json(&headers));
    }
}
