//! Decides whether a member's 404 means that it has no such object.
//!
//! A load balancer answers with the same code for an API server that it does not find, and clients
//! forget an object that gets 404. So only the words of an API server count: a Status, or, for a
//! group that it does not serve at all, the plain text of Go's `http.NotFound`
//! (`k8s.io/apiserver/pkg/util/notfoundhandler`). Load balancers written in Go have that text too,
//! but not the `Audit-Id` of an API server.

use api::status::Encoding;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt as _, Limited};
use serde::Deserialize;

use crate::body::ResponseBody;

/// Longest text read, in bytes. A Status names the object and its kind, each of at most 253.
const MOST: usize = 16 << 10;
/// The text for a path that an API server does not serve.
const NO_SUCH_PATH: &[u8] = b"404 page not found\n";

#[derive(Deserialize)]
struct Failure<'a> {
    reason: &'a str,
}

/// Whether the response with these parts, and with 404, is that of an API server.
pub async fn is_from_api_server(headers: &HeaderMap, body: ResponseBody) -> bool {
    let Ok(body) = Limited::new(body, MOST).collect().await else { return false };
    is_of_an_api_server(headers, &body.to_bytes())
}

fn is_of_an_api_server(headers: &HeaderMap, body: &[u8]) -> bool {
    if headers.contains_key(CONTENT_ENCODING) {
        return false;
    }
    let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if Encoding::of(content_type) == Some(Encoding::Json) {
        let failure = serde_json::from_slice::<Failure<'_>>(body);
        return Encoding::Json.is_status(body) && failure.is_ok_and(|failure| failure.reason == "NotFound");
    }
    content_type.starts_with(b"text/plain") && headers.contains_key("audit-id") && body == NO_SUCH_PATH
}

#[cfg(test)]
mod tests {
    use api::status::Status;

    use super::*;

    type Headers = &'static [(&'static str, &'static str)];

    fn is_told_by(headers: Headers, body: &str) -> bool {
        let mut map = HeaderMap::new();
        for &(name, value) in headers {
            map.insert(name, HeaderValue::from_static(value));
        }
        is_of_an_api_server(&map, body.as_bytes())
    }

    const JSON: (&str, &str) = ("content-type", "application/json");
    const PLAIN: (&str, &str) = ("content-type", "text/plain; charset=utf-8");
    const AUDITED: (&str, &str) = ("audit-id", "5e2c");
    const PAGE: &str = "404 page not found\n";

    #[test]
    fn an_api_servers_words_count() {
        for status in [Status::path_not_found(), Status::object_not_found("clusters", "berlin")] {
            assert!(is_told_by(&[JSON], &String::from_utf8(status.to_json().into()).unwrap()), "{status:?}");
        }
        assert!(is_told_by(&[PLAIN, AUDITED], PAGE));
    }

    #[test]
    fn nobody_elses_do() {
        let status = r#"{"kind":"Status","apiVersion":"v1","reason":"NotFound","code":404}"#;
        assert!(is_told_by(&[JSON], status));
        let others: [(Headers, &str); 10] = [
            (&[], status),
            (&[JSON, ("content-encoding", "gzip")], status),
            (&[("content-type", "text/html")], "<h1>404</h1>"),
            (&[JSON], r#"{"kind":"Status","apiVersion":"v1","code":404}"#),
            (&[JSON], r#"{"kind":"Status","apiVersion":"v1","reason":"Unknown","code":404}"#),
            (&[JSON], r#"{"message":"no such route","reason":"NotFound"}"#),
            (&[JSON], ""),
            (&[PLAIN], PAGE),
            (&[PLAIN, AUDITED], "default backend - 404"),
            (&[], ""),
        ];
        for (headers, body) in others {
            assert!(!is_told_by(headers, body), "{headers:?} {body}");
        }
    }
}
