//! A caller's conclusions from the end of its request to create something.
//!
//! The rules are those of docs/operations.md ("Errors"): which of the gateway's own failures come
//! before anything was sent to a member, and which may come after. Where a rule does not decide,
//! the request may have been done.

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

/// The conclusion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// 201, and the object's uid if the whole answer came.
    Created(Option<String>),
    /// 409: something of that name was there before.
    Exists,
    /// Certainly not done, and why.
    NotDone(String),
    /// Done or not, and why that is not known.
    Unknown(String),
    /// An answer that is never true, such as that a registered cluster is not there.
    Untrue(String),
}

/// An answer, as far as it came.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Empty if it was cut off.
    pub body: Bytes,
}

// === impl Conclusion ===

impl Conclusion {
    /// Of an answer to a POST.
    pub fn by(answer: &Answer) -> Self {
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let text = String::from_utf8_lossy(&answer.body);
        let why = format!("{} {}", answer.status.as_u16(), text.trim().chars().take(300).collect::<String>());
        match answer.status {
            StatusCode::CREATED => Self::Created(body["metadata"]["uid"].as_str().map(str::to_owned)),
            StatusCode::CONFLICT if body["reason"] == "AlreadyExists" => Self::Exists,
            StatusCode::NOT_FOUND if text.contains("no such cluster") => Self::Untrue(why),
            status if is_refusal(status) || is_certain(answer, &body, &text) => Self::NotDone(why),
            _ => Self::Unknown(why),
        }
    }
}

/// A refusal comes before anything is done.
fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND)
}

fn is_certain(answer: &Answer, body: &Value, text: &str) -> bool {
    match of_gateway(body) {
        Some(hop) => is_before(answer, hop),
        None => of_aggregator(answer.status, text),
    }
}

/// The hop that a failure of the gateway's own names.
fn of_gateway(body: &Value) -> Option<&str> {
    let hops = ["Hub", "Gateway", "Tunnel", "Member"];
    let causes = body["details"]["causes"].as_array()?;
    causes.iter().filter_map(|cause| cause["reason"].as_str()).find(|reason| hops.contains(reason))
}

/// Whether it comes before anything is sent to the member: the hub is asked before, 503 and 504 say
/// that there was no connection, and `Retry-After` that a repetition does no harm.
fn is_before(answer: &Answer, hop: &str) -> bool {
    hop == "Hub"
        || matches!(answer.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT)
        || answer.headers.contains_key(RETRY_AFTER)
}

/// Whether the hub says that it sent nothing to a gateway (k8s.io/kube-aggregator,
/// `handler_proxy.go`; k8s.io/apiserver, `notfoundhandler`). Its other failures have the same code.
fn of_aggregator(status: StatusCode, text: &str) -> bool {
    let text = text.trim();
    status == StatusCode::SERVICE_UNAVAILABLE
        && (text == "service unavailable"
            || text.contains("trying to reach service: dial tcp")
            || text.contains("before all known HTTP paths have been installed"))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    fn answer(status: u16, body: impl Into<Bytes>) -> Answer {
        Answer { status: StatusCode::from_u16(status).unwrap(), headers: HeaderMap::new(), body: body.into() }
    }

    fn of_hop(status: u16, hop: &str) -> Answer {
        answer(status, json!({"details": {"causes": [{"reason": hop}]}}).to_string())
    }

    fn certain(answer: &Answer) -> bool {
        matches!(Conclusion::by(answer), Conclusion::NotDone(_))
    }

    #[test]
    fn a_creation_tells_which_object() {
        assert_eq!(Conclusion::by(&answer(201, r#"{"metadata":{"uid":"u"}}"#)), Conclusion::Created(Some("u".into())));
        assert_eq!(Conclusion::by(&answer(201, "")), Conclusion::Created(None));
        assert_eq!(Conclusion::by(&answer(409, r#"{"reason":"AlreadyExists"}"#)), Conclusion::Exists);
        assert!(matches!(Conclusion::by(&answer(409, r#"{"reason":"Conflict"}"#)), Conclusion::Unknown(_)));
    }

    #[test]
    fn the_gateways_failures_say_whether_anything_was_sent() {
        for (status, hop) in [(503, "Member"), (504, "Tunnel"), (500, "Hub"), (403, "Member")] {
            assert!(certain(&of_hop(status, hop)), "{status} {hop}");
        }
        for (status, hop) in [(502, "Member"), (502, "Tunnel"), (429, "Gateway"), (500, "Gateway")] {
            assert!(!certain(&of_hop(status, hop)), "{status} {hop}");
        }
        let mut busy = of_hop(429, "Gateway");
        busy.headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        assert!(certain(&busy));
    }

    #[test]
    fn what_others_say_is_certain_only_where_they_say_so() {
        assert!(certain(&answer(503, "error trying to reach service: dial tcp 127.0.0.1:1: connect: refused")));
        assert!(certain(&answer(503, "service unavailable\n")));
        assert!(!certain(&answer(503, "error trying to reach service: EOF")));
        // A member's own, of a store that does not answer.
        let mut slow = answer(500, r#"{"reason":"ServerTimeout","details":{"retryAfterSeconds":2}}"#);
        slow.headers.insert(RETRY_AFTER, HeaderValue::from_static("2"));
        assert!(!certain(&slow));
    }

    #[test]
    fn nobody_may_hear_that_a_registered_cluster_is_not_there() {
        let absent = answer(404, r#"{"message":"no such cluster near"}"#);
        assert!(matches!(Conclusion::by(&absent), Conclusion::Untrue(_)));
    }
}
