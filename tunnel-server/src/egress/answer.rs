//! Responses to clients of the HTTP/1.1 front.
//!
//! kube-apiserver quotes only the status line of a failure, so the reason phrase has the sentence,
//! as one short line of ASCII. The body has the whole sentence, and three `tunnel-` headers have
//! the refusal for programs.

use http::{HeaderMap, StatusCode};
use tunnel::{Hop, Reason, Refusal};

use super::head::HeadError;

/// The whole response of a success: the next byte is the member's.
pub const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection Established\r\n\r\n";
/// Longest reason phrase, in bytes.
const LONGEST_PHRASE: usize = 200;

/// A response that reports a failure.
#[derive(Debug)]
pub struct Answer {
    status: StatusCode,
    /// The sentence that states the failure.
    text: String,
    headers: HeaderMap,
    /// The allowed methods, for the answer to another method.
    allow: Option<&'static str>,
    kind: &'static str,
}

// === impl Answer ===

impl Answer {
    pub fn refusal(refusal: &Refusal) -> Self {
        let mut headers = HeaderMap::new();
        refusal.write(&mut headers);
        let (status, kind) = (refusal.reason.status(), refusal.reason.as_str());
        Self { status, text: refusal.message.clone(), headers, allow: None, kind }
    }

    /// The reason, as the metric's label.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The response as it is sent.
    pub fn bytes(&self) -> Vec<u8> {
        let Self { status, text, headers, .. } = self;
        let mut bytes = format!("HTTP/1.1 {} {}\r\n", status.as_str(), phrase(text)).into_bytes();
        for (name, value) in headers {
            bytes.extend_from_slice(name.as_str().as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        if let Some(methods) = self.allow {
            bytes.extend_from_slice(format!("Allow: {methods}\r\n").as_bytes());
        }
        let length = text.len() + 1;
        let rest = format!(
            "Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}\n"
        );
        bytes.extend_from_slice(rest.as_bytes());
        bytes
    }
}

impl From<HeadError> for Answer {
    fn from(error: HeadError) -> Self {
        let text = error.to_string();
        let plain = |status, kind| Self { status, text: text.clone(), headers: HeaderMap::new(), allow: None, kind };
        match error {
            HeadError::Method => Self { allow: Some("CONNECT"), ..plain(StatusCode::METHOD_NOT_ALLOWED, "method") },
            HeadError::TooLarge(_) | HeadError::TooMany => {
                plain(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "too-large")
            }
            _ => Self::refusal(&Refusal::new(Hop::Server, Reason::Malformed, text)),
        }
    }
}

/// Any `text` as a reason phrase (RFC 9112 §4): visible ASCII and spaces on one line.
fn phrase(text: &str) -> String {
    let visible = text.chars().map(|character| match character {
        ' '..='~' => character,
        character if character.is_control() => ' ',
        _ => '?',
    });
    visible.take(LONGEST_PHRASE).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_phrase_is_one_short_line() {
        assert_eq!(phrase("cluster \"a\"\r\nX: y"), "cluster \"a\"  X: y");
        assert_eq!(phrase("größe"), "gr??e");
        assert_eq!(phrase(&"x".repeat(1000)).len(), LONGEST_PHRASE);
    }

    #[test]
    fn a_refusal_is_told_in_line_headers_and_body() {
        let refusal = Refusal::new(Hop::Agent, Reason::Unreachable, "dial tcp 10.0.0.1:1: connection refused");
        let bytes = Answer::refusal(&refusal).bytes();
        insta::assert_snapshot!(String::from_utf8(bytes).expect("text"));
        let method = Answer::from(HeadError::Method).bytes();
        insta::assert_snapshot!(String::from_utf8(method).expect("text"));
    }
}
