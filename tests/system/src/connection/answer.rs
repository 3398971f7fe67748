//! A whole answer, and the content of its Status.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

use super::first;

/// An answer that came to its proper end.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The header lines.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
    /// The trailers; empty when there were none.
    pub trailers: HeaderMap,
}

// === impl Answer ===

impl Answer {
    /// The first value of a header, if it is UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        first(&self.headers, name)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{} is no JSON ({error}): {}", self.status, self.text()))
    }

    /// Asserts that this is a `metav1.Status` with `code` and `reason`, the same in HTTP's status
    /// and in the body; returns its message.
    #[track_caller]
    pub fn status_message(&self, code: u16, reason: &str) -> String {
        let status = self.json();
        assert_eq!(self.status, code, "{status}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{status}");
        assert_eq!((&status["kind"], &status["status"]), (&"Status".into(), &"Failure".into()), "{status}");
        assert_eq!((&status["code"], &status["reason"]), (&code.into(), &reason.into()), "{status}");
        status["message"].as_str().expect("a Status has a message").to_owned()
    }
}
