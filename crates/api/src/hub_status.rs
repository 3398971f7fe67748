//! Rewrites the hub's `metav1.Status` about its own objects for our resources.
//!
//! Codes, reasons and their consequences are the hub's: a 410 after which clients list again, or
//! the seconds to wait after a 429. The message stays except for the resource's name, because a
//! client that asked for `clustergateways` does not know about Secrets.

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use crate::karmada::group_of;
use crate::status::{Details, Reason, Status};

/// A failure as the hub reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HubStatus {
    pub message: String,
    pub reason: String,
    pub code: u16,
    #[serde(deserialize_with = "crate::hub_object::or_empty")]
    pub details: HubDetails,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HubDetails {
    pub retry_after_seconds: u32,
}

/// Longest message passed on, in bytes.
const LONGEST_MESSAGE: usize = 2048;

// === impl HubStatus ===

impl HubStatus {
    /// Parses a response with status `code`. A body that is not a Status still yields the code, and
    /// the seconds of `Retry-After`: priority and fairness responds with 429 in plain text
    /// (`tooManyRequests` of k8s.io/apiserver).
    pub fn parse(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let mut parsed: Self = serde_json::from_slice(body).unwrap_or_default();
        if parsed.code == 0 {
            parsed.code = code.as_u16();
        }
        if parsed.details.retry_after_seconds == 0 {
            let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            parsed.details.retry_after_seconds = seconds.unwrap_or(0);
        }
        parsed
    }

    /// The code, which is 500 if the hub's is no failure's, and the reason, which is the code's own
    /// if we lack the hub's.
    pub fn kind(&self) -> (StatusCode, Reason) {
        let code = StatusCode::from_u16(self.code).ok().filter(|code| code.is_client_error() || code.is_server_error());
        let code = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (code, reason(&self.reason, code))
    }

    /// The failure in terms of `resource` instead of `theirs`, the hub's plural.
    pub fn into_status(self, theirs: &str, resource: &'static str) -> Status {
        let (code, reason) = self.kind();
        let details = Details {
            group: group_of(resource).into(),
            kind: resource.into(),
            retry_after_seconds: self.details.retry_after_seconds,
            ..Details::default()
        };
        let message = if self.message.is_empty() {
            format!("the hub answered {code} to a request for {resource}")
        } else {
            self.message[..self.message.floor_char_boundary(LONGEST_MESSAGE)].replace(theirs, resource)
        };
        Status::new(code, reason, message).with_details(details)
    }
}

/// The reason with this name. A reason that we lack becomes the code's own.
fn reason(name: &str, code: StatusCode) -> Reason {
    match name {
        "BadRequest" => Reason::BadRequest,
        "NotFound" => Reason::NotFound,
        "Conflict" => Reason::Conflict,
        "AlreadyExists" => Reason::AlreadyExists,
        "Invalid" => Reason::Invalid,
        "Expired" => Reason::Expired,
        "TooManyRequests" => Reason::TooManyRequests,
        "InternalError" => Reason::InternalError,
        "ServiceUnavailable" => Reason::ServiceUnavailable,
        "Timeout" => Reason::Timeout,
        "RequestEntityTooLarge" => Reason::RequestEntityTooLarge,
        "NotAcceptable" => Reason::NotAcceptable,
        "UnsupportedMediaType" => Reason::UnsupportedMediaType,
        "MethodNotAllowed" => Reason::MethodNotAllowed,
        _ => match code {
            StatusCode::BAD_REQUEST => Reason::BadRequest,
            StatusCode::CONFLICT => Reason::Conflict,
            StatusCode::GONE => Reason::Expired,
            StatusCode::UNPROCESSABLE_ENTITY => Reason::Invalid,
            StatusCode::TOO_MANY_REQUESTS => Reason::TooManyRequests,
            StatusCode::SERVICE_UNAVAILABLE => Reason::ServiceUnavailable,
            StatusCode::GATEWAY_TIMEOUT => Reason::Timeout,
            code if code.is_server_error() => Reason::InternalError,
            _ => Reason::Unknown,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_status(code: u16, body: &str) -> Status {
        let code = StatusCode::from_u16(code).expect("a code");
        HubStatus::parse(code, &HeaderMap::new(), body.as_bytes()).into_status("secrets", "clustergateways")
    }

    #[test]
    fn code_and_reason_stay_and_the_words_are_about_our_resource() {
        let expired = r#"{"kind":"Status","message":"too old resource version: 5 (9)","reason":"Expired","code":410}"#;
        let status = to_status(410, expired);
        assert_eq!((status.code().as_u16(), status.reason()), (410, Reason::Expired));
        assert_eq!(status.message(), "too old resource version: 5 (9)");
        let conflict = r#"{"message":"Operation cannot be fulfilled on secrets \"c1\": modified","reason":"Conflict","code":409,"details":null}"#;
        assert_eq!(
            to_status(409, conflict).message(),
            "Operation cannot be fulfilled on clustergateways \"c1\": modified"
        );
        let busy = r#"{"message":"slow down","code":429,"details":{"retryAfterSeconds":7}}"#;
        let status = to_status(429, busy);
        assert_eq!(
            (status.reason(), status.details().map(|it| it.retry_after_seconds)),
            (Reason::TooManyRequests, Some(7))
        );
    }

    #[test]
    fn seconds_to_wait_are_taken_from_the_header_where_the_body_has_none() {
        let seconds = |header: &'static str, body: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, http::HeaderValue::from_static(header))]);
            HubStatus::parse(StatusCode::TOO_MANY_REQUESTS, &headers, body.as_bytes()).details.retry_after_seconds
        };
        assert_eq!(seconds("7", "Too many requests, please try again later."), 7);
        assert_eq!(seconds("7", r#"{"code":429,"details":{"retryAfterSeconds":3}}"#), 3);
        for odd in ["-1", "99999999999", "Fri, 31 Dec 1999 23:59:59 GMT"] {
            assert_eq!(seconds(odd, ""), 0, "{odd}");
        }
    }

    #[test]
    fn what_is_no_status_has_the_codes_reason() {
        for (code, reason) in [(504, Reason::Timeout), (500, Reason::InternalError), (422, Reason::Invalid)] {
            let status = to_status(code, "<html>");
            assert_eq!((status.code().as_u16(), status.reason()), (code, reason));
            assert!(status.message().contains("clustergateways"));
        }
        // A success code is not a failure, whatever its body contains.
        assert_eq!(to_status(200, r#"{"code":201}"#).code(), StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let message = "é".repeat(LONGEST_MESSAGE);
        let status = to_status(500, &format!("{{\"message\":\"{message}\",\"code\":500}}"));
        assert_eq!(status.message().len(), LONGEST_MESSAGE);
    }
}
