//! Any answer of a hub to a review: only a plain yes lets a caller in, and callers read at most the
//! code and the reason of any other answer.
//!
//! Input: the code in the first line, then the body.

use auth::edges::{allowed, reviewed};
use http::StatusCode;
use kube::core::Status;
use serde_json::Value;

pub const WORDS: &[&str] = &[
    "201\n",
    "200\n",
    "401\n",
    "429\n",
    "500\n",
    "{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\",\"status\":",
    "{\"kind\":\"SubjectAccessReview\",\"apiVersion\":\"authorization.k8s.io/v1\",\"spec\":{},\"status\":",
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"code\":",
    "\"details\":{\"retryAfterSeconds\":",
    "\"authenticated\":true",
    "\"authenticated\":\"true\"",
    "\"user\":{\"username\":\"",
    "\"groups\":[\"system:masters\"]",
    "\"groups\":null",
    "\"extra\":{\"a\":[\"b\"]}",
    "\"allowed\":true",
    "\"denied\":true",
    "\"allowed\":1",
    "\"evaluationError\":\"",
    "~secret~",
    "null",
    "{}",
    "[",
    "<html>",
];

/// In texts that are for the log alone.
const CANARY: &str = "~secret~";

pub fn check(input: &[u8]) {
    let at = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let code = std::str::from_utf8(&input[..at]).ok().and_then(|code| code.parse().ok());
    let code = code.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(StatusCode::CREATED);
    let body = input.get(at + 1..).unwrap_or_default();
    // Invalid UTF-8 in ignored fields spoils nothing.
    let said: Value = serde_json::from_str(&String::from_utf8_lossy(body)).unwrap_or_default();
    let is_answer = |kind: &str| {
        // Go's clients also take an answer without a kind for the kind that they asked for.
        let is_kind = said["kind"].is_null() || said["kind"] == kind;
        !code.is_client_error() && !code.is_server_error() && is_kind && said["status"].is_object()
    };
    match reviewed(code, body) {
        Ok(Some(user)) => {
            assert!(is_answer("TokenReview") && said["status"]["authenticated"] == true, "{code} let {user:?} in");
            assert!(!user.name.is_empty() && said["status"]["user"]["username"] == user.name.as_str());
        }
        Ok(None) => {}
        Err(error) => told(&error.to_string(), code, body),
    }
    match allowed(code, body) {
        Ok(true) => {
            let status = &said["status"];
            assert!(is_answer("SubjectAccessReview") && status["allowed"] == true && status["denied"] != true);
        }
        Ok(false) => {}
        Err(error) => told(&error.to_string(), code, body),
    }
}

/// Of an error, the code and the reason: of its Status, whose reasons are Kubernetes' words, or of
/// its head if it has none. Of any other answer nothing.
fn told(text: &str, code: StatusCode, body: &[u8]) {
    let Some(told) = text.strip_prefix("the review on the hub failed: the hub answered ") else {
        assert!(!text.contains(CANARY), "{text}");
        return;
    };
    assert!(code.is_client_error() || code.is_server_error(), "{code}: {text}");
    let head = || Status::failure("", code.canonical_reason().unwrap_or_default()).with_code(code.as_u16());
    let Status { code, reason, .. } = serde_json::from_slice(body).unwrap_or_else(|_| head());
    assert_eq!(told, format!("{code} {reason}").trim_end());
}
