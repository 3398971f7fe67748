//! A Kubernetes API server's answer to a failure.

use serde_json::{Value, json};

/// The Status of a failure; reasons as in `k8s.io/apimachinery/pkg/api/errors`.
pub fn status(code: u16, message: &str) -> Value {
    let reason = match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        409 => "Conflict",
        410 => "Expired",
        415 => "UnsupportedMediaType",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        501 => "NotImplemented",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    };
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": reason, "details": {}, "code": code})
}
