//! Reasons of a Status, as Kubernetes names them.

use serde::{Serialize, Serializer};

/// `metav1.StatusReason`, which client-go's `errors.Is…` functions read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The empty reason. The field is omitted.
    Unknown,
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    Conflict,
    AlreadyExists,
    Invalid,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    TooManyRequests,
    /// Also the reason of a 502 and of every other 5xx without a reason of its own.
    InternalError,
    ServiceUnavailable,
    Timeout,
    /// A resourceVersion or continue token that is too old (410).
    Expired,
}

// === impl Reason ===

impl Reason {
    /// The reason's text. Empty for [`Reason::Unknown`].
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::BadRequest => "BadRequest",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::Conflict => "Conflict",
            Self::AlreadyExists => "AlreadyExists",
            Self::Invalid => "Invalid",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::TooManyRequests => "TooManyRequests",
            Self::InternalError => "InternalError",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::Timeout => "Timeout",
            Self::Expired => "Expired",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
    pub(super) fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
