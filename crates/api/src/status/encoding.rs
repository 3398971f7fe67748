//! Recognizes another API server's `metav1.Status` among other bodies that it may have passed on.

use serde::Deserialize;

/// The forms in which API servers write a Status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypeMeta<'a> {
    kind: &'a str,
    api_version: &'a str,
}

// === impl Encoding ===

impl Encoding {
    /// The form with this `Content-Type`. `None` if no Status has it.
    pub fn of(content_type: &[u8]) -> Option<Self> {
        match content_type.split(|byte| *byte == b';').next()?.trim_ascii() {
            b"application/json" => Some(Self::Json),
            b"application/yaml" => Some(Self::Yaml),
            b"application/vnd.kubernetes.protobuf" => Some(Self::Protobuf),
            _ => None,
        }
    }

    /// Whether the complete `body` is a Status as `k8s.io/apimachinery`'s serializers write it.
    pub fn is_status(self, body: &[u8]) -> bool {
        match self {
            Self::Json => serde_json::from_slice::<TypeMeta<'_>>(body)
                .is_ok_and(|object| object.kind == "Status" && object.api_version == "v1"),
            Self::Yaml => {
                let has = |line: &[u8]| body.split(|byte| *byte == b'\n').any(|found| found.trim_ascii_end() == line);
                has(b"kind: Status") && has(b"apiVersion: v1")
            }
            // The magic number, and a `runtime.Unknown` that starts with its `TypeMeta`.
            Self::Protobuf => body.starts_with(b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accept::StatusForm;
    use crate::status::Status;

    fn is_status(content_type: &str, body: &[u8]) -> bool {
        Encoding::of(content_type.as_bytes()).is_some_and(|encoding| encoding.is_status(body))
    }

    #[test]
    fn a_status_is_known_in_every_form() {
        let json = serde_json::to_vec(&Status::unauthorized()).unwrap();
        let yaml = b"apiVersion: v1\ncode: 401\nkind: Status\nmessage: Unauthorized\n";
        assert!(is_status("application/json", &json));
        assert!(is_status("application/json; charset=utf-8", &json));
        assert!(is_status("application/yaml", yaml));
        assert!(is_status(
            "application/vnd.kubernetes.protobuf",
            &Status::unauthorized().to_body(StatusForm::Protobuf).0
        ));
    }

    #[test]
    fn nothing_else_is() {
        for (content_type, body) in [
            ("text/html", "<h1>password?</h1>"),
            ("text/plain", r#"{"kind":"Status","apiVersion":"v1"}"#),
            ("application/json", r#"{"message":"Unauthorized"}"#),
            ("application/json", r#"{"kind":"Status","apiVersion":"mine/v1"}"#),
            ("application/json", r#"{"kind":"Status","apiVersion":"v1"} and more"#),
            ("application/json", ""),
            ("application/yaml", "kind: StatusPage\napiVersion: v1\n"),
            ("application/vnd.kubernetes.protobuf", "k8s\0\n\x09\n\x02v1\x12\x03Pod"),
        ] {
            assert!(!is_status(content_type, body.as_bytes()), "{content_type} {body}");
        }
    }
}
