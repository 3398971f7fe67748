//! The word by which a request's method appears in metrics.

use http::Method;

/// A method, as one of few: callers may send any word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
    Other,
}

// === impl HttpMethod ===

impl HttpMethod {
    /// The method's own name.
    pub fn method(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
            Self::Other => "other",
        }
    }

    /// The verb a request was authorized with on the hub, before anything was known of its
    /// resource; so a list is a `get`.
    pub fn authorized(self) -> &'static str {
        match self {
            Self::Get | Self::Head => "get",
            Self::Post => "create",
            Self::Put => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::Options | Self::Other => "",
        }
    }
}

impl From<&Method> for HttpMethod {
    fn from(method: &Method) -> Self {
        match *method {
            Method::GET => Self::Get,
            Method::HEAD => Self::Head,
            Method::POST => Self::Post,
            Method::PUT => Self::Put,
            Method::PATCH => Self::Patch,
            Method::DELETE => Self::Delete,
            Method::OPTIONS => Self::Options,
            _ => Self::Other,
        }
    }
}
