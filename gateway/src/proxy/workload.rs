//! Distinguishes a 401 of the member, which rejects the credential, from a 401 of a workload behind
//! the member's own proxy.
//!
//! An API server sends its own 401 as a `metav1.Status`
//! (`k8s.io/apiserver/pkg/endpoints/filters/authentication.go`). Behind `…/proxy/…` it passes on
//! unchanged what a pod, Service or kubelet responds: a login page, say. Such a 401 is for the
//! caller, with its `WWW-Authenticate`, and shows nothing about the credential, which the workload
//! never saw.

use std::time::Duration;

use api::route::MemberRequest;
use api::status::Encoding;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Response, StatusCode};
use hyper::body::Body;

use crate::body::Peeked;

/// A Status with only "Unauthorized" has 130 bytes.
const STATUS_BYTES: usize = 4096;
/// Resources of the extra attributes that the gateway may omit.
const INFORMING: &str = "userextras/authentication.kubernetes.io/";
/// Timeout for the body of a 401 or 403, which comes with its head.
const WITHIN: Duration = Duration::from_secs(10);

/// A member's response, and its judgement.
pub struct Judged<B: Body> {
    pub response: Response<Peeked<B>>,
    /// The member itself responded with 401: the credential is invalid.
    pub is_rejection: bool,
}

/// Judges the response to the request `asks`.
pub async fn judge<B: Body<Data = Bytes> + Unpin>(response: Response<B>, asks: &MemberRequest<'_>) -> Judged<B> {
    let mut response = response.map(Peeked::new);
    let is_rejection = response.status() == StatusCode::UNAUTHORIZED
        && (!asks.is_behind_proxy() || is_of_the_member(&mut response).await);
    Judged { response, is_rejection }
}

/// Whether the member responds, in JSON, that the credential may not impersonate a part of the
/// identity that the gateway may omit: a group, the uid, or an extra attribute of Kubernetes' own
/// (`k8s.io/apiserver/pkg/endpoints/handlers/responsewriters.ForbiddenStatus`). The member then did
/// nothing else. The response can be passed on all the same.
///
/// Only the API server's own words count. A caller may choose any object name, and the message
/// repeats it, but with its quotes escaped (`%q`): the text after the last `forbidden: User "` is
/// never the caller's.
pub async fn refuses_identity<B: Body<Data = Bytes> + Unpin>(
    response: &mut Response<Peeked<B>>,
    asks: &MemberRequest<'_>,
) -> bool {
    if response.status() != StatusCode::FORBIDDEN || asks.is_behind_proxy() || encoding(response.headers()).is_none() {
        return false;
    }
    response.body_mut().short(STATUS_BYTES, WITHIN).await.is_some_and(|body| says_so(&body))
}

/// Whether a server that received the caller's identity refuses an anonymous user, because it does
/// not accept our headers.
pub async fn is_anonymous_refusal<B: Body<Data = Bytes> + Unpin>(response: &mut Response<Peeked<B>>) -> bool {
    if response.status() != StatusCode::FORBIDDEN || encoding(response.headers()).is_none() {
        return false;
    }
    let body = response.body_mut().short(STATUS_BYTES, WITHIN).await;
    body.and_then(|body| forbidden(&body)).is_some_and(|(user, _)| user == "system:anonymous")
}

fn says_so(body: &[u8]) -> bool {
    let Some((_, said)) = forbidden(body) else { return false };
    let resource = said.strip_prefix("cannot impersonate resource \"").and_then(|rest| rest.split_once('"'));
    resource.is_some_and(|(resource, _)| matches!(resource, "groups" | "uids") || resource.starts_with(INFORMING))
}

/// The refused user, and the rest of the message: the permission that it lacks.
fn forbidden(body: &[u8]) -> Option<(String, String)> {
    #[derive(serde::Deserialize)]
    struct Said {
        message: String,
    }
    let Said { message } = serde_json::from_slice(body).ok()?;
    let (user, said) = message.rsplit_once("forbidden: User \"")?.1.split_once("\" ")?;
    Some((user.to_owned(), said.to_owned()))
}

async fn is_of_the_member<B: Body<Data = Bytes> + Unpin>(response: &mut Response<Peeked<B>>) -> bool {
    let Some(encoding) = encoding(response.headers()) else { return false };
    response.body_mut().short(STATUS_BYTES, WITHIN).await.is_some_and(|body| encoding.is_status(&body))
}

/// The encoding of a body that may be a Status. A compressed one is none, because API servers do
/// not compress so small a body.
fn encoding(headers: &HeaderMap) -> Option<Encoding> {
    if headers.contains_key(CONTENT_ENCODING) { None } else { Encoding::of(headers.get(CONTENT_TYPE)?.as_bytes()) }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    const SERVICE: &str = "/api/v1/namespaces/ns/services/grafana/proxy/";
    const JSON: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;

    async fn is_rejection(remainder: &str, kind: &str, body: &[u8]) -> bool {
        let response = Response::builder().status(401).header(CONTENT_TYPE, kind);
        let get = http::Method::GET;
        let asks = MemberRequest::read(&get, remainder, None, false);
        judge(response.body(Full::new(Bytes::copy_from_slice(body))).expect("valid"), &asks).await.is_rejection
    }

    #[tokio::test]
    async fn a_status_is_the_members_and_anything_else_the_workloads() {
        assert!(is_rejection(SERVICE, "application/json", JSON.as_bytes()).await);
        let long = format!("{JSON}{}", " ".repeat(STATUS_BYTES));
        for (kind, body) in [
            ("text/html", "<h1>password?</h1>"),
            ("application/json", r#"{"message":"Unauthorized"}"#),
            ("application/json", &long),
        ] {
            assert!(!is_rejection(SERVICE, kind, body.as_bytes()).await, "{kind} {body}");
        }
    }

    #[test]
    fn only_parts_that_can_be_omitted_are_a_refused_identity() {
        let said = |resource: &str| {
            let message = format!(r#"x \"y\" is forbidden: User \"gw\" cannot impersonate resource \"{resource}\" in"#);
            says_so(format!(r#"{{"kind":"Status","message":"{message}"}}"#).as_bytes())
        };
        assert!(["groups", "uids", "userextras/authentication.kubernetes.io/pod-name"].into_iter().all(said));
        assert!(!["users", "serviceaccounts", "userextras/scopes", "groupsets", ""].into_iter().any(said));
    }

    #[tokio::test]
    async fn elsewhere_every_401_is_the_members() {
        assert!(is_rejection("/api/v1/namespaces/ns/services/grafana", "text/html", b"who are you?").await);
    }
}
